"""Cross-validation folds and samples of queries. Both follow from the texts alone: the same lessons, the same folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

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
