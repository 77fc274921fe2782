"""Documents and the texts they were taught, as pairs: which row of a document a text is credited to, and with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.evidence import Taught
from evokey.search.overlay import Touched
from evokey.search.retriever import Retriever
from evokey.stores.embedded import Block
from evokey.types import Numbers, Scores

RESEMBLANCE = 0.5
ASKED = 256
"""Texts asked at a time."""


@dataclass(frozen=True)
class Pairs:
    """Columns of equal length: a row of a document, a text (column), and what binds them."""

    rows: Numbers
    columns: Numbers
    queries: Numbers
    """The text (column) of the query that was verified."""
    grades: Scores
    credited: Scores
    """How many documents the query credits."""
    shares: Scores
    """A unit's share among its query's units; 0 for the query itself."""

    def where(self, kept: NDArray[Any]) -> Pairs:
        rows = np.flatnonzero(kept) if kept.dtype == bool else kept
        return Pairs(*(part.take(rows) for part in self._parts))

    def joined(self, others: Pairs) -> Pairs:
        return Pairs(*map(np.concatenate, zip(self._parts, others._parts, strict=True)))

    def in_order(self) -> Pairs:
        return self.where(np.lexsort((self.queries, self.columns, self.rows)))

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.rows, self.columns, self.queries, self.grades, self.credited, self.shares

    def renumbered(self, rows: Numbers, columns: Numbers) -> Pairs:
        """The same pairs when only these rows and columns are left."""
        return replace(
            self,
            rows=np.searchsorted(rows, self.rows),
            columns=np.searchsorted(columns, self.columns),
            queries=np.searchsorted(columns, self.queries),
        )


def paired(
    retriever: Retriever, lessons: Taught, touched: Touched, base: Block[Any], texts: Sequence[str]
) -> tuple[Pairs, Pairs]:
    """Who was right for what, units included, and who was wrong; both by row, then by text."""
    column = {text: index for index, text in enumerate(texts)}
    match = Match(retriever, touched, base, lessons)
    own, wrong = (_spoken(said, touched, texts, column, match) for said in (lessons.grades, lessons.wrong))
    return own.joined(_units(lessons, own, touched, texts, column, match)).in_order(), wrong.in_order()


def _spoken(
    verdicts: Mapping[str, Mapping[int, float]],
    touched: Touched,
    texts: Sequence[str],
    column: Mapping[str, int],
    match: Match,
) -> Pairs:
    """Queries and the documents they speak of."""
    sizes = [len(grades) for grades in verdicts.values()]
    asked = np.repeat([column[query] for query in verdicts], sizes).astype(np.int64)
    numbers = np.fromiter(chain.from_iterable(verdicts.values()), np.int64)
    grades = np.fromiter(chain.from_iterable(grades.values() for grades in verdicts.values()), np.float64)
    here = np.flatnonzero(np.isin(numbers, touched.documents))
    rows = [match.row(texts[asked[at]], int(numbers[at])) for at in here.tolist()] if touched.several else []
    return Pairs(
        np.array(rows, np.int64) if touched.several else np.searchsorted(touched.documents, numbers[here]),
        asked[here],
        asked[here],
        grades[here],
        np.repeat(sizes, sizes)[here].astype(np.float64),
        np.zeros(len(here)),
    )


def _units(
    lessons: Taught, own: Pairs, touched: Touched, texts: Sequence[str], column: Mapping[str, int], match: Match
) -> Pairs:
    """The pairs of expansion units, beside those of their queries."""
    found: list[tuple[int, int, int, float, float, float]] = []
    queried, owners = np.array([text in lessons.units for text in texts], bool), touched.owners
    for at in np.flatnonzero(queried[own.columns]).tolist() if lessons.units else ():
        asked, owner = int(own.columns[at]), int(owners[own.rows[at]])
        for unit, share in match.shares(texts[asked], owner):
            row = match.row(unit, owner)
            found.append((row, column[unit], asked, float(own.grades[at]), float(own.credited[at]), share))
    parts = list(zip(*found, strict=True)) or [()] * 6
    rows, columns, queries = (np.array(part, np.int64) for part in parts[:3])
    return Pairs(rows, columns, queries, *(np.array(part, np.float64) for part in parts[3:]))


class Match:
    """How well texts, each asked by itself, find documents: which row is credited, and how a query's units share."""

    def __init__(self, retriever: Retriever, touched: Touched, base: Block[Any], lessons: Taught) -> None:
        self._lessons, self._touched = lessons, touched
        asked = {unit for units in lessons.units.values() for unit in units}
        if touched.several:
            asked |= {*lessons.queries, *lessons.wrong}
        texts = sorted(asked)
        self._place = {text: index for index, text in enumerate(texts)}
        self._table: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        if texts and len(base):
            questions = [retriever.lesson(text, {}) for text in texts]
            if lessons.apart:  # the bits of a product of matrices depend on all of their rows
                self._table = np.stack([base.scores(question) for question in questions]).astype(np.float32)
                return
            parts = [base.total(base.table(questions[at : at + ASKED])) for at in range(0, len(texts), ASKED)]
            self._table = np.concatenate(parts)

    def row(self, text: str, number: int) -> int:
        """The row of a document that a text matches best."""
        rows = self._touched.rows(number)
        first = int(rows.start)
        return first if rows.stop - first == 1 else first + int(np.argmax(self._table[self._place[text], rows]))

    def shares(self, query: str, number: int) -> list[tuple[str, float]]:
        """The units that count for a document, and their shares of the query's credit."""
        units = self._lessons.units_for(query, number)
        if not units:
            return []
        rows = self._touched.rows(number)
        gains = np.array([max(0.0, float(self._table[self._place[unit], rows].max())) for unit in units])
        gains[gains < RESEMBLANCE * gains.max()] = 0
        total = gains.sum()
        return [(unit, gain / total) for unit, gain in zip(units, gains, strict=True) if gain > 0] if total else []
