"""Clicks as verdicts, corrected for position: a document far down is clicked less because fewer people look there.

Position-based model: P(click) = P(seen at the rank) · P(relevant). A click at a rank seen with probability p counts
1/p, so that the mean over many showings is the relevance wherever the document stood (inverse propensity weighting).
Rare clicks at the bottom weigh much; the clip bounds them, and so trades a bias downwards for less noise.

A log of many showings needs no weights: over_expected compares the clicks of each document with those that its ranks
let one expect (clicks over expected clicks), and names the documents that got more than chance explains.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from evokey.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Showing:
    """One list that was shown for a query, best first, and what was clicked in it."""

    query: str
    shown: tuple[str, ...]
    clicked: frozenset[str]


@dataclass(frozen=True, slots=True)
class PositionBias:
    """How likely a rank is looked at, beside the first: 1/rank^η, or as estimated; ranks beyond are as the last."""

    eta: float = 1.0
    seen: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eta) and self.eta >= 0):
            raise InvalidInput(f"eta is 0 or above, not {self.eta}")
        if not all(0 < one <= 1 for one in self.seen):
            raise InvalidInput(f"each rank is seen with a probability above 0 and up to 1, not {self.seen}")

    def at(self, rank: int) -> float:
        if self.seen:
            return self.seen[min(rank, len(self.seen)) - 1]
        return float(rank**-self.eta)


BY_RANK = PositionBias()


def grades(
    shown: Sequence[str],
    clicked: Collection[str],
    *,
    bias: PositionBias = BY_RANK,
    clip: float | None = 10.0,
    skipped: float = 0.0,
) -> dict[str, float]:
    """Grades of the clicked documents, 1/p each, at most clip (None: no bound). skipped: what a document counts against
    that was passed over on the way to a click further down; it was seen for sure, so it needs no correction. Clicks on
    documents that were not shown say nothing."""
    if clip is not None and not clip >= 1:
        raise InvalidInput(f"clip is at least 1, the weight of the first rank, not {clip}")
    if not (math.isfinite(skipped) and skipped >= 0):
        raise InvalidInput(f"skipped is 0 or above, not {skipped}")
    ranks = {id: rank for rank, id in reversed(list(enumerate(shown, 1)))}
    most = math.inf if clip is None else clip
    found = {id: min(1 / bias.at(ranks[id]), most) for id in dict.fromkeys(shown) if id in clicked}
    if skipped:
        last = max((ranks[id] for id in found), default=0)
        found |= {id: -skipped for id in dict.fromkeys(shown) if ranks[id] < last and id not in found}
    return found


def estimate(log: Sequence[Showing], *, rounds: int = 100, least: float = 0.01) -> PositionBias:
    """The position bias of a log, by expectation maximisation of the position-based model.

    Each round shares every missing click between "not seen" and "not relevant" by the present estimates, then takes
    the mean again for each rank and each query and document. It tells the two apart only by documents that were shown
    for one query at several ranks, so the log must hold such; those shown at one rank only are left out. least: a rank
    counts as seen at least so often.
    """
    clicks: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for showing in log:
        for rank, id in enumerate(showing.shown, 1):
            counted = clicks[showing.query, id][rank]
            counted[id in showing.clicked] += 1
    moved = {pair: ranks for pair, ranks in clicks.items() if len(ranks) > 1}
    if not moved:
        raise InvalidInput(
            "no document was shown for one query at two ranks, so position and relevance cannot be separated; "
            "swap neighbours at random for a while, or name eta"
        )
    if not any(clicked for ranks in moved.values() for _, clicked in ranks.values()):
        raise InvalidInput("the log holds no click on a document that was shown at two ranks; wait for some")
    seen = dict.fromkeys(sorted({rank for ranks in moved.values() for rank in ranks}), 0.5)
    relevant = dict.fromkeys(moved, 0.5)
    for _ in range(rounds):
        rank_sums = {rank: [0.0, 0.0] for rank in seen}
        for pair, ranks in moved.items():
            total = mass = 0.0
            for rank, (missed, clicked) in ranks.items():
                unclicked = max(1 - seen[rank] * relevant[pair], 1e-12)
                rank_sums[rank][0] += clicked + missed * seen[rank] * (1 - relevant[pair]) / unclicked
                rank_sums[rank][1] += clicked + missed
                mass += clicked + missed * relevant[pair] * (1 - seen[rank]) / unclicked
                total += clicked + missed
            relevant[pair] = mass / total
        seen = {rank: mass / total for rank, (mass, total) in rank_sums.items()}
    top = max(seen.values())
    return PositionBias(seen=tuple(max(seen.get(rank, 0.0) / top, least) for rank in range(1, max(seen) + 1)))


Pair = tuple[str, str]
"""A query and a document."""
Places = Mapping[Pair, Mapping[int, Sequence[int]]]
"""By pair and rank: how often it was shown there without a click, and with one."""
ROUNDS = 10


def over_expected(log: Sequence[Showing], *, bias: PositionBias | None = None, rate: float = 0.02) -> dict[Pair, float]:
    """Queries and documents with more clicks than their ranks let one expect; how many times more.

    A rank's expected clicks are its mean in the log (Zhang and Jones, 2007), or, with a bias, the share of looks that
    led to a click times the looks at the rank. A pair is named if a binomial test says that its clicks are no chance,
    where at most `rate` of all named pairs may be chance (Benjamini and Hochberg, 1995): so random clicks name next
    to none. As the first ranks have most of the right documents, the mean there is high because of them. So it is
    computed again without those that were named, until no more are.
    """
    if not 0 < rate < 1:
        raise InvalidInput(f"rate is between 0 and 1, not {rate}")
    places, named = _count_places(log), dict[Pair, float]()
    rates: dict[int, float] = {}
    for _ in range(ROUNDS):
        rates |= _click_rates(places, bias, named)
        found = _name(places, rates, rate)
        if found.keys() <= named.keys():
            break
        named |= found
    return named


def _count_places(log: Sequence[Showing]) -> Places:
    counts: dict[Pair, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for showing in log:
        for rank, id in enumerate(dict.fromkeys(showing.shown), 1):
            counts[showing.query, id][rank][id in showing.clicked] += 1
    return counts


def _name(places: Places, rates: Mapping[int, float], rate: float) -> dict[Pair, float]:
    """The pairs whose clicks are no chance."""
    if not places:
        return {}
    pairs = list(places)
    sums = [
        [(missed + hit, hit, (missed + hit) * rates[rank]) for rank, (missed, hit) in ranks.items()]
        for ranks in places.values()
    ]
    shown, clicked, due = np.array([np.sum(one, axis=0) for one in sums]).T
    more = clicked > due
    chance = np.ones(len(pairs))  # P(as many clicks or more)
    chance[more] = betainc(clicked[more], (shown - clicked)[more] + 1, np.clip(due[more] / shown[more], 1e-9, 1 - 1e-9))
    order = np.argsort(chance, kind="stable")
    passed = np.flatnonzero(chance[order] <= rate * np.arange(1, len(pairs) + 1) / len(pairs))
    named = order[: passed[-1] + 1] if len(passed) else order[:0]
    return {pairs[place]: float(clicked[place] / max(due[place], 1e-9)) for place in sorted(named.tolist())}


def _click_rates(places: Places, bias: PositionBias | None, named: Mapping[Pair, float]) -> dict[int, float]:
    """By rank, how often a document there is clicked, whatever it is; those that are named aside."""
    shown: dict[int, int] = defaultdict(int)
    clicked: dict[int, int] = defaultdict(int)
    for pair, ranks in places.items():
        for rank, (missed, hit) in ranks.items() if pair not in named else ():
            shown[rank] += missed + hit
            clicked[rank] += hit
    if bias is None:
        return {rank: clicked[rank] / shown[rank] for rank in shown}
    looks = sum(bias.at(rank) * count for rank, count in shown.items())
    attractive = sum(clicked.values()) / looks if looks else 0.0
    return {rank: min(1.0, attractive * bias.at(rank)) for rank in shown}
