"""nDCG@10 with linear gains, as trec_eval computes it: of rankings, and of many score tables at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evokey.types import Numbers, Scores

DEPTH = 10
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
Keys = NDArray[np.int64]
PLACE = 2**32 - 1
"""The part of a key that tells its column."""
NEVER = int(np.array(-np.inf, np.float32).view(np.int32) ^ np.int32(-(2**31))) << 32
"""The key of a score of −inf, and more, is never found."""


def ideal(grades: Mapping[int, float]) -> float:
    best = sorted(grades.values(), reverse=True)[:DEPTH]
    return float(sum(grade * discount for grade, discount in zip(best, DISCOUNT, strict=False)))


def ndcg(numbers: Numbers | Sequence[int], grades: Mapping[int, float]) -> float:
    """Of one ranking of document numbers, best first."""
    gained = sum(grades.get(int(number), 0.0) * d for number, d in zip(numbers, DISCOUNT, strict=False))
    return float(gained / ideal(grades))


class Judge:
    """nDCG@10 of each row (last axis) of tables of scores; the gains are the grades in the same places, and stay.

    Of equal scores the first comes first; −inf is never found.
    """

    def __init__(self, gains: NDArray[np.float32], ideals: Scores) -> None:
        self._gains, self._ideals = np.ascontiguousarray(gains, np.float64), ideals
        self._starts = np.arange(len(gains))[:, None] * gains.shape[1]

    def __call__(self, scores: NDArray[np.float32]) -> Scores:
        return self._gained(np.sort(keys(scores), axis=-1))

    def better(self, tables: Keys, others: Keys) -> Iterator[Scores]:
        """Of each of the tables: by itself, and with each of the others, place by place the better of the two."""
        both = np.empty((1 + len(others), *tables.shape[1:]), np.int64)
        for table in tables:
            both[0] = table
            np.minimum(table, others, out=both[1:])
            both.sort(axis=-1)
            yield self._gained(both)

    def _gained(self, ranked: Keys) -> Scores:
        top = ranked[..., :DEPTH]
        gains = np.where(top < NEVER, self._gains.take((top & PLACE) + self._starts), 0)
        return np.asarray(gains @ DISCOUNT[: top.shape[-1]] / self._ideals, np.float64)


def best(scores: NDArray[np.float32], depth: int) -> Numbers:
    """Columns of the best scores of each row, best first, equals in order."""
    return np.sort(keys(scores), axis=-1)[..., :depth] & PLACE


def keys(scores: NDArray[np.float32]) -> Keys:
    """Score and column as one whole number: the less, the better. Sorting these is exact, and much faster than a stable
    sort of indices; and the lesser of two keys of a place is that of the better score."""
    return (descending(scores).astype(np.int64) << 32) | np.arange(scores.shape[-1])


def descending(scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Whole numbers in the order of scores, the best first."""
    bits = (scores + np.float32(0)).view(np.int32)  # −0 becomes 0
    return np.where(bits < 0, bits ^ np.int32(-(2**31)), ~bits)
