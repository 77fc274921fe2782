"""Unrelated traffic: searched queries that are about other things than what was taught.

Learning should not change their results. Nobody judged them, so their untaught results count as relevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evokey.evolution.attribution import Attribution
from evokey.evolution.folds import sample
from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever
from evokey.types import Ranking

COMPARED = 1024
"""Taught queries that the traffic is compared with."""
FAR, VERY_FAR = 0.5, 0.25
"""Quantiles of the similarity between taught queries. A query is far from what was taught if its nearest taught query
is less similar than this; very far, if it is less similar than the lower quantile."""
CHANCE = 0.45
"""The share of the traffic that may be very far by chance. Above it, people ask about other things too."""


def find_unrelated(retriever: Retriever, attribution: Attribution, traffic: Sequence[str]) -> list[str]:
    """The queries of the traffic that are far from everything taught; none if that may be by chance."""
    columns = np.unique(attribution.pairs.queries).tolist()
    taught = sample([attribution.texts[column] for column in columns], COMPARED)
    if not traffic or len(taught) < 2:
        return []
    neighbours = Neighbours(retriever, taught)
    between, near = (neighbours.table([retriever.lesson(text, {}) for text in some]) for some in (taught, traffic))
    np.fill_diagonal(between, -np.inf)
    far, very_far = np.quantile(between.max(axis=1), (FAR, VERY_FAR), method="lower")
    near = near.max(axis=1)
    if (near < very_far).mean() <= CHANCE:
        return []
    return [traffic[at] for at in np.flatnonzero(near < far).tolist()]


def judge_by_untaught(queries: Sequence[str], pools: Mapping[str, Ranking]) -> Judgements:
    """The first ten untaught results of each query count as relevant."""
    found = {query: dict.fromkeys(pools[query].numbers[:CUTOFF].tolist(), 1.0) for query in sorted(queries)}
    return Judgements({query: grades for query, grades in found.items() if grades}, {})
