"""One ledger into another, row by row: numbers stay, so that keys and epochs still mean the same documents and lessons.

Each piece is a transaction. A copy that was interrupted goes on behind the last row that the target has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evokey.filters import facts
from evokey.ledger.database import Database
from evokey.ledger.ledger import Ledger

PIECE = 500
"""Rows copied at a time."""
NUMBERED = {"documents": "number", "removed": "seq", "lessons": "number", "epochs": "number", "writers": "seq"}
"""Tables in pieces, in this order, each with the number that its rows go by."""
BELONGING = {"lessons": {"verdicts": "lesson", "passages": "lesson", "held": "lesson"}, "epochs": {"left_out": "epoch"}}
"""Tables whose rows go with a piece of another."""
WHOLE = (
    "sources", "asked", "pools", "pins", "expansions", "tally", "traffic", "forgets", "signatures", "carried", "shown",
    "clicks", "ratings", "seeded",
)  # fmt: skip
"""Tables that are copied at once, after those: what they have of an earlier attempt goes first. Not what a forget has
still to erase: of that, nothing is copied."""
ALL = (*NUMBERED, *(name for some in BELONGING.values() for name in some), *WHOLE)
Progress = Callable[[float], None]


def copy(source: Ledger, target: Ledger, progress: Progress) -> None:
    """All of it; the source is read in one state."""
    old, new = source.database, target.database
    with old.read():
        total, done = sum(_count(old, table) for table in NUMBERED) or 1, 0
        for table, key in NUMBERED.items():
            for rows in _pieces(old, table, key, after=_last(new, table, key)):
                _copy_piece(old, new, table, rows)
                done += len(rows)
                progress(min(done / total, 1.0))
        with new.write():
            for table in WHOLE:
                new.run(f"DELETE FROM {table}")
            for table in WHOLE:
                _insert(new, table, old.all(f"SELECT * FROM {table}"))
            for table in ("documents", "removed", "lessons", "epochs", "writers"):
                new.go_on_from(table, old.last_given(table))


def _copy_piece(old: Database, new: Database, table: str, rows: Sequence[Any]) -> None:
    first, last = rows[0][0], rows[-1][0]
    with new.write():
        _insert(new, table, rows)
        for other, column in BELONGING.get(table, {}).items():
            _insert(new, other, old.all(f"SELECT * FROM {other} WHERE {column} BETWEEN ? AND ?", (first, last)))
        if table == "documents":
            stated = [(row[0], field, new.dialect.fact(value)) for row in rows for field, value in _facts(row)]
            new.run_many("INSERT INTO facts VALUES (?,?,?)", stated)


def _facts(row: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return facts(json.loads(row[4]))


def _pieces(database: Database, table: str, key: str, after: int) -> Iterator[list[Any]]:
    while True:
        sql = f"SELECT * FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {PIECE}"
        rows = database.all(sql, (after,))
        if not rows:
            return
        yield rows
        after = rows[-1][0]


def _insert(database: Database, table: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        database.run_many(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def _last(database: Database, table: str, key: str) -> int:
    return int(database.one(f"SELECT coalesce(max({key}), 0) FROM {table}")[0])


def _count(database: Database, table: str) -> int:
    return int(database.one(f"SELECT count(*) FROM {table}")[0])


def checksums(ledger: Ledger) -> dict[str, str]:
    """Of the rows of each table, whatever their order and the database."""
    database = ledger.database
    with database.read():
        return {table: _sum(_rows(database, table)) for table in ALL} | {"facts": _sum(_read_facts(database))}


def _rows(database: Database, table: str) -> Iterator[Sequence[Any]]:
    if table in NUMBERED:
        for rows in _pieces(database, table, NUMBERED[table], after=0):
            yield from rows
    else:
        yield from database.all(f"SELECT * FROM {table}")


def _read_facts(database: Database) -> Iterator[Sequence[Any]]:
    """What filters see, as every database would write it."""
    for number, field, value in database.all("SELECT number, field, value FROM facts"):
        yield number, field, database.dialect.read_fact(value)


def _sum(rows: Iterator[Sequence[Any]]) -> str:
    """The sum of the hashes of the rows."""
    total = 0
    for row in rows:
        told = repr([one if not isinstance(one, memoryview) else bytes(one) for one in row])
        total += int.from_bytes(hashlib.sha256(told.encode()).digest())
    return f"{total % (1 << 256):064x}"
