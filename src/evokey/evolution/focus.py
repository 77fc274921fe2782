"""Lessons → lenses, for one retriever: what was asked, and the base keys of what was right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from evokey.evolution.attribution import Attribution
from evokey.evolution.evidence import fold, sample
from evokey.search import lens
from evokey.search.lens import Lens, Turn, Ways
from evokey.search.retriever import Retriever
from evokey.stores.embedded import NO_NUMBERS
from evokey.stores.flat import DenseBlock, FlatStore
from evokey.stores.sparse import SparseBlock, SparseStore
from evokey.types import Numbers, Vectors

RIDGES = (0.1, 0.5, 2.0, 10.0)
STRENGTHS = (0.25, 0.5, 1.0)
OPEN, WARY = 0.0, 0.25
"""Where a gate is shut: for questions that are farther from all that was taught than every taught query is from the
nearest other, or farther than a quarter of them."""
CENTRES, LEARNED, ANCHORS = 1024, 4096, 2048
"""Taught queries that a dense lens goes by, and that it learns from; documents whose keys should stay, as questions."""
FEWEST = 8
"""Taught queries below which there is no lens."""


class Focus:
    """Makes lenses for a retriever, from what an attribution says."""

    def __init__(self, retriever: Retriever, taught: Attribution, last_anchor: int | None = None) -> None:
        """last_anchor: the newest document that may be an anchor; the newest of all if not said."""
        self._retriever, self._base = retriever, taught.base
        credited = _credited(taught)
        names = sorted(sample([taught.texts[column] for column in credited], LEARNED))
        place = {taught.texts[column]: column for column in credited}
        self._right = {name: credited[place[name]] for name in names}
        self.last_anchor = int(self._living.max(initial=0)) if last_anchor is None else last_anchor

    def turns(self, *, at_home: bool) -> tuple[Turn, ...]:
        """How a lens may be: wary, unless the traffic is heard to ask about what was taught."""
        if len(self._right) < FEWEST:
            return ()
        if self._retriever.kind == "sparse":
            return tuple((strength, OPEN) for strength in STRENGTHS)
        if self._retriever.kind != "dense":  # one map for all tokens of a question is not what lessons speak of
            return ()
        return tuple((ridge, OPEN if at_home else WARY) for ridge in RIDGES)

    def lenses(self, turns: Sequence[Turn], without: int | None = None) -> dict[Turn, Lens]:
        """A lens for each turn; without a fold, as if its queries had not been taught."""
        names = [name for name in self._right if fold(name) != without]
        if len(names) < FEWEST or not turns:
            return {}
        if isinstance(self._retriever.store, FlatStore):
            return self._ways.lenses([list(self._right)[at] for at in self._centres], turns, without)
        if not isinstance(self._retriever.store, SparseStore) or not isinstance(self._base, SparseBlock):
            return {}
        spoken = _Spoken(self._retriever.store, self._base)
        terms = [self._retriever.lesson(name, {}).terms for name in names]
        right = [spoken.mean(*self._right[name]) for name in names]
        made = lens.sparse(names, terms, right, [strength for strength, _ in turns])
        return dict(zip(turns, made, strict=True))

    @cached_property
    def _asked(self) -> Vectors:
        return np.stack([self._retriever.lesson(name, {}).vector for name in self._right])

    @cached_property
    def _centres(self) -> Numbers:
        chosen = frozenset(sample(list(self._right), CENTRES))
        return np.array([at for at, name in enumerate(self._right) if name in chosen], np.int64)

    @cached_property
    def _ways(self) -> Ways:
        assert isinstance(self._base, DenseBlock)
        right = np.stack([_mean(self._base.vectors, rows, grades) for rows, grades in self._right.values()])
        folds = np.array([fold(name) for name in self._right], np.int64)
        return Ways(self._asked, right, folds, self._centres, self._anchors)

    @property
    def _anchors(self) -> Vectors:
        """Base keys of some documents, chosen by their numbers alone."""
        living = self._living
        block = self._retriever.store.take(sampled(living[living <= self.last_anchor], ANCHORS))
        assert isinstance(block, DenseBlock)
        return block.vectors.reshape(-1, self._asked.shape[1])

    @property
    def _living(self) -> Numbers:
        """Not those that are gone while their rows still lie there: nobody can tell for how long."""
        rows = self._retriever.store.rows
        return np.setdiff1d(rows.documents, np.fromiter(rows.dead, np.int64, len(rows.dead)))


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
        idf: Callable[[str], float] = lambda term: collection.terms[term].idf  # noqa: E731
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
