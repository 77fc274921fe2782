"""Whose documents the numbers mean. Keys know documents by number, and a ledger that was restored from a backup gives
numbers again: to other documents.

Each process that writes documents signs with a random name and the first number that it gives. Keys note the last
writer. They belong to a ledger that has this writer, and no later one that began below their highest number.
"""

from __future__ import annotations

import sqlite3

from evokey.ledger.sqlite import Database

NEXT = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'documents'"
SIGN = f"INSERT INTO writers(name, first) SELECT ?, ({NEXT}) WHERE NOT EXISTS (SELECT 1 FROM writers WHERE name = ?)"
LATER = "SELECT min(first) FROM writers WHERE seq > ?"


class Writers:
    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def writer(self) -> str:
        """The last that has written documents; "" where none has signed."""
        row = self._db.one("SELECT name FROM writers ORDER BY seq DESC LIMIT 1")
        return str(row[0]) if row else ""

    def sign(self, connection: sqlite3.Connection) -> None:
        """In a transaction that is about to add documents; once for each that is open."""
        connection.execute(SIGN, (self._db.name, self._db.name))

    def owns(self, writer: str, newest: int) -> bool:
        """Asked of the state that is committed now: keys on disk may be newer than what a reader holds on to."""
        with self._db.latest() as connection:
            return owns(connection, writer, newest)


def owns(connection: sqlite3.Connection, writer: str, newest: int) -> bool:
    """Whether documents up to a number, as that writer left them, are those of this ledger. Keys of a time when nobody
    signed come before all writers."""
    found = connection.execute("SELECT seq FROM writers WHERE name = ?", (writer,)).fetchone() if writer else (0,)
    if found is None or newest >= connection.execute(NEXT).fetchone()[0]:
        return False
    later = connection.execute(LATER, found).fetchone()[0]
    return later is None or newest < later
