"""The best of a table's rows, found by looking at few of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.judge import DEPTH, best
from evokey.types import Numbers

Table = NDArray[np.float32]
Marks = NDArray[np.bool_]
STRIDE = 16
"""Columns of a heap."""


def tenth(table: Table) -> Table:
    """The tenth-best score of each row (last axis), or less; −inf where there are fewer. Of columns dealt into heaps,
    the tenth-best heap is not above the tenth-best column."""
    few = _heaps(table) if table.shape[-1] > STRIDE * DEPTH else table
    if few.shape[-1] < DEPTH:
        return np.full(table.shape[:-1], -np.inf, np.float32)
    return np.asarray(np.sort(few, axis=-1)[..., -DEPTH])


def nearest(table: Table, count: int) -> Numbers:
    """Columns of the best scores of each row, best first. They are in the heaps that are best by their best."""
    width = table.shape[1]
    if width <= STRIDE * count:
        return best(table, count)
    heaps = width // STRIDE
    dealt = best(_heaps(table), count)[:, :, None] + np.arange(0, STRIDE * heaps, heaps)
    rest = np.broadcast_to(np.arange(STRIDE * heaps, width), (len(table), width % STRIDE))
    columns = np.concatenate([dealt.reshape(len(table), -1), rest], axis=1)
    return np.take_along_axis(columns, best(np.take_along_axis(table, columns, 1), count), 1)


def _heaps(table: Table) -> Table:
    """The best of each heap."""
    heaps = table.shape[-1] // STRIDE
    return np.asarray(table[..., : STRIDE * heaps].reshape(*table.shape[:-1], STRIDE, heaps).max(axis=-2))


def marks(table: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The row and the column of all that is not zero, row by row."""
    rows, columns = np.divmod(np.flatnonzero(table), max(table.shape[1], 1))
    return rows, columns
