"""What stores share whose keys lie in an engine of their own, where others may write at any time."""

from __future__ import annotations

import threading
import time
from typing import Self

import numpy as np

from evokey.protocols import Origin
from evokey.types import Numbers

AGAIN = 1.0
"""Seconds after which keys of others are looked for again."""


class DistantStore:
    """Its snapshot is itself: there is but one state, that of now."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._rows = RowCounts()
        self._looked, self._changes = 0.0, 0

    def open(self, origin: Origin) -> None:
        self._origin = origin

    @property
    def changed(self) -> bool:
        """Others may write at any time; but do not look all the time."""
        now = time.monotonic()
        if now - self._looked < AGAIN:
            return False
        self._looked = now
        return True

    @property
    def snapshot(self) -> Self:
        return self

    @property
    def version(self) -> tuple[int, int]:
        return id(self), self._changes

    @property
    def _writer(self) -> str:
        return "" if self._origin is None else self._origin.writer


class RowCounts:
    """How many rows documents have, as far as they were looked up; any thread may ask."""

    def __init__(self) -> None:
        self._counts: Numbers = np.full(0, -1, np.int64)
        """By document number; −1: not known."""
        self._mutex = threading.Lock()

    def __len__(self) -> int:
        """How far the numbers go."""
        return len(self._counts)

    @property
    def documents(self) -> int:
        """Those that have rows."""
        return int((self._counts > 0).sum())

    @property
    def total(self) -> int:
        return int(self._counts[self._counts > 0].sum())

    def note(self, numbers: Numbers, counts: Numbers | int) -> None:
        with self._mutex:
            longer = int(numbers.max(initial=-1)) + 1 - len(self._counts)
            if longer > 0:
                self._counts = np.concatenate([self._counts, np.full(longer, -1, np.int64)])
            self._counts[numbers] = counts

    def of(self, numbers: Numbers) -> Numbers:
        """−1 where it is not known."""
        with self._mutex:
            inside = (numbers >= 0) & (numbers < len(self._counts))
            found = np.full(len(numbers), -1, np.int64)
            found[inside] = self._counts[numbers[inside]]
            return found

    def drop(self, numbers: Numbers) -> None:
        """From now on these are not known."""
        with self._mutex:
            self._counts[numbers[numbers < len(self._counts)]] = -1

    def clear(self) -> None:
        with self._mutex:
            self._counts = np.full(0, -1, np.int64)
