"""Is a memory sound? What is wrong, and what mends it. The ledger is the truth; all else is made again from it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evokey import memory as memory_
from evokey.errors import InvalidSettings
from evokey.ledger.sqlite import FILE as LEDGER
from evokey.ledger.sqlite import Database
from evokey.registry import Named
from evokey.settings import FILE, FORMAT, read, replaced, retrievers, settings_of
from evokey.stores.segments import damaged
from evokey.types import EpochReport


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    mended_by: str


REBUILD = "evokey doctor --rebuild"
BACKUP = "restoring the ledger from a backup: it is the truth, and nothing else can make it again"


def examined(folder: Path) -> list[Finding]:
    """Look at everything, change nothing."""
    found = [Finding(what, BACKUP) for what in _ledger_faults(folder / LEDGER)]
    for retriever in read(folder / FILE).retrievers:
        found += [Finding(what, REBUILD) for what in damaged(folder / "keys" / retriever.encoder)]
    return found


def rebuilt(folder: Path) -> int:
    """Make all derived files again; returns the number of documents. Nobody else may be writing meanwhile."""
    with Database(folder) as database:
        database.take_lock()
        _lose_keys(folder)
    with memory_.open(folder) as memory:
        memory.save()
        return len(memory)


def reencoded(folder: Path, encoders: Sequence[Named] = ()) -> tuple[int, EpochReport | None]:
    """Encode documents and lessons again, with these encoders or with what the settings say now, and learn again.

    Nothing learned is lost: lessons are texts. Returns the number of documents and what was published.
    """
    settings = replace(read(folder / FILE), format=FORMAT)  # made as a new memory is
    if encoders:
        keys = {"name": settings.retrievers[0].keys, **settings.retrievers[0].keys_options}
        settings = replace(settings, retrievers=settings_of(encoder=encoders, keys=keys).retrievers)
    if any(one.encoder == "given" for one in settings.retrievers):
        raise InvalidSettings(
            "encoder 'given' takes its vectors from the caller: add the documents again with new ones"
        )
    retrievers(settings, folder)  # an encoder that cannot be made must not cost the keys
    with Database(folder) as database:
        database.take_lock()
        _lose_keys(folder)
        replaced(folder, settings)
    with memory_.open(folder) as memory:
        memory.save()
        return len(memory), memory.refit()


def _lose_keys(folder: Path) -> None:
    lost = folder / "keys.lost"
    shutil.rmtree(lost, ignore_errors=True)
    if (folder / "keys").exists():
        (folder / "keys").rename(lost)
    shutil.rmtree(lost, ignore_errors=True)


def _ledger_faults(path: Path) -> list[str]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        return faults + [f"a broken reference in {row[0]}" for row in connection.execute("PRAGMA foreign_key_check")]
    except sqlite3.DatabaseError as error:
        return [f"{path}: {error}"]
    finally:
        connection.close()
