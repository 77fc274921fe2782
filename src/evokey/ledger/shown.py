"""What searches and answers showed, in the ledger: bounded in number and in time.

Showing only notes a row in memory, so that a search does not wait for the disk; `keep` writes what was noted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from evokey.erasure import Erasure
from evokey.ledger.database import Database
from evokey.ledger.forgets import Forgets
from evokey.types import Other, Shown

MOST = 100_000
"""Rows that are kept: the newest."""
LONGEST = 7 * 86_400.0
"""Seconds for which they are kept."""
COLUMNS = "id, query, actor, time, epoch, documents, cited, answer, mode, other, other_documents"


class ShownResults:
    def __init__(self, database: Database) -> None:
        self._db, self._forgets = database, Forgets(database)
        self._since = 0
        """How many forgets there were when the first of the noted rows was noted."""
        self._noted: dict[str, Shown] = {}
        self._mutex = threading.Lock()

    def note(self, shown: Shown) -> None:
        with self._mutex:
            if not self._noted:
                self._since = self._forgets.count
            self._noted[shown.id] = shown
            if len(self._noted) > MOST:
                self._noted.pop(next(iter(self._noted)))

    def keep(self, now: float) -> None:
        """Write what was noted, unless another process forgot something meanwhile: that may be among it."""
        with self._db.write():
            with self._mutex:
                noted, self._noted = self._noted, {}
                if noted and self._forgets.count != self._since:
                    noted = {}
            self._db.put("shown", [_row(one) for one in noted.values()])
            self._db.run("DELETE FROM shown WHERE time < ?", (now - LONGEST,))
            self._db.run(
                "DELETE FROM shown WHERE id IN (SELECT id FROM shown ORDER BY time DESC, id LIMIT 1000 OFFSET ?)",
                (MOST,),
            )

    @property
    def noted(self) -> int:
        """Rows that are not written yet."""
        return len(self._noted)

    def get(self, id: str) -> Shown | None:
        found = self._noted.get(id)
        if found is not None:
            return found
        row = self._db.one(f"SELECT {COLUMNS} FROM shown WHERE id = ?", (id,))
        return None if row is None else _decode(row)

    def since(self, time: float, mode: str | None = None) -> list[Shown]:
        """What was shown after a time, oldest first; or only where another epoch took part in this mode."""
        condition, values = ("", ()) if mode is None else (" AND mode = ?", (mode,))
        sql = f"SELECT {COLUMNS} FROM shown WHERE time >= ?{condition} ORDER BY time, id"
        written = [_decode(row) for row in self._db.all(sql, (time, *values))]
        known = {one.id for one in written}
        waiting = [one for one in list(self._noted.values()) if one.id not in known and one.time >= time]
        return [*written, *(one for one in waiting if mode in (None, one.other and one.other.mode))]

    def lowest_epoch(self) -> int:
        """The lowest number of an epoch that took part in what was shown: below 0 are candidates."""
        row = self._db.one("SELECT min(other), min(epoch) FROM shown", ())
        waiting = [
            number for one in list(self._noted.values()) for number in (one.epoch, one.other and one.other.epoch)
        ]
        return min((number for number in (*(row or ()), *waiting) if number is not None), default=0)

    def click(self, id: str, document: str) -> None:
        self._db.run("INSERT INTO clicks VALUES (?,?) ON CONFLICT DO NOTHING", (id, document))

    def clicks(self) -> dict[str, list[str]]:
        """Documents that were clicked, by what had shown them."""
        found: dict[str, list[str]] = {}
        for shown, document in self._db.all("SELECT shown, document FROM clicks ORDER BY shown, document"):
            found.setdefault(shown, []).append(document)
        return found

    def queries(self, actor: str) -> set[str]:
        """What somebody asked."""
        rows = self._db.all("SELECT DISTINCT query FROM shown WHERE actor = ?", (actor,))
        return {row[0] for row in rows} | {one.query for one in list(self._noted.values()) if one.actor == actor}

    def forget(self, erasure: Erasure) -> None:
        """Erase what was shown for a forgotten query, to a forgotten actor, or with a forgotten document."""
        with self._mutex:
            self._noted = {id: one for id, one in self._noted.items() if not _covers(erasure, one)}
        with self._db.write():
            rows = map(_decode, self._db.all(f"SELECT {COLUMNS} FROM shown"))
            self._db.run_many("DELETE FROM shown WHERE id = ?", [(one.id,) for one in rows if _covers(erasure, one)])
            self._db.run("DELETE FROM clicks WHERE shown NOT IN (SELECT id FROM shown)")

    def go_on(self) -> None:
        """After a forget of this process: what is still noted was not forgotten."""
        with self._mutex:
            self._since = self._forgets.count


def _covers(erasure: Erasure, one: Shown) -> bool:
    other = one.other
    others = (*other.documents, *other.both, *(id for ids in other.rankings or () for id in ids)) if other else ()
    return erasure.covers(one.query, one.actor, {*one.documents, *others})


def _row(one: Shown) -> Sequence[Any]:
    told = (one.id, one.query, one.actor, one.time, one.epoch, json.dumps(one.documents), json.dumps(one.cited))
    if one.other is None:
        return (*told, one.answer, None, None, None)
    brought = json.dumps([one.other.documents, one.other.both, *(one.other.rankings or ())])
    return (*told, one.answer, one.other.mode, one.other.epoch, brought)


def _decode(row: Sequence[Any]) -> Shown:
    id, query, actor, time, epoch, documents, cited, answer, mode, other, others = row
    beside = None if mode is None else _decode_other(mode, other, [tuple(ids) for ids in json.loads(others)])
    return Shown(id, query, actor, time, epoch, tuple(json.loads(documents)), tuple(json.loads(cited)), answer, beside)


def _decode_other(mode: str, epoch: int, lists: list[tuple[str, ...]]) -> Other:
    """lists: what it brought, what both did and, where they were kept, the rankings of both."""
    documents, both, *rankings = lists
    return Other(mode, epoch, documents, both, (rankings[0], rankings[1]) if rankings else None)
