"""Answering: a query → hits. The index ranks, the ledger has the documents, and a reranker may order the first hits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from evokey import checks
from evokey.errors import ServiceFailed
from evokey.filters import Where
from evokey.ledger.ledger import Ledger
from evokey.protocols import Reranker
from evokey.search.index import Index
from evokey.search.passages import locate
from evokey.search.view import Asked, View
from evokey.types import Document, Expansion, Hit, Numbers, Passage, Ranking, Vectors

log = logging.getLogger("evokey")
RERANKED = 50
"""How many of the hits a reranker looks at."""
ATTEMPTS = 5
"""How often a search is made again whose documents were replaced meanwhile."""
Ask = Callable[[], Asked]
"""The query as it was asked, for what is looked for in the documents that it found."""
Ranked = tuple[Ranking, Ask]


@dataclass(frozen=True, slots=True)
class Request:
    """What a search is asked, checked."""

    query: str
    k: int
    where: Where | None = None
    epoch: int | None = None
    vector: Vectors | None = None
    expansion: Expansion | None = None
    explore: int = 0
    """Of the last places, how many go to what other rankings have among their first."""


@dataclass
class Searcher:
    index: Index
    ledger: Ledger
    reranker: Reranker | None
    chance: np.random.Generator = field(default_factory=np.random.default_rng)

    def search(self, asked: Request) -> list[Hit]:
        return self._find(asked.query, asked.k, lambda: self._rank(asked), filtered=asked.where is not None)

    def look(self, text: str, k: int) -> list[Document]:
        """What an expander may read. Expansions are reused, whoever asks: so no restricted document."""
        query, index = checks.query(text), self.index
        hits = self._find(query, k, lambda: _ranked(index.view().ask(query), self._depth(k), index.public))
        return [hit.document for hit in hits]

    def filter(self, where: Where | None) -> Numbers | None:
        """The documents that a caller's filter lets through; None: all."""
        return None if where is None else self.ledger.documents.where(checks.filter(where))

    def _depth(self, k: int) -> int:
        return k if self.reranker is None else max(k, RERANKED)

    def _rank(self, asked: Request) -> Ranked:
        number = None if asked.epoch is None else checks.epoch(asked.epoch, self.index.epoch)
        view, among, depth = self.index.view(number), self.filter(asked.where), self._depth(asked.k)
        if asked.expansion is None or not asked.expansion.units:
            best, ask = _ranked(view.ask(asked.query, asked.vector), depth, among)
        else:
            best = view.rank_expanded(replace(asked.expansion, query=asked.query), depth, among)
            ask = cache(partial(view.ask, asked.query, asked.vector))
        return (self._explore(view, best, asked, among) if asked.explore and len(best) else best), ask

    def _explore(self, view: View, best: Ranking, asked: Request, among: Numbers | None) -> Ranking:
        """The last places go, by lot, to what other rankings have among their first."""
        kept = max(len(best) - asked.explore, 1)
        others = view.alternatives(asked.query, 2 * len(best), among, asked.vector)
        fresh = np.setdiff1d(np.concatenate([one.numbers for one in others]), best.numbers[:kept])
        chosen = self.chance.permutation(fresh)[: asked.explore] if len(fresh) else best.numbers[kept:]
        scores = np.full(len(chosen), best.scores[kept - 1])
        return Ranking(np.concatenate([best.numbers[:kept], chosen]), np.concatenate([best.scores[:kept], scores]))

    def _find(self, query: str, k: int, rank: Callable[[], Ranked], *, filtered: bool = False) -> list[Hit]:
        best, ask, documents = self._fetch(rank, filtered=filtered)
        hits = [
            Hit(document.id, score, document, partial(_passage, ask, number, document))
            for number, score in zip(best.numbers.tolist(), best.scores.tolist(), strict=True)
            if (document := documents.get(number)) is not None
        ]
        return hits if self.reranker is None else rerank(self.reranker, query, hits)[:k]

    def _fetch(self, rank: Callable[[], Ranked], *, filtered: bool) -> tuple[Ranking, Ask, Mapping[int, Document]]:
        """A ranking and its documents. One that was replaced or deleted in between would be missing, and a filter may
        be of a newer state than the index: the ranking is made again from what the ledger says now, and after some
        attempts left as it is."""
        for attempt in range(ATTEMPTS):
            self.index.catch_up(wait=attempt > 0)
            best, ask = rank()
            found = self.ledger.documents.fetch(best.numbers.tolist())
            if len(found) == len(best) and not (filtered and self.index.behind):
                break
        return best, ask, found


def _ranked(asked: Asked, k: int, among: Numbers | None) -> Ranked:
    return asked.rank(k, among), lambda: asked


def _passage(ask: Ask, number: int, document: Document) -> Passage:
    return locate(ask(), number, document).best


def rerank(reranker: Reranker, query: str, hits: list[Hit]) -> list[Hit]:
    """The first hits in the reranker's order; as they were if it does not answer."""
    head = hits[:RERANKED]
    try:
        scores = reranker.scores(query, [hit.document for hit in head])
    except ServiceFailed as error:
        log.warning("hits are not reranked: %s", str(error))
        return hits
    order = np.argsort(-scores, kind="stable")
    lowest = float(scores.min()) if len(head) else 0.0
    tail = [replace(hit, score=lowest - place - 1) for place, hit in enumerate(hits[RERANKED:])]
    return [*(replace(head[at], score=float(scores[at])) for at in order), *tail]
