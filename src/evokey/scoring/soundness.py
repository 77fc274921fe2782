"""Arrays of a segment, checked before anything is looked up by them: whoever wrote the file, no number in it leads out
of an array. Checksums tell what was damaged; these tell what was never right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**40
"""No document has a number beyond."""


def check_numbers(owners: NDArray[Any], covered: NDArray[Any]) -> None:
    """The documents of rows, and those that a segment answers for."""
    for name, numbers in (("owners", owners), ("covered", covered)):
        _check(numbers.dtype == np.int64 and numbers.ndim == 1, f"{name} are no document numbers")
        _check(numbers.min(initial=0) >= 0 and numbers.max(initial=0) < LARGEST, f"{name} are no document numbers")
    _check(owners.max(initial=0) <= covered.max(initial=0), "some owners are not covered")


def check_vectors(vectors: NDArray[Any]) -> None:
    _check(vectors.dtype == np.float32 and vectors.ndim == 2 and vectors.flags.c_contiguous, "these are no vectors")


def check_lists(starts: NDArray[Any], lists: int, items: int) -> None:
    """Where each of so many lists starts, and the end of them all, among so many items."""
    _check_whole(starts)
    _check(len(starts) == lists + 1 and starts[0] == 0 and starts[-1] == items, "lists do not fill what they divide")
    _check(bool((starts[1:] >= starts[:-1]).all()), "a list ends before it starts")


def check_places(places: NDArray[Any], count: int, room: int) -> None:
    """So many places in something with room for so much."""
    _check_whole(places)
    _check(len(places) == count, f"{len(places)} places, where there are {count}")
    _check(not count or (int(places.min()) >= 0 and int(places.max()) < room), "a place is out of range")


def check_rising(places: NDArray[Any], starts: NDArray[Any]) -> None:
    """Within each list, places rise: the compiled scan goes through them once."""
    falls = np.flatnonzero(places[1:] <= places[:-1]) + 1
    _check(bool(np.isin(falls, starts).all()), "the rows of a term are not in order")


def check_values(values: NDArray[Any], count: int, kind: type[np.floating[Any]]) -> None:
    _check(values.dtype == kind and values.shape == (count,), f"{count} values were expected")


def _check_whole(numbers: NDArray[Any]) -> None:
    _check(numbers.dtype.kind in "iu" and numbers.ndim == 1, "whole numbers were expected")


def _check(right: bool, wrong: str) -> None:
    if not right:
        raise ValueError(wrong)
