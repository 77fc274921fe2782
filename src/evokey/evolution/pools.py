"""Pools: the untaught top documents of every taught query. With them, the cost of evolve does not grow with the corpus.

A pool is made when its lesson arrives, by one ordinary search. Dense scores never change, so a pool is updated by
scoring only the documents that came since; if one of its documents is gone, it is made again. Sparse weights depend on
the whole collection: any change of documents makes the pool again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evokey.ledger.documents import Position
from evokey.ledger.pools import Pool, Pools
from evokey.scoring.block import Keys
from evokey.search.overlay import UNTAUGHT, Touched
from evokey.search.retriever import Retriever, search
from evokey.types import Numbers, Ranking

POOL_DEPTH = 100


def make(retriever: Retriever, query: str, position: Position) -> Pool:
    question = retriever.lesson(query, {})
    ranking = search(retriever, question, POOL_DEPTH, UNTAUGHT)
    if not retriever.store.exact:
        (ranking,) = rescore(retriever.base.fetch(ranking.numbers), [question])
    return Pool(ranking, position.newest, position.removals)


def rescore(keys: Keys, questions: Sequence[Any]) -> list[Ranking]:
    """The documents of these keys as each question orders them."""
    touched, found = Touched.of(keys.documents, keys.sizes), []
    for scores in keys.block.scores_of_each(questions):
        best = touched.best(scores)
        order = np.lexsort((touched.documents, -best))
        found.append(Ranking(touched.documents[order], np.asarray(best[order], np.float64)))
    return found


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
    keys = retriever.base.fetch(live[live > pool.newest])
    if not len(keys.owners):
        return Pool(pool.ranking, position.newest, position.removals)
    (new,) = rescore(keys, [retriever.lesson(query, {})])
    numbers = np.concatenate([pool.ranking.numbers, new.numbers])
    scores = np.concatenate([pool.ranking.scores, new.scores])
    order = np.lexsort((numbers, -scores))[:POOL_DEPTH]
    return Pool(Ranking(numbers[order], scores[order]), position.newest, position.removals)
