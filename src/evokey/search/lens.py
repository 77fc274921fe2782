"""A lens: what lessons say about how people ask here, and how documents speak. It reaches documents no lesson touched.

Dense: q ← normalise(q + g(q) · Σ k(q, z) c_z), the sum over centres z: taught queries; k(q, z) = exp((q·z − 1)/τ).
Kernel ridge regression from taught queries x to the way y − x to the (graded mean, unit) base keys of their documents:

    C = (KᵀK + α AᵀA + μ K_zz)⁻¹ Kᵀ(Y − X)     K: taught queries × centres, A: anchors (base keys) × centres

Anchors should stay where they are. The gate g(q) opens as q comes near a taught query, by the measure of how near these
are to each other: a question of another kind passes unchanged. Taught queries enter by sums alone, kept for each fold.

Sparse: a word of the question brings the words that documents spoke where taught queries had that word, shrunk by how
often it was seen; the strongest are added to the question, up to a share γ of its own weight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from evokey.scoring.dense import DenseQuestion
from evokey.scoring.sparse import SparseQuestion
from evokey.types import Numbers, Scores, Vectors

Matrix = NDArray[np.float64]
LensId = tuple[float, float]
"""How strong a lens is (μ or γ), and the quantile at which its gate is shut: how near taught queries are to the nearest
other. It is wide open at a quantile that follows from that."""
WIDTH = 0.25
"""τ of the kernel."""
LIGHTLY, WARILY = 0.3, 1.0
"""What an anchor weighs beside a taught query: in a lens with an open gate, and in a wary one."""
NARROWEST = 0.01
"""A gate opens over at least so much of nearness: where most taught queries have a double, rounding would open it."""
JITTER = 1e-6
ADDED = 30
"""Words that a sparse lens adds to a question."""
SPOKEN = 30
"""Words that are taken from the documents of one taught query, and kept for one word of a question."""
DOUBT = 2.0
"""Lessons that a word must outweigh."""


@dataclass(frozen=True)
class DenseLens:
    names: tuple[str, ...]
    centres: Vectors
    """Some taught queries."""
    pulls: Vectors
    """C: where each centre draws a question."""
    closed: float
    open: float

    def turn(self, question: DenseQuestion) -> DenseQuestion:
        near = self.centres @ question.vector
        gate = float(np.clip((near.max() - self.closed) / (self.open - self.closed), 0, 1))
        if not gate:
            return question
        pull = np.exp((near - 1) / np.float32(WIDTH)) @ self.pulls
        turned = question.vector + np.float32(gate) * pull
        vector = (turned / max(float(np.linalg.norm(turned)), 1e-12)).astype(np.float32)
        return replace(question, vector=vector, asked=question)

    def because(self, question: DenseQuestion, most: int) -> list[tuple[str, float]]:
        """The taught queries nearest to a question, and how near."""
        near = self.centres @ question.vector
        return [(self.names[at], float(near[at])) for at in np.argsort(-near, kind="stable")[:most]]


@dataclass(frozen=True)
class SparseLens:
    strength: float
    """γ"""
    links: Mapping[str, tuple[tuple[str, float], ...]]
    """Word of a question → words of documents."""
    spoken: Mapping[str, tuple[str, ...]]
    """Word of a question → the taught queries that had it."""

    def turn(self, question: SparseQuestion) -> SparseQuestion:
        mass = sum(question.weights)
        brought: defaultdict[str, float] = defaultdict(float)
        for term, weight in zip(question.terms, question.weights, strict=True):
            for other, strength in self.links.get(term, ()):
                brought[other] += weight * strength
        if not brought or not mass:
            return question
        best = sorted(brought.items(), key=lambda item: (-item[1], item[0]))[:ADDED]
        weights = dict(zip(question.terms, question.weights, strict=True))
        for term, amount in best:
            weights[term] = weights.get(term, 0.0) + self.strength * amount
        terms = tuple(sorted(weights))
        return replace(question, terms=terms, weights=tuple(weights[term] for term in terms), asked=question)

    def because(self, question: SparseQuestion, most: int) -> list[tuple[str, float]]:
        """The taught queries that share most of a question's words, and how many."""
        shared: defaultdict[str, float] = defaultdict(float)
        for term in question.terms:
            for name in self.spoken.get(term, ()):
                shared[name] += 1.0
        return sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:most]


Lens = DenseLens | SparseLens


class Ways:
    """The way from each taught query to its documents, summed up by folds: a lens for any of them is soon made."""

    def __init__(self, asked: Vectors, right: Vectors, folds: Numbers, centres: Numbers, anchors: Vectors) -> None:
        """folds: that of each query. centres: which of the queries."""
        x, y = asked.astype(np.float64), right.astype(np.float64)
        self._centres, self._folds = asked[centres], folds[centres]
        spots = x[centres]
        held = _kernel(anchors.astype(np.float64), spots)
        self._inner, self._held = _kernel(spots, spots), held.T @ held
        self._sums: dict[int, tuple[Matrix, Matrix]] = {}
        for fold in np.unique(folds).tolist():
            own = folds == fold
            seen = _kernel(x[own], spots)
            self._sums[fold] = seen.T @ seen, seen.T @ (y[own] - x[own])

    def lenses(self, names: Sequence[str], ids: Sequence[LensId], without: int | None = None) -> dict[LensId, Lens]:
        """A lens for each turn, of all folds or all but one; names: those of the centres."""
        kept = np.flatnonzero(self._folds != without)
        if len(kept) < 2:
            return {}
        sums = [sums for fold, sums in self._sums.items() if fold != without]
        square, change = np.zeros_like(self._inner), np.zeros_like(sums[0][1])
        for one, way in sums:
            square += one
            change += way
        block = np.ix_(kept, kept)
        square, held, inner, change = square[block], self._held[block], self._inner[block], change[kept]
        near, spoken = nearest(self._centres[kept]), tuple(names[at] for at in kept.tolist())
        found: dict[LensId, Lens] = {}
        for strength, shut in ids:
            left = square + (WARILY if shut else LIGHTLY) * held + strength * inner + JITTER * np.eye(len(kept))
            pulls = linalg.solve(left, change, assume_a="pos").astype(np.float32)
            closed, opened = (float(np.quantile(near, share)) for share in (shut, 2 * shut + 0.25))
            closed = min(closed, opened - NARROWEST)
            found[strength, shut] = DenseLens(spoken, self._centres[kept], pulls, closed, opened)
        return found


def nearest(vectors: Vectors) -> Scores:
    """How near each vector is to the nearest other."""
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1)
    return np.asarray(near.max(axis=1), np.float64)


def _kernel(a: Matrix, b: Matrix) -> Matrix:
    return np.exp((a @ b.T - 1) / WIDTH)


def sparse(
    names: Sequence[str],
    asked: Sequence[Sequence[str]],
    right: Sequence[Mapping[str, float]],
    strengths: Sequence[float],
) -> list[Lens]:
    """A lens for each strength γ: the words of taught queries, and the weighted words of their documents."""
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for name, terms, spoken in zip(names, asked, right, strict=True):
        heaviest = sorted(spoken.items(), key=lambda item: (-item[1], item[0]))[:SPOKEN]
        total = sum(weight for _, weight in heaviest)
        for term in terms:
            seen[term].append(name)
            for other, weight in heaviest:
                found[term][other] += weight / total
    links = {
        term: tuple(
            (other, amount / (len(seen[term]) + DOUBT))
            for other, amount in sorted(others.items(), key=lambda item: (-item[1], item[0]))[:SPOKEN]
        )
        for term, others in sorted(found.items())
    }
    spoken_by = {term: tuple(queries) for term, queries in seen.items()}
    return [SparseLens(strength, links, spoken_by) for strength in strengths]
