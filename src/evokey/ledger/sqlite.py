"""The ledger's file: one SQLite database in WAL mode, one writer at a time across processes, any number of readers.

The writer's lock is taken at the first write and kept until close. A commit is on disk before a verb returns.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from evokey.errors import MemoryBusy, NewerFormat, NotAMemory

FILE, LOCK, HOLDER = "ledger.sqlite", "writer.lock", "writer.json"


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) in order. The names of those applied are kept in the file."""
    folder = resources.files("evokey.ledger") / "migrations"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in found]


class Database:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.RLock()
        self._lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
        self._depth = 0
        self._connection = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise NotAMemory(f"{folder / FILE} is not a ledger of evokey ({error}); nothing was changed") from error
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA busy_timeout = 10000")
        if run("PRAGMA journal_mode").fetchone()[0] != "wal":
            run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA foreign_keys = ON")
        run("PRAGMA secure_delete = ON")  # what was forgotten does not stay behind in free pages
        if self._pending():
            self._migrate()

    def _applied(self) -> list[str]:
        if not self.one("SELECT 1 FROM sqlite_master WHERE name = 'migrations'"):
            return []
        return [row[0] for row in self.all("SELECT name FROM migrations ORDER BY name")]

    def _pending(self) -> list[tuple[str, str]]:
        applied, known = self._applied(), migrations()
        unknown = set(applied) - {name for name, _ in known}
        if unknown:
            raise NewerFormat(
                f"{self._folder} was written by a newer evokey (it has {', '.join(sorted(unknown))}); "
                f"upgrade with: pip install -U evokey"
            )
        return [(name, sql) for name, sql in known if name not in applied]

    def _migrate(self) -> None:
        # Another process may be opening the same new memory: wait for it, then look again.
        with self._lock.acquire(timeout=30), self.write():
            self._connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            for name, sql in self._pending():
                for statement in _statements(sql):
                    self._connection.execute(statement)
                self._connection.execute("INSERT INTO migrations VALUES (?)", (name,))
        self.release()

    def close(self) -> None:
        with self._mutex:
            self._connection.close()
            self.release()

    def release(self) -> None:
        if self._lock.is_locked:
            (self._folder / HOLDER).unlink(missing_ok=True)
            self._lock.release(force=True)

    @property
    def writing(self) -> bool:
        """Whether this process holds the writer's lock."""
        return bool(self._lock.is_locked)

    @property
    def version(self) -> int:
        """Changes when another connection has committed."""
        return int(self.one("PRAGMA data_version")[0])

    def one(self, sql: str, values: Any = ()) -> Any:
        with self._mutex:
            return self._connection.execute(sql, values).fetchone()

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        with self._mutex:
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Several reads of one state."""
        with self._mutex:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. Nested calls join the outer one."""
        with self._mutex:
            if self._depth:
                yield self._connection
                return
            self._take_lock()
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def scrub(self) -> None:
        """After a forget: leave no copy of the erased pages in the write-ahead log."""
        with self._mutex:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _take_lock(self) -> None:
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except Timeout:
            raise MemoryBusy(
                f"{self._folder} is being written by {self._holder()}. Searching goes on; to write, wait until that "
                f"process closes the memory, or write through it."
            ) from None
        note = {"pid": os.getpid(), "host": socket.gethostname()}
        (self._folder / HOLDER).write_text(json.dumps(note))

    def _holder(self) -> str:
        try:
            note = json.loads((self._folder / HOLDER).read_text())
            return f"process {note['pid']} on {note['host']}"
        except (OSError, ValueError, KeyError):
            return "another process"


def _statements(sql: str) -> Iterator[str]:
    """Split a script: sqlite3's own executescript would commit half of it."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
