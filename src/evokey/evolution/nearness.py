"""How similar questions are to the nearest taught query: of the other folds, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.folds import fold_of, sample
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever
from evokey.types import Numbers

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75)
"""Quantiles of the similarity between taught queries. What was learned may be limited to questions that are nearer to a
taught query than one of these."""
WEIGHTS_QUANTILE = 0.25
"""The quantile for learned fusion weights."""
SLACK = 1e-4
"""Subtracted from each threshold, so that rounding errors decide nothing."""
COMPARED = 512
"""Taught queries whose nearest other query is looked for."""
ALMOST_ALL = 0.95
EVERY_QUESTION = -1.0
"""A similarity that every question reaches."""
Nearest = NDArray[np.float32]


class Nearness:
    def __init__(self, retriever: Retriever, queries: Sequence[str]) -> None:
        self.retriever = retriever
        self._queries = queries
        self._place = {query: column for column, query in enumerate(queries)}
        self._neighbours = Neighbours(retriever, queries)
        self._folds = np.array([fold_of(query) for query in queries])

    def measure(self, queries: Sequence[str], *, without: int | None = None) -> Nearest:
        """The similarity of each query to the nearest taught one; `without` leaves a fold out."""
        table = self._table(queries)
        for row, query in enumerate(queries):
            if query in self._place:
                table[row, self._place[query]] = 1.0  # as in a search
        if without is not None:
            table[:, self._folds == without] = EVERY_QUESTION
        return np.asarray(table.max(axis=1, initial=EVERY_QUESTION))

    def measure_questions(self, questions: Sequence[Any]) -> Nearest:
        """The same for questions that were not taught in these words."""
        return np.asarray(self._neighbours.table(questions).max(axis=1, initial=EVERY_QUESTION))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Similarities that may be required of a question, the lowest first."""
        found = np.quantile(self._between_taught, QUANTILES, method="lower") - SLACK
        return tuple(sorted({float(level) for level in found}))

    @property
    def weights_threshold(self) -> float:
        """The similarity that is required for learned fusion weights."""
        return float(np.quantile(self._between_taught, WEIGHTS_QUANTILE, method="lower") - SLACK)

    def of_untouched(self, touched: Numbers) -> float:
        """The similarity to a taught query that almost no untouched document exceeds: people may ask about these
        documents too. EVERY_QUESTION if all documents are touched."""
        untouched = np.setdiff1d(self.retriever.documents, touched)
        if not len(untouched):
            return EVERY_QUESTION
        chosen = untouched[np.unique(np.linspace(0, len(untouched) - 1, COMPARED).astype(np.int64))]
        block, queries = self.retriever.base.fetch(chosen).block, sample(self._queries, COMPARED)
        questions = [self.retriever.lesson(query, {}) for query in queries]
        own = np.array([question.self_similarity for question in questions])
        nearest = (block.total(block.table(questions)) / own[:, None]).max(axis=0)
        return float(np.quantile(nearest, ALMOST_ALL, method="lower"))

    @cached_property
    def _between_taught(self) -> Nearest:
        """The similarity of taught queries to the nearest other taught query."""
        queries = sample(self._queries, COMPARED)
        table = self._table(queries)
        table[np.arange(len(queries)), [self._place[query] for query in queries]] = EVERY_QUESTION
        return np.asarray(table.max(axis=1, initial=EVERY_QUESTION))

    def _table(self, queries: Sequence[str]) -> Nearest:
        return self._neighbours.table([self.retriever.lesson(query, {}) for query in queries])
