"""The tables of keys in PostgreSQL, and their index."""

from __future__ import annotations

import re

from psycopg import errors

from evokey.errors import InvalidSettings
from evokey.postgres.connections import Connection, Connections
from evokey.types import Numbers

LINKS, WIDTH = 16, 100
"""Of HNSW: links of a row on each level, and how many candidates are looked at while a row is linked."""


class Tables:
    def __init__(self, connections: Connections, label: str, identity: str, *, beside: bool, read_only: bool) -> None:
        """beside: the ledger's documents are in the same schema, and their keys go with them."""
        self._connections, self._schema, self._beside = connections, connections.address.schema, beside
        self._label = re.sub(r"[^\w.-]", "-", label)[:40]
        self.keys = f'"{self._schema}"."keys_{self._label}"'
        self._spaces = f'"{self._schema}".key_spaces'
        if not read_only and not self._there():
            self._make()

    def _there(self) -> bool:
        return self._connections.ask("SELECT to_regclass(%s) IS NOT NULL", (self.keys,))[0][0] is True

    def _make(self) -> None:
        gone = f' REFERENCES "{self._schema}".documents(number) ON DELETE CASCADE' if self._beside else ""

        def work() -> None:
            with self._connections.take() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self._schema,))
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._spaces} "
                    "(keys text PRIMARY KEY, identity text NOT NULL, writer text NOT NULL)"
                )
                connection.execute(  # place −1, without a vector: a document that says nothing
                    f"CREATE TABLE IF NOT EXISTS {self.keys} (number bigint NOT NULL{gone}, place int NOT NULL, "
                    "vector vector, PRIMARY KEY (number, place))"
                )

        try:
            self._connections.repeat(work)
        except Exception as error:
            if isinstance(
                error.__cause__, errors.InsufficientPrivilege | errors.UndefinedFile | errors.FeatureNotSupported
            ):
                raise InvalidSettings(
                    f"{self._connections.address} lacks the extension vector (pgvector), or the right to make it: ask "
                    f"for CREATE EXTENSION vector; or make the memory with store='flat', which keeps dense keys in the "
                    f"memory of each process"
                ) from error
            raise

    def identity(self) -> str | None:
        """The encoder that the keys were made by."""
        rows = self._connections.ask(f"SELECT identity FROM {self._spaces} WHERE keys = %s", (self._label,))
        return str(rows[0][0]) if rows else None

    def writer(self) -> str:
        rows = self._connections.ask(f"SELECT writer FROM {self._spaces} WHERE keys = %s", (self._label,))
        return str(rows[0][0]) if rows else ""

    def forget_identity(self) -> None:
        self._connections.ask(f"DELETE FROM {self._spaces} WHERE keys = %s", (self._label,))

    def start(self, connection: Connection, identity: str, writer: str) -> str:
        """A table for new rows, in a transaction: what is there already cannot be copied over."""
        connection.execute(
            f"INSERT INTO {self._spaces} VALUES (%s, %s, %s) ON CONFLICT (keys) DO UPDATE SET writer = excluded.writer "
            f"WHERE key_spaces.writer != excluded.writer",
            (self._label, identity, writer),
        )
        connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS new_keys (number bigint, place int, vector vector) ON COMMIT DROP"
        )
        return "new_keys"

    def take_up(self, connection: Connection, empty: Numbers) -> None:
        """The new rows, and documents that say nothing; without those that are here, or have gone from the ledger."""
        living = ""
        if self._beside:
            living = f'AND EXISTS (SELECT 1 FROM "{self._schema}".documents d WHERE d.number = n.number) '
        connection.execute(
            f"INSERT INTO {self.keys} SELECT n.number, n.place, n.vector FROM ("
            f"SELECT number, place, vector FROM new_keys UNION ALL SELECT unnest(%s::bigint[]), -1, NULL) n "
            f"WHERE NOT EXISTS (SELECT 1 FROM {self.keys} k WHERE k.number = n.number) {living}"
            "ORDER BY n.number, n.place ON CONFLICT DO NOTHING",
            (empty.tolist(),),
        )
        connection.execute("DROP TABLE new_keys")

    def build_index(self, dimension: int) -> None:
        """Once; searches and writes go on meanwhile, and others that would build it leave it to the first."""
        name = f"keys_{self._label}_hnsw"
        state = self._connections.ask(
            "SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(%s)", (f'"{self._schema}"."{name}"',)
        )
        if state and state[0][0]:
            return
        with self._connections.explain(), self._connections.take() as lock:
            lock.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
            row = lock.execute(
                f"SELECT pg_try_advisory_xact_lock(hashtextextended('{self._schema}.{name}', 0))"
            ).fetchone()
            if row is None or not row[0]:
                return
            with self._connections.take() as connection:
                if state:  # of a build that was cut short
                    connection.execute(f'DROP INDEX IF EXISTS "{self._schema}"."{name}"')
                connection.execute(
                    f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON {self.keys} USING hnsw '
                    f"((vector::halfvec({dimension})) halfvec_ip_ops) WITH (m = {LINKS}, ef_construction = {WIDTH})"
                )

    def check(self) -> list[str]:
        """Whether the index is whole."""
        rows = self._connections.ask(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = to_regclass(%s) AND NOT indisvalid",
            (self.keys,),
        )
        return [f"{row[0]}: the index is not whole; it is built again at the next write" for row in rows]
