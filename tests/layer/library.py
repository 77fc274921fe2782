"""A search engine that is not ours, for tests: full-text search by SQLite (FTS5, its own BM25), with rights."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

import evokey
from evokey.demo import run

WORD = re.compile(r"\w+")


class Library:
    """Documents with a group each. It can be down, slow, forget documents, and change the scale of its scores."""

    def __init__(self, documents: Iterable[evokey.Document], *, secret: Sequence[str] = ()) -> None:
        """secret: ids of the documents that only the group "staff" may see; all others are everybody's."""
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, team UNINDEXED, title, body)")
        rows = [(one.id, "staff" if one.id in secret else "all", one.title, one.text) for one in documents]
        self._db.executemany("INSERT INTO pages VALUES (?,?,?,?)", rows)
        self._db.commit()
        self.down, self.delay, self.scale, self.shift = False, 0.0, 1.0, 0.0
        self.asked: list[tuple[str, int, dict[str, Any]]] = []
        self.asked_for_leave: list[list[str]] = []

    def search(self, query: str, k: int, team: str | None = None) -> list[tuple[str, float]]:
        """Without a team: everything."""
        self.asked.append((query, k, {} if team is None else {"team": team}))
        time.sleep(self.delay)
        if self.down:
            raise ConnectionError("the search engine is down")
        terms = " OR ".join(f'"{word}"' for word in WORD.findall(query))
        rows = self._db.execute(
            "SELECT id, -bm25(pages) FROM pages WHERE pages MATCH ? AND (team = 'all' OR ? IN ('', team)) "
            "ORDER BY bm25(pages), id LIMIT ?",
            (terms, team or "", k),
        )
        return [(id, self.scale * score + self.shift) for id, score in rows]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[str]:
        self.asked_for_leave.append(list(ids))
        marks = ",".join("?" * len(ids))
        rows = self._db.execute(
            f"SELECT id FROM pages WHERE id IN ({marks}) AND (team = 'all' OR ? IN ('', team))", (*ids, team or "")
        )
        return [id for (id,) in rows]

    def lose(self, id: str) -> None:
        self._db.execute("DELETE FROM pages WHERE id = ?", (id,))

    def mend(self) -> None:
        """As it was in the beginning; what it lost is found again."""
        self._db.rollback()
        self.down, self.delay, self.scale, self.shift = False, 0.0, 1.0, 0.0


def ids(hits: Sequence[evokey.Hit]) -> list[str]:
    return [hit.id for hit in hits]


def pairs(hits: Sequence[evokey.Hit]) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in hits]


def teach(layer: evokey.Layer, questions: Sequence[run.Question], most: int = 60, **filters: Any) -> list[run.Question]:
    """Some wordings of some intents, by the actor "demo"."""
    taught = [one for one in questions if one.group == run.GROUPS[0]][:most]
    layer.feedback_many([{"query": one.text, "relevant": one.relevant, "actor": "demo", **filters} for one in taught])
    return taught
