"""Lessons in the ledger: appended, read back for an epoch, forgotten."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


class Lessons:
    def __init__(self, database: Database) -> None:
        self._db = database

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

    def credits(self, up_to: int) -> list[Credit]:
        """Verdicts that hold today, of the lessons up to a number, in order of arrival."""
        rows = self._db.all(
            "SELECT l.number, l.query, l.actor, d.number, v.grade "
            "FROM lessons l JOIN verdicts v ON v.lesson = l.number "
            "JOIN documents d ON d.id = v.document AND d.hash = v.hash WHERE l.number <= ? ORDER BY l.number, d.number",
            (up_to,),
        )
        return [Credit(*row) for row in rows]

    def votes(self, up_to: int) -> list[Vote]:
        """The same, lesson by lesson: what each says about which documents."""
        rows = self._db.all(
            "SELECT v.lesson, v.grade, group_concat(d.number) FROM verdicts v "
            "JOIN documents d ON d.id = v.document AND d.hash = v.hash WHERE v.lesson <= ? GROUP BY v.lesson, v.grade",
            (up_to,),
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

    def successes(self, up_to: int) -> list[Success]:
        """Lessons up to a number in which some document was right, in order, with what they had retrieved."""
        right = "EXISTS (SELECT 1 FROM verdicts v WHERE v.lesson = l.number AND v.grade > 0)"
        rows = self._db.all(
            f"SELECT number, query, units FROM lessons l WHERE number <= ? AND {right} ORDER BY number", (up_to,)
        )
        shown = self._db.all(
            "SELECT l.number, d.number FROM lessons l, json_each(l.retrieved) r JOIN documents d ON d.id = r.value "
            "WHERE l.number <= ? ORDER BY l.number, r.key",
            (up_to,),
        )
        retrieved: dict[int, list[int]] = {}
        for lesson, number in shown:
            retrieved.setdefault(lesson, []).append(number)
        return [
            Success(number, query, tuple(json.loads(units)), tuple(retrieved.get(number, ())))
            for number, query, units in rows
        ]

    def about(self, document: str) -> list[Lesson]:
        """The lessons that name a document, oldest first."""
        rows = self._db.all(
            "SELECT l.number, l.query, l.units, l.actor, l.verifier, l.time, v.hash, v.grade "
            "FROM lessons l JOIN verdicts v ON v.lesson = l.number WHERE v.document = ? ORDER BY l.number",
            (document,),
        )
        return [
            Lesson(number, query, tuple(json.loads(units)), (Verdict(document, grade, hash),), actor, verifier, time)
            for number, query, units, actor, verifier, time, hash, grade in rows
        ]

    def units(self, up_to: int) -> dict[str, list[str]]:
        """Expansion units by query, each once, in alphabetical order."""
        rows = self._db.all("SELECT query, units FROM lessons WHERE number <= ? AND units != '[]'", (up_to,))
        found: dict[str, set[str]] = {}
        for query, units in rows:
            found.setdefault(query, set()).update(json.loads(units))
        return {query: sorted(units) for query, units in found.items()}

    def right(self, query: str) -> set[str]:
        """Documents that were verified right for a query, whatever they say now."""
        rows = self._db.all(
            "SELECT v.document FROM lessons l JOIN verdicts v ON v.lesson = l.number WHERE l.query = ? AND v.grade > 0",
            (query,),
        )
        return {row[0] for row in rows}

    def texts(self) -> set[str]:
        """All that lessons say: queries and units."""
        rows = self._db.all("SELECT query FROM lessons UNION SELECT u.value FROM lessons l, json_each(l.units) u")
        return {row[0] for row in rows}

    def vectors(self, after: int = 0) -> dict[str, Vectors]:
        """Query vectors that callers handed in, of queries in lessons after a number; of several for one query the
        smallest, whatever came first."""
        rows = self._db.all(
            "SELECT query, min(vector) FROM lessons WHERE vector IS NOT NULL "
            "AND query IN (SELECT query FROM lessons WHERE number > ?) GROUP BY query",
            (after,),
        )
        return {query: np.frombuffer(blob, np.float32) for query, blob in rows}

    def mark(self, number: int) -> tuple[int, Any]:
        """How many lessons there are up to a number, and what the last of them was: less or other after a change."""
        found = self._db.one("SELECT number, query, vector FROM lessons WHERE number = ?", (number,))
        return len(self) - self.count_after(number), found

    def count_to(self, number: int) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons WHERE number <= ?", (number,))[0])

    def count_after(self, number: int) -> int:
        return int(self._db.one("SELECT count(*) FROM lessons WHERE number > ?", (number,))[0])

    def set_aside(self) -> int:
        """Verdicts whose document is gone or says something else now."""
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
