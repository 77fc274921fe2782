"""Pools: the untaught top documents of every taught query. With them, the cost of evolve does not grow with the corpus.

A pool is made when its lesson arrives, by one ordinary search. Dense scores never change, so a pool is updated by
scoring only the documents that came since; if one of its documents is gone, it is made again. Sparse weights depend on
the whole collection: any change of documents makes the pool again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evokey.ledger.documents import Position
from evokey.ledger.pools import Pool, Pools
from evokey.search.overlay import UNTAUGHT, Touched
from evokey.search.retriever import Retriever, search
from evokey.types import Numbers, Ranking

POOL_DEPTH = 100


def make(retriever: Retriever, query: str, position: Position) -> Pool:
    ranking = search(retriever, retriever.lesson(query, {}), POOL_DEPTH, UNTAUGHT)
    return Pool(ranking, position.newest, position.removals)


def update(
    retriever: Retriever, queries: Sequence[str], stored: Pools, position: Position, live: Numbers, *, keep: bool = True
) -> dict[str, Ranking]:
    """Pools of these queries as of now. With `keep`, those that had to be made or updated are stored."""
    pools = stored.get(retriever.name)
    updated: dict[str, Pool] = {}
    for query in queries:
        pool = pools.get(query)
        if pool is None or not _is_current(pool, position):
            updated[query] = _update(retriever, query, pool, position, live)
    if updated and keep:
        stored.put(retriever.name, updated)
    return {query: (updated.get(query) or pools[query]).ranking for query in queries}


def _is_current(pool: Pool, position: Position) -> bool:
    return (pool.newest, pool.removals) == (position.newest, position.removals)


def _update(retriever: Retriever, query: str, pool: Pool | None, position: Position, live: Numbers) -> Pool:
    if pool is None or retriever.kind == "sparse" or not np.isin(pool.ranking.numbers, live).all():
        return make(retriever, query, position)
    new = live[live > pool.newest]
    new = retriever.store.rows.having(new)
    if not len(new):
        return Pool(pool.ranking, position.newest, position.removals)
    question = retriever.lesson(query, {})
    rows = Touched.of(new, retriever.store.rows.sizes(new))
    scores = rows.best(retriever.store.take(new).scores(question))
    numbers = np.concatenate([pool.ranking.numbers, new])
    scores = np.concatenate([pool.ranking.scores, scores])
    order = np.lexsort((numbers, -scores))[:POOL_DEPTH]
    return Pool(Ranking(numbers[order], scores[order]), position.newest, position.removals)
