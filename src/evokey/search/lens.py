"""A lens: what lessons say about how people ask here, and how documents speak. It reaches documents no lesson touched.

    q ← normalise(q + g(q) · (W(q + Σ k(q, z) c_z) − q))         z: centres (taught queries); k(q, z) = exp((q·z − 1)/τ)

The sum is a kernel ridge regression from taught queries x to the way y − x to the (graded mean, unit) base keys of
their documents:

    C = (KᵀK + α AᵀA + μ K_zz)⁻¹ Kᵀ(Y − X)     K: taught queries × centres, A: anchors (base keys) × centres

Anchors should stay where they are. W evens out the directions in which documents differ most, whatever is asked:

    W = (S/s + ν I)⁻¹ · const.                 S: covariance of the anchors, s its mean eigenvalue

The gate g(q) opens as q comes near a taught query, by the measure of how near these are to each other: a question of
another kind passes unchanged. Taught queries enter by sums alone, kept for each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from evokey.scoring.dense import DenseQuestion
from evokey.types import Numbers, Scores, Vectors

Matrix = NDArray[np.float64]
LensId = tuple[float, float, float]
"""How strong a lens is (μ; of words γ, and the rest is 0); the quantile at which its gate is shut, of how near taught
queries are to the nearest other (it is wide open at a quantile that follows from that); and how mildly it evens out
directions (ν; 0: not at all)."""
WIDTH = 0.25
"""τ of the kernel."""
LIGHTLY, WARILY = 0.3, 1.0
"""What an anchor weighs beside a taught query: in a lens with an open gate, and in a wary one."""
WARY = 0.25
"""A gate is wary if it is shut at this quantile."""
NARROWEST = 0.01
"""A gate opens over at least so much of nearness: where most taught queries have a double, rounding would open it."""
JITTER = 1e-6


class Lens(Protocol):
    """Of any kind of keys."""

    def turn(self, question: Any, /) -> Any:
        """A question as the lens maps it; the same one where it changes nothing."""
        ...

    def because(self, question: Any, /, most: int) -> list[tuple[str, float]]:
        """The taught queries that have most to do with that, and how much."""
        ...


@dataclass(frozen=True)
class DenseLens:
    names: tuple[str, ...]
    centres: Vectors
    """Some taught queries."""
    pulls: Vectors
    """C: where each centre draws a question."""
    closed: float
    open: float
    metric: Vectors | None = None
    """W; None: it leaves all directions as they are."""

    def turn(self, question: DenseQuestion) -> DenseQuestion:
        near = self.centres @ question.vector
        gate = float(np.clip((near.max() - self.closed) / (self.open - self.closed), 0, 1))
        if not gate:
            return question
        change = np.exp((near - 1) / np.float32(WIDTH)) @ self.pulls
        if self.metric is not None:
            change = self.metric @ (question.vector + change) - question.vector
        turned = question.vector + np.float32(gate) * change
        vector = (turned / max(float(np.linalg.norm(turned)), 1e-12)).astype(np.float32)
        return replace(question, vector=vector, asked=question)

    def because(self, question: DenseQuestion, most: int) -> list[tuple[str, float]]:
        """The taught queries nearest to a question, and how near."""
        near = self.centres @ question.vector
        return [(self.names[at], float(near[at])) for at in np.argsort(-near, kind="stable")[:most]]


class Ways:
    """The way from each taught query to its documents, summed up by folds: a lens for any of them is soon made."""

    def __init__(self, asked: Vectors, right: Vectors, folds: Numbers, centres: Numbers, anchors: Vectors) -> None:
        """folds: that of each query. centres: which of the queries."""
        x, y = asked.astype(np.float64), right.astype(np.float64)
        self._centres, self._folds = asked[centres], folds[centres]
        self._anchors = anchors.astype(np.float64)
        spots = x[centres]
        held = _kernel(self._anchors, spots)
        self._inner, self._held = _kernel(spots, spots), held.T @ held
        self._sums: dict[int, tuple[Matrix, Matrix]] = {}
        self._metrics: dict[float, Vectors] = {}
        for fold in np.unique(folds).tolist():
            own = folds == fold
            seen = _kernel(x[own], spots)
            self._sums[fold] = seen.T @ seen, seen.T @ (y[own] - x[own])

    def lenses(
        self, names: Sequence[str], ids: Sequence[LensId], without: int | None = None
    ) -> Mapping[LensId, DenseLens]:
        """These lenses, of all folds or all but one, each made when it is asked for; names: those of the centres."""
        kept = np.flatnonzero(self._folds != without)
        if len(kept) < 2:
            return {}
        sums = [sums for fold, sums in self._sums.items() if fold != without]
        square, change = (sum(parts)[kept] for parts in zip(*sums, strict=True))
        block = np.ix_(kept, kept)
        return Lenses(
            ids,
            tuple(names[at] for at in kept.tolist()),
            self._centres[kept],
            Equations(square[:, kept], change, self._held[block], self._inner[block]),
            self._metric,
        )

    def _metric(self, mildness: float) -> Vectors:
        """W for one ν."""
        if mildness not in self._metrics:
            inverse = np.linalg.inv(self._spread + mildness * np.eye(len(self._spread)))
            self._metrics[mildness] = np.asarray(inverse * (len(inverse) / np.trace(inverse)), np.float32)
        return self._metrics[mildness]

    @cached_property
    def _spread(self) -> Matrix:
        """S/s: how documents differ, with a mean eigenvalue of 1; nothing where they do not."""
        size = self._anchors.shape[1]
        if len(self._anchors) < 2:
            return np.zeros((size, size))
        apart = self._anchors - self._anchors.mean(axis=0)
        found = apart.T @ apart
        return np.asarray(found * (size / max(float(np.trace(found)), 1e-12)))


class Equations(NamedTuple):
    square: Matrix
    """KᵀK"""
    change: Matrix
    """Kᵀ(Y − X)"""
    held: Matrix
    """AᵀA"""
    inner: Matrix
    """K_zz"""

    def solve(self, strength: float, weight: float) -> Vectors:
        """C for one μ, with anchors of this weight."""
        left = self.square + weight * self.held + strength * self.inner
        left[np.diag_indices(len(left))] += JITTER
        return np.asarray(linalg.solve(left, self.change, assume_a="pos"), np.float32)


class Lenses(Mapping[LensId, DenseLens]):
    """Lenses with the same centres, each made when it is asked for."""

    def __init__(
        self,
        ids: Sequence[LensId],
        names: tuple[str, ...],
        centres: Vectors,
        equations: Equations,
        metric: Callable[[float], Vectors],
    ) -> None:
        self._ids, self._names, self._centres, self._equations = frozenset(ids), names, centres, equations
        self._metric, self._nearness = metric, nearest(centres)
        self._made: dict[LensId, DenseLens] = {}
        self._solved: dict[tuple[float, float], Vectors] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[LensId]:
        return iter(sorted(self._ids))

    def __contains__(self, one: object) -> bool:
        return one in self._ids

    def __getitem__(self, one: LensId) -> DenseLens:
        if one not in self._ids:
            raise KeyError(one)
        if one not in self._made:
            self._made[one] = self._make(*one)
        return self._made[one]

    def _make(self, strength: float, shut: float, whitening: float) -> DenseLens:
        system = strength, WARILY if shut >= WARY else LIGHTLY
        if system not in self._solved:
            self._solved[system] = self._equations.solve(*system)
        closed, opened = (float(np.quantile(self._nearness, share)) for share in (shut, 2 * shut + 0.25))
        closed = min(closed, opened - NARROWEST)
        metric = self._metric(whitening) if whitening else None
        return DenseLens(self._names, self._centres, self._solved[system], closed, opened, metric)


def nearest(vectors: Vectors) -> Scores:
    """How near each vector is to the nearest other."""
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1)
    return np.asarray(near.max(axis=1), np.float64)


def _kernel(a: Matrix, b: Matrix) -> Matrix:
    return np.exp((a @ b.T - 1) / WIDTH)
