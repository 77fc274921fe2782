"""Deleted rows stay in the pages of a table: it is written anew, without them."""

from __future__ import annotations

import re

from psycopg.errors import Diagnostic

from evokey.postgres.connections import Connections

NUMBER = re.compile(r"\d+")


def vacuum(connections: Connections, schema: str, table: str) -> bool:
    """Whether nothing that was deleted is left: a transaction that still sees the rows keeps them. (VACUUM without FULL
    leaves the bytes in the free space of the pages.)"""
    told: list[str] = []

    def note(diagnostic: Diagnostic) -> None:
        told.append(diagnostic.message_detail or "")

    with connections.explain(), connections.take() as connection:
        connection.add_notice_handler(note)
        try:
            connection.execute(f'VACUUM (FULL, VERBOSE) "{schema}".{table}')
        finally:
            connection.remove_notice_handler(note)
    # "0 dead row versions cannot be removed yet. CPU: …", in the language of the server
    return all(int(found.group()) == 0 for detail in told if (found := NUMBER.match(detail)))
