"""Whose documents the numbers mean. Keys know documents by number, and a ledger that was restored from a backup gives
numbers again: to other documents.

Each process that writes documents signs with a random name and the first number that it gives. Keys note the last
writer. They belong to a ledger that has this writer, and no later one that began below their highest number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evokey.ledger.database import Database, Dialect


class Writers:
    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def writer(self) -> str:
        """The last that has written documents; "" where none has signed."""
        row = self._db.one("SELECT name FROM writers ORDER BY seq DESC LIMIT 1")
        return str(row[0]) if row else ""

    def sign(self) -> None:
        """In a transaction that is about to add documents; once for each that is open."""
        if self._db.one("SELECT 1 FROM writers WHERE name = ?", (self._db.name,)) is None:
            first = f"{self._db.dialect.last_number('documents')} + 1"
            self._db.run(f"INSERT INTO writers(name, first) SELECT ?, {first}", (self._db.name,))

    def owns(self, writer: str, newest: int) -> bool:
        """Asked of the state that is committed now: keys on disk may be newer than what a reader holds on to."""
        with self._db.one_now() as one:
            return owns(one, self._db.dialect, writer, newest)


def owns(one: Callable[..., Any], dialect: Dialect, writer: str, newest: int) -> bool:
    """Whether documents up to a number, as that writer left them, are those of this ledger. Keys of a time when nobody
    signed come before all writers. one: reads a row."""
    found = one("SELECT seq FROM writers WHERE name = ?", (writer,)) if writer else (0,)
    if found is None or newest > one(f"SELECT {dialect.last_number('documents')}")[0]:
        return False
    later = one("SELECT min(first) FROM writers WHERE seq > ?", found)[0]
    return later is None or newest < later
