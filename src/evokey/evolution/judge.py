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


def ndcg_table(scores: NDArray[np.float32], gains: NDArray[np.float32], ideals: Scores) -> Scores:
    """Of each row of a table of scores; gains are the grades in the same places. −inf is never found."""
    depth = min(DEPTH, scores.shape[1])
    top = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, 1)
    gained = np.where(np.isneginf(np.take_along_axis(scores, top, 1)), 0, np.take_along_axis(gains, top, 1))
    return np.asarray(gained @ DISCOUNT[:depth] / ideals)
