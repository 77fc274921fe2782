"""A lens for keys of words: how much each word of a question counts, by what lessons say of it.

    w ← w · (((h + c·π) / (n + c)) / π)^γ     n: taught queries with the word; h: the sum of the shares of their right
                                              documents that have it; π: Σ h / Σ n over words that any of these has

A word that people ask with and right documents seldom have counts less, one that these nearly always have counts more.
A word that nobody taught with stays as it is, and so does one that no document has: it can only find what was taught.
Taught queries enter by sums alone, kept for each fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

import numpy as np
from scipy import sparse

from evokey.scoring.sparse import SparseQuestion
from evokey.search.lens import LensId
from evokey.types import Numbers, Scores

DOUBT = 8.0
"""c: as many queries as what holds for all words counts for."""


@dataclass(frozen=True)
class WordLens:
    factors: Mapping[str, float]
    """By word: by what its weight is multiplied."""
    queries: Mapping[str, Sequence[str]]
    """By word: the taught queries with it."""

    def turn(self, question: SparseQuestion) -> SparseQuestion:
        get, absent = self.factors.get, question.absent
        factors = [1.0 if term in absent else get(term, 1.0) for term in question.terms]
        if all(factor == 1.0 for factor in factors):
            return question
        idf = tuple(map(mul, question.idf, factors))
        return replace(question, idf=idf, weights=tuple(map(mul, question.counts, idf)))

    def because(self, question: SparseQuestion, most: int) -> list[tuple[str, float]]:
        """The taught queries with most words of a question, and how many."""
        shared = Counter(name for term in question.terms for name in self.queries.get(term, ()))
        first = sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:most]
        return [(name, float(count)) for name, count in first]


class Words:
    """Which words taught queries have, and how far their right documents have these, summed up by folds."""

    def __init__(
        self,
        names: Sequence[str],
        terms: Sequence[str],
        asked: sparse.csr_array,
        right: sparse.csr_array,
        folds: Numbers,
    ) -> None:
        """asked: queries × words, 1 where a query has a word. right: the share of its right documents that has it."""
        self._names, self._terms, self._asked, self._folds = names, terms, asked, folds
        held = asked.multiply(right).tocsr()
        self._sums = {
            fold: (_sum(asked[folds == fold]), _sum(held[folds == fold])) for fold in np.unique(folds).tolist()
        }

    def lenses(self, ids: Sequence[LensId], without: int | None = None) -> Mapping[LensId, WordLens]:
        """These lenses, of all folds or all but one."""
        sums = [sums for fold, sums in self._sums.items() if fold != without]
        seen, held = (sum(parts) for parts in zip(*sums, strict=True))
        if not np.any(held):
            return {}
        usual = held.sum() / seen[held > 0].sum()
        factors, taught = ((held + DOUBT * usual) / (seen + DOUBT)) / usual, np.flatnonzero(seen)
        columns, queries = self._asked.tocsc(), dict[str, Sequence[str]]()
        for at in taught.tolist():
            rows = columns.indices[columns.indptr[at] : columns.indptr[at + 1]].tolist()
            queries[self._terms[at]] = [self._names[row] for row in rows if self._folds[row] != without]
        return {
            one: WordLens({self._terms[at]: float(factors[at] ** one[0]) for at in taught.tolist()}, queries)
            for one in ids
        }


def _sum(table: sparse.csr_array) -> Scores:
    return np.asarray(table.sum(axis=0), np.float64).ravel()
