"""What `evokey bench --at` measures: a memory, or a layer beside a search function. Nothing is written to either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from evokey.evolution.judgements import Judgements
from evokey.layer.inspecting import rank_kept, read_hits
from evokey.layer.layer import Layer
from evokey.layer.learned import Learned
from evokey.ledger.ledger import Ledger
from evokey.memory import Memory
from evokey.search.view import View
from evokey.types import Hit, Lesson, Ranking


class Ranker(Protocol):
    """What ranks documents for the questions of a subject, with what was learned or without it."""

    def rank(self, query: str, k: int) -> Ranking:
        """The k best documents."""
        ...


class Subject(Protocol):
    """What is measured. Lessons on hold take no part."""

    lessons: Sequence[Lesson]
    taught: Judgements
    """What these lessons say together."""
    untaught: Ranker
    traffic: Sequence[str]
    """A sample of searched questions, where one is kept."""
    unasked: int
    """Questions that take no part: what a search function returns for them is not known."""

    @property
    def documents(self) -> int: ...

    def learn(self, without: Iterable[int]) -> Ranker:
        """What evolve would publish, without some lessons (numbers)."""
        ...


class MemorySubject:
    unasked = 0

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        for one in memory.index.originals:
            one.keep_nothing()
        memory.index.catch_up()
        self._vectors = memory.ledger.lessons.vectors()
        self._view = memory.index.view(0).untaught
        held = memory.ledger.lessons.find_held()
        self.taught = memory.composer.log(memory.last_lesson, held).taught
        self.lessons: Sequence[Lesson] = [one for one in memory.lessons() if one.number not in held]
        self.untaught: Ranker = ViewRanker(self._view, self._vectors)
        self.traffic: Sequence[str] = memory.traffic()

    @property
    def documents(self) -> int:
        return len(self._memory)

    def learn(self, without: Iterable[int]) -> Ranker:
        overlays = self._memory.propose(without).overlays
        return ViewRanker(View(self._view.retrievers, self._view.fusion, overlays), self._vectors)


@dataclass(frozen=True, slots=True)
class ViewRanker:
    view: View
    vectors: Mapping[str, Any]
    """Of taught questions, where the caller brings them."""

    def rank(self, query: str, k: int) -> Ranking:
        return self.view.rank(query, k, None, self.vectors.get(query))


class LayerSubject:
    """The search function is not asked: what it returned for taught questions is kept. Rankings are those that the
    owner sees."""

    traffic: Sequence[str] = ()

    def __init__(self, layer: Layer) -> None:
        self._publisher, self._ledger = layer.publisher, layer.ledger
        for one in self._publisher.comparisons:
            one.keep_nothing()
        self._up_to = self._ledger.lessons.last
        held = self._ledger.lessons.find_held()
        unasked = self._publisher.find_unasked(self._up_to, held)
        self._omitted = held | unasked
        known = [one for one in layer.lessons() if one.number <= self._up_to]
        self.lessons: Sequence[Lesson] = [one for one in known if one.number not in self._omitted]
        self.unasked = len({one.query for one in known if one.number in unasked})
        self.taught = self._publisher.read_lessons(self._up_to, self._omitted)
        pools = self._publisher.pools.find(self.taught.queries)
        self._hits = {query: read_hits(pool, self._ledger) for query, pool in pools.items()}
        self.untaught: Ranker = PoolRanker(self._hits, self._ledger, None)

    @property
    def documents(self) -> int:
        return len(self._ledger.documents)

    def learn(self, without: Iterable[int]) -> Ranker:
        return PoolRanker(self._hits, self._ledger, self._publisher.draft(self._up_to, self._omitted.union(without)))


@dataclass(frozen=True, slots=True)
class PoolRanker:
    hits: Mapping[str, Sequence[Hit]]
    """What the search function returned for each question."""
    ledger: Ledger
    learned: Learned | None

    def rank(self, query: str, k: int) -> Ranking:
        hits = self.hits[query]
        ids = [hit.id for hit in hits[:k]] if self.learned is None else rank_kept(self.learned, query, hits, k)
        numbers = self.ledger.documents.find(ids)
        found = np.array([numbers[id] for id in ids], np.int64)
        return Ranking(found, 1 / np.arange(1, len(found) + 1))
