"""The ledger's file: one SQLite database in WAL mode, one writer at a time across processes, any number of readers.

The writer's lock is taken at the first write and kept until close. A commit is on disk before a verb returns.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from importlib import resources
from pathlib import Path
from time import monotonic
from typing import Any, Self

from evokey.errors import NewerFormat, NotAMemory
from evokey.ledger.database import Dialect
from evokey.ledger.sqlite import seal
from evokey.ledger.sqlite.commits import Commits
from evokey.ledger.sqlite.dialect import SQLiteDialect
from evokey.ledger.sqlite.file import FAILURES, FILE, SEAL, ask_one, check_seal, check_there, explain
from evokey.ledger.sqlite.lock import WriterLock

COMMITS = "ledger.commits"
TRUSTED = 1.0
"""Seconds for which the count of commits is believed: another tool, or an older evokey, does not count its own."""
PATIENCE = 10.0
"""Seconds for which another process's transaction is waited for."""
FOREIGN = (
    "SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name FROM sqlite_master "
    "WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
)
"""What runs by itself when tables are read or written."""


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) in order. The names of those applied are kept in the file."""
    folder = resources.files("evokey.ledger.sqlite") / "migrations"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in found]


class SQLite:
    """Two connections: reads never wait for a transaction of ours, and see only what was committed. Inside a
    transaction, its own thread reads what it has written."""

    dialect: Dialect = SQLiteDialect()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = uuid.uuid4().hex
        """By which it signs what it writes."""
        self.lock = WriterLock(folder)
        self._reading, self._writing = threading.RLock(), threading.RLock()
        self._writer_thread: int | None = None
        self._commits = Commits(folder / COMMITS)
        self._version = -1
        """As it was last looked at."""
        self._known: int | None = None
        """The commits that were counted then."""
        self._doubted = 0.0
        """When SQLite is asked in any case."""
        check_there(folder)
        check_seal(folder)
        try:
            self._reader = self._writer = self._connect()
            self._cursor = self._writer.cursor()
            self._prepare()
            self._reader = self._connect()
            self._cursor = self._reader.cursor()
            self._commits.follow(folder / FILE)
        except BaseException as error:
            self.close()
            explain(error, folder, opening=True)
            raise

    def _connect(self) -> sqlite3.Connection:
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

    def _list_migrations(self) -> list[str]:
        if not self.one("SELECT 1 FROM sqlite_master WHERE name = 'migrations'"):
            return []
        return [row[0] for row in self.all("SELECT name FROM migrations ORDER BY name")]

    def _pending(self) -> list[tuple[str, str]]:
        applied, known = self._list_migrations(), migrations()
        unknown = set(applied) - {name for name, _ in known}
        if unknown:
            raise NewerFormat(
                f"{self._folder} was written by a newer evokey (it has {', '.join(sorted(unknown))}); "
                f"upgrade with: pip install -U evokey"
            )
        return [(name, sql) for name, sql in known if name not in applied]

    def _migrate(self) -> None:
        # Another process may be opening the same new memory: wait for it, then look again.
        self.lock.wait()
        with self.write():
            self.run("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            for name, sql in self._pending():
                for statement in _statements(sql):
                    self.run(statement)
                self.run("INSERT INTO migrations VALUES (?)", (name,))
        self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """All of it, whatever interrupts a part."""
        with self._writing, self._reading, ExitStack() as closing_down:
            closing_down.callback(self.lock.release)
            if self.lock.taken:
                closing_down.callback(seal.write, self._folder / FILE, self._folder / SEAL)
            closing_down.callback(self._commits.close)
            for name in ("_writer", "_reader"):
                if hasattr(self, name):
                    closing_down.callback(getattr(self, name).close)

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
            explain(error, self._folder)
            raise

    def find(self, sql: str, values: Iterable[Any], *more: Any) -> Iterator[Any]:
        wanted, size = list(values), self.dialect.batch
        for start in range(0, len(wanted), size):
            batch = wanted[start : start + size]
            yield from self.all(sql.format(f"({','.join('?' * len(batch))})"), [*batch, *more])

    @contextmanager
    def one_now(self) -> Iterator[Callable[..., Any]]:
        try:
            with closing(self._connect()) as connection:
                yield ask_one(connection)
        except FAILURES as error:
            explain(error, self._folder)
            raise

    @contextmanager
    def read(self) -> Iterator[None]:
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

    def one_state(self) -> AbstractContextManager[None]:
        """Nobody but this process writes, so there is no other one."""
        return nullcontext()

    @contextmanager
    def _for_reading(self) -> Iterator[sqlite3.Connection]:
        try:
            if self.in_write:
                yield self._writer
                return
            with self._reading:
                yield self._reader
        except FAILURES as error:
            explain(error, self._folder)
            raise

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._writing:
            if self._writer_thread is not None:
                yield
                return
            self.lock.take()
            try:
                self._undo()  # what an interrupt left when another one cut its undoing short
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer_thread = threading.get_ident()
                yield
                self._commit()
            except BaseException as error:
                self._undo()
                explain(error, self._folder)
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

    def run(self, sql: str, values: Any = ()) -> int:
        with self.write():
            return self._writer.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        with self.write():
            return self._writer.executemany(sql, rows).rowcount

    def insert(self, sql: str, values: Any) -> int:
        with self.write():
            return int(self._writer.execute(sql, values).lastrowid or 0)

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.run_many(f"INSERT OR REPLACE INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)

    def last_given(self, table: str) -> int:
        row = self.one("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
        return int(row[0]) if row else 0

    def go_on_from(self, table: str, number: int) -> None:
        with self.write():
            self.run("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self.run("INSERT INTO sqlite_sequence(name, seq) VALUES (?,?)", (table, number))

    def rewrite(self, tables: Sequence[str], first: str) -> None:
        """Where pages were split or joined, copies of deleted rows stay behind in them, secure_delete or not: the
        tables are written anew. Pages that become free are overwritten."""
        with self._writing:
            try:
                self._writer.execute("PRAGMA foreign_keys = OFF")  # rows go and come back: no reference is broken
                with self.write():
                    self.run(first)
                    for table in tables:
                        self.run(f"CREATE TEMP TABLE remaining AS SELECT * FROM main.{table}")
                        self.run(f"DELETE FROM main.{table}")
                        self.run(f"INSERT INTO main.{table} SELECT * FROM remaining")
                        self.run("DROP TABLE temp.remaining")
            finally:
                self._writer.execute("PRAGMA foreign_keys = ON")

    def empty_log(self, tables: Sequence[str], patience: float) -> bool:
        """The write-ahead log has all tables."""
        with self._writing:
            try:
                self._writer.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
                return not self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")


def _statements(sql: str) -> Iterator[str]:
    """Split a script: sqlite3's own executescript would commit half of it."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
