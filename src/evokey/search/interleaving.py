"""Two rankings shown as one, so that clicks say which is better (team-draft interleaving, Radlinski et al. 2008).

In each round both rankings add their best hit that is not there yet, in an order by chance. A click counts for the
ranking that brought the hit. Where both have the same hit next, it is nobody's: a click on it would only add noise.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evokey.types import Hit


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
