"""Two epochs compared by what people do: clicks and upvotes on interleaved hits, or beside a shadow.

An impression is won by the epoch that brought more of what was clicked or credited. Impressions of one query are alike,
so they are counted as one cluster: the interval is that of a mean with standard errors clustered by query. A query
counts as five impressions at the most: one that everybody asks, or that somebody asks all day, decides nothing alone.
Measured with a simulated clicker: benchmarks/comparing.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from evokey.types import Rating, Shown

CONFIDENCE = 0.97
"""Of the interval. Who looks again and again, and stops at the first win, is wrong more often than that says."""
MOST = 5
"""Impressions of one query that count in full; more share the weight of so many."""
LEAST = 10
"""Queries with a click below which nobody is said to win."""


@dataclass(frozen=True, slots=True)
class Comparison:
    epoch: int
    other: int
    mode: str
    impressions: int
    queries: int
    """Queries with at least one click or upvote."""
    wins: int
    """Impressions won by the epoch, and by the other."""
    losses: int
    margin: float
    """Mean of +1 for a win and -1 for a loss, ties 0; a query counts five times at the most."""
    low: float
    high: float
    winner: int | None
    """The epoch that wins, with an interval that leaves out 0; None: it cannot be told."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Impression:
    query: str
    outcome: int
    """1: won by the epoch, -1: by the other, 0: neither."""


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


def _outcome(showing: Shown, liked: set[str]) -> int:
    other = showing.other
    assert other is not None
    mine: float
    theirs: float
    if other.mode == "interleaved":
        theirs = len(liked.intersection(other.documents))
        mine = len(liked.intersection(showing.documents)) - len(liked.intersection(other.both)) - theirs
    else:  # whose ranking has what was liked further up
        mine, theirs = (_gain(found, liked) for found in (showing.documents, other.documents))
    return (mine > theirs) - (mine < theirs)


def _gain(ranking: Sequence[str], liked: set[str]) -> float:
    return sum(1 / math.log2(place + 2) for place, id in enumerate(ranking) if id in liked)


def judge(epoch: int, other: int, mode: str, impressions: Sequence[Impression]) -> Comparison:
    """Who wins, with an interval."""
    clusters: dict[str, list[int]] = {}
    for one in impressions:
        clusters.setdefault(one.query, []).append(one.outcome)
    margin, error, effective = _summarise_clusters(list(clusters.values()))
    decided = sum(any(outcomes) for outcomes in clusters.values())
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, max(effective - 1, 1.0))) * error
    low, high = margin - reach, margin + reach
    winner = None if decided < LEAST or low <= 0 <= high else epoch if margin > 0 else other
    wins, losses = (sum(one.outcome == sign for one in impressions) for sign in (1, -1))
    return Comparison(epoch, other, mode, len(impressions), decided, wins, losses, margin, low, high, winner)


def _summarise_clusters(clusters: Sequence[Sequence[int]]) -> tuple[float, float, float]:
    """The mean outcome, its standard error clustered by query, and how many equal queries would be as many."""
    weights = np.array([min(len(one), MOST) for one in clusters], float)
    means = np.array([sum(one) / len(one) for one in clusters])
    total, count = float(weights.sum()), len(clusters)
    margin = float(weights @ means) / total if total else 0.0
    if count < 2:
        return margin, 1.0, 1.0
    spread = float(((weights * (means - margin)) ** 2).sum())
    effective = total**2 / float((weights**2).sum())
    return margin, math.sqrt(spread * count / (count - 1)) / total, effective
