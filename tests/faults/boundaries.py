"""Every write a memory makes, with a place before and after it where the process can be killed.

`install` wraps what Python can see of writing: the calls of `os` that change files, files opened for writing, and the
statements of SQLite. Each place has a number; at one of them the process sends itself SIGKILL. Data that was written
but not yet synced may be torn when power fails, so a sync has two more places: half of the file gone, and all of it.
"""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

NOWHERE = -1
CHANGING = ("rename", "replace", "unlink", "rmdir", "mkdir")


class Boundaries:
    def __init__(self, die_at: int = NOWHERE) -> None:
        self.die_at = die_at
        self.step = ""
        self.seen: list[str] = []

    def reach(self, label: str, last_deed: Callable[[], object] | None = None) -> None:
        """Pass a place where the process may die, with a last deed that makes the damage worse."""
        self.seen.append(f"{self.step}: {label}")
        if len(self.seen) - 1 == self.die_at:
            if last_deed is not None:
                last_deed()
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, label: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self.reach(f"before {label}")
        result = call(*given, **named)
        self.reach(f"after {label}")
        return result


def install(at: Boundaries) -> None:
    """Wrap the writing calls of this process, for good: only for a process that will not live long."""
    for name in CHANGING:
        setattr(os, name, _wrapped(at, name, getattr(os, name)))
    os.fsync = _syncing(at, os.fsync)
    os.open = _opening(at, "os.open", os.open, lambda flags: bool(flags & os.O_CREAT))
    io.open = _opening(at, "open", io.open, lambda mode: bool(set("wax+") & set(mode)))
    sqlite3.connect = _connecting(at, sqlite3.connect)


def _wrapped(at: Boundaries, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(path: Any, *given: Any, **named: Any) -> Any:
        return at.around(f"{name} {os.path.basename(path)}", call, path, *given, **named)  # noqa: PTH119

    return wrapped


def _syncing(at: Boundaries, sync: Callable[[int], None]) -> Callable[[int], None]:
    def fsync(handle: int) -> None:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode):
            at.reach("torn before fsync", lambda: os.ftruncate(handle, found.st_size // 2))
            at.reach("lost before fsync", lambda: os.ftruncate(handle, 0))
        at.around("fsync", sync, handle)

    return fsync


def _opening(at: Boundaries, label: str, call: Callable[..., Any], writes: Callable[[Any], bool]) -> Callable[..., Any]:
    """Both kinds of open say second how the file is opened."""

    def opening(path: Any, how: Any = "r", *given: Any, **named: Any) -> Any:
        if not writes(how):
            return call(path, how, *given, **named)
        return at.around(f"{label} {os.path.basename(path)}", call, path, how, *given, **named)  # noqa: PTH119

    return opening


def _connecting(at: Boundaries, connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    class Watched(sqlite3.Connection):
        writing = False

        def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
            self.writing |= sql.startswith("BEGIN IMMEDIATE")
            if not (self.writing or sql.startswith(("PRAGMA journal_mode =", "PRAGMA wal_checkpoint", "VACUUM"))):
                return super().execute(sql, values)
            if sql.lstrip().startswith("SELECT"):
                return super().execute(sql, values)
            cursor: sqlite3.Cursor = at.around(_spelled(sql), super().execute, sql, values)
            self.writing &= sql not in ("COMMIT", "ROLLBACK")
            return cursor

        def executemany(self, sql: str, rows: Iterable[Any]) -> sqlite3.Cursor:
            cursor = super().executemany(sql, self._one_by_one(sql, rows))
            at.reach(f"after all {_spelled(sql)}")
            return cursor

        def _one_by_one(self, sql: str, rows: Iterable[Any]) -> Iterator[Any]:
            for row in rows:
                at.reach(f"before {_spelled(sql)}")
                yield row

        def close(self) -> None:
            at.around("closing the ledger", super().close)

    return lambda *given, **named: connect(*given, factory=Watched, **named)


def _spelled(sql: str) -> str:
    lines = [line for line in sql.strip().splitlines() if not line.startswith("--")]
    return " ".join(lines)[:40]
