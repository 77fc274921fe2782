"""The arithmetic: what a document scores beside an engine, from the engine's results and from what was taught.

    base      the engine's own score, as a share of its range: 1 for its best result, 0 for what it did not return; less
              μ × how common the document is: what an engine returns for many questions says little about one
    pull      Σ over the document's taught questions of their weight times their likeness to the question
    recall    the largest of these likenesses
    score     the better of  base + λ pull − γ push  and  2 (recall − δ);  what that is above the base counts as far as
              the gate is open. For a question that was taught in the same words δ vanishes, and its documents score
              1 + λ more: more than any pull gives to others

A likeness counts by a power: the larger it is, the more only near questions say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evokey.layer.teaching import Teaching
from evokey.search.gate import FIRST, SAME, SIGNALS
from evokey.search.overlay import greatest
from evokey.types import Choice, Numbers, Ranking, Scores

RECALL = 2.0
"""What a taught question is worth beside the engine's best result, which is worth 1."""
LAST = 1e-6
"""What the last result of an engine scores: still more than not being in it."""
ALL_SIGNALS = SIGNALS + 4
"""What the gate sees of a question: its likeness to lessons, and what the engine returned (compare_results)."""
COMMON = 200
Table = NDArray[Any]
Weights = tuple[float, ...]
"""Of the encoders; the last one is that of the engine's results."""


class Plan(NamedTuple):
    """How much is learned, and by whose likeness."""

    choice: Choice
    weights: Weights
    """The weight of each measure of likeness."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of an engine's scores in one list."""

    low: float
    high: float

    @classmethod
    def of(cls, scores: Sequence[float] | Scores, depth: int) -> Scale:
        """A list shorter than the depth is complete: what is not in it has nothing, and its last still has
        something."""
        if not len(scores):
            return cls(0.0, 1.0)
        low = float(scores[-1]) if len(scores) >= depth else min(float(scores[-1]), 0.0)
        return cls(low, float(scores[0]))

    def shares(self, scores: Sequence[float] | Scores) -> Scores:
        values = np.asarray(scores, np.float64)
        if self.high <= self.low:
            return np.ones(len(values))
        return np.asarray(LAST + (1 - LAST) * (values - self.low) / (self.high - self.low))

    def scores(self, shares: Scores) -> Scores:
        """Back to the engine's own scale."""
        if self.high <= self.low:
            return np.asarray(self.high + shares - 1)
        return np.asarray(self.low + (shares - LAST) / (1 - LAST) * (self.high - self.low))


class Common(NamedTuple):
    """How common documents are in the engine's results for taught questions: log(1 + 200 × their mean share)."""

    numbers: Numbers
    """Sorted."""
    weights: Scores

    @classmethod
    def of(cls, pools: Sequence[Ranking], depth: int) -> Common:
        if not pools:
            return cls(np.zeros(0, np.int64), np.zeros(0))
        numbers, places = np.unique(np.concatenate([pool.numbers for pool in pools]), return_inverse=True)
        shares = np.concatenate([Scale.of(pool.scores, depth).shares(pool.scores) for pool in pools])
        sums = np.bincount(places, shares, minlength=len(numbers))
        return cls(numbers, np.log1p(COMMON * sums / len(pools)))

    def weigh(self, numbers: Numbers) -> Scores:
        """0 for those that were never returned."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        places = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[places] == numbers, self.weights[places], 0.0)


class Parts(NamedTuple):
    """What was taught, for questions (first axis) and documents."""

    pull: Table
    push: Table
    """One column of zeros where no document was wrong for anything."""
    recall: Table
    """−inf for documents that were right for nothing."""


def even(encoders: int) -> Weights:
    """All encoders alike, and the engine's results not: so the gate compares questions."""
    return (1 / encoders,) * encoders + (0.0,)


def blend(tables: Scores, weights: Sequence[float]) -> Scores:
    """Likeness by every measure (first axis) → one."""
    return np.asarray(np.tensordot(np.asarray(weights), tables, axes=1))


def weigh(teaching: Teaching, likeness: Scores, choice: Choice) -> Parts:
    """likeness: questions × texts."""
    near = likeness**choice.kernel
    recall = greatest(near[:, teaching.right.texts], teaching.starts)
    pull, push = teaching.pull(choice.spread), teaching.push
    return Parts((pull @ near.T).T, (push @ near.T).T if push.nnz else np.zeros((len(near), 1)), recall)


def combine(base: Table, parts: Parts, choice: Choice, penalty: Table | float) -> Table:
    """The scores where the gate is wide open; penalty: the share of δ that counts, 0 for a question that was taught."""
    found = base + choice.step * parts.pull - choice.demotion * parts.push
    if choice.penalty is None:
        return np.asarray(found)
    same = np.clip((parts.recall - SAME) / (1 - SAME), 0.0, 1.0)
    found = np.maximum(found, RECALL * (parts.recall - choice.penalty * penalty))
    return np.asarray(found + (1 - penalty) * (1 + choice.step) * same)


def compare_results(shares: Scores, taught: NDArray[np.bool_]) -> Scores:
    """What the gate sees of an engine's results: how far those that were right for some lesson are ahead of the others,
    and their part in the first result, the first three and the first ten. A question about something that nobody taught
    has other documents first."""
    lead = shares[taught].max(initial=0.0) - shares[~taught].max(initial=0.0)
    return np.array([lead, *(float(taught[:first].mean()) if len(taught) else 0.0 for first in (1, 3, FIRST))])


def gate(base: Table, learned: Table, share: Table | float) -> Table:
    """What counts of learned scores."""
    return np.asarray(base + share * (learned - base))
