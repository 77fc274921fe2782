"""The best entries of each row of a table, found without sorting all of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.ndcg import CUTOFF, top_columns
from evokey.types import Numbers

Table = NDArray[np.float32]
Mask = NDArray[np.bool_]
GROUP = 16
"""Columns of a group."""


def tenth_best(table: Table) -> Table:
    """A lower bound of the tenth-best score of each row (last axis); −inf where there are fewer scores. Columns are put
    into groups: the tenth-best maximum of a group is never above the tenth-best score."""
    few = _group_maxima(table) if table.shape[-1] > GROUP * CUTOFF else table
    if few.shape[-1] < CUTOFF:
        return np.full(table.shape[:-1], -np.inf, np.float32)
    return np.asarray(np.sort(few, axis=-1)[..., -CUTOFF])


def best_columns(table: Table, count: int) -> Numbers:
    """Columns of the best scores of each row, best first. They lie in the groups with the best maxima."""
    width = table.shape[1]
    if width <= GROUP * count:
        return top_columns(table, count)
    groups = width // GROUP
    grouped = top_columns(_group_maxima(table), count)[:, :, None] + np.arange(0, GROUP * groups, groups)
    rest = np.broadcast_to(np.arange(GROUP * groups, width), (len(table), width % GROUP))
    columns = np.concatenate([grouped.reshape(len(table), -1), rest], axis=1)
    return np.take_along_axis(columns, top_columns(np.take_along_axis(table, columns, 1), count), 1)


def _group_maxima(table: Table) -> Table:
    groups = table.shape[-1] // GROUP
    return np.asarray(table[..., : GROUP * groups].reshape(*table.shape[:-1], GROUP, groups).max(axis=-2))


def nonzero(table: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The row and the column of each entry that is not zero, row by row."""
    rows, columns = np.divmod(np.flatnonzero(table), max(table.shape[1], 1))
    return rows, columns
