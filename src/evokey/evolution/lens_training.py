"""Trains lenses (query maps) for one retriever, from taught queries and the base keys of their relevant documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from evokey.evolution.attribution import Attribution
from evokey.evolution.folds import fold_of, sample
from evokey.scoring.block import NO_NUMBERS
from evokey.scoring.sparse import SparseBlock, SparseQuestion
from evokey.search import lens
from evokey.search.lens import Lens, LensId, Ways
from evokey.search.retriever import Retriever
from evokey.types import Numbers, Vectors

RIDGES = (0.1, 0.5, 2.0, 10.0)
STRENGTHS = (0.25, 0.5, 1.0)
OPEN, CAUTIOUS = 0.0, 0.25
"""Where a gate is closed: for questions that are farther from all taught queries than every taught query is from its
nearest other one, or than a quarter of them are."""
CENTRES, EXAMPLES, ANCHORS = 1024, 4096, 2048
"""Taught queries that are centres of a dense lens, and taught queries that it learns from; documents whose keys, taken
as questions, should not move."""
MIN_QUERIES = 8
"""With fewer taught queries there is no lens."""


class LensTrainer:
    """Trains lenses for a retriever, from what its documents were taught."""

    def __init__(self, retriever: Retriever, attribution: Attribution, last_anchor: int | None = None) -> None:
        """last_anchor: the newest document that may be an anchor; by default the newest of all."""
        self._retriever: Any = retriever
        self._base: Any = attribution.base
        relevant = _relevant_rows(attribution)
        place = {attribution.texts[column]: column for column in relevant}
        self._relevant = {query: relevant[place[query]] for query in sample(list(place), EXAMPLES)}
        self.last_anchor = int(retriever.documents.max(initial=0)) if last_anchor is None else last_anchor

    def settings(self, *, traffic_related: bool) -> tuple[LensId, ...]:
        """The lenses to try. Their gates are cautious, unless the traffic is known to ask about what was taught."""
        if len(self._relevant) < MIN_QUERIES:
            return ()
        if self._retriever.kind == "sparse":
            return tuple((strength, OPEN) for strength in STRENGTHS)
        if self._retriever.kind != "dense":  # lessons say nothing about single tokens of a question
            return ()
        return tuple((ridge, OPEN if traffic_related else CAUTIOUS) for ridge in RIDGES)

    def train(self, settings: Sequence[LensId], without: int | None = None) -> dict[LensId, Lens]:
        """A lens for each setting; `without` leaves the queries of a fold out."""
        names = [name for name in self._relevant if fold_of(name) != without]
        if len(names) < MIN_QUERIES or not settings:
            return {}
        if self._retriever.kind == "dense":
            return self._ways.lenses([list(self._relevant)[at] for at in self._centres], settings, without)
        weights = _TermWeights(self._base, self._retriever.weigh(dict.fromkeys(self._base.terms, 1.0), {}))
        terms = [self._retriever.lesson(name, {}).terms for name in names]
        relevant = [weights.mean(*self._relevant[name]) for name in names]
        found = lens.sparse(names, terms, relevant, [strength for strength, _ in settings])
        return dict(zip(settings, found, strict=True))

    @cached_property
    def _queries(self) -> Vectors:
        return np.stack([self._retriever.lesson(name, {}).vector for name in self._relevant])

    @cached_property
    def _centres(self) -> Numbers:
        chosen = frozenset(sample(list(self._relevant), CENTRES))
        return np.array([at for at, name in enumerate(self._relevant) if name in chosen], np.int64)

    @cached_property
    def _ways(self) -> Ways:
        targets = np.stack([_mean(self._base.vectors, rows, grades) for rows, grades in self._relevant.values()])
        folds = np.array([fold_of(name) for name in self._relevant], np.int64)
        return Ways(self._queries, targets, folds, self._centres, self._anchors)

    @property
    def _anchors(self) -> Vectors:
        """Base keys of some documents, chosen by their numbers alone."""
        live = self._retriever.documents
        keys = self._retriever.base.fetch(sample_numbers(live[live <= self.last_anchor], ANCHORS))
        return np.asarray(keys.block.vectors.reshape(-1, self._queries.shape[1]))


def sample_numbers(numbers: Numbers, size: int) -> Numbers:
    """A pseudo-random sample: the same for the same numbers."""
    if not len(numbers):
        return NO_NUMBERS
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.sort(numbers[np.argsort(mixed, kind="stable")[:size]])


def _relevant_rows(attribution: Attribution) -> dict[int, tuple[list[int], list[float]]]:
    """Query (its column) → the rows that are relevant to it, and their grades; without units."""
    pairs = attribution.pairs
    found: defaultdict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for at in np.flatnonzero(pairs.shares == 0).tolist():
        rows, grades = found[int(pairs.columns[at])]
        rows.append(int(pairs.rows[at]))
        grades.append(float(pairs.grades[at]))
    return dict(sorted(found.items()))


def _mean(vectors: Vectors, rows: Sequence[int], grades: Sequence[float]) -> Vectors:
    total = np.asarray(grades) @ vectors[rows].astype(np.float64)
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), np.float32)


class _TermWeights:
    """The terms of documents, with their weights in the collection."""

    def __init__(self, base: SparseBlock, question: SparseQuestion) -> None:
        """question: with all terms of the documents."""
        self._terms, self._weights, self._idf = base.terms, base.weigh(question), np.array(question.idf)

    def mean(self, rows: Sequence[int], grades: Sequence[float]) -> Mapping[str, float]:
        found: defaultdict[str, float] = defaultdict(float)
        for row, grade in zip(rows, grades, strict=True):
            span = slice(*self._weights.indptr[row : row + 2])
            weights, columns = self._weights.data[span], self._weights.indices[span]
            for column, weight in zip(columns.tolist(), (grade * weights * self._idf[columns]).tolist(), strict=True):
                found[self._terms[column]] += weight
        return found
