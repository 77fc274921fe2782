"""Cross-validation folds and samples of queries. Both follow from the texts alone: the same lessons, the same folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from evokey.types import Numbers

FOLDS = 10


def _hash(query: str) -> int:
    return int.from_bytes(hashlib.sha256(query.encode()).digest()[:8])


def fold_of(query: str) -> int:
    """The fold that a query belongs to."""
    return _hash(query) % FOLDS


def split_folds(queries: Sequence[str]) -> list[list[str]]:
    """All queries by fold."""
    folds: list[list[str]] = [[] for _ in range(FOLDS)]
    for query in queries:
        folds[fold_of(query)].append(query)
    return folds


def sample(queries: Sequence[str], size: int) -> list[str]:
    """At most so many of the queries, in alphabetical order."""
    return sorted(sorted(queries, key=_hash)[:size])


def sample_numbers(numbers: Numbers, size: int) -> Numbers:
    """At most so many of the numbers, in order: the same for the same numbers."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.sort(numbers[np.argsort(mixed, kind="stable")[:size]])
