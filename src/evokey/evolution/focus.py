"""Lessons → lenses, for one retriever: what was asked, and the base keys of what was right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from evokey import lens
from evokey.evolution.attribution import Attribution
from evokey.lens import Lens
from evokey.retriever import Retriever
from evokey.stores.embedded import NO_NUMBERS
from evokey.stores.flat import DenseBlock, FlatStore
from evokey.stores.sparse import SparseBlock, SparseStore
from evokey.types import Numbers, Vectors

RIDGES = (1.0, 3.0, 10.0, 30.0)
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
ANCHORS = 512
"""Documents whose keys should stay where they are, as questions."""
FEWEST = 8
"""Taught queries below which there is no lens."""


def strengths(retriever: Retriever) -> tuple[float, ...]:
    """How strong a lens may be; none where questions are several vectors."""
    return {"dense": RIDGES, "sparse": STRENGTHS}.get(retriever.kind, ())


class Focus:
    """Makes lenses for a retriever, from what an attribution says."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._asked: dict[str, Any] = {}

    def lenses(self, taught: Attribution, wanted: Sequence[float]) -> dict[float, Lens]:
        """A lens of each strength; none where too little was taught."""
        credited = _credited(taught) if wanted else {}
        if len(credited) < FEWEST:
            return {}
        names = [taught.texts[column] for column in credited]
        store, base = self._retriever.store, taught.base
        if isinstance(store, FlatStore) and isinstance(base, DenseBlock):
            right = np.stack([_mean(base.vectors, rows, grades) for rows, grades in credited.values()])
            asked = np.stack([self._question(name).vector for name in names])
            made = lens.dense(names, asked, right, self._anchors, wanted)
        elif isinstance(store, SparseStore) and isinstance(base, SparseBlock):
            spoken = _Spoken(store, base)
            terms = [self._question(name).terms for name in names]
            made = lens.sparse(names, terms, [spoken.mean(*pair) for pair in credited.values()], wanted)
        else:
            return {}
        return dict(zip(wanted, made, strict=True))

    def _question(self, text: str) -> Any:
        if text not in self._asked:
            self._asked[text] = self._retriever.lesson(text, {})
        return self._asked[text]

    @cached_property
    def _anchors(self) -> Vectors:
        """Base keys of some documents, chosen by their numbers alone."""
        rows = self._retriever.store.rows
        living = np.setdiff1d(rows.documents, np.fromiter(rows.dead, np.int64, len(rows.dead)))
        block = self._retriever.store.take(sampled(living, ANCHORS))
        assert isinstance(block, DenseBlock)
        return block.vectors


def sampled(numbers: Numbers, size: int) -> Numbers:
    """So many of the numbers, as if by chance, and the same for the same numbers."""
    if not len(numbers):
        return NO_NUMBERS
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.sort(numbers[np.argsort(mixed, kind="stable")[:size]])


def _credited(taught: Attribution) -> dict[int, tuple[list[int], list[float]]]:
    """Query (its column) → the rows that were right for it, and how right; units aside."""
    pairs = taught.pairs
    found: defaultdict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for at in np.flatnonzero(pairs.shares == 0).tolist():
        rows, grades = found[int(pairs.columns[at])]
        rows.append(int(pairs.rows[at]))
        grades.append(float(pairs.grades[at]))
    return dict(sorted(found.items()))


def _mean(vectors: Vectors, rows: Sequence[int], grades: Sequence[float]) -> Vectors:
    total = np.asarray(grades) @ vectors[rows].astype(np.float64)
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), np.float32)


class _Spoken:
    """The words of documents, as they weigh in the collection."""

    def __init__(self, store: SparseStore, base: SparseBlock) -> None:
        collection, encoder = store.collection, store.encoder
        idf: Callable[[str], float] = lambda term: collection.term(term).idf  # noqa: E731
        self._base = base
        self._idf = np.array([idf(term) for term in base.terms])
        self._pivots = encoder.pivots(base.lengths, collection.average)

    def mean(self, rows: Sequence[int], grades: Sequence[float]) -> Mapping[str, float]:
        found: defaultdict[str, float] = defaultdict(float)
        counts = self._base.counts
        for row, grade in zip(rows, grades, strict=True):
            span = slice(counts.indptr[row], counts.indptr[row + 1])
            held, columns = counts.data[span].astype(np.float64), counts.indices[span]
            weights = held if self._pivots is None else held / (held + self._pivots[row])
            for column, weight in zip(columns.tolist(), (grade * weights * self._idf[columns]).tolist(), strict=True):
                found[self._base.terms[column]] += weight
        return found
