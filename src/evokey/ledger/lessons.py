"""Lessons in the ledger: appended, read back for an epoch, forgotten."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evokey.ledger.documents import RESTRICTED
from evokey.ledger.sqlite import Database
from evokey.types import Lesson, Ranking, Vectors, Verdict


@dataclass(frozen=True, slots=True)
class Credit:
    """A verdict that holds today: its document is here, with the content it was given for."""

    lesson: int
    query: str
    actor: str | None
    number: int
    grade: float


Vote = tuple[str, str | None, Mapping[int, float]]
"""A query, an actor, and documents (numbers, in order) with their grades."""
Omitted = frozenset[int]
"""Numbers of lessons that are left out, of those up to some number."""
NONE: Omitted = frozenset()


HOLDS = "JOIN documents d ON d.id = v.document AND d.hash = v.hash"
"""A verdict whose document is here, with the content it was given for."""
PUBLIC = f"v.document IN (SELECT id FROM documents WHERE number NOT IN ({RESTRICTED}))"
"""A verdict on a document that is here and not restricted."""


class Lessons:
    def __init__(self, database: Database) -> None:
        self._db = database

    def one_state(self) -> AbstractContextManager[None]:
        """Several readings of one state of the ledger."""
        return self._db.read()

    def __len__(self) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons")[0])

    @property
    def last(self) -> int:
        return int(self._db.one("SELECT coalesce(max(number), 0) FROM lessons")[0])

    def append(
        self,
        query: str,
        units: Sequence[str],
        verdicts: Sequence[Verdict],
        *,
        actor: str | None,
        verifier: str,
        time: float,
        vector: Vectors | None,
        retrieved: Sequence[str] = (),
    ) -> Lesson:
        blob = None if vector is None else vector.tobytes()
        shown = json.dumps(list(retrieved))
        with self._db.write() as connection:
            cursor = connection.execute(
                "INSERT INTO lessons(query, units, actor, verifier, time, retrieved, vector) VALUES (?,?,?,?,?,?,?)",
                (query, json.dumps(list(units)), actor, verifier, time, shown, blob),
            )
            number = int(cursor.lastrowid or 0)
            connection.executemany(
                "INSERT INTO verdicts VALUES (?,?,?,?)",
                [(number, verdict.document, verdict.hash, verdict.grade) for verdict in verdicts],
            )
        return Lesson(number, query, tuple(units), tuple(verdicts), actor, verifier, time)

    def credits(self, up_to: int, omitted: Omitted = NONE) -> list[Credit]:
        """Verdicts that hold today, of the lessons up to a number, in order of arrival."""
        within, values = _within("l.number", up_to, omitted)
        rows = self._db.all(
            "SELECT l.number, l.query, l.actor, d.number, v.grade "
            "FROM lessons l JOIN verdicts v ON v.lesson = l.number "
            f"JOIN documents d ON d.id = v.document AND d.hash = v.hash WHERE {within} ORDER BY l.number, d.number",
            values,
        )
        return [Credit(*row) for row in rows]

    def votes(self, up_to: int, omitted: Omitted = NONE) -> list[Vote]:
        """The same, lesson by lesson: what each says about which documents."""
        within, values = _within("v.lesson", up_to, omitted)
        rows = self._db.all(
            "SELECT v.lesson, v.grade, group_concat(d.number) FROM verdicts v "
            f"JOIN documents d ON d.id = v.document AND d.hash = v.hash WHERE {within} GROUP BY v.lesson, v.grade",
            values,
        )
        said: dict[int, dict[int, float]] = {}
        several = set()
        for lesson, grade, numbers in rows:  # a row for each verdict would take twice the time
            found = dict.fromkeys(sorted(map(int, numbers.split(","))), grade)
            if said.setdefault(lesson, found) is not found:
                said[lesson] |= found
                several.add(lesson)
        said |= {lesson: dict(sorted(said[lesson].items())) for lesson in several}
        asked = self._db.all("SELECT number, query, actor FROM lessons WHERE number <= ? ORDER BY number", (up_to,))
        return [(query, actor, said[lesson]) for lesson, query, actor in asked if lesson in said]

    def extent(self, up_to: int) -> tuple[int, int]:
        """How many lessons there are up to a number, and verdicts in them: less after some were forgotten."""
        later = "(SELECT count(*) FROM verdicts WHERE lesson > ?)"  # few, and to count all takes no time
        verdicts = self._db.one(f"SELECT count(*) - {later} FROM verdicts", (up_to,))
        return self.count_to(up_to), int(verdicts[0])

    def successes(self, up_to: int, omitted: Omitted = NONE) -> list[Success]:
        """Lessons up to a number in which some document was right, in order, with what they had retrieved."""
        right = "EXISTS (SELECT 1 FROM verdicts v WHERE v.lesson = l.number AND v.grade > 0)"
        within, values = _within("l.number", up_to, omitted)
        rows = self._db.all(
            f"SELECT number, query, units FROM lessons l WHERE {within} AND {right} ORDER BY number", values
        )
        shown = self._db.all(
            "SELECT l.number, d.number FROM lessons l, json_each(l.retrieved) r JOIN documents d ON d.id = r.value "
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
        """The lessons that meet every condition (query, actor, document or verifier), whole, oldest first."""
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
        found: dict[int, tuple[Verdict, ...]] = {}
        for lesson, *said in self._db.all(f"{sql} {where} ORDER BY v.lesson, v.document", values):
            found[lesson] = (*found.get(lesson, ()), Verdict(*said))
        return found

    def about(self, document: str) -> list[Lesson]:
        """The lessons that name a document, with what they say of it, oldest first."""
        return [
            replace(lesson, verdicts=tuple(one for one in lesson.verdicts if one.document == document))
            for lesson in self.select({"document": document})
        ]

    def units(self, up_to: int, omitted: Omitted = NONE) -> dict[str, list[str]]:
        """Expansion units by query, each once, in alphabetical order."""
        within, values = _within("number", up_to, omitted)
        rows = self._db.all(f"SELECT query, units FROM lessons WHERE {within} AND units != '[]'", values)
        found: dict[str, set[str]] = {}
        for query, units in rows:
            found.setdefault(query, set()).update(json.loads(units))
        return {query: sorted(units) for query, units in found.items()}

    def unit_lessons(self, up_to: int, omitted: Omitted = NONE) -> list[tuple[str, Sequence[str], Sequence[int]]]:
        """Lessons with expansion units: a query, its units, and the documents (numbers) that it holds for today."""
        within, values = _within("l.number", up_to, omitted)
        rows = self._db.all(
            f"SELECT l.query, l.units, group_concat(d.number) FROM lessons l JOIN verdicts v ON v.lesson = l.number "
            f"{HOLDS} WHERE {within} AND l.units != '[]' GROUP BY l.number ORDER BY l.number",
            values,
        )
        return [(query, json.loads(units), [int(one) for one in numbers.split(",")]) for query, units, numbers in rows]

    def restricted(self, field: str) -> frozenset[int]:
        """Of the documents that lessons hold for, the restricted ones."""
        sql = f"SELECT DISTINCT d.number FROM verdicts v {HOLDS} WHERE d.number IN ({RESTRICTED})"
        return frozenset(row[0] for row in self._db.all(sql, (field,)))

    def right(self, query: str, restricted: str | None = None) -> set[str]:
        """Documents that were verified right for a query, whatever they say now, by lessons that are not on hold; where
        some documents are restricted (by that field), the public ones that are here."""
        public = "" if restricted is None else f" AND {PUBLIC}"
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
        rows = self._db.all("SELECT query FROM lessons UNION SELECT u.value FROM lessons l, json_each(l.units) u")
        return {row[0] for row in rows}

    def vectors(self, after: int = 0) -> dict[str, Vectors]:
        """Query vectors that callers handed in, of queries in lessons after a number; of several for one query the
        smallest, whatever came first, and one on hold only where there is no other."""
        rows = self._db.all(
            f"SELECT query, number IN ({HELD}) AS waits, min(vector) FROM lessons WHERE vector IS NOT NULL "
            "AND query IN (SELECT query FROM lessons WHERE number > ?) GROUP BY query, waits ORDER BY waits DESC",
            (after,),
        )
        return {query: np.frombuffer(blob, np.float32) for query, _, blob in rows}

    def public_vectors(self, restricted: str) -> dict[str, Vectors]:
        """The same, of the lessons that hold for some document that is not restricted (by that field)."""
        holds = f"EXISTS (SELECT 1 FROM verdicts v {HOLDS} WHERE v.lesson = l.number AND {PUBLIC})"
        rows = self._db.all(
            f"SELECT query, number IN ({HELD}) AS waits, min(vector) FROM lessons l "
            f"WHERE vector IS NOT NULL AND {holds} GROUP BY query, waits ORDER BY waits DESC",
            (restricted,),
        )
        return {query: np.frombuffer(blob, np.float32) for query, _, blob in rows}

    def mark(self, number: int) -> tuple[int, Any, Omitted]:
        """How many lessons there are up to a number, what the last of them was, and which are on hold: less or other
        after a change."""
        found = self._db.one("SELECT number, query, vector FROM lessons WHERE number = ?", (number,))
        return self.count_to(number), found, self.held()

    def count_to(self, number: int) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons WHERE number <= ?", (number,))[0])

    def numbers(self, up_to: int, omitted: Omitted = NONE) -> list[int]:
        """Of the lessons up to a number, in order."""
        within, values = _within("number", up_to, omitted)
        return [row[0] for row in self._db.all(f"SELECT number FROM lessons WHERE {within} ORDER BY number", values)]

    def count_pending(self, up_to: int, omitted: Omitted, about: Sequence[int] | None = None) -> int:
        """Lessons, not on hold, beyond those up to a number; of all, or those that name some of these documents."""
        within, values = _within("number", up_to, omitted)
        sql = f"SELECT count(*) FROM lessons WHERE number NOT IN ({HELD}) AND NOT ({within})"
        if about is not None:
            sql, values = f"{sql} AND {ABOUT}", (*values, json.dumps(list(about)))
        return int(self._db.one(sql, values)[0])

    def held(self) -> Omitted:
        """Numbers of the lessons on hold."""
        return frozenset(row[0] for row in self._db.all(HELD))

    def hold(self, numbers: Iterable[int]) -> int:
        """Put lessons on hold; returns how many were not. One that is not there is left out."""
        rows = [(number,) for number in numbers]
        with self._db.write() as connection:
            self._drop_pools(connection, rows)
            sql = "INSERT OR IGNORE INTO held SELECT number FROM lessons WHERE number = ?"
            return connection.executemany(sql, rows).rowcount

    def release(self, numbers: Iterable[int]) -> int:
        """Let lessons on hold take part again; returns how many were on hold."""
        rows = [(number,) for number in numbers]
        with self._db.write() as connection:
            self._drop_pools(connection, rows)
            return connection.executemany("DELETE FROM held WHERE lesson = ?", rows).rowcount

    def _drop_pools(self, connection: sqlite3.Connection, rows: Sequence[tuple[int]]) -> None:
        """Where vectors come from the caller, which lessons take part decides how a query is asked."""
        handed = "SELECT query FROM lessons WHERE vector IS NOT NULL AND number = ?"
        connection.executemany(f"DELETE FROM pools WHERE query IN ({handed})", rows)

    def count_about(self, numbers: Sequence[int], *, held: bool = False) -> int:
        """Lessons that name some of these documents; or those of them that are on hold."""
        sql = f"SELECT count(*) FROM lessons WHERE {ABOUT}" + (f" AND number IN ({HELD})" if held else "")
        return int(self._db.one(sql, (json.dumps(list(numbers)),))[0])

    def set_aside(self, among: Sequence[int] | None = None) -> int:
        """Verdicts whose document is gone or says something else now; or on some documents that say something else."""
        if among is not None:
            sql = (
                "SELECT count(*) FROM verdicts v JOIN documents d ON d.id = v.document AND d.hash != v.hash "
                "WHERE d.number IN (SELECT value FROM json_each(?))"
            )
            return int(self._db.one(sql, (json.dumps(list(among)),))[0])
        return int(
            self._db.one(
                "SELECT count(*) FROM verdicts v LEFT JOIN documents d ON d.id = v.document AND d.hash = v.hash "
                "WHERE d.number IS NULL"
            )[0]
        )

    def forget(self, *, query: str | None, actor: str | None, document: str | None) -> int:
        """Erase what matches every given criterion; a lesson left without a verdict goes too. Count the lessons."""
        conditions = {"query = ?": query, "actor = ?": actor}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        matching = "SELECT number FROM lessons" + (" WHERE " + " AND ".join(given) if given else "")
        values = list(given.values())
        with self._db.write() as connection:
            handed = f"SELECT query FROM lessons WHERE vector IS NOT NULL AND number IN ({matching})"
            connection.execute(f"DELETE FROM pools WHERE query IN ({handed})", values)
            if document is None:
                touched = [row[0] for row in connection.execute(matching, values)]
                connection.executemany("DELETE FROM lessons WHERE number = ?", [(number,) for number in touched])
            else:
                sql = f"SELECT lesson FROM verdicts WHERE document = ? AND lesson IN ({matching})"
                touched = [row[0] for row in connection.execute(sql, [document, *values])]
                connection.executemany(
                    "DELETE FROM verdicts WHERE document = ? AND lesson = ?", [(document, lesson) for lesson in touched]
                )
                connection.execute("DELETE FROM lessons WHERE number NOT IN (SELECT lesson FROM verdicts)")
            if actor is None and document is None:
                connection.execute("DELETE FROM pins WHERE query = ?", (query,))
            connection.execute(
                "DELETE FROM pools WHERE query NOT IN (SELECT query FROM lessons UNION SELECT query FROM pins "
                "UNION SELECT query FROM traffic)"
            )
        return len(touched)


HELD = "SELECT lesson FROM held"
ABOUT = (
    "number IN (SELECT v.lesson FROM verdicts v JOIN documents d ON d.id = v.document "
    "WHERE d.number IN (SELECT value FROM json_each(?)))"
)
"""A lesson that names some of the documents whose numbers are given."""
SELECTED = {
    "query": "l.query = ?",
    "actor": "l.actor = ?",
    "verifier": "l.verifier = ?",
    "document": "l.number IN (SELECT lesson FROM verdicts WHERE document = ?)",
}
"""What lessons are chosen by."""


def _within(column: str, up_to: int, omitted: Omitted) -> tuple[str, tuple[Any, ...]]:
    """A condition, and its values: the lessons up to a number without those that are omitted."""
    if not omitted:
        return f"{column} <= ?", (up_to,)
    return f"{column} <= ? AND {column} NOT IN (SELECT value FROM json_each(?))", (up_to, json.dumps(sorted(omitted)))


@dataclass(frozen=True, slots=True)
class Success:
    """A lesson as the paper's rule replays it: a verified query, its units, and what it had retrieved."""

    number: int
    query: str
    units: tuple[str, ...]
    retrieved: tuple[int, ...]
    """Numbers of the documents, best first; those that are gone or changed are left out."""


@dataclass(frozen=True, slots=True)
class Pool:
    ranking: Ranking
    newest: int
    removals: int
    """The documents it was taken among: Position when it was made."""


class Pools:
    """The untaught top documents of taught queries, kept so that evolving need not search the corpus."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, retriever: str, pools: Mapping[str, Pool]) -> None:
        rows = [
            (
                retriever,
                query,
                pool.ranking.numbers.tobytes(),
                pool.ranking.scores.tobytes(),
                pool.newest,
                pool.removals,
            )
            for query, pool in pools.items()
        ]
        with self._db.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO pools VALUES (?,?,?,?,?,?)", rows)

    def clear(self) -> None:
        with self._db.write() as connection:
            connection.execute("DELETE FROM pools")

    def get(self, retriever: str) -> dict[str, Pool]:
        rows = self._db.all(
            "SELECT query, numbers, scores, newest, removals FROM pools WHERE retriever = ?", (retriever,)
        )
        return {
            query: Pool(Ranking(np.frombuffer(numbers, np.int64), np.frombuffer(scores, np.float64)), newest, removals)
            for query, numbers, scores, newest, removals in rows
        }
