"""The gate: how probable it is that a question is about something that was taught. What was learned counts by it.

A few signals of a question, each as a share of what the question is like itself, say how probable that is: a logistic
regression whose coefficients the cross-fit has learned.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evokey.scoring.block import NO_NUMBERS
from evokey.types import Choice, Numbers, Scores

NEAREST = 5
"""Taught texts that are looked at."""
FIRST = 10
"""Untaught results that are looked at."""
ROUNDING = 1e-6
"""Texts whose likeness differs by less are equally near."""
SIGNALS = 8
SAME = 0.9
"""A question this similar to a taught one begins to count as the same."""
CLOSED, OPEN = 0.01, 0.99
"""A gate below or above is closed or wide open: then a ranking has the bits of the untaught or taught index."""


class Opening(NamedTuple):
    """What the gate says of one question."""

    share: float
    """How much of what was learned counts."""
    penalty: float
    """How much of the penalty of taught questions kept as keys counts: nothing if the question is one of them."""
    probability: float
    likeness: NDArray[np.float64] | None = None
    """How like the taught texts are to the question as it was asked, where that is at hand."""


WIDE_OPEN = Opening(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Taught:
    """The taught texts that are about some document, and these documents (as places among the touched ones)."""

    texts: Numbers
    documents: Sequence[frozenset[int]]
    """Of each text."""

    @classmethod
    def of(cls, texts: Numbers, owners: Numbers) -> Taught:
        """From pairs of a text and a document."""
        found: dict[int, set[int]] = {}
        for text, owner in zip(texts.tolist(), owners.tolist(), strict=True):
            found.setdefault(text, set()).add(owner)
        return cls(np.array(sorted(found), np.int64), [frozenset(found[text]) for text in sorted(found)])

    def signals(
        self,
        likeness: NDArray[np.floating],
        own: float,
        base: NDArray[np.floating],
        best: Scores,
        hidden: Sequence[int] = (),
    ) -> Scores:
        """likeness: of the texts, to a question that is `own` like itself; base: the untaught scores of the touched
        documents; best: those of the first untaught results; hidden: places of texts that are not looked at."""
        if len(self.texts) <= len(hidden) or own <= 0:
            return np.zeros(SIGNALS)
        shares = np.asarray(likeness if len(likeness) == len(self.texts) else likeness[self.texts], np.float64) / own
        if hidden:
            shares[list(hidden)] = -np.inf
        near = _nearest(shares)
        top = [max(share, -1.0) for share in shares[near].tolist() if share != -np.inf]  # a text may be like nothing
        if not top:
            return np.zeros(SIGNALS)
        first, *others = (self.documents[at] for at in near[: len(top)].tolist())
        agree = sum(not first.isdisjoint(other) for other in others) / max(len(others), 1)
        found = [max(score / own, -1.0) for score in best[:FIRST].tolist()] or [0.0]
        reached = max(base[list(first)].tolist()) / own + ROUNDING
        place = math.log1p(sum(score > reached for score in found))
        second = top[1] if len(top) > 1 else 0.0
        lead = found[0] - (found[-1] if len(found) == FIRST else 0.0)
        return np.array([top[0], second, sum(top) / len(top), found[0], lead, top[0] - found[0], agree, place])


def _nearest(shares: Scores) -> Numbers:
    """The places of the greatest shares, the greatest first; equals, but for rounding, in their order."""
    near = np.flatnonzero(shares > 0)  # most texts share no word with a question, and many equals are slow to sort
    if len(near) < NEAREST:
        near = np.arange(len(shares))
    if len(near) > NEAREST:
        some = shares[near]
        near = near[some >= np.partition(some, -NEAREST)[-NEAREST] - ROUNDING]
    return np.asarray(near[np.lexsort((near, -np.round(shares[near] / ROUNDING)))][:NEAREST])


def probability(gate: Sequence[float] | Scores, signals: Scores) -> Scores:
    """Of one question, or of several (first axis)."""
    return np.asarray(1 / (1 + np.exp(-np.clip(gate[0] + signals @ np.asarray(gate[1:]), -30, 30))))


def openings(choice: Choice, signals: Scores, probabilities: Scores) -> tuple[Scores, Scores]:
    """The shares and penalties of several questions."""
    other = np.clip((1 - signals[..., 0]) / (1 - SAME), 0.0, 1.0)
    share = np.maximum(probabilities**choice.sharpness, 1 - other)
    share = np.where(share < CLOSED, 0.0, np.where(share > OPEN, 1.0, share))
    return np.asarray(share), np.asarray(other)


def open_for(choice: Choice, signals: Scores) -> Opening:
    """The same for one question."""
    weights, values = choice.gate_weights, signals.tolist()
    found = sum(map(operator.mul, weights[1:], values), weights[0])
    found = 1 / (1 + math.exp(-min(max(found, -30.0), 30.0)))
    other = min(max((1 - values[0]) / (1 - SAME), 0.0), 1.0)
    share = max(found**choice.sharpness, 1 - other)
    return Opening(0.0 if share < CLOSED else 1.0 if share > OPEN else share, other, found)


def leading(scores: Scores, others: Scores, floor: float) -> Scores:
    """The first untaught results: the best of the scores that a store found, and of others above a floor."""
    bar = scores[FIRST - 1] if len(scores) >= FIRST else floor
    best = np.concatenate([scores[:FIRST], others[others > bar]])
    best.sort()
    return best[: -FIRST - 1 : -1]


NOBODY = Taught(NO_NUMBERS, ())
