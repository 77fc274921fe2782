"""Pairs of a document's row and a text that it was taught: which row gets the credit for a text, and how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.judgements import Judgements
from evokey.keys.sentences import Span
from evokey.passages.parts import find_overlaps
from evokey.scoring.block import Block
from evokey.search.overlay import Touched
from evokey.search.passages import row_spans
from evokey.search.retriever import Retriever
from evokey.types import Numbers, Scores

RELATIVE_MATCH = 0.5
"""A unit that matches a document less than this share as well as the query's best unit is dropped."""
TEXTS_PER_TABLE = 256
DOCUMENT_SHARE = 0.5
"""Where a passage was taught: the share of the row of its document that matches best, if that is in none."""
MOST_ROWS = 8
"""Rows of a passage that are credited."""


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
    ages: Scores
    """In days, counted back from the newest lesson."""

    def where(self, selected: NDArray[Any]) -> Pairs:
        """The pairs at these places, or where a mask is true."""
        places = np.flatnonzero(selected) if selected.dtype == bool else selected
        return Pairs(*(part.take(places) for part in self._parts))

    def join(self, others: Pairs) -> Pairs:
        return Pairs(*map(np.concatenate, zip(self._parts, others._parts, strict=True)))

    def sort(self) -> Pairs:
        """By row, then by text."""
        return self.where(np.lexsort((self.queries, self.columns, self.rows)))

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.rows, self.columns, self.queries, self.grades, self.credited, self.shares, self.ages

    def renumber(self, rows: Numbers, columns: Numbers) -> Pairs:
        """The same pairs when only these rows and columns are left."""
        return replace(
            self,
            rows=np.searchsorted(rows, self.rows),
            columns=np.searchsorted(columns, self.columns),
            queries=np.searchsorted(columns, self.queries),
        )


class Pairing:
    """Pairs the rows of the touched documents with the texts that these were taught."""

    def __init__(
        self, retriever: Retriever, lessons: Judgements, touched: Touched, base: Block[Any], texts: Sequence[str]
    ) -> None:
        self._lessons, self._touched, self._texts = lessons, touched, texts
        self._column = {text: index for index, text in enumerate(texts)}
        self._matches = Matches(retriever, touched, base, lessons)

    def right(self) -> Pairs:
        """Queries and their units with the documents that were right."""
        queries = self._of_queries(self._lessons.grades)
        return queries.join(self._of_units(queries)).sort()

    def wrong(self) -> Pairs:
        """Queries with the documents that were wrong."""
        return self._of_queries(self._lessons.wrong).sort()

    def _of_queries(self, verdicts: Mapping[str, Mapping[int, float]]) -> Pairs:
        touched = self._touched
        sizes = [len(grades) for grades in verdicts.values()]
        queries = np.repeat([self._column[query] for query in verdicts], sizes).astype(np.int64)
        numbers = np.fromiter(chain.from_iterable(verdicts.values()), np.int64)
        grades = np.fromiter(chain.from_iterable(grades.values() for grades in verdicts.values()), np.float64)
        if self._lessons.evidence:
            grades *= [self._weight(query, number) for query, found in verdicts.items() for number in found]
        ages = np.zeros(len(numbers))
        if self._lessons.ages:
            age = self._lessons.ages.get
            ages[:] = [age((query, number), 0.0) for query, found in verdicts.items() for number in found]
        here = np.flatnonzero(np.isin(numbers, touched.documents))
        credited = np.repeat(sizes, sizes).astype(np.float64)
        if not touched.several:
            rows = np.searchsorted(touched.documents, numbers[here])
            asked, shares = queries[here], np.zeros(len(here))
            return Pairs(rows, asked, asked, grades[here], credited[here], shares, ages[here])
        found = [
            (row, share, at)
            for at in here.tolist()
            for row, share in self._matches.credit_rows(self._texts[queries[at]], int(numbers[at]))
        ]
        rows, places = (np.array([one[part] for one in found], np.int64) for part in (0, 2))
        shares = np.array([share for _, share, _ in found], np.float64)
        asked = queries[places]
        none = np.zeros(len(places))
        return Pairs(rows, asked, asked, grades[places] * shares, credited[places], none, ages[places])

    def _weight(self, query: str, number: int) -> float:
        return self._lessons.evidence.get((query, number), 1.0)

    def _of_units(self, queries: Pairs) -> Pairs:
        """The pairs of expansion units, given those of their queries."""
        units, texts, owners = self._lessons.units, self._texts, self._touched.owners
        found: list[tuple[int, int, int, float, float, float, float]] = []
        expanded = np.array([text in units for text in texts], bool)
        paired = set[tuple[int, int]]()
        for at in np.flatnonzero(expanded[queries.columns]).tolist() if units else ():
            query, owner = int(queries.columns[at]), int(owners[queries.rows[at]])
            if (query, owner) in paired:  # a query that several rows of the document are credited with
                continue
            paired.add((query, owner))
            for unit, share in self._matches.shares(texts[query], owner):
                row, column = self._matches.row(unit, owner), self._column[unit]
                same = float(queries.grades[at]), float(queries.credited[at])
                found.append((row, column, query, *same, share, float(queries.ages[at])))
        parts = list(zip(*found, strict=True)) or [()] * 7
        rows, columns, asked = (np.array(part, np.int64) for part in parts[:3])
        return Pairs(rows, columns, asked, *(np.array(part, np.float64) for part in parts[3:]))


class Matches:
    """How well each text, searched alone, matches each document: it decides which row is credited, and how the units of
    a query share its credit."""

    def __init__(self, retriever: Retriever, touched: Touched, base: Block[Any], lessons: Judgements) -> None:
        self._retriever, self._lessons, self._touched = retriever, lessons, touched
        needed = {unit for units in lessons.units.values() for unit in units}
        if touched.several:
            needed |= {*lessons.queries, *lessons.wrong}
        texts = sorted(needed)
        self._place = {text: index for index, text in enumerate(texts)}
        self._table: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        if texts and len(base):
            questions = [retriever.lesson(text, {}) for text in texts]
            if lessons.apart:  # the bits of a product of matrices depend on all of their rows
                self._table = np.stack([base.scores(question) for question in questions]).astype(np.float32)
                return
            starts = range(0, len(texts), TEXTS_PER_TABLE)
            parts = [base.total(base.table(questions[at : at + TEXTS_PER_TABLE])) for at in starts]
            self._table = np.concatenate(parts)

    def row(self, text: str, number: int) -> int:
        """The row of a document that a text matches best."""
        rows = self._touched.rows(number)
        first = int(rows.start)
        return first if rows.stop - first == 1 else first + int(np.argmax(self._table[self._place[text], rows]))

    def credit_rows(self, query: str, number: int) -> list[tuple[int, float]]:
        """The rows that a query is credited to, and their shares: the one that it matches best. Where lessons name
        passages, those of these passages that it matches best, and with a share the one that it matches best of all."""
        best = self.row(query, number)
        spans = self._lessons.named.spans.get(query, {}).get(number, ())
        inside = self._rows_within(number, spans) if spans else []
        if not inside:
            return [(best, 1.0)]
        scores = self._table[self._place[query]]
        named = sorted(inside, key=lambda row: (-float(scores[row]), row))[:MOST_ROWS]
        return [*((row, 1.0) for row in named), *([] if best in named else [(best, DOCUMENT_SHARE)])]

    def _rows_within(self, number: int, spans: Sequence[Span]) -> list[int]:
        """The rows of a document that lie in these parts of its text; none where its rows are no parts of it."""
        first = int(self._touched.rows(number).start)
        places = row_spans(self._retriever, number, self._lessons.named.documents[number])
        return [first + at for at in find_overlaps(places, spans)]

    def shares(self, query: str, number: int) -> list[tuple[str, float]]:
        """The units that count for a document, and their shares of the query's credit."""
        units = self._lessons.units_for(query, number)
        if not units:
            return []
        rows = self._touched.rows(number)
        scores = np.array([max(0.0, float(self._table[self._place[unit], rows].max())) for unit in units])
        scores[scores < RELATIVE_MATCH * scores.max()] = 0
        total = scores.sum()
        return [(unit, score / total) for unit, score in zip(units, scores, strict=True) if score > 0] if total else []
