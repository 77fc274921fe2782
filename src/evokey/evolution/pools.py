"""The untaught top documents of every taught query, kept so that evolving costs nothing that grows with the corpus.

A pool is taken when its lesson arrives, by one ordinary search. Dense scores never change, so a pool is brought up to
date by scoring only the documents that came since; one of its documents gone, it is taken again. Sparse weights follow
the whole collection: any change of documents takes the pool again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evokey.ledger.documents import Position
from evokey.ledger.pools import Pool, Pools
from evokey.search.overlay import UNTAUGHT, Touched
from evokey.search.retriever import Retriever, search
from evokey.types import Numbers, Ranking

DEPTH = 100


def take(retriever: Retriever, query: str, position: Position) -> Pool:
    ranking = search(retriever, retriever.lesson(query, {}), DEPTH, UNTAUGHT)
    return Pool(ranking, position.newest, position.removals)


def fresh(
    retriever: Retriever, queries: Sequence[str], kept: Pools, position: Position, live: Numbers, *, keep: bool = True
) -> dict[str, Ranking]:
    """Pools of these queries as of now; those that had to be made or mended are kept for the next time, if wanted."""
    pools = kept.get(retriever.name)
    mended: dict[str, Pool] = {}
    for query in queries:
        pool = pools.get(query)
        if pool is None or not _up_to_date(pool, position):
            mended[query] = _mended(retriever, query, pool, position, live)
    if mended and keep:
        kept.put(retriever.name, mended)
    return {query: (mended.get(query) or pools[query]).ranking for query in queries}


def _up_to_date(pool: Pool, position: Position) -> bool:
    return (pool.newest, pool.removals) == (position.newest, position.removals)


def _mended(retriever: Retriever, query: str, pool: Pool | None, position: Position, live: Numbers) -> Pool:
    if pool is None or retriever.kind == "sparse" or not np.isin(pool.ranking.numbers, live).all():
        return take(retriever, query, position)
    new = live[live > pool.newest]
    new = retriever.store.rows.having(new)
    if not len(new):
        return Pool(pool.ranking, position.newest, position.removals)
    question = retriever.lesson(query, {})
    rows = Touched.of(new, retriever.store.rows.sizes(new))
    scores = rows.best(retriever.store.take(new).scores(question))
    numbers = np.concatenate([pool.ranking.numbers, new])
    scores = np.concatenate([pool.ranking.scores, scores])
    order = np.lexsort((numbers, -scores))[:DEPTH]
    return Pool(Ranking(numbers[order], scores[order]), position.newest, position.removals)
