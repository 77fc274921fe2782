"""A sample of the traffic: some of the queries that were searched, to see what learning would do to other questions.

It is bounded, and a function of the set of queries that were searched, not of their order or number: those whose
hashes are the smallest stay. Searching only notes a query in memory; the ledger has it at the next write, and only in
a process that writes anyway.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence

from evokey.ledger.database import Database
from evokey.ledger.forgets import Forgets


class Traffic:
    def __init__(self, database: Database, size: int) -> None:
        self._db, self._size, self._forgets = database, size, Forgets(database)
        self._since = 0
        """How many forgets there were when the first of the noted queries was noted."""
        self._noted: dict[str, int | None] = {}
        """Queries and their hashes, where these were needed."""
        self._mutex = threading.Lock()

    def note(self, query: str) -> None:
        """A query was searched."""
        if not self._size or query in self._noted:
            return
        since = None if self._noted else self._forgets.count  # the database is not asked while others wait
        with self._mutex:
            if not self._noted:
                self._since = self._forgets.count if since is None else since
            self._noted[query] = None
            if len(self._noted) >= 2 * self._size:
                self._noted = dict[str, int | None](_smallest(self._noted, self._size))

    def keep(self) -> list[str]:
        """Write what was noted, unless another process forgot something meanwhile: that may be among it. Returns the
        queries that had to make room."""
        if not self._noted:
            return []
        with self._db.write():
            with self._mutex:
                noted, self._noted = _smallest(self._noted, self._size), {}
                if self._forgets.count != self._since:
                    return []
            self._db.run_many("INSERT INTO traffic VALUES (?,?) ON CONFLICT DO NOTHING", noted)
            gone = self.queries()[self._size :]
            self._erase(gone)
        return gone

    def queries(self) -> list[str]:
        """What is kept, in the order of the hashes: the first so many are a sample of their own."""
        return [row[0] for row in self._db.all("SELECT query FROM traffic ORDER BY hash, query")]

    def forget(self, queries: Sequence[str] | None = None) -> None:
        """Erase these, or all."""
        with self._mutex:
            for query in list(self._noted) if queries is None else queries:
                self._noted.pop(query, None)
        self._erase(self.queries() if queries is None else queries)

    def go_on(self) -> None:
        """After a forget of this process: what is still noted was not forgotten, and is written as ever."""
        with self._mutex:
            self._since = self._forgets.count

    def _erase(self, queries: Sequence[str]) -> None:
        """Out of the sample, and out of the pools unless a lesson or a protected query needs them there."""
        if not queries:
            return
        sql, named = self._db.dialect, (self._db.dialect.list(queries),)
        with self._db.write():
            self._db.run(f"DELETE FROM traffic WHERE query {sql.in_texts}", named)
            self._db.run(
                f"DELETE FROM pools WHERE query {sql.in_texts} "
                "AND query NOT IN (SELECT query FROM lessons UNION SELECT query FROM pins)",
                named,
            )


def _smallest(noted: Mapping[str, int | None], size: int) -> list[tuple[str, int]]:
    hashed = [(query, _hash(query) if known is None else known) for query, known in noted.items()]
    return sorted(hashed, key=lambda item: (item[1], item[0]))[:size]


def _hash(query: str) -> int:
    """63 bits: a whole number of SQLite."""
    return int.from_bytes(hashlib.sha256(query.encode()).digest()[:8]) >> 1
