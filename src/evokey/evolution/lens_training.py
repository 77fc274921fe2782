"""Trains lenses (query maps) for one retriever, from taught queries and the base keys of their relevant documents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from evokey.evolution.attribution import Attribution
from evokey.evolution.folds import fold_of, sample, sample_numbers
from evokey.scoring.block import Keys
from evokey.search.lens import Lens, LensId, Ways
from evokey.search.retriever import Retriever
from evokey.search.word_lens import Words
from evokey.types import Numbers, Scores, Vectors

RIDGES = (0.1, 0.5, 2.0, 10.0)
STRENGTH = 0.5
"""Of a lens of words."""
OPEN, CAUTIOUS = 0.0, (0.1, 0.25)
"""Where a gate is closed: for questions that are farther from all taught queries than every taught query is from its
nearest other one, or than a tenth or a quarter of them are."""
METRICS = (0.0, 3.0, 1.0)
"""How mildly directions are evened out, 0 for not at all."""
CENTRES, EXAMPLES, ANCHORS = 1024, 4096, 2048
"""Taught queries that are centres of a dense lens, and taught queries that it learns from; documents whose keys, taken
as questions, should not move."""
MIN_QUERIES = 8
"""With fewer taught queries there is no lens."""


class LensTrainer(ABC):
    """Trains lenses for a retriever, from what its documents were taught."""

    usual: ClassVar[float]
    """The parameter with which gates and metrics are compared."""

    def __init__(self, retriever: Retriever, attribution: Attribution, last_anchor: int | None = None) -> None:
        """last_anchor: the newest document that may be an anchor; by default the newest of all."""
        self._retriever: Any = retriever
        self._base: Any = attribution.base
        self._touched = attribution.touched
        relevant = _relevant_rows(attribution)
        place = {attribution.texts[column]: column for column in relevant}
        self._relevant = {query: relevant[place[query]] for query in sample(list(place), EXAMPLES)}
        self.last_anchor = int(retriever.documents.max(initial=0)) if last_anchor is None else last_anchor

    @classmethod
    def of(cls, retriever: Retriever, attribution: Attribution, last_anchor: int | None = None) -> LensTrainer | None:
        """None where keys have several vectors: lessons say nothing about single tokens of a question."""
        kinds = {"dense": DenseLensTrainer, "sparse": WordLensTrainer}
        made = kinds.get(retriever.kind)
        return None if made is None else made(retriever, attribution, last_anchor)

    def settings(self, *, traffic_related: bool) -> tuple[LensId, ...]:
        """The lenses that may be tried."""
        return self._settings(traffic_related) if len(self._relevant) >= MIN_QUERIES else ()

    def train(self, settings: Sequence[LensId], without: int | None = None) -> Mapping[LensId, Lens]:
        """A lens for each setting; `without` leaves the queries of a fold out."""
        count = sum(fold_of(name) != without for name in self._relevant)
        return {} if count < MIN_QUERIES or not settings else self._train(settings, without)

    @abstractmethod
    def _settings(self, traffic_related: bool) -> tuple[LensId, ...]:
        """traffic_related: the traffic is known to ask about what was taught."""

    @abstractmethod
    def _train(self, settings: Sequence[LensId], without: int | None) -> Mapping[LensId, Lens]: ...

    @property
    def _folds(self) -> Numbers:
        return np.array([fold_of(name) for name in self._relevant], np.int64)


class DenseLensTrainer(LensTrainer):
    usual = 0.5

    def _settings(self, traffic_related: bool) -> tuple[LensId, ...]:
        """Gates are cautious unless the traffic asks about what was taught."""
        return tuple(product(RIDGES, (OPEN, *CAUTIOUS) if traffic_related else CAUTIOUS, METRICS))

    def _train(self, settings: Sequence[LensId], without: int | None) -> Mapping[LensId, Lens]:
        """Each is made when it is asked for."""
        names = list(self._relevant)
        return self._ways.lenses([names[at] for at in self._centres], settings, without)

    @cached_property
    def _queries(self) -> Vectors:
        return np.stack([self._retriever.lesson(name, {}).vector for name in self._relevant])

    @cached_property
    def _centres(self) -> Numbers:
        chosen = frozenset(sample(list(self._relevant), CENTRES))
        return np.array([at for at, name in enumerate(self._relevant) if name in chosen], np.int64)

    @cached_property
    def _anchors(self) -> Keys:
        """Base keys of some documents, chosen by their numbers alone."""
        live = self._retriever.documents
        found: Keys = self._retriever.base.fetch(sample_numbers(live[live <= self.last_anchor], ANCHORS))
        return found

    @cached_property
    def _ways(self) -> Ways:
        targets = np.stack([_mean(self._base.vectors, rows, grades) for rows, grades in self._relevant.values()])
        anchors = self._anchors.block.vectors.reshape(-1, self._queries.shape[1])
        return Ways(self._queries, targets, self._folds, self._centres, np.asarray(anchors))


class WordLensTrainer(LensTrainer):
    usual = STRENGTH

    def _settings(self, traffic_related: bool) -> tuple[LensId, ...]:
        return ((STRENGTH, OPEN, 0.0),)

    def _train(self, settings: Sequence[LensId], without: int | None) -> Mapping[LensId, Lens]:
        return self._words.lenses(settings, without)

    @cached_property
    def _words(self) -> Words:
        asked = [self._retriever.lesson(name, {}).terms for name in self._relevant]
        terms = sorted(set().union(*asked))
        place = {term: at for at, term in enumerate(terms)}
        has = self._documents_with(terms)
        rows, shares = zip(*(self._share_out(*found) for found in self._relevant.values()), strict=True)
        right = _table(rows, np.concatenate(shares), (len(rows), has.shape[0])) @ has
        columns = [[place[term] for term in some] for some in asked]
        words = _table(columns, np.ones(sum(map(len, columns))), (len(rows), len(terms)))
        return Words(list(self._relevant), terms, words, right.tocsr(), self._folds)

    def _documents_with(self, terms: Sequence[str]) -> sparse.csc_array:
        """Touched documents × words: 1 where some row of a document has a word."""
        counts, starts = self._base.counts, self._touched.starts
        columns = [self._base.place.get(term, counts.shape[1]) for term in terms]  # or a column without anything
        rows = sparse.csr_array(
            (np.ones(starts[-1]), np.arange(starts[-1]), starts), (len(starts) - 1, counts.shape[0])
        )
        held = sparse.hstack([rows @ counts, sparse.csr_array((len(starts) - 1, 1))], "csc")[:, columns]
        return sparse.csc_array((held > 0).astype(np.float64))

    def _share_out(self, rows: Sequence[int], grades: Sequence[float]) -> tuple[list[int], Scores]:
        """The documents of these rows, as places, and the share of each by its grade."""
        found: dict[int, float] = {}
        for row, grade in zip(rows, grades, strict=True):
            place = int(np.searchsorted(self._touched.starts, row, side="right")) - 1
            found[place] = max(found.get(place, 0.0), grade)
        shares = np.array(list(found.values()), np.float64)
        return list(found), shares / shares.sum()


def _table(columns: Sequence[Sequence[int]], values: Scores, shape: tuple[int, int]) -> sparse.csr_array:
    starts = np.cumsum([0, *map(len, columns)])
    flat = np.array([column for some in columns for column in some], np.int64)
    return sparse.csr_array((values, flat, starts), shape=shape)


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
