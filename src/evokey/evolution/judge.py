"""nDCG@10 with linear gains, as trec_eval computes it: of rankings, and of many score tables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evokey.types import Numbers, Scores

DEPTH = 10
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
FEW_RIGHT = 6


def ideal(grades: Mapping[int, float]) -> float:
    best = sorted(grades.values(), reverse=True)[:DEPTH]
    return float(sum(grade * discount for grade, discount in zip(best, DISCOUNT, strict=False)))


def ndcg(numbers: Numbers | Sequence[int], grades: Mapping[int, float]) -> float:
    """Of one ranking of document numbers, best first."""
    gained = sum(grades.get(int(number), 0.0) * d for number, d in zip(numbers, DISCOUNT, strict=False))
    return float(gained / ideal(grades))


class Judge:
    """nDCG@10 of each row of a table of scores; the gains are the grades in the same places, and stay.

    Where queries have few right documents, their ranks are counted; else the top ten are picked out. −inf is never
    found.
    """

    def __init__(self, gains: NDArray[np.float32], ideals: Scores) -> None:
        self._gains, self._ideals = gains, ideals
        right = gains > 0
        self._most = int(right.sum(axis=1).max(initial=0))
        self._places = np.argsort(~right, axis=1, kind="stable")[:, : self._most]
        self._own = np.take_along_axis(gains, self._places, 1)

    def __call__(self, scores: NDArray[np.float32]) -> Scores:
        gained = self._counted(scores) if self._most <= FEW_RIGHT else self._picked(scores)
        return np.asarray(gained / self._ideals)

    def _counted(self, scores: NDArray[np.float32]) -> Scores:
        gained = np.zeros(len(scores))
        columns = np.arange(scores.shape[1])
        for place, gain in zip(self._places.T, self._own.T, strict=True):
            own = np.take_along_axis(scores, place[:, None], 1)
            ahead = (scores > own) | ((scores == own) & (columns < place[:, None]))
            rank = ahead.sum(axis=1)
            found = (rank < DEPTH) & ~np.isneginf(own[:, 0])
            gained += np.where(found, gain * DISCOUNT[np.minimum(rank, DEPTH - 1)], 0)
        return gained

    def _picked(self, scores: NDArray[np.float32]) -> Scores:
        depth = min(DEPTH, scores.shape[1])
        top = np.sort(np.argpartition(-scores, depth - 1, axis=1)[:, :depth], axis=1)
        best = np.take_along_axis(scores, top, 1)
        order = np.argsort(-best, axis=1, kind="stable")
        gains = np.take_along_axis(np.take_along_axis(self._gains, top, 1), order, 1)
        gains = np.where(np.isneginf(np.take_along_axis(best, order, 1)), 0, gains)
        return np.asarray(gains @ DISCOUNT[:depth], np.float64)
