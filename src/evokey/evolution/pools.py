"""Pools: the untaught top documents of every taught query. With them, the cost of evolve does not grow with the corpus.

A pool is made when its lesson arrives, by one ordinary search. Dense scores never change, so a pool is updated by
scoring only the documents that came since; if one of its documents is gone, it is made again. Sparse weights depend on
the whole collection: any change of documents makes the pool again. That is done when a pool is looked at, not before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from evokey.ledger.documents import Position
from evokey.ledger.pools import Pool, Pools
from evokey.protocols import IndexingStore
from evokey.scoring.block import Keys
from evokey.search.overlay import UNTAUGHT, Touched
from evokey.search.retriever import Retriever, search
from evokey.types import Numbers, Ranking

POOL_DEPTH = 100


def make(retriever: Retriever, query: str, position: Position) -> Pool:
    return make_all(retriever, [query], position)[query]


def make_all(retriever: Retriever, queries: Sequence[str], position: Position) -> dict[str, Pool]:
    """The pools of several queries. Graphs are asked by as many threads as there are processors."""
    questions = [retriever.lesson(query, {}) for query in queries]
    threads = (os.cpu_count() or 1) if isinstance(retriever.store, IndexingStore) else 1
    if min(threads, len(queries)) > 1:
        with ThreadPoolExecutor(threads) as pool:
            rankings = list(pool.map(partial(_rank, retriever), questions))
    else:
        rankings = [_rank(retriever, question) for question in questions]
    found = zip(queries, rankings, strict=True)
    return {query: Pool(ranking, position.newest, position.removals) for query, ranking in found}


def _rank(retriever: Retriever, question: Any) -> Ranking:
    ranking = search(retriever, question, POOL_DEPTH, UNTAUGHT)
    if not retriever.store.exact and not getattr(retriever.store, "rescores", False):
        (ranking,) = rescore(retriever.base.fetch(ranking.numbers), [question])
    return ranking


def rescore(keys: Keys, questions: Sequence[Any]) -> list[Ranking]:
    """The documents of these keys as each question orders them."""
    touched, found = Touched.of(keys.documents, keys.sizes), []
    for scores in keys.block.scores_of_each(questions):
        best = touched.best(scores)
        order = np.lexsort((touched.documents, -best))
        found.append(Ranking(touched.documents[order], np.asarray(best[order], np.float64)))
    return found


class CurrentPools(Mapping[str, Ranking]):
    """Pools of one retriever as of now. One that is out of date is renewed when it is asked for: after an import, only
    the pools of queries that evolve looks at are."""

    def __init__(self, retriever: Retriever, stored: Pools, position: Position, live: Numbers) -> None:
        self._retriever, self._stored, self._position, self._live = retriever, stored, position, live
        self._pools = stored.get(retriever.key_space)
        self._renewed: dict[str, Pool] = {}
        self._since: dict[int, Keys] = {}
        """Keys of the documents that came after a number."""
        self.seconds = 0.0
        """What renewing took."""

    def __len__(self) -> int:
        return len(self._pools)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pools)

    def __getitem__(self, query: str) -> Ranking:
        """Of any query."""
        pool = self._pools.get(query)
        if pool is None or (pool.newest, pool.removals) != (self._position.newest, self._position.removals):
            begin = time.perf_counter()
            pool = self._pools[query] = self._renewed[query] = self._renew(query, pool)
            self.seconds += time.perf_counter() - begin
        return pool.ranking

    @property
    def renewed(self) -> int:
        """How many were renewed."""
        return len(self._renewed)

    def save(self) -> None:
        """Write those that were renewed."""
        if self._renewed:
            self._stored.put(self._retriever.key_space, self._renewed)

    def _renew(self, query: str, pool: Pool | None) -> Pool:
        retriever, position = self._retriever, self._position
        if pool is None or retriever.kind == "sparse" or not np.isin(pool.ranking.numbers, self._live).all():
            return make(retriever, query, position)
        keys = self._keys_since(pool.newest)
        if not len(keys.owners):
            return Pool(pool.ranking, position.newest, position.removals)
        (new,) = rescore(keys, [retriever.lesson(query, {})])
        numbers = np.concatenate([pool.ranking.numbers, new.numbers])
        scores = np.concatenate([pool.ranking.scores, new.scores])
        order = np.lexsort((numbers, -scores))[:POOL_DEPTH]
        return Pool(Ranking(numbers[order], scores[order]), position.newest, position.removals)

    def _keys_since(self, number: int) -> Keys:
        if number not in self._since:
            self._since = {number: self._retriever.base.fetch(self._live[self._live > number])}
        return self._since[number]
