"""The options: which choices a retriever's cross-fit compares."""

from __future__ import annotations

from itertools import product

from evokey.types import Choice

NOTHING = Choice()
SPREADS = (0.0, 0.5, 1.0)
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
UNITS = (0.0, 0.5, 1.0, 2.0)
PENALTIES = (None, 0.4, 0.3, 0.2, 0.1, 0.0)
DEMOTIONS = (0.1, 0.2, 0.4)


def make_grid(units: bool) -> list[Choice]:
    """All choices without a lens or demotion; units: whether a lesson has expansion units. The choice to learn nothing
    comes first: among equals the first is taken."""
    weights = UNITS if units else (0.0,)
    still = [Choice(unit_weight=eta, penalty=penalty) for eta in weights for penalty in PENALTIES]
    moving = [Choice(*move) for move in product(SPREADS, STEPS, weights, PENALTIES)]
    return [NOTHING, *(choice for choice in still if choice.penalty is not None), *moving]
