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
from evokey.passages.reading import excerpt, reading_limit
from evokey.protocols import Reranker
from evokey.search.grouping import by_passage, fold
from evokey.search.index import Index
from evokey.search.passages import Cuts, Locator
from evokey.search.view import Asked, View
from evokey.types import Document, Expansion, Hit, Numbers, Ranking, Vectors

log = logging.getLogger("evokey")
RERANKED = 50
"""How many of the hits a reranker looks at."""
SPARE = 3
"""How many times as many hits are looked for where near-duplicates are shown as one."""
DEEPER, DEEPEST = 4, 10_000
"""How much deeper is looked for documents that say what they must, and how deep at the most."""
ATTEMPTS = 5
"""How often a search is made again whose documents were replaced meanwhile."""
Ask = Callable[[], Asked]
"""The query as it was asked, for what is looked for in the documents that it found."""
Ranked = tuple[Ranking, Ask]


@dataclass(frozen=True, slots=True)
class Show:
    """How hits are shown."""

    group: str = "document"
    """What a hit stands for: a document, or a passage of one."""
    fold: bool = False
    """Near-duplicates as one hit."""
    accepts: Callable[[Document], bool] | None = None
    """Which documents are shown; None: all."""


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
    show: Show = Show()


@dataclass
class Searcher:
    index: Index
    ledger: Ledger
    reranker: Reranker | None
    chance: np.random.Generator = field(default_factory=np.random.default_rng)
    cuts: Cuts = field(default_factory=Cuts)

    def search(self, asked: Request) -> list[Hit]:
        show, depth = asked.show, self._depth(asked.k)
        if show == Show():
            return self._rerank(asked.query, self._find_asked(asked, depth))[: asked.k]
        hits = self._find_accepted(asked, depth * SPARE if show.fold else depth)
        if show.fold:
            hits = fold(hits)
        if show.group == "passage":
            hits = by_passage(hits, depth)
        return self._rerank(asked.query, hits)[: asked.k]

    def _find_accepted(self, asked: Request, depth: int) -> list[Hit]:
        """So many hits that are to be shown: looked for deeper and deeper until there are enough."""
        accepts, deep = asked.show.accepts, depth
        hits = self._find_asked(asked, deep)
        if accepts is None:
            return hits
        while (kept := [hit for hit in hits if accepts(hit.document)]) is not None:
            if len(kept) >= depth or len(hits) < deep or deep >= DEEPEST:
                break
            deep *= DEEPER
            hits = self._find_asked(asked, deep)
        return kept[:depth]

    def _find_asked(self, asked: Request, depth: int) -> list[Hit]:
        return self._find(lambda: self._rank(asked, depth), filtered=asked.where is not None)

    def _rerank(self, query: str, hits: list[Hit]) -> list[Hit]:
        return hits if self.reranker is None else rerank(self.reranker, query, hits)

    def look(self, text: str, k: int) -> list[Document]:
        """What an expander may read. Expansions are reused, whoever asks: so no restricted document."""
        query, index = checks.query(text), self.index
        hits = self._find(lambda: _rank_with(index.view().ask(query), self._depth(k), index.public))
        return [hit.document for hit in self._rerank(query, hits)[:k]]

    def filter(self, where: Where | None) -> Numbers | None:
        """The documents that a caller's filter lets through; None: all."""
        return None if where is None else self.ledger.documents.where(checks.filter(where))

    def _depth(self, k: int) -> int:
        return k if self.reranker is None else max(k, RERANKED)

    def _rank(self, asked: Request, depth: int) -> Ranked:
        number = None if asked.epoch is None else self.index.check_epoch(asked.epoch)
        view, among = self.index.view(number), self.filter(asked.where)
        if asked.expansion is None or not asked.expansion.units:
            best, ask = _rank_with(view.ask(asked.query, asked.vector), depth, among)
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

    def _find(self, rank: Callable[[], Ranked], *, filtered: bool = False) -> list[Hit]:
        best, ask, documents = self._fetch(rank, filtered=filtered)
        return [
            Hit(document.id, score, document, Locator(ask, number, document, self.cuts))
            for number, score in zip(best.numbers.tolist(), best.scores.tolist(), strict=True)
            if (document := documents.get(number)) is not None
        ]

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


def _rank_with(asked: Asked, k: int, among: Numbers | None) -> Ranked:
    return asked.rank(k, among), lambda: asked


def rerank(reranker: Reranker, query: str, hits: list[Hit]) -> list[Hit]:
    """The first hits in the reranker's order; as they were if it does not answer."""
    head = hits[:RERANKED]
    try:
        scores = reranker.scores(query, [excerpt(hit, reading_limit(reranker)) for hit in head])
    except ServiceFailed as error:
        log.warning("hits are not reranked: %s", str(error))
        return hits
    order = np.argsort(-scores, kind="stable")
    lowest = float(scores.min()) if len(head) else 0.0
    tail = [replace(hit, score=lowest - place - 1) for place, hit in enumerate(hits[RERANKED:])]
    return [*(replace(head[at], score=float(scores[at])) for at in order), *tail]
