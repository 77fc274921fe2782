"""The schema of a memory: made when it is first opened, and brought up to date by the first that opens it later."""

from __future__ import annotations

from dataclasses import dataclass

from evokey.errors import NewerFormat, NotAMemory, StorageFailed
from evokey.ledger.postgres.dialect import migrations
from evokey.postgres.address import Address
from evokey.postgres.connections import Connection, Connections, fetch


@dataclass(frozen=True, slots=True)
class State:
    id: str
    """Of the ledger: no other has it."""
    read_only: bool


def prepare(connections: Connections, address: Address, *, make: bool) -> State:
    def work() -> State:
        with connections.take() as connection:
            return _prepare(connection, address, make)

    return connections.repeat(work)


def _prepare(connection: Connection, address: Address, make: bool) -> State:
    read_only = fetch(connection, "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool")[0][0]
    applied = _list_migrations(connection, address)
    if applied is None and (read_only or not make):
        raise NotAMemory(f"there is no memory at {address}; it is made by the first that opens it and may write")
    pending = _pending(applied or [], address)
    if pending and read_only:
        raise StorageFailed(f"{address} is of an older version: open it once on the primary, to bring it up to date")
    if pending:
        _migrate(connection, address)
    return State(str(fetch(connection, f'SELECT id FROM "{address.schema}".identity')[0][0]), bool(read_only))


def _list_migrations(connection: Connection, address: Address) -> list[str] | None:
    """None: there is no memory."""
    if fetch(connection, "SELECT to_regclass(%s)::text", (f'"{address.schema}".migrations',))[0][0] is None:
        return None
    return [row[0] for row in fetch(connection, f'SELECT name FROM "{address.schema}".migrations ORDER BY name')]


def _pending(applied: list[str], address: Address) -> list[tuple[str, str]]:
    known = migrations()
    unknown = set(applied) - {name for name, _ in known}
    if unknown:
        raise NewerFormat(
            f"{address} was written by a newer evokey (it has {', '.join(sorted(unknown))}); "
            f"upgrade with: pip install -U evokey"
        )
    return [(name, sql) for name, sql in known if name not in applied]


def _migrate(connection: Connection, address: Address) -> None:
    """All of them, or none. Others that open the memory wait, and then find nothing to do."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (address.schema,))
        if not fetch(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)):
            connection.execute(f'CREATE SCHEMA "{address.schema}"')
        connection.execute(f'SET LOCAL search_path = "{address.schema}"')
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)")
        for name, sql in _pending(_list_migrations(connection, address) or [], address):
            connection.execute(sql)
            connection.execute("INSERT INTO migrations VALUES (%s)", (name,))


def exists(connections: Connections, address: Address) -> bool:
    return bool(connections.ask("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)))


def rename(connections: Connections, old: Address, new: Address) -> None:
    connections.ask(f'ALTER SCHEMA "{old.schema}" RENAME TO "{new.schema}"')


def drop(connections: Connections, address: Address) -> None:
    connections.ask(f'DROP SCHEMA "{address.schema}" CASCADE')
