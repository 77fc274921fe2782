"""Deleted rows stay in the pages of a table: it is written anew, without them."""

from __future__ import annotations

import re
import threading

from psycopg import errors
from psycopg.errors import Diagnostic

from evokey.postgres.connections import Connection, Connections

NUMBER = re.compile(r"\d+")
WAITS = 500
"""Milliseconds for which others that have read the table are waited for; meanwhile, whoever comes later waits, too."""
LONGEST = 600.0
"""Seconds after which it is given up."""


def vacuum(connections: Connections, schema: str, table: str) -> bool:
    """Whether nothing that was deleted is left: a transaction that still sees the rows keeps them, and one that has
    read the table holds it. (VACUUM without FULL leaves the bytes in the free space of the pages.)"""
    told: list[str] = []

    def note(diagnostic: Diagnostic) -> None:
        told.append(diagnostic.message_detail or "")

    with connections.explain(), connections.take() as connection:
        if not _is_free(connection, f'"{schema}".{table}'):
            return False
        connection.add_notice_handler(note)
        ending = threading.Timer(LONGEST, connection.cancel)
        ending.start()
        try:
            connection.execute(f'VACUUM (FULL, VERBOSE) "{schema}".{table}')
        except errors.QueryCanceled:
            return False
        finally:
            ending.cancel()
            connection.remove_notice_handler(note)
    # "0 dead row versions cannot be removed yet. CPU: …", in the language of the server
    return all(int(found.group()) == 0 for detail in told if (found := NUMBER.match(detail)))


def _is_free(connection: Connection, table: str) -> bool:
    """Whether a table can be had by itself now. (VACUUM is no part of a transaction, and so cannot be told how long to
    wait where sessions are shared.)"""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {WAITS}; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    except errors.LockNotAvailable:
        return False
    return True
