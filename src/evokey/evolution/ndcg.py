"""nDCG@10 with linear gains, as trec_eval computes it: of rankings, and of many score tables at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evokey.types import Numbers, Scores

CUTOFF = 10
DISCOUNT = 1 / np.log2(np.arange(2, CUTOFF + 2))
SortKeys = NDArray[np.int64]
COLUMN_BITS = 2**32 - 1
"""The part of a sort key that holds its column."""
NOT_FOUND = int(np.array(-np.inf, np.float32).view(np.int32) ^ np.int32(-(2**31))) << 32
"""The sort key of a score of −inf. This key and all larger ones are never found."""


def ideal_dcg(grades: Mapping[int, float]) -> float:
    best = sorted(grades.values(), reverse=True)[:CUTOFF]
    return float(sum(grade * discount for grade, discount in zip(best, DISCOUNT, strict=False)))


def ndcg(numbers: Numbers | Sequence[int], grades: Mapping[int, float]) -> float:
    """Of one ranking of document numbers, best first."""
    dcg = sum(grades.get(int(number), 0.0) * d for number, d in zip(numbers, DISCOUNT, strict=False))
    return float(dcg / ideal_dcg(grades))


class TableNdcg:
    """nDCG@10 of each row (last axis) of score tables. The gains are the grades in the same places for all tables.

    Of equal scores the first comes first; −inf is never found.
    """

    def __init__(self, gains: NDArray[np.float32], ideals: Scores) -> None:
        self._gains, self._ideals = np.ascontiguousarray(gains, np.float64), ideals
        self._starts = np.arange(len(gains))[:, None] * gains.shape[1]

    def __call__(self, scores: NDArray[np.float32]) -> Scores:
        return self._of_sorted(np.sort(sort_keys(scores), axis=-1))

    def of_better(self, tables: SortKeys, others: SortKeys) -> Iterator[Scores]:
        """For each table: of the table itself, and of its element-wise best with each of the others."""
        both = np.empty((1 + len(others), *tables.shape[1:]), np.int64)
        for table in tables:
            both[0] = table
            np.minimum(table, others, out=both[1:])
            both.sort(axis=-1)
            yield self._of_sorted(both)

    def _of_sorted(self, ranked: SortKeys) -> Scores:
        top = ranked[..., :CUTOFF]
        gains = np.where(top < NOT_FOUND, self._gains.take((top & COLUMN_BITS) + self._starts), 0)
        return np.asarray(gains @ DISCOUNT[: top.shape[-1]] / self._ideals, np.float64)


def top_columns(scores: NDArray[np.float32], depth: int) -> Numbers:
    """Columns of the best scores of each row, best first, equals in order."""
    return np.sort(sort_keys(scores), axis=-1)[..., :depth] & COLUMN_BITS


def sort_keys(scores: NDArray[np.float32]) -> SortKeys:
    """Score and column as one integer: the smaller, the better. Sorting these is exact, and much faster than a stable
    argsort; and the smaller of two keys of one column is that of the better score."""
    return (descending(scores).astype(np.int64) << 32) | np.arange(scores.shape[-1])


def descending(scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Integers in the order of the scores, the best first."""
    bits = (scores + np.float32(0)).view(np.int32)  # −0 becomes 0
    return np.where(bits < 0, bits ^ np.int32(-(2**31)), ~bits)
