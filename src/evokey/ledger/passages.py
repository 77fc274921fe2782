"""Passages that verdicts name, beside the verdicts: they go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokey.ledger.database import Database
from evokey.types import Section, Verdict

Spans = Mapping[str, Mapping[int, Sequence[tuple[int, int]]]]
"""Query → document (number) → the parts of its text that were named."""


class Passages:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, lesson: int, verdicts: Sequence[Verdict]) -> None:
        """Those of a lesson that was appended."""
        rows = [
            (lesson, verdict.document, one.start, one.end, one.where)
            for verdict in verdicts
            for one in verdict.passages
        ]
        if rows:
            self._db.run_many("INSERT INTO passages VALUES (?,?,?,?,?)", rows)

    def of(self, where: str, values: Sequence[object]) -> dict[tuple[int, str], tuple[Section, ...]]:
        """Of the lessons (l) that meet a condition, by lesson and document, in the order of the text."""
        sql = (
            "SELECT p.lesson, p.document, p.start, p.stop, p.name FROM lessons l JOIN passages p ON p.lesson = l.number"
        )
        found: dict[tuple[int, str], tuple[Section, ...]] = {}
        for lesson, document, *said in self._db.all(f"{sql} {where} ORDER BY p.lesson, p.document, p.start", values):
            found[lesson, document] = (*found.get((lesson, document), ()), Section(*said))
        return found

    def spans(self, within: str, values: Sequence[object]) -> Spans:
        """Of some lessons (a condition on l.number), those whose document says what it said when it was taught. Offsets
        into an earlier text, of which most is still there, say nothing about the text of today."""
        rows = self._db.all(
            "SELECT DISTINCT l.query, d.number, p.start, p.stop FROM lessons l "
            "JOIN passages p ON p.lesson = l.number "
            "JOIN verdicts v ON v.lesson = p.lesson AND v.document = p.document "
            f"JOIN documents d ON d.id = v.document AND d.hash = v.hash WHERE {within} "
            "ORDER BY l.query, d.number, p.start, p.stop",
            values,
        )
        found: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for query, number, start, stop in rows:
            found.setdefault(query, {}).setdefault(number, []).append((start, stop))
        return found
