"""A count of a ledger's commits, in a file that all its processes map: whether anything is new is seen at a glance,
where asking SQLite would take as long as a twentieth of a search.

An odd count says that a commit is under way, or was cut short. Then only SQLite knows, and the next commit makes the
count even again. Nothing depends on the file: where it cannot be had, SQLite is asked every time.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from pathlib import Path

WIDTH = 8
NOBODY_COUNTS = memoryview(bytes([1] * WIDTH)).cast("Q")


class Commits:
    def __init__(self, path: Path) -> None:
        self._path, self._count = path, NOBODY_COUNTS
        with suppress(OSError), path.open("ab") as file:
            if file.tell() < WIDTH:
                file.write(bytes(WIDTH))  # appended: two who make the file at once leave it longer, and no count undone
        with suppress(OSError, ValueError), path.open("rb") as file:
            self._count = memoryview(mmap.mmap(file.fileno(), WIDTH, access=mmap.ACCESS_READ)).cast("Q")

    @property
    def settled(self) -> int | None:
        """How many there were, in twos; None where only SQLite knows."""
        count = self._count[0]
        return None if count & 1 else count

    def begin(self) -> None:
        self._advance(0)

    def end(self) -> None:
        self._advance(1)

    def _advance(self, past: int) -> None:
        """To the next odd number, or past it. Only one process writes at a time."""
        with suppress(OSError), self._path.open("r+b", buffering=0) as file:
            count = int.from_bytes(file.read(WIDTH), sys.byteorder) | 1
            file.seek(0)
            file.write((count + past).to_bytes(WIDTH, sys.byteorder))

    def close(self) -> None:
        self._count = NOBODY_COUNTS  # the file is let go with its last reader
