"""The ledger's schema in a PostgreSQL database: any number of processes read and write.

A transaction that writes begins with a lock of its own, so that they go one after the other: numbers are given in the
order of the commits, and who has seen a commit has seen all before it. Each counts itself and tells so (NOTIFY). A
connection that breaks costs nothing that was acknowledged: what is only read is read again; of a commit whose answer
was lost the database is asked whether it happened.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from evokey.errors import CommitUnknown, ConnectionLost
from evokey.ledger.database import Dialect
from evokey.ledger.postgres import schema
from evokey.ledger.postgres.dialect import PostgresDialect, translate
from evokey.ledger.postgres.encoded import EncodedTexts
from evokey.ledger.postgres.lock import SharedLock
from evokey.ledger.postgres.vacuum import vacuum
from evokey.postgres.address import Address
from evokey.postgres.connections import Connection, Connections, fetch, is_lost
from evokey.postgres.listening import Listener

ASKED_EVERY = 0.2
"""Seconds between two questions for news, where these are not heard."""
TRUSTED = 5.0
"""Seconds for which it is believed that no news are no commits."""
KEYS = {
    "asked": ('"only"',),
    "forgets": ('"only"',),
    "pools": ("retriever", "query"),
    "expansions": ("query", "expander"),
    "signatures": ("hash", "start", "stop"),
    "carried": ("number", "hash", "start", "stop"),
    "encoded": ("text", "maker"),
    "shown": ("id",),
    "ratings": ("shown", "actor"),
}
"""What tells rows apart, in tables of which rows are replaced."""


STATUS = """SELECT CASE WHEN %s::text::xid8 < pg_snapshot_xmax(pg_current_snapshot())
  THEN pg_xact_status(%s::text::xid8) ELSE 'unknown to the server' END"""
"""Of a transaction. A server that died before anything of it was written gives its number again."""


class Using(threading.local):
    """The connections of one thread."""

    writer: Connection | None = None
    reader: Connection | None = None
    read_version = 0
    """Of the state that is read."""
    commits = 0
    """That this thread has made."""


class Postgres:
    dialect: Dialect = PostgresDialect()

    def __init__(self, address: Address, *, make: bool = True) -> None:
        """make: a memory that is not there."""
        self.address = address
        self.name = uuid.uuid4().hex
        """By which it signs what it writes; another one after each lost connection, for the database may be restored
        then, and give numbers again."""
        self.connections = Connections(address)
        self._using, self._version, self._asked = Using(), -1, 0.0
        self._listener: Listener | None = None
        try:
            state = schema.prepare(self.connections, address, make=make)
            self.id, self.read_only = state.id, state.read_only
            self.encoded = EncodedTexts(self.connections)
            self.lock = SharedLock(self.connections, address, read_only=state.read_only)
            self._listener = Listener(address, address.schema)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def exists(address: Address) -> bool:
        """Whether there is a memory at an address."""
        connections = Connections(address)
        try:
            return schema.exists(connections, address)
        finally:
            connections.close()

    def rename(self, address: Address) -> None:
        """Give the memory another name, and be of no use any more."""
        schema.rename(self.connections, self.address, address)

    def drop(self) -> None:
        """All of it goes."""
        schema.drop(self.connections, self.address)

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.connections.close()

    @property
    def connection(self) -> Connection | None:
        """Of the transaction that this thread is in."""
        return self._using.writer or self._using.reader

    def _sql(self, sql: str) -> str:
        return translate(sql, self.address.schema)

    # ---- reading

    @property
    def in_write(self) -> bool:
        return self._using.writer is not None

    @property
    def version(self) -> int:
        """Of the state that this thread reads, where it reads one; else of now."""
        if self._using.reader is not None and not self.in_write:
            return self._using.read_version
        if self.in_write or self._listener is None:
            return self._count()
        now = time.monotonic()
        waited = now - self._asked
        new = self._listener.take_news() if self._listener.hears else waited >= ASKED_EVERY
        if new or waited >= TRUSTED:
            self._asked, self._version = now, self._count()
        return self._version

    @property
    def own_commits(self) -> int:
        return self._using.commits

    def _count(self) -> int:
        return int(self.one("SELECT count FROM commits")[0])

    def one(self, sql: str, values: Any = ()) -> Any:
        return next(iter(self.all(sql, values)), None)

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        statement = self._sql(sql)
        connection = self.connection
        if connection is None:
            return self.connections.ask(statement, values)
        with self.connections.explain():
            return fetch(connection, statement, values)

    def find(self, sql: str, values: Iterable[Any], *more: Any) -> Iterator[Any]:
        wanted, size = list(values), self.dialect.batch
        for start in range(0, len(wanted), size):
            batch = wanted[start : start + size]
            yield from self.all(sql.format(f"({','.join('?' * len(batch))})"), [*batch, *more])

    @contextmanager
    def one_now(self) -> Iterator[Callable[..., Any]]:
        def one(sql: str, values: Any = ()) -> Any:
            return next(iter(self.connections.ask(self._sql(sql), values)), None)

        yield one

    @contextmanager
    def read(self) -> Iterator[None]:
        using = self._using
        if self.in_write or using.reader is not None:
            yield
            return
        with self._begin(self._start_reading) as (connection, version):
            using.reader, using.read_version = connection, version
            try:
                yield
            finally:
                using.reader = None

    one_state = read

    def _start_reading(self, connection: Connection) -> int:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return int(fetch(connection, self._sql("SELECT count FROM commits"))[0][0])  # takes the state

    @contextmanager
    def _begin(self, start: Callable[[Connection], Any]) -> Iterator[tuple[Connection, Any]]:
        """A connection on which a transaction has begun; tried again until it has."""
        taken: list[Any] = []

        def work() -> Any:
            context = self.connections.take()
            connection = context.__enter__()
            try:
                begun = start(connection)
            except BaseException:
                context.__exit__(None, None, None)
                raise
            taken.append(context)
            return connection, begun

        found = self.connections.repeat(work)
        try:
            yield found
        finally:
            taken[0].__exit__(None, None, None)  # what is not committed is rolled back

    # ---- writing

    @contextmanager
    def write(self) -> Iterator[None]:
        if self.in_write:
            yield
            return
        self.lock.take()
        with self._begin(self.lock.begin) as (connection, _):
            self._using.writer = connection
            try:
                yield
                self._commit(connection)
            except ConnectionLost:
                self.name = uuid.uuid4().hex
                raise
            except psycopg.Error as error:
                self.connections.raise_ours(error)
            finally:
                self._using.writer = None

    def _commit(self, connection: Connection) -> None:
        with self.connections.explain():
            self.lock.check(connection)
            sql = "UPDATE commits SET count = count + 1 RETURNING count, pg_current_xact_id()::text, pg_notify(?, '')"
            count, transaction, _ = fetch(connection, self._sql(sql), (self.address.schema,))[0]
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                self.connections.raise_ours(error)
            self._settle(transaction, error)
        self._using.commits += 1
        self._version, self._asked = int(count), time.monotonic()

    def _settle(self, transaction: str, lost: psycopg.Error) -> None:
        """The answer to a commit was lost: the database knows whether it happened."""
        self.name = uuid.uuid4().hex
        status = "in progress"
        try:
            while status == "in progress":
                status = self.connections.ask(STATUS, (transaction, transaction))[0][0]
        except ConnectionLost:
            raise CommitUnknown(
                f"{self.address}: the connection broke during a commit, and the database does not answer whether it "
                f"happened. Look before you try again: what was written may be there"
            ) from lost
        if status != "committed":
            self.connections.raise_ours(lost)

    def run(self, sql: str, values: Any = ()) -> int:
        return self._execute(lambda cursor: cursor.execute(self._sql(sql), values or None))

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        listed = list(rows)
        return self._execute(lambda cursor: cursor.executemany(self._sql(sql), listed)) if listed else 0

    def insert(self, sql: str, values: Any) -> int:
        with self.write():
            return int(self.one(f"{sql} RETURNING number", values)[0])

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """By erasing first: texts may be longer than what a unique index takes, and only one writes at a time."""
        if not rows:
            return
        marks, same = ",".join("?" * len(rows[0])), " AND ".join(f"{name} = ?" for name in KEYS[table])
        with self.write():
            self.run_many(f"DELETE FROM {table} WHERE {same}", [row[: len(KEYS[table])] for row in rows])
            self.run_many(f"INSERT INTO {table} VALUES ({marks})", rows)

    def _execute(self, work: Callable[[Any], Any]) -> int:
        with self.write():
            assert self._using.writer is not None
            with self.connections.explain(), self._using.writer.cursor() as cursor:
                work(cursor)
                return max(int(cursor.rowcount), 0)

    def last_given(self, table: str) -> int:
        row = self.connections.ask(f"SELECT last_value, is_called FROM {self._sequence(table)}")[0]
        return int(row[0]) if row[1] else 0

    def go_on_from(self, table: str, number: int) -> None:
        if number:
            self.connections.ask("SELECT setval(%s::regclass, %s)", (self._sequence(table), number))

    def _sequence(self, table: str) -> str:
        column = "seq" if table in ("removed", "writers") else "number"
        return f'"{self.address.schema}".{table}_{column}_seq'

    # ---- forgetting

    def rewrite(self, tables: Sequence[str], first: str) -> None:
        """What is deleted goes from the tables in `empty_log`, which cannot be a part of a transaction."""
        self.run(first)

    def empty_log(self, tables: Sequence[str], patience: float) -> bool:
        """Write the tables anew. PostgreSQL's own write-ahead log, replicas and backups keep what they have: that is
        for who runs the database (docs/scaling.md)."""
        until = time.monotonic() + patience
        left = [*tables, "encoded"]
        while True:
            with suppress(ConnectionLost):
                left = [table for table in left if not vacuum(self.connections, self.address.schema, table)]
            if not left or time.monotonic() >= until:
                return not left
            time.sleep(0.1)

    # ---- the memory as a whole

    @property
    def bytes(self) -> int:
        """Of all tables and indexes, keys included."""
        tables = "SELECT c.oid FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = %s::regnamespace"
        sql = f"SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM ({tables}) own"
        return int(self.connections.ask(sql, (f'"{self.address.schema}"',))[0][0])

    @property
    def settings(self) -> str | None:
        """The text of evokey.toml; None: of a memory that is about to be made."""
        row = self.one("SELECT toml FROM settings")
        return None if row is None else str(row[0])

    def keep_settings(self, toml: str, *, replace: bool = False) -> str:
        """Those of a new memory, unless another process was first; or others in their place. Returns what is kept."""
        with self.write():
            if replace:
                self.run("DELETE FROM settings")
            self.run("INSERT INTO settings VALUES (1, ?) ON CONFLICT DO NOTHING", (toml,))
            return str(self.settings)
