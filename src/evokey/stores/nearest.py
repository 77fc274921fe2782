"""One state of the store "ann": most segments are searched by their graph, the newest rows one and all.

Graphs only propose rows: these are scored by themselves, as in every store, so that a score has the same bits whoever
has found it. A filter that lets few documents through is not put to the graphs: those documents are scored one and all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.once import cached_property
from evokey.scoring.block import NO_NUMBERS, Found
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.stores.flat import FlatRows
from evokey.stores.graph import MEASURED_DEPTH, ROUNDING, selector
from evokey.stores.rows import Segment
from evokey.types import Numbers, Ranking

SPARE = 10
"""Rows that are looked for beyond those asked for: 16-bit numbers may rank neighbours wrongly."""
DEPTH = 2
"""How many times as many nodes as rows asked for are kept in view, at the least."""
GATHERED = 12
"""A row that is fetched and scored costs so much less than a node that a graph keeps in view (measured)."""
ATTEMPTS, WIDER = 3, 4
"""How often a search is made again that finds too little, and how much wider each time."""
MANY = 20_000
"""From so many documents on that are left out because they have learned, the best of them are found by the graphs, too:
scoring them one and all takes longer (measured)."""
REMEMBERED = 8
"""Filters whose rows are remembered: callers ask again and again with the same few."""
Dense = Segment[DenseBlock]


@dataclass(frozen=True)
class Allowed:
    """Which rows a search may find."""

    without: Numbers
    within: Numbers | None
    """As they were asked for: the same arrays mean the same rows."""
    mask: NDArray[np.bool_]
    starts: Numbers

    @cached_property
    def count(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def rows(self) -> Numbers:
        return np.flatnonzero(self.mask)

    @cached_property
    def selectors(self) -> list[Any]:
        """For the graph of each segment."""
        ends = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return [selector(self.mask[start:end]) for start, end in ends]


class AnnRows(FlatRows):
    @cached_property
    def _remembered(self) -> list[Allowed]:
        return []

    @cached_property
    def has_graph(self) -> bool:
        return any(segment.graph is not None for segment in self.segments)

    @property
    def width(self) -> int:
        """The greatest of the widths of the graphs."""
        return max((segment.graph.width for segment in self.segments if segment.graph is not None), default=0)

    def _search(self, question: DenseQuestion, k: int, without: Numbers, within: Numbers | None) -> Found:
        if within is None and len(without) >= MANY and self.has_graph and not self.several:
            whole = self._search_whole(question, k, without)
            if whole is not None:
                return whole
        allowed = self._allow(without, within)
        every, wanted = len(self.owners), self._rows_for(k)
        count = every if allowed is None else allowed.count
        if not self.has_graph or count <= DEPTH * wanted or count * count <= GATHERED * self.width * every:
            return self._search_all(question, k, allowed)
        found = self._search_graphs(question, k, wanted, allowed)
        return self._search_all(question, k, allowed) if found is None else Found(found)

    def _search_whole(self, question: DenseQuestion, k: int, without: Numbers) -> Found | None:
        """Leave many documents out of what the graphs find, rather than out of the search: so the best of them are
        known, too, and a bound for all others. None where too little is left."""
        allowed, wanted = self._allow(NO_NUMBERS, None), WIDER * self._rows_for(k)
        for _ in range(ATTEMPTS):
            if wanted >= len(self.owners) // 2:
                return None
            rows = self._propose(question, wanted, 1.0, allowed)
            scores, documents = self._score(question, rows), self.owners[rows]
            at = np.minimum(np.searchsorted(without, documents), len(without) - 1)
            left_out = without[at] == documents
            if int((~left_out).sum()) >= k:
                base = np.full(len(without), -np.inf, scores.dtype)
                base[at[left_out]] = scores[left_out]
                best = _order(documents[~left_out], scores[~left_out], k)
                return Found(best, base, self._bound(rows, scores))
            wanted *= WIDER
        return None

    def _bound(self, rows: Numbers, scores: NDArray[np.float32]) -> float:
        """What no row scores more than that was not proposed."""
        parts = self.by_segment(rows) if len(self.segments) > 1 else [(self.segments[0], slice(None), rows)]
        return max(float(scores[at].min()) for _, at, _ in parts) + ROUNDING

    def _rows_for(self, k: int) -> int:
        """How many rows it takes to find so many documents, mostly."""
        return SPARE + (-(-k * len(self.owners) // max(len(self.documents), 1)) if self.several else k)

    def _search_all(self, question: DenseQuestion, k: int, allowed: Allowed | None) -> Found:
        """One and all: those that are allowed where these are few, else all in the order of memory."""
        if allowed is None:
            return super()._search(question, k, NO_NUMBERS, None)
        if 4 * allowed.count < len(self.owners):
            return Found(self._rank(question, allowed.rows, k))
        return super()._search(question, k, allowed.without, allowed.within)

    def _search_graphs(self, question: DenseQuestion, k: int, wanted: int, allowed: Allowed | None) -> Ranking | None:
        """None where too little was found: too many of the nearest rows are not allowed."""
        count = len(self.owners) if allowed is None else allowed.count
        widened = len(self.owners) / count
        for _ in range(ATTEMPTS):
            rows = self._propose(question, min(wanted, count), widened, allowed)
            best = self._rank(question, rows, k)
            if len(best) == k:
                return best
            wanted, widened = WIDER * wanted, WIDER * widened
        return None

    def _propose(self, question: DenseQuestion, wanted: int, widened: float, allowed: Allowed | None) -> Numbers:
        """Rows that may be among the best."""
        found = []
        for at, segment in enumerate(self.segments):
            start, end = self.starts[at : at + 2].tolist()
            if segment.graph is None:
                rows = _best_of(segment, question, wanted, None if allowed is None else allowed.mask[start:end])
            else:
                width = round(max(segment.graph.width, DEPTH * wanted) * widened)
                selected = None if allowed is None else allowed.selectors[at]
                rows = segment.graph.search(question.vector, min(wanted, len(segment.owners)), width, selected)
            found.append(rows + start)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _rank(self, question: DenseQuestion, rows: Numbers, k: int) -> Ranking:
        """The k best documents of these rows, by these."""
        scores, documents = self._score(question, rows), self.owners[rows]
        order = np.lexsort((documents, -scores))
        if self.several:
            _, first = np.unique(documents[order], return_index=True)
            order = order[np.sort(first)]
        order = order[:k]
        return Ranking(documents[order], scores[order].astype(np.float64))

    def _score(self, question: DenseQuestion, rows: Numbers) -> NDArray[np.float32]:
        if len(self.segments) == 1:
            return self.segments[0].block.take(rows).likeness(question)
        scores = np.empty(len(rows), np.float32)
        for segment, at, inside in self.by_segment(rows):
            scores[at] = segment.block.take(inside).likeness(question)
        return scores

    def _allow(self, without: Numbers, within: Numbers | None) -> Allowed | None:
        """None: every row may be found."""
        if within is None and not len(without) and not len(self.dead_places):
            return None
        for one in self._remembered:
            if one.within is within and (one.without is without or len(one.without) == len(without) == 0):
                return one
        made = Allowed(without, within, self._mask(without, within), self.starts)
        self._remembered.append(made)
        del self._remembered[:-REMEMBERED]
        return made

    def _mask(self, without: Numbers, within: Numbers | None) -> NDArray[np.bool_]:
        mask = np.full(len(self.owners), within is None)
        if within is None:
            mask[self.dead_rows] = False
        else:
            mask[self.of(within[self.places(within) >= 0])] = True
        mask[self.of(without[self.places(without) >= 0])] = False
        return mask

    def recall(self, questions: Sequence[DenseQuestion]) -> float:
        """Of the ten best documents for each of these questions, the share that is found."""
        found = wanted = 0
        for question in questions:
            right = super()._search(question, MEASURED_DEPTH, NO_NUMBERS, None).ranking
            best = self.search([question], MEASURED_DEPTH)[0].ranking
            found += int((best.scores >= right.scores.min(initial=np.inf)).sum())
            wanted += len(right)
        return found / wanted if wanted else 1.0


def _order(documents: Numbers, scores: NDArray[np.float32], k: int) -> Ranking:
    order = np.lexsort((documents, -scores))[:k]
    return Ranking(documents[order], scores[order].astype(np.float64))


def _best_of(segment: Dense, question: DenseQuestion, wanted: int, mask: NDArray[np.bool_] | None) -> Numbers:
    """The best rows of a segment without a graph."""
    scores = segment.block.likeness(question)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    best = np.argpartition(scores, -wanted)[-wanted:] if wanted < len(scores) else np.arange(len(scores))
    return best[scores[best] > -np.inf]
