"""How near questions are to taught ones: to those of the other folds, or to all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.evidence import fold, sample
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever
from evokey.types import Numbers

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75)
"""What was learned may be made to reach only questions that are nearer to a taught one than these shares of the taught
queries are to another."""
SURE = 0.25
"""The same for other fusion weights than the untaught ones."""
SLACK = 1e-4
"""By so much less is asked for, so that rounding has no say."""
COMPARED = 512
"""Taught queries whose nearest other one is looked for."""
ALMOST_ALL = 0.95
ALL = -1.0
"""The likeness that every question has to a taught one."""
Nearest = NDArray[np.float32]


class Nearness:
    def __init__(self, retriever: Retriever, queries: Sequence[str]) -> None:
        self.retriever = retriever
        self._queries = queries
        self._place = {query: column for column, query in enumerate(queries)}
        self._neighbours = Neighbours(retriever, queries)
        self._folds = np.array([fold(query) for query in queries])

    def of(self, asked: Sequence[str], *, without: int | None = None) -> Nearest:
        """How like each query is to the nearest taught one; `without` leaves a fold out."""
        table = self._neighbours.table([self.retriever.lesson(query, {}) for query in asked])
        for row, query in enumerate(asked):
            if query in self._place:
                table[row, self._place[query]] = 1.0  # as in a search
        if without is not None:
            table[:, self._folds == without] = ALL
        return np.asarray(table.max(axis=1, initial=ALL))

    @property
    def levels(self) -> tuple[float, ...]:
        """How near a question may have to be, the least first."""
        found = np.quantile(self._among, LEVELS, method="lower") - SLACK
        return tuple(sorted({float(level) for level in found}))

    def of_documents(self, touched: Numbers) -> float:
        """How like a taught query almost all untouched documents are at the most; ALL if there are none. People may ask
        about these as well."""
        rows = self.retriever.store.rows
        untouched = np.setdiff1d(rows.having(rows.documents), touched)
        if not len(untouched):
            return ALL
        chosen = untouched[np.unique(np.linspace(0, len(untouched) - 1, COMPARED).astype(np.int64))]
        block, asked = self.retriever.store.take(chosen), sample(self._queries, COMPARED)
        questions = [self.retriever.lesson(query, {}) for query in asked]
        own = np.array([question.self_similarity for question in questions])
        nearest = (block.total(block.table(questions)) / own[:, None]).max(axis=0)
        return float(np.quantile(nearest, ALMOST_ALL, method="lower"))

    @property
    def sure(self) -> float:
        """How near a question must be for other fusion weights."""
        return float(np.quantile(self._among, SURE, method="lower") - SLACK)

    @cached_property
    def _among(self) -> Nearest:
        """How near taught queries are to the nearest other one."""
        asked = sample(self._queries, COMPARED)
        table = self._neighbours.table([self.retriever.lesson(query, {}) for query in asked])
        table[np.arange(len(asked)), [self._place[query] for query in asked]] = ALL
        return np.asarray(table.max(axis=1, initial=ALL))
