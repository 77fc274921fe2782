"""Lessons in the ledger: appended, read back for an epoch, forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from evokey.checks import shown
from evokey.ledger.carried import HOLDS, Carried
from evokey.ledger.database import Database
from evokey.ledger.passages import Passages, Spans
from evokey.types import Lesson, Vectors, Verdict


@dataclass(frozen=True, slots=True)
class Credit:
    """A verdict that holds today: its document is here, with the content it was given for or most of it."""

    lesson: int
    query: str
    actor: str | None
    number: int
    grade: float


class Vote(NamedTuple):
    """What one lesson says today."""

    query: str
    actor: str | None
    verdicts: Mapping[int, float]
    """Documents (numbers, in order) with their grades."""
    lesson: int
    time: float = 0.0
    """In seconds."""


Omitted = frozenset[int]
"""Numbers of lessons that are left out, of those up to some number."""
NONE: Omitted = frozenset()


class Lessons:
    def __init__(self, database: Database) -> None:
        self._db, self.carried, self._passages = database, Carried(database), Passages(database)

    def __len__(self) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons")[0])

    @property
    def last(self) -> int:
        return int(self._db.one("SELECT coalesce(max(number), 0) FROM lessons")[0])

    def append(self, lesson: Lesson, vector: Vectors | None, retrieved: Sequence[str] = ()) -> Lesson:
        """The same lesson with its number. vector: the query's, where the caller handed it in; retrieved: ids of what
        the query found, where a policy asks."""
        texts = {"the query": lesson.query, "the name of the actor": lesson.actor or ""}
        self._db.dialect.check_texts({**texts, **{f"the unit {shown(unit)}": unit for unit in lesson.units}})
        told = (lesson.query, json.dumps(list(lesson.units)), lesson.actor, lesson.verifier, lesson.time)
        more = (json.dumps(list(retrieved)), None if vector is None else vector.tobytes())
        with self._db.write():
            number = self._db.insert(
                "INSERT INTO lessons(query, units, actor, verifier, time, retrieved, vector) VALUES (?,?,?,?,?,?,?)",
                (*told, *more),
            )
            self._db.run_many(
                "INSERT INTO verdicts VALUES (?,?,?,?)",
                [(number, verdict.document, verdict.hash, verdict.grade) for verdict in lesson.verdicts],
            )
            self._passages.put(number, lesson.verdicts)
        return replace(lesson, number=number)

    def credits(self, up_to: int, omitted: Omitted = NONE) -> list[Credit]:
        """Verdicts that hold today, of the lessons up to a number, in order of arrival."""
        within, values = self._within("l.number", up_to, omitted)
        rows = self._db.all(
            "SELECT l.number, l.query, l.actor, d.number, v.grade "
            f"FROM lessons l JOIN verdicts v ON v.lesson = l.number {HOLDS} WHERE {within} ORDER BY l.number, d.number",
            values,
        )
        return [Credit(*row) for row in rows]

    def votes(self, up_to: int, omitted: Omitted = NONE) -> list[Vote]:
        """The same, lesson by lesson: what each says about which documents."""
        within, values = self._within("v.lesson", up_to, omitted)
        numbers = self._db.dialect.join_texts("d.number")
        rows = self._db.all(
            f"SELECT v.lesson, v.grade, {numbers} FROM verdicts v {HOLDS} WHERE {within} GROUP BY v.lesson, v.grade",
            values,
        )
        said: dict[int, dict[int, float]] = {}
        several = set()
        for lesson, grade, told in rows:  # a row for each verdict would take twice the time
            found = dict.fromkeys(sorted(map(int, told.split(","))), grade)
            if said.setdefault(lesson, found) is not found:
                said[lesson] |= found
                several.add(lesson)
        said |= {lesson: dict(sorted(said[lesson].items())) for lesson in several}
        asked = self._db.all(
            "SELECT number, query, actor, time FROM lessons WHERE number <= ? ORDER BY number", (up_to,)
        )
        return [Vote(query, actor, said[lesson], lesson, at) for lesson, query, actor, at in asked if lesson in said]

    def extent(self, up_to: int) -> tuple[int, int]:
        """How many lessons there are up to a number, and verdicts in them: less after some were forgotten."""
        later = "(SELECT count(*) FROM verdicts WHERE lesson > ?)"  # few, and to count all takes no time
        verdicts = self._db.one(f"SELECT count(*) - {later} FROM verdicts", (up_to,))
        return self.count_to(up_to), int(verdicts[0])

    def successes(self, up_to: int, omitted: Omitted = NONE) -> list[Success]:
        """Lessons up to a number in which some document was right, in order, with what they had retrieved."""
        right = "EXISTS (SELECT 1 FROM verdicts v WHERE v.lesson = l.number AND v.grade > 0)"
        within, values = self._within("l.number", up_to, omitted)
        rows = self._db.all(
            f"SELECT number, query, units FROM lessons l WHERE {within} AND {right} ORDER BY number", values
        )
        elements = self._db.dialect.elements("l.retrieved", "r")
        shown = self._db.all(
            f"SELECT l.number, d.number FROM lessons l, {elements} JOIN documents d ON d.id = r.value "
            f"WHERE {within} ORDER BY l.number, r.key",
            values,
        )
        retrieved: dict[int, list[int]] = {}
        for lesson, number in shown:
            retrieved.setdefault(lesson, []).append(number)
        return [
            Success(number, query, tuple(json.loads(units)), tuple(retrieved.get(number, ())))
            for number, query, units in rows
        ]

    def select(self, wanted: Mapping[str, Any], *, held: bool | None = None) -> list[Lesson]:
        """The lessons that meet every condition (those of SELECTED), whole, oldest first."""
        conditions = [SELECTED[name] for name in wanted]
        if held is not None:
            conditions.append(f"l.number {'IN' if held else 'NOT IN'} ({HELD})")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        values = list(wanted.values())
        columns = f"l.number, l.query, l.units, l.actor, l.verifier, l.time, l.number IN ({HELD})"
        with self._db.read():
            said = self._verdicts(where, values)
            rows = self._db.all(f"SELECT {columns} FROM lessons l {where} ORDER BY l.number", values)
        return [
            Lesson(number, query, tuple(json.loads(units)), said.get(number, ()), actor, verifier, time, bool(waits))
            for number, query, units, actor, verifier, time, waits in rows
        ]

    def _verdicts(self, where: str, values: Sequence[Any]) -> dict[int, tuple[Verdict, ...]]:
        """Of the lessons that meet a condition."""
        sql = "SELECT v.lesson, v.document, v.grade, v.hash FROM lessons l JOIN verdicts v ON v.lesson = l.number"
        named = self._passages.of(where, values)
        found: dict[int, tuple[Verdict, ...]] = {}
        for lesson, document, grade, hash in self._db.all(f"{sql} {where} ORDER BY v.lesson, v.document", values):
            verdict = Verdict(document, grade, hash, named.get((lesson, document), ()))
            found[lesson] = (*found.get(lesson, ()), verdict)
        return found

    def passages(self, up_to: int, omitted: Omitted = NONE) -> Spans:
        """The parts of documents that lessons name, where these still say what they said then."""
        return self._passages.spans(*self._within("l.number", up_to, omitted))

    def about(self, document: str) -> list[Lesson]:
        """The lessons that name a document, with what they say of it, oldest first."""
        return [
            replace(lesson, verdicts=tuple(one for one in lesson.verdicts if one.document == document))
            for lesson in self.select({"document": document})
        ]

    def units(self, up_to: int, omitted: Omitted = NONE) -> dict[str, list[str]]:
        """Expansion units by query, each once, in alphabetical order."""
        within, values = self._within("number", up_to, omitted)
        rows = self._db.all(f"SELECT query, units FROM lessons WHERE {within} AND units != '[]'", values)
        found: dict[str, set[str]] = {}
        for query, units in rows:
            found.setdefault(query, set()).update(json.loads(units))
        return {query: sorted(units) for query, units in found.items()}

    def unit_lessons(self, up_to: int, omitted: Omitted = NONE) -> list[tuple[str, Sequence[str], Sequence[int]]]:
        """Lessons with expansion units: a query, its units, and the documents (numbers) that it holds for today."""
        within, values = self._within("l.number", up_to, omitted)
        numbers = self._db.dialect.join_texts("d.number", by="v.document")
        rows = self._db.all(
            f"SELECT l.query, l.units, {numbers} FROM lessons l JOIN verdicts v ON v.lesson = l.number "
            f"{HOLDS} WHERE {within} AND l.units != '[]' GROUP BY l.number ORDER BY l.number",
            values,
        )
        return [(query, json.loads(units), [int(one) for one in told.split(",")]) for query, units, told in rows]

    def find_restricted(self, field: str) -> frozenset[int]:
        """Of the documents that lessons hold for, the restricted ones."""
        sql = f"SELECT DISTINCT d.number FROM verdicts v {HOLDS} WHERE d.number IN ({self._db.dialect.restricted})"
        return frozenset(row[0] for row in self._db.all(sql, (field,)))

    def right(self, query: str, restricted: str | None = None) -> set[str]:
        """Documents that were verified right for a query, whatever they say now, by lessons that are not on hold; where
        some documents are restricted (by that field), the public ones that are here."""
        public = "" if restricted is None else f" AND {self._public}"
        rows = self._db.all(
            "SELECT v.document FROM lessons l JOIN verdicts v ON v.lesson = l.number "
            f"WHERE l.query = ? AND v.grade > 0 AND l.number NOT IN ({HELD}){public}",
            (query,) if restricted is None else (query, restricted),
        )
        return {row[0] for row in rows}

    def queries(self) -> set[str]:
        return {row[0] for row in self._db.all("SELECT DISTINCT query FROM lessons")}

    def texts(self) -> set[str]:
        """All that lessons say: queries and units."""
        units = self._db.dialect.elements("l.units", "u")
        rows = self._db.all(f"SELECT query FROM lessons UNION SELECT u.value FROM lessons l, {units}")
        return {row[0] for row in rows}

    def vectors(self, after: int = 0) -> dict[str, Vectors]:
        """Query vectors that callers handed in, of queries in lessons after a number; of several for one query the
        smallest, whatever came first, and one on hold only where there is no other."""
        rows = self._db.all(
            f"SELECT query, number IN ({HELD}), vector FROM lessons WHERE vector IS NOT NULL "
            "AND query IN (SELECT query FROM lessons WHERE number > ?)",
            (after,),
        )
        return _one_of_each(rows)

    def public_vectors(self, restricted: str) -> dict[str, Vectors]:
        """The same, of the lessons that hold for some document that is not restricted (by that field)."""
        holds = f"EXISTS (SELECT 1 FROM verdicts v {HOLDS} WHERE v.lesson = l.number AND {self._public})"
        sql = f"SELECT query, number IN ({HELD}), vector FROM lessons l WHERE vector IS NOT NULL AND {holds}"
        return _one_of_each(self._db.all(sql, (restricted,)))

    def mark(self, number: int) -> tuple[int, Any, Omitted]:
        """What is another after lessons up to a number went or changed: how often something was forgotten, the last of
        them, and which are on hold. Counting them all would make every lesson slower than the one before."""
        forgets = self._db.one("SELECT count FROM forgets")
        found = self._db.one("SELECT number, query, vector FROM lessons WHERE number = ?", (number,))
        return int(forgets[0]) if forgets else 0, found, self.find_held()

    def count_to(self, number: int) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons WHERE number <= ?", (number,))[0])

    def numbers(self, up_to: int, omitted: Omitted = NONE) -> list[int]:
        """Of the lessons up to a number, in order."""
        within, values = self._within("number", up_to, omitted)
        return [row[0] for row in self._db.all(f"SELECT number FROM lessons WHERE {within} ORDER BY number", values)]

    def count_pending(self, up_to: int, omitted: Omitted, about: Sequence[int] | None = None) -> int:
        """Lessons, not on hold, beyond those up to a number; of all, or those that name some of these documents."""
        within, values = self._within("number", up_to, omitted)
        sql = f"SELECT count(*) FROM lessons WHERE number NOT IN ({HELD}) AND NOT ({within})"
        if about is not None:
            sql, values = f"{sql} AND {self._about}", (*values, self._db.dialect.list(about))
        return int(self._db.one(sql, values)[0])

    def find_held(self) -> Omitted:
        """Numbers of the lessons on hold."""
        return frozenset(row[0] for row in self._db.all(HELD))

    def hold(self, numbers: Iterable[int]) -> int:
        """Put lessons on hold; returns how many were not. One that is not there is left out."""
        rows = [(number,) for number in numbers]
        with self._db.write():
            self._drop_pools(rows)
            sql = "INSERT INTO held SELECT number FROM lessons WHERE number = ? ON CONFLICT DO NOTHING"
            return self._db.run_many(sql, rows)

    def release(self, numbers: Iterable[int]) -> int:
        """Let lessons on hold take part again; returns how many were on hold."""
        rows = [(number,) for number in numbers]
        with self._db.write():
            self._drop_pools(rows)
            return self._db.run_many("DELETE FROM held WHERE lesson = ?", rows)

    def _drop_pools(self, rows: Sequence[tuple[int]]) -> None:
        """Where vectors come from the caller, which lessons take part decides how a query is asked."""
        handed = "SELECT query FROM lessons WHERE vector IS NOT NULL AND number = ?"
        self._db.run_many(f"DELETE FROM pools WHERE query IN ({handed})", rows)

    def count_about(self, numbers: Sequence[int], *, held: bool = False) -> int:
        """Lessons that name some of these documents; or those of them that are on hold."""
        sql = f"SELECT count(*) FROM lessons WHERE {self._about}" + (f" AND number IN ({HELD})" if held else "")
        return int(self._db.one(sql, (self._db.dialect.list(numbers),))[0])

    def set_aside(self, among: Sequence[int] | None = None) -> int:
        """Verdicts whose document is gone or says something else now; or on some documents that say something else."""
        holding = f"SELECT count(*) FROM verdicts v {HOLDS}"
        if among is None:
            return int(self._db.one(f"SELECT (SELECT count(*) FROM verdicts) - ({holding})")[0])
        inside, values = f"WHERE d.number {self._db.dialect.in_numbers}", [self._db.dialect.list(among)] * 2
        all_ = f"SELECT count(*) FROM verdicts v JOIN documents d ON d.id = v.document {inside}"
        return int(self._db.one(f"SELECT ({all_}) - ({holding} {inside})", values)[0])

    def forget(self, *, query: str | None, actor: str | None, document: str | None) -> list[int]:
        """Erase what matches every given criterion; a lesson left without a verdict goes too. Returns the lessons that
        lost something."""
        conditions = {"query = ?": query, "actor = ?": actor}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        matching = "SELECT number FROM lessons" + (" WHERE " + " AND ".join(given) if given else "")
        values = list(given.values())
        with self._db.write():
            handed = f"SELECT query FROM lessons WHERE vector IS NOT NULL AND number IN ({matching})"
            self._db.run(f"DELETE FROM pools WHERE query IN ({handed})", values)
            if document is None:
                touched = [row[0] for row in self._db.all(matching, values)]
                self._db.run_many("DELETE FROM lessons WHERE number = ?", [(number,) for number in touched])
            else:
                sql = f"SELECT lesson FROM verdicts WHERE document = ? AND lesson IN ({matching})"
                touched = [row[0] for row in self._db.all(sql, [document, *values])]
                self._db.run_many(
                    "DELETE FROM verdicts WHERE document = ? AND lesson = ?", [(document, lesson) for lesson in touched]
                )
                self._db.run("DELETE FROM lessons WHERE number NOT IN (SELECT lesson FROM verdicts)")
            self.carried.forget()
            if actor is None and document is None:
                self._db.run("DELETE FROM pins WHERE query = ?", (query,))
            self._db.run(
                "DELETE FROM pools WHERE query NOT IN (SELECT query FROM lessons UNION SELECT query FROM pins "
                "UNION SELECT query FROM traffic)"
            )
        return touched

    @property
    def _public(self) -> str:
        """A condition: a verdict on a document that is here and not restricted, by the field that is given."""
        return f"v.document IN (SELECT id FROM documents WHERE number NOT IN ({self._db.dialect.restricted}))"

    @property
    def _about(self) -> str:
        """A condition: a lesson that names some of the documents whose numbers are given."""
        naming = "SELECT v.lesson FROM verdicts v JOIN documents d ON d.id = v.document"
        return f"number IN ({naming} WHERE d.number {self._db.dialect.in_numbers})"

    def _within(self, column: str, up_to: int, omitted: Omitted) -> tuple[str, tuple[Any, ...]]:
        """A condition, and its values: the lessons up to a number without those that are omitted."""
        if not omitted:
            return f"{column} <= ?", (up_to,)
        sql = self._db.dialect
        return f"{column} <= ? AND {column} NOT {sql.in_numbers}", (up_to, sql.list(sorted(omitted)))


def _one_of_each(rows: Iterable[tuple[str, bool, bytes]]) -> dict[str, Vectors]:
    """Of rows with a query, whether its lesson is on hold, and a vector: the smallest of each query, not on hold if
    there is one."""
    found: dict[str, tuple[bool, bytes]] = {}
    for query, waits, blob in rows:
        found[query] = min(found.get(query, (True, blob)), (bool(waits), blob))
    return {query: np.frombuffer(blob, np.float32) for query, (_, blob) in found.items()}


HELD = "SELECT lesson FROM held"
SELECTED = {
    "query": "l.query = ?",
    "actor": "l.actor = ?",
    "verifier": "l.verifier = ?",
    "after": "l.number > ?",
    "document": "l.number IN (SELECT lesson FROM verdicts WHERE document = ?)",
}
"""What lessons are chosen by."""


@dataclass(frozen=True, slots=True)
class Success:
    """A lesson as the paper's rule replays it: a verified query, its units, and what it had retrieved."""

    number: int
    query: str
    units: tuple[str, ...]
    retrieved: tuple[int, ...]
    """Numbers of the documents, best first; those that are gone or changed are left out."""
