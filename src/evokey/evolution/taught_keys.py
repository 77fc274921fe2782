"""Taught questions kept as keys: which texts are keys of which documents, and which documents they bring first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.ndcg import CUTOFF
from evokey.evolution.tables import Mask, Table, best_columns, nonzero
from evokey.scoring.block import ordinals
from evokey.search.overlay import Touched, greatest
from evokey.types import Numbers

Places = NDArray[np.integer[Any]]
FIRST_TEXTS = 32
"""Taught texts that are looked at first."""


@dataclass(frozen=True, slots=True)
class TaughtKeys:
    starts: Places
    texts: Places
    """The texts of each document, from its start to the next."""
    firsts: Places
    owners: Places
    """The documents of each text, in order, from its first to the next."""

    @classmethod
    def of(cls, weights: sparse.csr_array, touched: Touched) -> TaughtKeys:
        by_text = weights.tocsc()
        rows = by_text.indices
        owners = np.searchsorted(touched.starts, rows, side="right") - 1 if touched.several else rows
        return cls(weights.indptr[touched.starts], weights.indices, by_text.indptr, owners)

    def scores(self, totals: Table, queries: Numbers, documents: Numbers) -> Table:
        """The best text of a document for a query, for each of these pairs; −inf where it has none."""
        sizes = self.starts[documents + 1] - self.starts[documents]
        best, some = np.full(len(queries), -np.inf, np.float32), np.flatnonzero(sizes)
        if len(some):
            sizes = sizes[some]
            texts = self.texts[np.repeat(self.starts[documents[some]], sizes) + ordinals(sizes)]
            ends = np.cumsum(sizes)
            scores = totals.take(np.repeat(queries[some] * totals.shape[1], sizes) + texts)
            best[some] = np.maximum.reduceat(scores, ends - sizes)
        return best

    def all_scores(self, totals: Table) -> Table:
        """The same, of all documents for all queries."""
        return greatest(totals[:, self.texts], self.starts)

    def select(self, selected: Mask, totals: Table, relevant: Table, least: Table) -> None:
        """Select the ten documents of each query that score best by their taught texts, relevant ones aside, and the
        relevant ones that score no worse: at most ten for each text, and none below the least score of its query."""
        queries, count = np.arange(len(totals)), totals.shape[1]
        for depth in sorted({min(FIRST_TEXTS, count), count}):
            if len(queries):
                queries = queries[self._select(selected, totals, relevant, least, queries, depth)]

    def _select(
        self, selected: Mask, totals: Table, relevant: Table, least: Table, queries: Numbers, depth: int
    ) -> Mask:
        """Look at so many texts, the best first, in steps that grow. Tells for which queries these may not have been
        enough."""
        own = totals[queries]
        texts = best_columns(own, depth)
        scores = np.take_along_axis(own, texts, 1)
        scores = np.where(scores < least[queries, None], -np.inf, scores)
        found, left, start = np.zeros((len(queries), selected.shape[1]), bool), np.ones(len(queries), bool), 0
        while start < depth and left.any():
            stop = min(start + 1 + start // 2, depth)
            rows, places = nonzero(left[:, None] & (scores[:, start:stop] > -np.inf))
            self._mark(selected, found, relevant, queries, rows, texts[rows, start + places])
            if stop < depth:
                worse, enough = scores[:, stop] < scores[:, stop - 1], np.count_nonzero(found, axis=1) >= CUTOFF
                left &= ~(worse & enough) & (scores[:, stop] > -np.inf)
            start = stop
        return left

    def _mark(
        self, selected: Mask, found: Mask, relevant: Table, queries: Numbers, rows: Numbers, texts: Numbers
    ) -> None:
        """Select the first ten documents of each text, relevant and other ones separately: all have its score."""
        sizes = self.firsts[texts + 1] - self.firsts[texts]
        some = np.flatnonzero(sizes)
        rows, texts, sizes = rows[some], texts[some], sizes[some]
        places, rows = ordinals(sizes), np.repeat(rows, sizes)
        documents = self.owners[np.repeat(self.firsts[texts], sizes) + places]
        own = relevant[queries[rows], documents] > 0
        before = np.cumsum(own) - own
        before -= np.repeat(before[places == 0], sizes)
        few = np.where(own, before, places - before) < CUTOFF
        selected[queries[rows[few]], documents[few]] = True
        few &= ~own
        found[rows[few], documents[few]] = True


def select_best(selected: Mask, relevant: Table, totals: Table, variants: Iterable[TaughtKeys]) -> Mask:
    """Those of the selected documents that are among the ten best of their query by their taught texts, in one of the
    variants; relevant documents and others separately. Of equals the first are taken, as in a ranking."""
    queries, columns = nonzero(selected)
    own = relevant[queries, columns] > 0
    found = np.zeros_like(selected)
    for keys in variants:
        order = np.lexsort((columns, -keys.scores(totals, queries, columns), own, queries))
        sizes = np.bincount(2 * queries + own, minlength=2 * len(selected))
        first = order[ordinals(sizes) < CUTOFF]
        found[queries[first], columns[first]] = True
    return found
