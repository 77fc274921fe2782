"""How far keys moved, beside how far they could have.

A dense key is k = normalise(k⁰ + λV), |k⁰| = 1, V = Σ αₑ e over unit texts e. So
|λV| ≤ m = λ Σ |αₑ|, and m < λ + γ under the guarded policy: what was taught weighs less than 1 together, and what
speaks against a document, αₑ < 0, less than γ/λ. Two bounds hold for 1 − cos(k⁰, k):

- by mass: a vector no longer than m < 1, added to a unit vector, turns it by arcsin m at most (when the sum is tangent
  to the sphere of radius m around k⁰): 1 − √(1 − m²). Beyond m = 1, length alone bounds nothing: 2, the opposite.
- by direction: k is a positive combination of k⁰ and V, so it lies on the arc between them, and never goes farther
  than V itself, the mean of what was taught: 1 − cos(k⁰, V). This holds for every λ.

A document's bound is the smaller one. Sparse keys are not normalised: their displacement is the mass itself, m ≤ λ + γ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evokey.memory import Memory
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.types import Choice, Scores

ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Displacement:
    """How far one retriever's keys have moved, beside how far they could have."""

    retriever: str
    kind: str
    choice: Choice
    documents: int
    median: float
    largest: float
    bound: float
    """What no document can pass, by λ and γ alone."""
    within: bool
    """Whether every document keeps to its own bound."""
    moved: Sequence[float]
    bounds: Sequence[float]
    """Of each touched document, in the same order: by increasing displacement."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Of each touched document its farthest key: the displacement, and the bound of its own."""

    moved: Mapping[int, float]
    bounds: Mapping[int, float]


def displacements(memory: Memory) -> list[Displacement]:
    """How far the current epoch has moved each retriever's keys."""
    epoch = memory.stats().epoch
    view = memory.index.view(epoch)
    taught = [(one, view.overlays.of[one.name]) for one in view.retrievers]
    return [sum_up(one, overlay, find_moves(one, overlay)) for one, overlay in taught]


def sum_up(retriever: Retriever, overlay: Overlay, moves: Moves) -> Displacement:
    order = sorted(moves.moved, key=lambda number: moves.moved[number])
    moved, bounds = [moves.moved[number] for number in order], [moves.bounds[number] for number in order]
    masses = [np.asarray(part.evidence.sum(axis=1), np.float64).ravel() for part in overlay.parts]
    most = max([1.0, *np.concatenate(masses).tolist()])
    mass = overlay.choice.step * most + overlay.choice.demotion
    return Displacement(
        retriever=retriever.name,
        kind=retriever.kind,
        choice=overlay.choice,
        documents=len(order),
        median=float(np.median(moved)) if moved else 0.0,
        largest=max(moved, default=0.0),
        bound=float(by_mass(np.array(mass))) if retriever.kind == "dense" else mass,
        within=all(one <= limit + ROUNDING for one, limit in zip(moved, bounds, strict=True)),
        moved=moved,
        bounds=bounds,
    )


def find_moves(retriever: Retriever, overlay: Overlay) -> Moves:
    """Of both parts."""
    parts = [_moves_of(retriever, part) for part in overlay.parts]
    moved = {number: far for part in parts for number, far in part.moved.items()}
    return Moves(moved, {number: far for part in parts for number, far in part.bounds.items()})


def _moves_of(retriever: Retriever, overlay: Overlay) -> Moves:
    numbers, step = overlay.documents.tolist(), overlay.step
    if overlay.texts is None or not step or not numbers:
        still = dict.fromkeys(numbers, 0.0)
        return Moves(still, still)
    base, pull = retriever.base.fetch(overlay.documents).block, step * overlay.pull
    moved = np.asarray(abs(pull).sum(axis=1), np.float64).ravel()
    bounds = np.maximum(moved, overlay.choice.step + overlay.choice.demotion)
    if base.unit:
        towards = pull @ overlay.texts.vectors.astype(np.float64)
        keys = base.vectors.astype(np.float64)
        bounds = np.minimum(by_mass(moved), _distances(keys, towards))
        moved = _distances(keys, keys + towards)
    best = [overlay.touched.best(one).tolist() for one in (moved, bounds)]
    return Moves(*(dict(zip(numbers, one, strict=True)) for one in best))


def by_mass(mass: Scores) -> Scores:
    """How far 1 − cos can go when a vector no longer than this is added to a unit vector."""
    return np.where(mass < 1, 1 - np.sqrt(np.maximum(1 - mass**2, 0)), np.where(mass > 1, 2.0, 1.0))


def _distances(keys: Scores, others: Scores) -> Scores:
    """1 − cosine, row by row; 0 where there is no direction."""
    lengths = np.linalg.norm(keys, axis=1) * np.linalg.norm(others, axis=1)
    return np.where(lengths > 1e-12, 1 - np.vecdot(keys, others) / np.maximum(lengths, 1e-12), 0.0)
