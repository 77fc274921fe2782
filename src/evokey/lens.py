"""A lens: what lessons say about how people ask here, and how documents speak. It reaches documents no lesson touched.

Dense: q ← normalise(q + g(q) · qM), with M = (XᵀX + BᵀB + μI)⁻¹ Xᵀ(Y − X) in closed form. Rows of X are the taught
queries, of Y the (graded mean, unit) base keys of their documents; rows of B are anchors that should stay where they
are. The gate g(q) opens as q comes near a taught query, by the measure of how near these are to each other: a question
of another kind passes unchanged.

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

from evokey.stores.flat import DenseQuestion
from evokey.stores.sparse import SparseQuestion
from evokey.types import Scores, Vectors

Matrix = NDArray[np.float64]
CLOSED, OPEN = 0.4, 0.8
"""The gate is shut at this quantile of how near taught queries are to their nearest, and open at that one."""
REMEMBERED = 4096
"""Taught queries that the gate looks at."""
ANCHORED = 0.5
"""What an anchor weighs beside a taught query."""
ADDED = 30
"""Words that a sparse lens adds to a question."""
SPOKEN = 30
"""Words that are taken from the documents of one taught query, and kept for one word of a question."""
DOUBT = 2.0
"""Lessons that a word must outweigh."""


@dataclass(frozen=True)
class DenseLens:
    matrix: Vectors
    """M"""
    names: tuple[str, ...]
    taught: Vectors
    """The taught queries, for the gate."""
    closed: float
    open: float

    def gate(self, vector: Vectors) -> float:
        nearest = float((self.taught @ vector).max())
        return float(np.clip((nearest - self.closed) / max(self.open - self.closed, 1e-6), 0, 1))

    def turned(self, question: DenseQuestion) -> DenseQuestion:
        gate = self.gate(question.vector)
        if not gate:
            return question
        turned = question.vector + np.float32(gate) * (question.vector @ self.matrix)
        vector = (turned / max(float(np.linalg.norm(turned)), 1e-12)).astype(np.float32)
        return replace(question, vector=vector, asked=question)

    def because(self, question: DenseQuestion, most: int) -> list[tuple[str, float]]:
        """The taught queries nearest to a question, and how near."""
        near = self.taught @ question.vector
        return [(self.names[at], float(near[at])) for at in np.argsort(-near, kind="stable")[:most]]


@dataclass(frozen=True)
class SparseLens:
    strength: float
    """γ"""
    links: Mapping[str, tuple[tuple[str, float], ...]]
    """Word of a question → words of documents."""
    spoken: Mapping[str, tuple[str, ...]]
    """Word of a question → the taught queries that had it."""

    def turned(self, question: SparseQuestion) -> SparseQuestion:
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


def dense(
    names: Sequence[str], asked: Vectors, right: Vectors, anchors: Vectors, ridges: Sequence[float]
) -> list[Lens]:
    """A lens for each ridge μ: taught queries, the keys of their documents, and what should stay."""
    x, y = asked.astype(np.float64), right.astype(np.float64)
    held = np.sqrt(ANCHORED) * anchors.astype(np.float64)
    near = nearest(asked)
    closed, opened = (float(np.quantile(near, share)) for share in (CLOSED, OPEN))
    kept = slice(None, REMEMBERED)
    return [
        DenseLens(matrix.astype(np.float32), tuple(names[kept]), asked[kept], closed, opened)
        for matrix in _solved(x, y - x, held, ridges)
    ]


def nearest(vectors: Vectors) -> Scores:
    """How near each vector is to the nearest other."""
    found = np.full(len(vectors), -1.0)
    for start in range(0, len(vectors), REMEMBERED):
        part = vectors[start : start + REMEMBERED] @ vectors.T
        part[np.arange(len(part)), start + np.arange(len(part))] = -1
        found[start : start + len(part)] = part.max(axis=1)
    return found


def _solved(x: Matrix, change: Matrix, anchors: Matrix, ridges: Sequence[float]) -> list[Matrix]:
    """By whichever is smaller: the dimensions, or the rows."""
    rows = np.concatenate([x, anchors])
    if len(rows) >= x.shape[1]:
        square, target = rows.T @ rows, x.T @ change
        return [linalg.solve(square + ridge * np.eye(len(square)), target, assume_a="pos") for ridge in ridges]
    gram, target = rows @ rows.T, np.concatenate([change, np.zeros_like(anchors)])
    return [rows.T @ linalg.solve(gram + ridge * np.eye(len(gram)), target, assume_a="pos") for ridge in ridges]


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
