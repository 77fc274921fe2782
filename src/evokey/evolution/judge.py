"""nDCG@10 with linear gains, as trec_eval computes it: of rankings, and of many score tables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evokey.types import Numbers, Scores

DEPTH = 10
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))


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
        self._gains, self._ideals = gains, ideals

    def __call__(self, scores: NDArray[np.float32]) -> Scores:
        top = best(scores, DEPTH)
        gains = np.take_along_axis(np.broadcast_to(self._gains, scores.shape), top, -1)
        gains = np.where(np.isneginf(np.take_along_axis(scores, top, -1)), 0, gains)
        return np.asarray(gains @ DISCOUNT[: top.shape[-1]] / self._ideals, np.float64)


def best(scores: NDArray[np.float32], depth: int) -> Numbers:
    """Columns of the best scores of each row, best first, equals in order.

    Score and column are sorted as one whole number: that is exact, and much faster than a stable sort of indices.
    """
    bits = (scores + np.float32(0)).view(np.int32)  # −0 becomes 0
    descending = np.where(bits < 0, bits ^ np.int32(-(2**31)), ~bits).astype(np.int64)
    packed = (descending << 32) | np.arange(scores.shape[-1])
    return np.asarray(np.sort(packed, axis=-1)[..., :depth] & 0xFFFFFFFF, np.int64)
