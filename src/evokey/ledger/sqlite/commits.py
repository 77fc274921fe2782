"""A count of a ledger's commits, in a file that all its processes read: whether anything is new is seen at a glance,
where asking SQLite would take as long as a twentieth of a search.

An odd count says that a commit is under way, or was cut short. Then only SQLite knows, and the next commit makes the
count even again. The file is a shortcut: where it cannot be had, or is cut, SQLite is asked every time; where a commit
could not be counted in it, the process that made it knows all the same, and others ask SQLite once a second anyway. It
is read and not mapped: a file that is cut while it is mapped kills the process.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path

WIDTH = 8


class Commits:
    def __init__(self, path: Path) -> None:
        self._path, self._own = path, 0
        self._file: _File | None = None

    def follow(self, ledger: Path) -> None:
        """Open the file, if it is not the one that is open; make it, beside its ledger and for the same users."""
        with suppress(OSError):
            if self._file is not None and self._file.identity == _identity(self._path.stat()):
                return
        self._file = None
        new = not self._path.exists()
        with suppress(OSError), self._path.open("ab") as file:
            if file.tell() < WIDTH:
                file.write(bytes(WIDTH))  # appended: two who make the file at once leave it longer, and no count undone
        if new:
            with suppress(OSError):
                shutil.copymode(ledger, self._path)
                if hasattr(os, "chown"):
                    os.chown(self._path, ledger.stat().st_uid, ledger.stat().st_gid)
        with suppress(OSError):
            self._file = _File(self._path)

    @property
    def settled(self) -> int | None:
        """Another number after every commit, of this process or another; None where only SQLite knows."""
        file = self._file
        found = b"" if file is None else file.read()
        count = int.from_bytes(found, sys.byteorder)
        return None if len(found) < WIDTH or count & 1 else count + self._own

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
        self._file = None  # closed with its last reader


class _File:
    """The first bytes of a file, read again and again."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.identity = _identity(os.fstat(self._handle))
        """Which file it is: another may take its place."""
        self._one_at_a_time = threading.Lock()

    def read(self) -> bytes:
        try:
            if sys.platform != "win32":
                return os.pread(self._handle, WIDTH, 0)
            with self._one_at_a_time:
                os.lseek(self._handle, 0, os.SEEK_SET)
                return os.read(self._handle, WIDTH)
        except OSError:
            return b""

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._handle)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
