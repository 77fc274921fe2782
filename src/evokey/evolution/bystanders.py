"""Bystanders: queries of the traffic that are about other things than what was taught.

Learning should leave them alone. Nobody said what is right for them, so what they find untaught stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evokey.evolution.attribution import Attribution
from evokey.evolution.evidence import Taught, sample
from evokey.evolution.judge import DEPTH
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever
from evokey.types import Ranking

LOOKED_AT = 1024
"""Taught queries that the traffic is compared with."""
FAR, FARTHER = 0.5, 0.25
"""A query is far from what was taught if it is farther than half of the taught queries are from the nearest other;
farther still, if it is so of three quarters."""
ELSEWHERE = 0.45
"""The share of the traffic that is farther by chance, and then some; above it, people ask about other things too."""


def beside(retriever: Retriever, taught: Attribution, searched: Sequence[str]) -> list[str]:
    """Those of the queries that are far from all that was taught; none, if it is by chance that they are."""
    columns = np.unique(taught.pairs.queries).tolist()
    asked = sample([taught.texts[column] for column in columns], LOOKED_AT)
    if not searched or len(asked) < 2:
        return []
    neighbours = Neighbours(retriever, asked)
    among, near = (neighbours.table([retriever.lesson(text, {}) for text in some]) for some in (asked, searched))
    np.fill_diagonal(among, -np.inf)
    far, farther = np.quantile(among.max(axis=1), (FAR, FARTHER), method="lower")
    near = near.max(axis=1)
    if (near < farther).mean() <= ELSEWHERE:
        return []
    return [searched[at] for at in np.flatnonzero(near < far).tolist()]


def as_they_are(queries: Sequence[str], pools: Mapping[str, Ranking]) -> Taught:
    """What they find untaught is right for them."""
    found = {query: dict.fromkeys(pools[query].numbers[:DEPTH].tolist(), 1.0) for query in sorted(queries)}
    return Taught({query: grades for query, grades in found.items() if grades}, {})
