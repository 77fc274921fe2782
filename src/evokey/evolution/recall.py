"""Which taught texts recall which documents, and who is recalled best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.judge import DEPTH
from evokey.evolution.tables import Marks, Table, marks, nearest
from evokey.search.overlay import Touched, greatest
from evokey.stores.embedded import ordinals
from evokey.types import Numbers

Places = NDArray[np.integer[Any]]
NEAREST = 32
"""Taught texts that are looked at first."""


@dataclass(frozen=True, slots=True)
class Recall:
    starts: Places
    texts: Places
    """The texts of each document, from its start to the next."""
    firsts: Places
    owners: Places
    """The documents of each text, in order, from its first to the next."""

    @classmethod
    def of(cls, weights: sparse.csr_array, touched: Touched) -> Recall:
        turned = weights.tocsc()
        rows = turned.indices
        owners = np.searchsorted(touched.starts, rows, side="right") - 1 if touched.several else rows
        return cls(weights.indptr[touched.starts], weights.indices, turned.indptr, owners)

    def scores(self, totals: Table, queries: Numbers, documents: Numbers) -> Table:
        """The best text of a document for a query, for each of these pairs; −inf where it has none."""
        sizes = self.starts[documents + 1] - self.starts[documents]
        best, some = np.full(len(queries), -np.inf, np.float32), np.flatnonzero(sizes)
        if len(some):
            sizes = sizes[some]
            texts = self.texts[np.repeat(self.starts[documents[some]], sizes) + ordinals(sizes)]
            ends = np.cumsum(sizes)
            said = totals.take(np.repeat(queries[some] * totals.shape[1], sizes) + texts)
            best[some] = np.maximum.reduceat(said, ends - sizes)
        return best

    def everyone(self, totals: Table) -> Table:
        """The same, of all documents for all queries."""
        return greatest(totals[:, self.texts], self.starts)

    def keep(self, kept: Marks, totals: Table, right: Table, least: Table) -> None:
        """Mark the ten documents that are best recalled for each query, its right ones aside, and those of the right
        ones that are recalled no worse: no more than ten for each text, and none below the least score of its query."""
        queries, count = np.arange(len(totals)), totals.shape[1]
        for depth in sorted({min(NEAREST, count), count}):
            if len(queries):
                queries = queries[self._keep(kept, totals, right, least, queries, depth)]

    def _keep(self, kept: Marks, totals: Table, right: Table, least: Table, queries: Numbers, depth: int) -> Marks:
        """Look at so many texts, nearest first, at ever more at a time. Tells of which queries these may not have been
        enough."""
        said = totals[queries]
        texts = nearest(said, depth)
        scores = np.take_along_axis(said, texts, 1)
        scores = np.where(scores < least[queries, None], -np.inf, scores)
        found, left, start = np.zeros((len(queries), kept.shape[1]), bool), np.ones(len(queries), bool), 0
        while start < depth and left.any():
            stop = min(start + 1 + start // 2, depth)
            rows, places = marks(left[:, None] & (scores[:, start:stop] > -np.inf))
            self._mark(kept, found, right, queries, rows, texts[rows, start + places])
            if stop < depth:
                worse, enough = scores[:, stop] < scores[:, stop - 1], np.count_nonzero(found, axis=1) >= DEPTH
                left &= ~(worse & enough) & (scores[:, stop] > -np.inf)
            start = stop
        return left

    def _mark(self, kept: Marks, found: Marks, right: Table, queries: Numbers, rows: Numbers, texts: Numbers) -> None:
        """Keep the first ten of each text's documents, and of the right ones: by it, all score the same."""
        sizes = self.firsts[texts + 1] - self.firsts[texts]
        some = np.flatnonzero(sizes)
        rows, texts, sizes = rows[some], texts[some], sizes[some]
        places, rows = ordinals(sizes), np.repeat(rows, sizes)
        documents = self.owners[np.repeat(self.firsts[texts], sizes) + places]
        own = right[queries[rows], documents] > 0
        before = np.cumsum(own) - own
        before -= np.repeat(before[places == 0], sizes)
        few = np.where(own, before, places - before) < DEPTH
        kept[queries[rows[few]], documents[few]] = True
        few &= ~own
        found[rows[few], documents[few]] = True


def ahead(kept: Marks, right: Table, totals: Table, recalling: Iterable[Recall]) -> Marks:
    """Those of the marked documents that are among the ten best recalled of their query, by some way to recall; right
    documents and others apart. Of equals the first are ahead: so they are found, too."""
    queries, columns = marks(kept)
    own = right[queries, columns] > 0
    found = np.zeros_like(kept)
    for recall in recalling:
        order = np.lexsort((columns, -recall.scores(totals, queries, columns), own, queries))
        sizes = np.bincount(2 * queries + own, minlength=2 * len(kept))
        first = order[ordinals(sizes) < DEPTH]
        found[queries[first], columns[first]] = True
    return found
