"""Two rankings shown as one, so that clicks say which is better (team-draft interleaving, Radlinski et al. 2008).

In each round both rankings add their best hit that is not there yet, in an order by chance. Where both have the same
hit next, it is nobody's.

What a click says (`credit`): by how much higher one ranking has the document, less the mean of that over all orders
that chance could have shown at this place. So whoever clicks by place alone, whatever the places, favours nobody.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evokey.types import Hit

PLACES = 10
"""Places whose clicks count: the order of so many is one of 32 at the most."""
Ids = tuple[str, ...]


class Team(NamedTuple):
    epoch: int
    hits: Sequence[Hit]


def interleave(one: Team, other: Team, k: int, chance: np.random.Generator) -> list[Hit]:
    """The k best of both, each with the epoch that brought it; None: both did."""
    merged: dict[str, Hit] = {}
    while len(merged) < k:
        best = {team.epoch: hit for team in (one, other) if (hit := _next(team.hits, merged)) is not None}
        if not best:
            break
        if len({hit.id for hit in best.values()}) == 1 and len(best) == 2:
            merged |= {hit.id: replace(hit, epoch=None) for hit in best.values()}
            continue
        for epoch in sorted(best, reverse=chance.random() < 0.5):
            if len(merged) < k:
                merged[best[epoch].id] = replace(best[epoch], epoch=epoch)
    return list(merged.values())


def _next(hits: Sequence[Hit], known: Container[str]) -> Hit | None:
    return next((hit for hit in hits if hit.id not in known), None)


def credit(mine: Ids, theirs: Ids, shown: Ids) -> dict[str, float]:
    """What a click on each of the first documents shown says for the ranking `mine`, and below 0 for `theirs`."""
    better, usual = _compare(mine[:PLACES], theirs[:PLACES])
    return {id: better.get(id, 0.0) - mean for id, mean in zip(shown, usual, strict=False)}


@lru_cache(maxsize=10_000)
def _compare(mine: Ids, theirs: Ids) -> tuple[dict[str, float], list[float]]:
    """How much higher the first ranking has each document; and the mean of that at each place."""
    better = {id: _gain(mine, id) - _gain(theirs, id) for id in (*mine, *theirs)}
    usual = [0.0] * PLACES
    for likely, order in find_orders(mine, theirs, ()):
        for place, id in enumerate(order):
            usual[place] += likely * better[id]
    return better, usual


def _gain(ranking: Ids, id: str) -> float:
    return 1 / math.log2(ranking.index(id) + 2) if id in ranking else 0.0


def find_orders(mine: Ids, theirs: Ids, order: Ids) -> Iterator[tuple[float, Ids]]:
    """Every order of the first places that chance can show, with its probability; order: what is there already."""
    best = [next((id for id in ranking if id not in order), None) for ranking in (mine, theirs)]
    found = [id for id in dict.fromkeys(best) if id is not None]
    if len(order) >= PLACES or not found:
        yield 1.0, order[:PLACES]
        return
    ways = [tuple(found), tuple(reversed(found))] if len(found) > 1 else [tuple(found)]
    for way in ways:
        yield from ((likely / len(ways), whole) for likely, whole in find_orders(mine, theirs, order + way))
