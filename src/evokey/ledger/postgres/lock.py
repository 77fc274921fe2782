"""Who may write to a shared ledger: advisory locks of transactions, so that they go with a lost connection, and work
behind PgBouncer.

Every transaction that writes begins with the first lock. The second one is for what takes several transactions, such as
evolve and forget: a transaction of its own holds it, on another connection, while lessons and documents still come in.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from evokey.errors import ConnectionLost, StorageFailed
from evokey.postgres.address import Address
from evokey.postgres.connections import Connection, Connections, fetch

WAITS = 30_000
"""Milliseconds for which another transaction is waited for."""
WAITS_FOR_VERB = 600_000
"""The same for evolve, forget and the like of another process."""


class Holding(threading.local):
    process: int | None = None
    """Of the database, which holds the second lock for this thread."""


class SharedLock:
    def __init__(self, connections: Connections, address: Address, *, read_only: bool) -> None:
        self._connections, self._address, self._read_only = connections, address, read_only
        self._key = int.from_bytes(hashlib.sha256(address.schema.encode()).digest()[:4], "big", signed=True)
        self._holding = Holding()
        self.taken = False

    def take(self) -> None:
        if self._read_only:
            raise StorageFailed(
                f"{self._address} can only be read (it is a replica, or the session is read-only): write to the primary"
            )
        self.taken = True

    def begin(self, connection: Connection) -> None:
        """A transaction that writes."""
        connection.execute(f"BEGIN; SET LOCAL lock_timeout = {WAITS}; SELECT pg_advisory_xact_lock(1, {self._key})")

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self.take()
        if self._holding.process is not None:
            yield
            return
        with self._connections.explain(), self._connections.take() as connection:
            connection.execute(
                f"BEGIN; SET LOCAL lock_timeout = {WAITS_FOR_VERB}; SET LOCAL idle_in_transaction_session_timeout = 0; "
                f"SELECT pg_advisory_xact_lock(2, {self._key})"
            )
            with self._hold(connection):
                yield

    @contextmanager
    def take_if_free(self) -> Iterator[bool]:
        if self._read_only or self._holding.process is not None:
            yield not self._read_only
            return
        with self._connections.explain(), self._connections.take() as connection:
            connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
            if not _ask(connection, f"SELECT pg_try_advisory_xact_lock(2, {self._key})"):
                yield False
                return
            with self._hold(connection):
                yield True

    @contextmanager
    def _hold(self, connection: Connection) -> Iterator[None]:
        try:
            self._holding.process = _ask(connection, "SELECT pg_backend_pid()")
            yield
        finally:
            self._holding.process = None
            with suppress(psycopg.Error):  # a connection that is gone holds nothing
                connection.rollback()

    def check(self, connection: Connection) -> None:
        """Before a commit: what this thread believes to hold, it holds. Its connection may have been lost meanwhile."""
        if self._holding.process is None:
            return
        sql = (
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = %s "
            "AND classid::bigint::bit(32)::int = 2 AND objid::bigint::bit(32)::int = %s"
        )
        if not fetch(connection, sql, (self._holding.process, self._key)):
            raise ConnectionLost(f"{self._address}: the connection that held the lock broke. Nothing was changed")


def _ask(connection: Connection, sql: str) -> int:
    """Without parameters: a statement that has some holds on to what it saw, and VACUUM would wait for it."""
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])
