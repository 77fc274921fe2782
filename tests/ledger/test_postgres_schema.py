"""The tables of both ledgers are the same: statements are written once, for both."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from conftest import Opener
from postgres_server import Server

import evokey
from evokey.ledger import copying

OWN = {"identity", "settings", "commits", "encoded", "key_spaces"}
"""What a directory has in other files."""


def test_both_ledgers_have_the_same_tables_with_the_same_columns(
    server: Server, shared: Opener, tmp_path: Path
) -> None:
    evokey.open(tmp_path / "kb").close()
    address = shared().place
    with closing(sqlite3.connect(tmp_path / "kb" / "ledger.sqlite")) as ledger:
        tables = [row[0] for row in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        wanted = {
            table: [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
            for table in tables
            if not table.startswith("sqlite")
        }
    found: dict[str, list[str]] = {}
    with psycopg.connect(server.url) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s "
            "ORDER BY table_name, ordinal_position",
            (address.schema,),
        )
        for table, column in rows:
            if table not in OWN and not table.startswith("keys_"):
                found.setdefault(table, []).append(column)
    assert found == wanted
    assert set(wanted) == {*copying.ALL, "facts", "erasing", "migrations"}  # all of them move


def test_no_statistics_quote_what_can_be_forgotten(server: Server, shared: Opener) -> None:
    address = shared().place
    with psycopg.connect(server.url) as connection:
        rows = connection.execute(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 "
            "AND a.attname IN ('query', 'units', 'actor', 'alike', 'answer', 'what') "
            "AND a.attstattarget IS DISTINCT FROM 0",
            (address.schema,),
        ).fetchall()
    assert rows == []
