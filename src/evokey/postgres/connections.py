"""Connections to a database: taken from a pool, given back whole, and made again after they were lost.

Nothing here depends on the state of a session (no prepared statements, no SET that outlives its transaction), so that
PgBouncer may give each transaction another session. Errors are ours, and never hold the URL.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from evokey.errors import ConnectionLost, EvokeyError, InvalidInput, InvalidSettings, MemoryBusy, StorageFailed
from evokey.postgres.address import Address

Connection = psycopg.Connection[Any]
Done = TypeVar("Done")
PATIENCE = 30.0
"""Seconds for which a database that does not answer is asked again."""
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts; the last one again and again."""
OPTIONS: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,  # a prepared statement belongs to a session, and PgBouncer changes that
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "application_name": "evokey",
}
GONE = ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""The server stops, starts, or has ended a session that was idle."""


def is_lost(error: BaseException) -> bool:
    """Whether a connection is gone, or was never there, for a reason that may pass."""
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in GONE


class Connections:
    """At most so many at a time; those that are not in use wait for the next."""

    def __init__(self, address: Address, *, size: int = 16) -> None:
        self.address, self.patience = address, PATIENCE
        self._places, self._idle, self._mutex = threading.Semaphore(size), list[Connection](), threading.Lock()
        self._ended = False
        with self.explain():
            self._try_once()

    def _try_once(self) -> None:
        """The first connection: what is wrong with a URL or a password will be wrong the next time, too."""
        try:
            self._idle.append(self._connect())
        except psycopg.ProgrammingError as error:
            raise InvalidSettings(
                f"the URL of the database cannot be read ({type(error).__name__}); write "
                f"postgresql://user@host:5432/database, with %-codes for special characters, and leave the password to "
                f"PGPASSWORD, ~/.pgpass or a service file"
            ) from None  # psycopg's message quotes parts of the URL

    def _connect(self) -> Connection:
        return psycopg.connect(self.address.url, **OPTIONS)

    @contextmanager
    def take(self) -> Iterator[Connection]:
        """A connection of its own, until the end of the block. It goes back whole, or not at all."""
        if not self._places.acquire(timeout=self.patience):
            raise MemoryBusy(f"{self.address}: all connections of this process are in use; try again")
        try:
            with self._mutex:
                known = self._idle.pop() if self._idle else None
            connection = known or self._connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._places.release()

    def _give_back(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.rollback()
        with self._mutex:
            if not connection.closed and not self._ended:
                self._idle.append(connection)
                return
            gone, self._idle = [connection, *self._idle], []  # where one was lost, the others are, too
        for one in gone:
            one.close()

    def repeat(self, work: Callable[[], Done]) -> Done:
        """Do what can be done twice; again while the database is not there, as long as patience lasts."""
        until, attempt = time.monotonic() + self.patience, 0
        while True:
            try:
                return work()
            except psycopg.Error as error:
                if not is_lost(error) or time.monotonic() >= until or self._ended:
                    self.raise_ours(error)
            time.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
            attempt += 1

    def ask(self, sql: str, values: Any = ()) -> list[Any]:
        """The rows of one statement by itself."""

        def work() -> list[Any]:
            with self.take() as connection:
                return fetch(connection, sql, values)

        return self.repeat(work)

    @contextmanager
    def explain(self) -> Iterator[None]:
        """Errors of the database as ours."""
        try:
            yield
        except psycopg.Error as error:
            self.raise_ours(error)

    def raise_ours(self, error: Exception) -> None:
        raise self._ours(error) from error

    def _ours(self, error: Exception) -> EvokeyError:
        said = _first_line(error)
        if isinstance(error, errors.LockNotAvailable):
            return MemoryBusy(f"{self.address} is being written by another process for a long time; try again")
        if is_lost(error):
            return ConnectionLost(f"{self.address}: no connection ({said}). Nothing was changed; try again")
        if isinstance(error, psycopg.DataError) and "NUL" in said:
            return InvalidInput("PostgreSQL cannot store the character NUL (\\x00) in a text; remove it")
        if isinstance(error, errors.ProgramLimitExceeded):
            return InvalidInput(f"PostgreSQL cannot index a text that is so long ({said}); use a shorter one")
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StorageFailed(f"{self.address} can only be read (it is a replica, or the session is read-only): "
                                 "write to the primary")  # fmt: skip
        return StorageFailed(f"{self.address}: {said}. Nothing was changed; mend what refuses, and try again")

    def close(self) -> None:
        with self._mutex:
            self._ended = True
            gone, self._idle = self._idle, []
        for one in gone:
            one.close()


def fetch(connection: Connection, sql: str, values: Any = ()) -> list[Any]:
    cursor = connection.cursor(binary=True)
    cursor.execute(sql, values or None)
    return cursor.fetchall() if cursor.description is not None else []


def _first_line(error: Exception) -> str:
    """What the server says, without the statement."""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return said.strip().split("\n")[0].rstrip(".")
