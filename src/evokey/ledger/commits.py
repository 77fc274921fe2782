"""A count of a ledger's commits, in a file that all its processes map: whether anything is new is seen at a glance,
where asking SQLite would take as long as a twentieth of a search.

An odd count says that a commit is under way, or was cut short. Then only SQLite knows, and the next commit makes the
count even again. The file is a shortcut: where it cannot be had, SQLite is asked every time; where a commit could not
be counted in it, the process that made it knows all the same, and others ask SQLite once a second anyway.
"""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

WIDTH = 8
NOBODY_COUNTS = memoryview(bytes([1] * WIDTH)).cast("Q")


class Commits:
    def __init__(self, path: Path) -> None:
        self._path, self._count, self._own = path, NOBODY_COUNTS, 0
        self._mapped: tuple[int, int] | None = None
        """Which file it was: another may have taken its place."""

    def follow(self, ledger: Path) -> None:
        """Map the file, if it is not the one that is mapped; make it, beside its ledger and for the same users."""
        with suppress(OSError):
            if self._mapped == _identity(self._path.stat()):
                return
        self._count, self._mapped = NOBODY_COUNTS, None
        new = not self._path.exists()
        with suppress(OSError), self._path.open("ab") as file:
            if file.tell() < WIDTH:
                file.write(bytes(WIDTH))  # appended: two who make the file at once leave it longer, and no count undone
        if new:
            with suppress(OSError):
                shutil.copymode(ledger, self._path)
                if hasattr(os, "chown"):
                    os.chown(self._path, ledger.stat().st_uid, ledger.stat().st_gid)
        with suppress(OSError, ValueError), self._path.open("rb") as file:
            self._count = memoryview(mmap.mmap(file.fileno(), WIDTH, access=mmap.ACCESS_READ)).cast("Q")
            self._mapped = _identity(os.fstat(file.fileno()))

    @property
    def settled(self) -> int | None:
        """Another number after every commit, of this process or another; None where only SQLite knows."""
        count = self._count[0]
        return None if count & 1 else count + self._own

    def begin(self) -> None:
        self._advance(0)

    def end(self) -> None:
        self._own += 2
        self._advance(1)

    def _advance(self, past: int) -> None:
        """To the next odd number, or past it. Only one process writes at a time."""
        with suppress(OSError), self._path.open("r+b", buffering=0) as file:
            count = int.from_bytes(file.read(WIDTH), sys.byteorder) | 1
            file.seek(0)
            file.write((count + past).to_bytes(WIDTH, sys.byteorder))

    def close(self) -> None:
        self._count, self._mapped = NOBODY_COUNTS, None  # the file is let go with its last reader


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
