"""Ratings in the ledger: one vote of each actor on what was shown, and what it led to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evokey.erasure import Erasure
from evokey.ledger.database import Database
from evokey.types import Gap, Rating

COLUMNS = "shown, actor, query, up, reason, cited, time, epoch, lesson, review"
NOT_THERE = "not in the documents"
MOST = 100_000
"""Ratings that are kept: the newest. A lesson outlives the rating that it comes from."""


class Ratings:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, rating: Rating) -> None:
        one = rating
        told = (one.query_id, one.actor or "", one.query, int(one.up), one.reason, json.dumps(one.cited), one.time)
        with self._db.write():
            self._db.put("ratings", [(*told, one.epoch, one.lesson, one.review)])
            oldest = self._db.one("SELECT time FROM ratings ORDER BY time DESC LIMIT 1 OFFSET ?", (MOST,))
            if oldest is not None:
                self._db.run("DELETE FROM ratings WHERE time <= ?", (oldest[0],))

    def get(self, query_id: str, actor: str | None) -> Rating | None:
        row = self._db.one(f"SELECT {COLUMNS} FROM ratings WHERE shown = ? AND actor = ?", (query_id, actor or ""))
        return None if row is None else _rating(row)

    def remove(self, query_id: str, actor: str | None) -> None:
        self._db.run("DELETE FROM ratings WHERE shown = ? AND actor = ?", (query_id, actor or ""))

    def since(self, time: float = 0.0) -> list[Rating]:
        """Votes after a time, oldest first."""
        sql = f"SELECT {COLUMNS} FROM ratings WHERE time >= ? ORDER BY time, shown, actor"
        return [_rating(row) for row in self._db.all(sql, (time,))]

    def gaps(self) -> list[Gap]:
        """Questions that somebody says the documents do not answer, the most often named first."""
        rows = self._db.all(
            "SELECT query, count(*), max(time) FROM ratings WHERE up = 0 AND reason = ? "
            "GROUP BY query ORDER BY count(*) DESC, max(time) DESC, query",
            (NOT_THERE,),
        )
        return [Gap(query, int(count), time) for query, count, time in rows]

    def reviewed(self, review: int) -> int:
        """How many votes led to a question to people."""
        return int(self._db.one("SELECT count(*) FROM ratings WHERE review = ? AND up = 0", (review,))[0])

    def queries(self, actor: str) -> set[str]:
        return {row[0] for row in self._db.all("SELECT DISTINCT query FROM ratings WHERE actor = ?", (actor,))}

    def forget(self, erasure: Erasure) -> None:
        """Erase the votes on a forgotten query, of a forgotten actor, or that cite a forgotten document."""
        with self._db.write():
            for one in self.since():
                cited = {*one.cited, *(name.rpartition("#")[0] for name in one.cited)}
                if erasure.covers(one.query, one.actor, cited):
                    self.remove(one.query_id, one.actor)


def _rating(row: Sequence[Any]) -> Rating:
    shown, actor, query, up, reason, cited, time, epoch, lesson, review = row
    return Rating(shown, actor or None, query, bool(up), reason, tuple(json.loads(cited)), time, epoch, lesson, review)
