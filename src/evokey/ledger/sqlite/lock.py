"""The writer's lock: one process writes to a memory at a time. It is taken at the first write and kept until close."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from evokey.errors import MemoryBusy, StorageFailed
from evokey.ledger.sqlite.file import hint

LOCK, HOLDER = "writer.lock", "writer.json"
STARTING = 30.0
"""Seconds for which another process is waited for that brings the same ledger up to date."""


class WriterLock:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK, timeout=0, thread_local=False)

    @property
    def taken(self) -> bool:
        """Whether this process has it."""
        return bool(self._lock.is_locked)

    def take(self) -> None:
        """Become the one process that writes."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except Timeout:
            raise MemoryBusy(
                f"{self._folder} is being written by {self._holder()}. Searches still work; to write, wait until that "
                f"process closes the memory, or write through it."
            ) from None
        except OSError as error:
            raise StorageFailed(
                f"{self._folder / LOCK} cannot be locked ({error}){hint(self._folder)}. Nothing was changed; "
                f"fix the cause, and try again."
            ) from error
        note = {"pid": os.getpid(), "host": socket.gethostname()}
        with suppress(OSError):  # for other people's error messages alone
            (self._folder / HOLDER).write_text(json.dumps(note))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """The lock is one for all that is written."""
        self.take()
        yield

    @contextmanager
    def take_if_free(self) -> Iterator[bool]:
        """For a moment; False where another process has it, or nobody can. Who has it already keeps it."""
        if self._lock.is_locked:
            yield True
            return
        try:
            self.take()
        except (MemoryBusy, OSError):
            yield False
            return
        try:
            yield True
        finally:
            self.release()

    def wait(self) -> None:
        """Take it, even where another process that opens the same new memory has it for a moment."""
        try:
            self._lock.acquire(timeout=STARTING)
        except Timeout:
            raise MemoryBusy(
                f"{self._folder} is of an older version and must be brought up to date, but {self._holder()} is "
                f"writing to it; wait until that process closes the memory"
            ) from None

    def release(self) -> None:
        if self._lock.is_locked:
            try:
                with suppress(OSError):
                    (self._folder / HOLDER).unlink(missing_ok=True)
            finally:
                self._lock.release(force=True)

    def _holder(self) -> str:
        try:
            note = json.loads((self._folder / HOLDER).read_text())
            return f"process {note['pid']} on {note['host']}"
        except (OSError, ValueError, KeyError):
            return "another process"
