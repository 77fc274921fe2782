"""The options: which choices a retriever's cross-fit compares."""

from __future__ import annotations

from itertools import product

from evokey.types import Choice

NOTHING = Choice()
SPREADS = (0.0, 0.5, 1.0)
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
UNITS = (0.0, 0.5, 1.0, 2.0)
PENALTIES = (1.0, 0.4, 0.3, 0.2, 0.1, 0.0)
"""What was taught is always found again. At a penalty of 1, only if it is asked in (almost) the same words."""
DEMOTIONS = (0.1, 0.2, 0.4)
SHARPNESS = (1.0, 2.0, 4.0)
"""How sharp the gate may be. The coarser options below go with it: a gate makes bold choices harmless."""
HALF_LIVES = (30.0, 120.0)
"""In days."""
LOCALITIES = {"dense": (0.1, 0.2), "sparse": (0.3, 0.5)}
"""How local keys may be: τ of dense ones, θ of sparse ones."""
LOCAL_STEPS, LOCAL_SHARPNESS = {"dense": (0.25, 0.5, 1.0, 2.0), "sparse": (1.0, 2.0, 4.0, 8.0)}, (0.0, 1.0)
COARSE_SPREAD, COARSE_STEPS, COARSE_PENALTIES = 0.5, (0.0, 0.5, 1.0, 2.0, 4.0), (1.0, 0.3, 0.1, 0.0)


def make_grid(units: bool) -> list[Choice]:
    """All choices without a lens or demotion; units: whether a lesson has expansion units. The choice to learn nothing
    comes first: among equals the first is taken."""
    weights = UNITS if units else (0.0,)
    still = [Choice(unit_weight=eta, penalty=penalty) for eta in weights for penalty in PENALTIES]
    moving = [Choice(*move) for move in product(SPREADS, STEPS, weights, PENALTIES)]
    return [NOTHING, *still, *moving, *_coarse(SHARPNESS, weights)]


def lens_grid() -> list[Choice]:
    """The choices that are tried with each of the best lenses."""
    return _coarse((0.0, 1.0, 4.0), (0.0,))


def local_grid(kind: str) -> list[Choice]:
    """Local keys of a kind, sorted by how sharp the gate is."""
    return [
        Choice(COARSE_SPREAD, step, 0.0, penalty, sharpness=sharp, locality=locality)
        for sharp in LOCAL_SHARPNESS
        for locality in LOCALITIES.get(kind, ())
        for step in LOCAL_STEPS[kind]
        for penalty in COARSE_PENALTIES
    ]


def _coarse(sharpness: tuple[float, ...], weights: tuple[float, ...]) -> list[Choice]:
    """Sorted by how sharp the gate is: such choices are scored together."""
    return [
        Choice(COARSE_SPREAD if step else 0.0, step, units, penalty, sharpness=sharp)
        for sharp, step, units, penalty in product(sharpness, COARSE_STEPS, weights, COARSE_PENALTIES)
    ]
