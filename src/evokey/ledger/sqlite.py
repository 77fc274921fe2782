"""The ledger's file: one SQLite database in WAL mode, one writer at a time across processes, any number of readers.

The writer's lock is taken at the first write and kept until close. A commit is on disk before a verb returns.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib import resources
from pathlib import Path
from time import monotonic
from typing import Any, Self

from filelock import FileLock, Timeout

from evokey.errors import DamagedLedger, MemoryBusy, MissingLedger, NewerFormat, NotAMemory, StorageFailed
from evokey.ledger import seal
from evokey.ledger.commits import Commits
from evokey.stores.segments import MANIFEST

FILE, COMMITS, SEAL, LOCK, HOLDER = "ledger.sqlite", "ledger.commits", "ledger.sum", "writer.lock", "writer.json"
TRUSTED = 1.0
"""Seconds for which the count of commits is believed: another tool, or an older evokey, does not count its own."""
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
FAILURES = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite raises; the second where the message quotes a damaged name."""
REFUSED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
UNREADABLE = ("no such table", "no such column", "Could not decode")
"""What SQLite says of a schema or a text that was damaged: our own statements are right."""
SMALLEST_PAGE = 512
"""Bytes that a ledger has at least: less is what a cut has left of one."""
PATIENCE = 10.0
"""Seconds for which another process's transaction is waited for."""


FOREIGN = (
    "SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name FROM sqlite_master "
    "WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
)
"""What runs by itself when tables are read or written."""


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) in order. The names of those applied are kept in the file."""
    folder = resources.files("evokey.ledger") / "migrations"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in found]


class Database:
    """Two connections: reads never wait for a transaction of ours, and see only what was committed. Inside a
    transaction, its own thread reads what it has written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = uuid.uuid4().hex
        """By which it signs what it writes."""
        self._lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
        self._reading, self._writing = threading.RLock(), threading.RLock()
        self._writer_thread: int | None = None
        self._commits = Commits(folder / COMMITS)
        self._version = -1
        """As it was last looked at."""
        self._known: int | None = None
        """The commits that were counted then."""
        self._doubted = 0.0
        """When SQLite is asked in any case."""
        _check_there(folder)
        check_seal(folder)
        try:
            self._reader = self._writer = self._connected()
            self._cursor = self._writer.cursor()
            self._prepare()
            self._reader = self._connected()
            self._cursor = self._reader.cursor()
            self._commits.follow(folder / FILE)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError) and _code(error) == sqlite3.SQLITE_NOTADB:
                raise NotAMemory(
                    f"{folder / FILE} is not a ledger of evokey ({error}); nothing was changed. If it was one, it is "
                    f"damaged: {_way_out(folder)}"
                ) from error
            self._explain(error)
            raise

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._folder / FILE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")
            connection.execute("PRAGMA trusted_schema = OFF")  # the file may be a stranger's
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        run = self._writer.execute
        foreign = run(FOREIGN).fetchone()
        if foreign is not None:
            raise NotAMemory(
                f"{self._folder / FILE} holds a {foreign[0]} ({foreign[1][:60]!r}), which no ledger of evokey has: it "
                f"could act on every search. Take the memory from a source that you trust."
            )
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
        try:
            self._lock.acquire(timeout=30)
        except Timeout:
            raise MemoryBusy(
                f"{self._folder} is of an older version and must be brought up to date, but {self._holder()} is "
                f"writing to it; wait until that process closes the memory"
            ) from None
        with self.write() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            for name, sql in self._pending():
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?)", (name,))
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """All of it, whatever interrupts a part."""
        with self._writing, self._reading, ExitStack() as closing_down:
            closing_down.callback(self._release)
            if self._lock.is_locked:
                closing_down.callback(seal.write, self._folder / FILE, self._folder / SEAL)
            closing_down.callback(self._commits.close)
            for name in ("_writer", "_reader"):
                if hasattr(self, name):
                    closing_down.callback(getattr(self, name).close)

    def _release(self) -> None:
        if self._lock.is_locked:
            try:
                with suppress(OSError):
                    (self._folder / HOLDER).unlink(missing_ok=True)
            finally:
                self._lock.release(force=True)

    @property
    def writing(self) -> bool:
        """Whether this process holds the writer's lock."""
        return bool(self._lock.is_locked)

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside a transaction that writes."""
        return self._writer_thread == threading.get_ident()

    @property
    def version(self) -> int:
        """Changes when anybody, here or elsewhere, has committed."""
        commits = self._commits.settled
        if commits is not None and commits == self._known and monotonic() < self._doubted:
            return self._version
        with self._reading:
            self._commits.follow(self._folder / FILE)
            commits = self._commits.settled  # before SQLite is asked: a commit in between is seen next time
            self._version = self._cursor.execute("PRAGMA data_version").fetchone()[0]
            self._known, self._doubted = commits, monotonic() + TRUSTED
            return self._version

    def one(self, sql: str, values: Any = ()) -> Any:
        with self._for_reading() as connection:
            return connection.execute(sql, values).fetchone()

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        try:
            if self.in_write:
                return self._writer.execute(sql, values).fetchall()
            with self._reading:
                return self._cursor.execute(sql, values).fetchall()
        except FAILURES as error:
            self._explain(error)
            raise

    @contextmanager
    def latest(self) -> Iterator[sqlite3.Connection]:
        """To read what is committed now, whatever state `read` holds on to."""
        try:
            with closing(self._connected()) as connection:
                yield connection
        except FAILURES as error:
            self._explain(error)
            raise

    @contextmanager
    def read(self) -> Iterator[None]:
        """Several reads of one state."""
        with self._for_reading() as connection:
            if connection.in_transaction:
                yield
                return
            try:
                connection.execute("BEGIN")  # in here: an interrupt may come as soon as it is done
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    @contextmanager
    def _for_reading(self) -> Iterator[sqlite3.Connection]:
        try:
            if self.in_write:
                yield self._writer
                return
            with self._reading:
                yield self._reader
        except FAILURES as error:
            self._explain(error)
            raise

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. Nested calls join the outer one."""
        with self._writing:
            if self._writer_thread is not None:
                yield self._writer
                return
            self.take_lock()
            try:
                self._undo()  # what an interrupt left when another one cut its undoing short
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer_thread = threading.get_ident()
                yield self._writer
                self._commit()
            except BaseException as error:
                self._undo()
                self._explain(error)
                raise
            finally:
                self._writer_thread = None

    def _commit(self) -> None:
        with suppress(OSError):
            (self._folder / SEAL).unlink(missing_ok=True)
        self._commits.begin()
        try:
            self._writer.execute("COMMIT")
        finally:
            self._commits.end()

    def _undo(self) -> None:
        if self._writer.in_transaction:
            with suppress(sqlite3.Error):  # the error that led here says more
                self._writer.execute("ROLLBACK")

    def _explain(self, error: BaseException) -> None:
        """Raise an error of ours, with a way out, for those of SQLite that come from the file or the disk."""
        if not isinstance(error, FAILURES):
            return
        ledger, code = self._folder / FILE, _code(error)
        if code in DAMAGED or isinstance(error, UnicodeDecodeError) or str(error).startswith(UNREADABLE):
            raise DamagedLedger(f"{ledger} is damaged ({error}): {_way_out(self._folder)}") from error
        if code in REFUSED:
            raise StorageFailed(
                f"{ledger}: {error}{_hint(self._folder)}. Nothing was changed; make room on the disk, or mend what "
                f"refuses, and try again."
            ) from error
        if code in BUSY:
            raise MemoryBusy(
                f"{ledger} is locked by another program ({error}); wait until it is done, and try again"
            ) from error

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside of write()."""
        return self._writer_thread == threading.get_ident()

    def rewrite(self, tables: Sequence[str], first: str) -> None:
        """Write tables anew, after one more statement, all in one transaction. Where pages were split or joined, copies
        of deleted rows stay behind in them, secure_delete or not; pages that become free are overwritten."""
        with self._writing:
            try:
                self._writer.execute("PRAGMA foreign_keys = OFF")  # rows go and come back: no reference is broken
                with self.write() as connection:
                    connection.execute(first)
                    for table in tables:
                        connection.execute(f"CREATE TEMP TABLE remaining AS SELECT * FROM main.{table}")
                        connection.execute(f"DELETE FROM main.{table}")
                        connection.execute(f"INSERT INTO main.{table} SELECT * FROM remaining")
                        connection.execute("DROP TABLE temp.remaining")
            finally:
                self._writer.execute("PRAGMA foreign_keys = ON")

    def empty_log(self, patience: float) -> bool:
        """Leave no page in the write-ahead log; False where a reader still needs some after so many seconds."""
        with self._writing:
            try:
                self._writer.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
                return not self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")

    @contextmanager
    def lock_if_free(self) -> Iterator[bool]:
        """Be the process that writes for a moment; False where another one is, or nobody can. Who is it already stays
        it."""
        if self._lock.is_locked:
            yield True
            return
        try:
            self.take_lock()
        except (MemoryBusy, OSError):
            yield False
            return
        try:
            yield True
        finally:
            self._release()

    def take_lock(self) -> None:
        """Become the one process that writes, until close."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except Timeout:
            raise MemoryBusy(
                f"{self._folder} is being written by {self._holder()}. Searching goes on; to write, wait until that "
                f"process closes the memory, or write through it."
            ) from None
        except OSError as error:
            raise StorageFailed(
                f"{self._folder / LOCK} cannot be locked ({error}){_hint(self._folder)}. Nothing was changed; "
                f"mend what refuses, and try again."
            ) from error
        note = {"pid": os.getpid(), "host": socket.gethostname()}
        with suppress(OSError):  # for other people's error messages alone
            (self._folder / HOLDER).write_text(json.dumps(note))

    def _holder(self) -> str:
        try:
            note = json.loads((self._folder / HOLDER).read_text())
            return f"process {note['pid']} on {note['host']}"
        except (OSError, ValueError, KeyError):
            return "another process"


def _check_there(folder: Path) -> None:
    """An empty ledger beside keys would pass for an empty memory; and SQLite takes a few bytes for an empty one."""
    ledger, keys = folder / FILE, next(folder.glob(f"keys/*/{MANIFEST}"), None)
    if keys is not None and not (ledger.exists() and ledger.stat().st_size >= SMALLEST_PAGE):
        raise MissingLedger(
            f"{folder} holds keys ({keys.relative_to(folder)}) but {'an empty' if ledger.exists() else 'no'} {FILE}: "
            f"documents and lessons are in that file alone. Restore it from a backup; or, to begin anew, remove "
            f"{folder / 'keys'}"
        )


def check_seal(folder: Path) -> None:
    if seal.broken(folder / FILE, folder / SEAL):
        raise DamagedLedger(
            f"{folder / FILE} is damaged (its bytes are not those that were written): {_way_out(folder)}. To go on "
            f"with it as it is, remove {folder / SEAL}"
        )


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _way_out(folder: Path) -> str:
    return (
        f"look closer with: evokey doctor --at {folder}; and restore the memory from a backup (evokey backup makes one)"
    )


def _hint(folder: Path) -> str:
    if os.access(folder, os.W_OK):
        return ""
    return f"; {folder} cannot be written to, and SQLite needs that even for searching. Search in a copy of it."


def _statements(sql: str) -> Iterator[str]:
    """Split a script: sqlite3's own executescript would commit half of it."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
