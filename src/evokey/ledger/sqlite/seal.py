"""Whether the bytes of a ledger at rest are those that were written: SQLite checks its own structure, and no text.

The last process that closes a ledger after writing notes the checksum of the file beside it. A flipped bit leaves the
size and the time of the file as they were; where these differ, somebody has written since, and the note says nothing.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from pathlib import Path

PIECE = 1 << 20


def write(ledger: Path, note: Path) -> None:
    """For the process that holds the writer's lock, once its connections are closed."""
    with suppress(OSError):  # without a note nothing is checked
        if ledger.with_name(f"{ledger.name}-wal").exists():
            return  # others have it open: what is in the log comes to the file later
        note.write_text(json.dumps(_signed(_state(ledger), _sum(ledger))))


def broken(ledger: Path, note: Path) -> bool:
    """Whether the file holds other bytes than were noted, though nobody has written to it."""
    try:
        state, total, signature = json.loads(note.read_bytes())
        if [state, total, signature] != _signed(state, total) or state != _state(ledger):
            return False
        return bool(_sum(ledger) != total)
    except (OSError, ValueError, TypeError):
        return False


def _signed(state: list[int], total: int) -> list[object]:
    return [state, total, zlib.crc32(json.dumps([state, total]).encode())]


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _sum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            total = zlib.crc32(piece, total)
    return total
