"""Two rankings shown as one, so that clicks say which is better (team-draft interleaving, Radlinski et al. 2008).

In each round both rankings add their best hit that is not there yet, in an order by chance. A click counts for the
ranking that brought the hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evokey.types import Hit


class Team(NamedTuple):
    epoch: int
    hits: Sequence[Hit]


def interleave(one: Team, other: Team, k: int, chance: np.random.Generator) -> list[Hit]:
    """The k best of both, each with the epoch that brought it."""
    merged: dict[str, Hit] = {}
    while len(merged) < k:
        before = len(merged)
        for team in (one, other) if chance.random() < 0.5 else (other, one):
            best = next((hit for hit in team.hits if hit.id not in merged), None)
            if best is not None and len(merged) < k:
                merged[best.id] = replace(best, epoch=team.epoch)
        if len(merged) == before:
            break
    return list(merged.values())
