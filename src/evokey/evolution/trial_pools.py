"""What the queries of a trial find untaught: as they are asked, in other words, or through a lens. Without a search.

A query's own pool was found when its lesson came. Asked in other words or through a lens, it may find documents beyond
that pool. A sample of the collection stands for these, each of its documents for as many as it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.folds import sample_numbers
from evokey.evolution.pools import POOL_DEPTH, rescore
from evokey.scoring.block import NO_NUMBERS, Keys
from evokey.search.lens import Lens, LensId
from evokey.search.overlay import Touched
from evokey.search.retriever import Retriever
from evokey.search.rewording import Rewording
from evokey.types import Numbers, Ranking, Scores

MOST_COPIES = POOL_DEPTH
NUMBER_STRIDE = 128
"""The made-up numbers of one document lie within this span; it is more than those."""
SAMPLE = 2_048
"""Documents of a sample, at most."""


class CollectionSample:
    """Some documents, each of which stands for several."""

    def __init__(self, documents: Numbers, total: int) -> None:
        """total: how many documents they stand for."""
        self.documents, self._total = documents, total
        share = total / max(len(documents), 1)
        chance = (documents * 0.6180339887498949) % 1  # the same for the same number
        self._copies = np.minimum(np.floor(share + chance), MOST_COPIES).astype(np.int64)
        """How many documents each of them stands for."""

    @classmethod
    def of(cls, retriever: Retriever) -> CollectionSample:
        return cls(sample_numbers(retriever.documents, SAMPLE), len(retriever.documents))

    def leave_out(self, touched: Numbers) -> CollectionSample:
        """For the untouched documents alone."""
        return CollectionSample(np.setdiff1d(self.documents, touched), max(self._total - len(touched), 0))

    def repeat(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """These documents and those they stand for, by made-up numbers; and the place of each."""
        copies = self._copies[places]
        repeated = np.repeat(places, copies)
        ordinal = np.arange(len(repeated)) - np.repeat(np.cumsum(copies) - copies, copies)
        numbers = self.documents[repeated]
        return np.where(ordinal, -(numbers * NUMBER_STRIDE + ordinal), numbers), repeated


class TrialPools:
    """By query: its untaught ranking."""

    rescored: ClassVar[frozenset[str]] = frozenset({"dense", "sparse"})
    """Kinds whose keys are scored for many questions at a time, beside a sample."""

    def __init__(
        self,
        retriever: Retriever,
        queries: Mapping[str, Mapping[int, float]],
        ask: Callable[[str], Any],
        known: Mapping[str, Ranking],
        reworded: Mapping[str, Rewording],
        lenses: Mapping[LensId, Lens],
        sample: CollectionSample | None,
        without: Numbers | None = None,
    ) -> None:
        """queries: with the documents that are right for each. ask: a query as a question. known: the pools of queries
        as they are asked. reworded: for each query that asks a taught one in other words, how. without: search the
        corpus, leaving these documents out, for what a sample stands for elsewhere."""
        self._retriever, self._queries, self._ask, self._known = retriever, queries, ask, known
        self._reworded, self._lenses, self._without = reworded, lenses, without
        self._sample = sample if retriever.kind in self.rescored else None
        self._own: dict[str, Ranking] = {}
        self._by_lens: dict[LensId, dict[str, Ranking]] = {}
        self._turned: dict[LensId, Mapping[str, Any]] = {}
        self._laid: dict[str, tuple[Numbers, NDArray[np.integer[Any]]]] = {}

    def get(self, query: str, lens: LensId | None) -> Ranking:
        if lens is None or lens not in self._lenses or not len(self._find(query)):
            return self._get_own(query)
        if lens not in self._by_lens:
            self._by_lens[lens] = self._order_by_lens(lens)
        found = self._by_lens[lens].get(query)
        return self._get_own(query) if found is None else found  # the lens does not move it

    def _get_own(self, query: str) -> Ranking:
        """Without a lens."""
        if self._without is not None and len(self._find(query)) >= POOL_DEPTH:
            if query not in self._own:
                self._own[query] = self._search(self._ask(query))
            return self._own[query]
        if query not in self._reworded:
            return self._find(query)
        if query not in self._own:
            some = [one for one in self._queries if one in self._reworded]
            self._own.update(self._reorder({one: self._ask(one) for one in some}))
        return self._own[query]

    def _find(self, query: str) -> Ranking:
        """The pool of a query; in other words, of the taught one."""
        changed = self._reworded.get(query)
        return self._known[query if changed is None else changed.query]

    def turn(self, lens: LensId) -> Mapping[str, Any]:
        """All queries as a lens turns them."""
        if lens not in self._turned:
            self._turned[lens] = {query: self._lenses[lens].turn(self._ask(query)) for query in self._queries}
        return self._turned[lens]

    def _order_by_lens(self, lens: LensId) -> dict[str, Ranking]:
        """The pools of all queries that a lens moves."""
        turned = self.turn(lens).items()
        moved = {query: one for query, one in turned if one is not self._ask(query) and len(self._find(query))}
        if self._without is not None:
            return {query: self._search(one) for query, one in moved.items()}
        return self._reorder(moved)

    def _search(self, question: Any) -> Ranking:
        """The best untouched documents of the corpus: touched ones may all fall behind documents outside the pool."""
        (found,) = self._retriever.base.search(
            [question], POOL_DEPTH, without=NO_NUMBERS if self._without is None else self._without
        )
        return found.ranking

    def _reorder(self, questions: Mapping[str, Any]) -> dict[str, Ranking]:
        """The pool of each query and the sample, as the question orders them."""
        if not questions:
            return {}
        if self._retriever.kind not in self.rescored:
            return {query: self._rescore(query, question) for query, question in questions.items()}
        block = self._rows.block
        table = np.asarray(self._touched.best(block.total(block.table(list(questions.values())))), np.float64)
        others = np.zeros((len(table), 0)) if self._sample is None else table[:, self._sampled]
        found = zip(questions, table, others, strict=True)
        return {query: self._merge(query, scores, sampled) for query, scores, sampled in found}

    def _rescore(self, query: str, question: Any) -> Ranking:
        keys = self._retriever.base.fetch(self._find(query).numbers)
        (found,) = rescore(keys, [question])
        return _above(found.numbers, found.scores, float(keys.block.floor))

    def _merge(self, query: str, scores: Scores, sampled: Scores) -> Ranking:
        """scores: of all documents that are looked at; sampled: of those of the sample."""
        pool, places = self._lay(query)
        own = scores[places]
        found = _above(pool, own, self._floor)
        lowest = found.scores[-1] if len(found) >= POOL_DEPTH else self._floor
        beyond = np.flatnonzero(sampled > lowest)
        if self._sample is None or not len(beyond):
            return found
        known = np.concatenate([pool, np.array(list(self._queries[query]), np.int64)])
        beyond = beyond[~np.isin(self._sample.documents[beyond], known)]
        numbers, places = self._sample.repeat(beyond)
        both = np.concatenate([pool, numbers]), np.concatenate([own, sampled[places]])
        return _above(*both, self._floor, POOL_DEPTH)

    def _lay(self, query: str) -> tuple[Numbers, NDArray[np.integer[Any]]]:
        """The documents of a query's pool, and their places among all."""
        name = query if query not in self._reworded else self._reworded[query].query
        if name not in self._laid:
            pool = self._known[name].numbers
            self._laid[name] = pool, self._places(pool)
        return self._laid[name]

    @cached_property
    def _floor(self) -> float:
        return float(self._rows.block.floor)

    @cached_property
    def _rows(self) -> Keys:
        """The keys of all pools and of the sample."""
        numbers = [self._find(query).numbers for query in self._queries]
        if self._sample is not None:
            numbers.append(self._sample.documents)
        found: Keys = self._retriever.base.fetch(np.unique(np.concatenate([NO_NUMBERS, *numbers])))
        return found

    @cached_property
    def _sampled(self) -> NDArray[np.integer[Any]]:
        return self._places(NO_NUMBERS if self._sample is None else self._sample.documents)

    @cached_property
    def _touched(self) -> Touched:
        return Touched.of(self._rows.documents, self._rows.sizes)

    def _places(self, numbers: Numbers) -> NDArray[np.integer[Any]]:
        return np.searchsorted(self._touched.documents, numbers)


def _above(numbers: Numbers, scores: Scores, floor: float, depth: int | None = None) -> Ranking:
    """The best first, as far as they score above the floor."""
    order = np.lexsort((numbers, -scores))
    order = order[scores[order] > floor][:depth]
    return Ranking(numbers[order], scores[order])
