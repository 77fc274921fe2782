"""Two epochs compared by what people do: clicks and upvotes on interleaved hits, or beside a shadow.

Each click counts by how much higher one of the epochs ranks the document (search/interleaving.py, credit). Impressions
of one query are alike, so they are one cluster, and a query counts as five impressions at the most: one that everybody
asks, or that somebody asks all day, decides nothing alone. If neither epoch is better, the sign of what a query says is
a matter of chance. So the mean is compared with those of the same figures under other signs (a randomisation test), and
the interval has every shift that this does not refuse. Measured with a simulated clicker: benchmarks/comparing.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evokey.search.interleaving import credit
from evokey.types import Rating, Shown

CONFIDENCE = 0.96
"""Of the interval. Who looks again and again, and stops at the first win, is wrong more often than that says."""
MOST = 5
"""Impressions of one query that count in full; more share the weight of so many."""
SIGNS, AT_ONCE = 4_000, 50
"""How many other signs are tried, and how many of them at once."""
WIDEST = 10.0
"""An end of the interval where nothing is known: no impression says more."""
Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Comparison:
    epoch: int
    other: int
    mode: str
    impressions: int
    queries: int
    """Queries with at least one click or upvote."""
    wins: int
    """Impressions that speak for the epoch, and for the other."""
    losses: int
    margin: float
    """Mean credit of an impression; a query counts five times at the most. A click on a document that one epoch has
    first and the other does not find is 1."""
    low: float
    high: float
    winner: int | None
    """The epoch that wins, with an interval that leaves out 0; None: it cannot be told."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Impression:
    query: str
    outcome: float
    """Above 0: it speaks for the epoch, below 0: for the other."""


def compare(shown: Iterable[Shown], clicks: Mapping[str, Sequence[str]], ratings: Iterable[Rating]) -> list[Comparison]:
    """A comparison for each pair of epochs and mode among what was shown."""
    liked = {query_id: set(documents) for query_id, documents in clicks.items()}
    for one in ratings:
        if one.up:
            liked.setdefault(one.query_id, set()).update(name.rpartition("#")[0] or name for name in one.cited)
    groups: dict[tuple[int, int, str], list[Impression]] = {}
    for showing in shown:
        if showing.other is not None and showing.epoch != showing.other.epoch:
            pair = (showing.epoch, showing.other.epoch, showing.other.mode)
            outcome = _outcome(showing, liked.get(showing.id, set()))
            groups.setdefault(pair, []).append(Impression(showing.query, outcome))
    return [judge(*pair, impressions) for pair, impressions in sorted(groups.items())]


def _outcome(showing: Shown, liked: set[str]) -> float:
    other = showing.other
    assert other is not None
    if not liked:
        return 0.0
    if other.mode != "interleaved":  # whose ranking has what was liked further up
        return _gain(showing.documents, liked) - _gain(other.documents, liked)
    if other.rankings is not None:
        said = credit(*other.rankings, showing.documents)
        return sum(said.get(id, 0.0) for id in liked)
    theirs = len(liked.intersection(other.documents))
    return len(liked.intersection(showing.documents)) - len(liked.intersection(other.both)) - 2 * theirs


def _gain(ranking: Sequence[str], liked: set[str]) -> float:
    return sum(1 / math.log2(place + 2) for place, id in enumerate(ranking) if id in liked)


def judge(epoch: int, other: int, mode: str, impressions: Sequence[Impression]) -> Comparison:
    """Who wins, with an interval."""
    clusters: dict[str, list[float]] = {}
    for one in impressions:
        clusters.setdefault(one.query, []).append(one.outcome)
    outcomes = [clusters[query] for query in sorted(clusters)]
    weights = np.array([min(len(one), MOST) for one in outcomes], float)
    sums = weights * np.array([sum(one) / len(one) for one in outcomes])
    margin, (low, high) = float(sums.sum() / weights.sum()) if outcomes else 0.0, _interval(sums, weights)
    winner = None if low <= 0 <= high else epoch if margin > 0 else other
    wins, losses = (sum(sign * one.outcome > 0 for one in impressions) for sign in (1, -1))
    decided = sum(any(one) for one in outcomes)
    return Comparison(epoch, other, mode, len(impressions), decided, wins, losses, margin, low, high, winner)


def _interval(sums: Vector, weights: Vector) -> tuple[float, float]:
    """The shifts t that other signs do not refuse. With signs s, |Σ s (sum - t weight)| is as large as |Σ (sum - t
    weight)| for all t between two roots, and the ends of the interval are quantiles of these."""
    if not sums.any():
        return -WIDEST, WIDEST
    chance, lows, highs = np.random.default_rng(0), list[Vector](), list[Vector]()
    for _ in range(SIGNS // AT_ONCE):
        signs = np.where(chance.random((AT_ONCE, len(sums))) < 0.5, -1.0, 1.0)
        said, weighed = signs @ sums, signs @ weights
        roots = [_divide(sums.sum() + sign * said, weights.sum() + sign * weighed) for sign in (1, -1)]
        lows.append(np.minimum(*(np.nan_to_num(one, nan=-WIDEST) for one in roots)))
        highs.append(np.maximum(*(np.nan_to_num(one, nan=WIDEST) for one in roots)))
    least = int((1 - CONFIDENCE) * (SIGNS + 1)) - 1  # the true signs are among them, and refuse nothing
    return float(np.sort(np.concatenate(lows))[least]), float(np.sort(np.concatenate(highs))[-1 - least])


def _divide(one: Vector, other: Vector) -> Vector:
    """NaN where all signs are alike: then no shift is refused."""
    found = np.full_like(one, np.nan)
    np.divide(one, other, out=found, where=np.abs(other) > 1e-9)
    return found
