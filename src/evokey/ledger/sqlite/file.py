"""The ledger's file itself: is it there and sound, what SQLite's errors say of it, and a copy of it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from evokey.errors import DamagedLedger, MemoryBusy, MissingLedger, NotAMemory, StorageFailed
from evokey.ledger.sqlite import seal
from evokey.ledger.sqlite.dialect import SQLiteDialect
from evokey.ledger.writers import owns
from evokey.stores.segments import MANIFEST

FILE, SEAL = "ledger.sqlite", "ledger.sum"
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
FAILURES = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite raises; the second where the message quotes a damaged name."""
REFUSED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
UNREADABLE = ("no such table", "no such column", "Could not decode")
"""What SQLite says of a schema or a text that was damaged: our own statements are right."""
SMALLEST_PAGE = 512
"""Bytes that a ledger has at least: less is what a cut has left of one."""


def check_there(folder: Path) -> None:
    """An empty ledger beside keys would pass for an empty memory; and SQLite takes a few bytes for an empty one."""
    ledger, keys = folder / FILE, next(folder.glob(f"keys/*/{MANIFEST}"), None)
    if keys is not None and not (ledger.exists() and ledger.stat().st_size >= SMALLEST_PAGE):
        raise MissingLedger(
            f"{folder} holds keys ({keys.relative_to(folder)}) but {'an empty' if ledger.exists() else 'no'} {FILE}: "
            f"documents and lessons are in that file alone. Restore it from a backup; or, to start again, remove "
            f"{folder / 'keys'}"
        )


def check_seal(folder: Path) -> None:
    if seal.broken(folder / FILE, folder / SEAL):
        raise DamagedLedger(
            f"{folder / FILE} is damaged (its bytes are not those that were written): {_way_out(folder)}. To go on "
            f"with it as it is, remove {folder / SEAL}"
        )


def explain(error: BaseException, folder: Path, *, opening: bool = False) -> None:
    """Raise an error of ours, with a way out, for one of SQLite's that comes from the file or the disk. (Raised here:
    an error in a variable of a frame that it passes would keep all these frames, and the open files in them.)"""
    if not isinstance(error, FAILURES):
        return
    ledger, code = folder / FILE, int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
    if opening and code == sqlite3.SQLITE_NOTADB:
        raise NotAMemory(
            f"{ledger} is not a ledger of evokey ({error}); nothing was changed. If it was one, it is damaged: "
            f"{_way_out(folder)}"
        ) from error
    if code in DAMAGED or isinstance(error, UnicodeDecodeError) or str(error).startswith(UNREADABLE):
        raise DamagedLedger(f"{ledger} is damaged ({error}): {_way_out(folder)}") from error
    if code in REFUSED:
        raise StorageFailed(
            f"{ledger}: {error}{hint(folder)}. Nothing was changed; free space on the disk, or mend what refuses, and "
            f"try again."
        ) from error
    if code in BUSY:
        raise MemoryBusy(
            f"{ledger} is locked by another program ({error}); wait until it is done, and try again"
        ) from error


def _way_out(folder: Path) -> str:
    return (
        f"look closer with: evokey doctor --at {folder}; and restore the memory from a backup (evokey backup makes one)"
    )


def hint(folder: Path) -> str:
    if os.access(folder, os.W_OK):
        return ""
    return f"; {folder} cannot be written to, and SQLite needs that even for searching. Search in a copy of it."


# ---- a ledger that is only looked at


def find_faults(folder: Path) -> list[str]:
    """What is wrong with the file, in words."""
    try:
        check_seal(folder)
        with _look(folder) as connection:
            faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            broken = [f"a broken reference in {row[0]}" for row in connection.execute("PRAGMA foreign_key_check")]
            return faults + broken
    except DamagedLedger as error:
        return [str(error)]
    except FAILURES as error:
        return [f"{folder / FILE}: {error}"]


def document_ids(folder: Path) -> dict[int, str]:
    """Document number → id."""
    with _look(folder) as connection:
        return dict(connection.execute("SELECT number, id FROM documents ORDER BY number"))


def named_revisions(folder: Path) -> frozenset[str]:
    """Of encoders, that some epoch has; none in a ledger of an earlier version, or one that cannot be read."""
    with suppress(*FAILURES), _look(folder) as connection:
        found = connection.execute("SELECT DISTINCT revisions FROM epochs").fetchall()
        return frozenset(name for (told,) in found for name in json.loads(told).values())
    return frozenset()


def owns_keys(folder: Path, writer: str, newest: int) -> bool:
    """Whether keys up to a number, as that writer left them, belong to this ledger; True where it cannot tell."""
    try:
        with _look(folder) as connection:
            return owns(ask_one(connection), SQLiteDialect(), writer, newest)
    except FAILURES:
        return True  # of an earlier version; or the ledger itself is at fault, and that is said elsewhere


def copy(source: Path, target: Path) -> list[str]:
    """All of a SQLite file, in one transaction: what is written meanwhile is not in it, and waits for nobody. Returns
    what is wrong with the copy."""
    try:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
            return [row[0] for row in new.execute("PRAGMA quick_check") if row[0] != "ok"]
    except sqlite3.OperationalError as error:
        raise StorageFailed(f"{source} could not be copied to {target.parent} ({error})") from error
    except FAILURES as error:
        return [str(error)]


@contextmanager
def _look(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as connection:
        yield connection


def ask_one(connection: sqlite3.Connection) -> Callable[..., Any]:
    """A function that reads one row."""
    return lambda sql, values=(): connection.execute(sql, values).fetchone()
