"""Judgements → weights: how strongly each taught text pulls each row of a document's key, for one retriever.

A query that credits n documents with grade g gives each ω = g·n^−β. Its expansion units together weigh η·ω; a unit's
share depends on how well it finds the document, and a unit that finds it less than half as well as the best is dropped.
αᵢₑ = ω / (Σω + c): shrunk by c, the median mass of a taught row, so that a single lesson moves a key only slightly.
Where a document has several rows (chunks), a text is credited to the row that it matches best.

Documents that were named wrong for a query may be demoted for it, by γ Σ ω f(q) / (Σω + c′): never by more than γ,
however many lessons say so. A document without a verdict is never demoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from evokey.evolution.judgements import Judgements
from evokey.evolution.pairs import Pairing, Pairs
from evokey.scoring.block import Block, ordinals
from evokey.search.gate import NOBODY, Taught
from evokey.search.lens import Lens
from evokey.search.overlay import Overlay, Touched
from evokey.search.retriever import Retriever
from evokey.types import Choice, Numbers, Scores, Vectors

Credit = tuple[float, float, float]
"""β and η: how the credit of a lesson is shared among its documents, and between the query and its units; and the days
after which a lesson counts half (0: it does not lose weight)."""


class RowWeights(NamedTuple):
    weights: sparse.csr_array
    """α: rows × texts."""
    totals: Scores
    """Σω + c of each row."""


class WrongRows(NamedTuple):
    """The rows that were wrong, and what demotes them."""

    weights: sparse.csr_array
    """ω / (Σω + c′)"""
    rows: Numbers
    vectors: Vectors
    """N: the weighted sum of the texts, for each of these rows; empty where keys are not normalised."""


class Moments(NamedTuple):
    """Products of V, the weighted sum of a row's texts, with its key: they give the length of a moved key for every
    step."""

    credit: Credit
    totals: Scores
    along: Scores
    """k⁰·V"""
    square: Scores
    """V·V"""


class Sums(NamedTuple):
    """The unscaled sums of taught texts, row by row."""

    vectors: Vectors
    """Σ ω e"""
    along: Scores
    """Times the key."""
    square: Scores
    """Times itself."""


@dataclass(frozen=True)
class Attribution:
    """Which documents were taught which texts, for one retriever: pairs of a touched document's row and a text."""

    touched: Touched
    base: Block[Any]
    """The base keys of the touched documents."""
    texts: tuple[str, ...]
    block: Block[Any]
    """The texts as rows."""
    words: Sequence[frozenset[str]]
    """The words of each text, if the retriever matches words."""
    pairs: Pairs
    wrong: Pairs
    """The documents that were wrong; the grades say how wrong."""
    whole: Attribution | None = None
    """Set when this is a part of another attribution: the same documents and texts, with fewer pairs."""
    kept: Numbers | None = None
    """The places of these pairs among those of the whole."""
    missing: Pairs | None = None
    """The pairs of the whole that this part does not have."""
    named: frozenset[int] = frozenset()
    """Documents of which lessons name passages."""

    def leave_out(self, queries: frozenset[str]) -> Self:
        """What the other queries taught. Documents and texts stay the same, so some have learned nothing."""
        held_out = np.array([text in queries for text in self.texts], bool)
        gone, wrong = held_out[self.pairs.queries], self.wrong.where(~held_out[self.wrong.queries])
        kept, missing = np.flatnonzero(~gone), self.pairs.where(gone)
        return replace(self, pairs=self.pairs.where(kept), wrong=wrong, whole=self, kept=kept, missing=missing)

    def only(self, queries: frozenset[str]) -> Self:
        """What these queries alone taught."""
        kept = np.array([text in queries for text in self.texts], bool)
        return self.restrict(*(pairs.where(kept[pairs.queries]) for pairs in (self.pairs, self.wrong)))

    def restrict(self, pairs: Pairs, wrong: Pairs) -> Self:
        """These pairs alone, with the documents and texts that they need."""
        columns = np.unique(np.concatenate([pairs.columns, pairs.queries, wrong.columns]))
        sizes = np.diff(self.touched.starts)
        places = np.unique(self._places(pairs.join(wrong)))
        rows = np.repeat(self.touched.starts[places], sizes[places]) + ordinals(sizes[places])
        return type(self)(
            Touched.of(self.documents[places], sizes[places]),
            self.base.take(rows),
            tuple(self.texts[column] for column in columns),
            self.block.take(columns),
            [self.words[column] for column in columns],
            pairs.renumber(rows, columns),
            wrong.renumber(rows, columns),
            named=self.named,
        )

    @property
    def documents(self) -> Numbers:
        return self.touched.documents

    @property
    def learners(self) -> Numbers:
        """The documents that learned anything."""
        learned = np.zeros(len(self.documents), bool)
        learned[self._places(self.pairs)] = True
        return self.documents[learned]

    def _places(self, pairs: Pairs) -> Numbers:
        """The document of each pair, as its place among the touched documents."""
        several = self.touched.several
        return np.searchsorted(self.touched.starts, pairs.rows, side="right") - 1 if several else pairs.rows

    @cached_property
    def has_units(self) -> bool:
        return bool((self.pairs.shares > 0).any())

    @cached_property
    def taught_texts(self) -> Taught:
        """The taught queries (no units) and their documents, for the gate."""
        own = self.pairs.where(self.pairs.shares == 0)
        return Taught.of(own.columns, self._places(own))

    def weights(self, spread: float, units: float) -> sparse.csr_array:
        """α for one β and η. Pairs without weight are left out: their texts are not kept as keys either."""
        return self.row_weights((spread, units, 0.0)).weights

    def row_weights(self, credit: Credit) -> RowWeights:
        omega, pairs, shape = self._omega(credit), self.pairs, (len(self.base), len(self.texts))
        if self.has_units:
            used = omega > 0
            omega, pairs = omega[used], pairs.where(used)
        matrix = sparse.csr_array((omega, pairs.columns, _starts(pairs.rows, len(self.base))), shape)
        if self.has_units:
            matrix.sum_duplicates()  # a unit of two queries
        totals = self.row_totals(matrix)
        return RowWeights(_divide_rows(matrix, totals), totals)

    def _omega(self, credit: Credit) -> Scores:
        """ω of each pair: a part has the same as the whole."""
        if self.whole is not None and self.kept is not None:
            return self.whole._omega(credit).take(self.kept)
        if credit not in self._omegas:
            self._omegas[credit] = self._compute_omega(self.pairs, credit)
        return self._omegas[credit]

    def _compute_omega(self, pairs: Pairs, credit: Credit) -> Scores:
        spread, units, half_life = credit
        powers = np.arange(1, pairs.credited.max(initial=0) + 1) ** (-spread)  # few counts differ, and powers are slow
        omega = pairs.grades * powers[pairs.credited.astype(np.int64) - 1] * self.text_weights(pairs, units)
        return np.asarray(omega * 0.5 ** (pairs.ages / half_life) if half_life else omega)

    def row_totals(self, matrix: sparse.csr_array) -> Scores:
        """Σω + c of each row; 1 where nothing was taught."""
        mass = np.zeros(matrix.shape[0])
        taught = np.flatnonzero(np.diff(matrix.indptr))
        if len(taught):
            mass[taught] = np.add.reduceat(matrix.data, matrix.indptr[taught])
            mass[taught] += self.shrinkage(mass[taught])
        return np.where(mass > 0, mass, 1.0)

    def text_weights(self, pairs: Pairs, units: float) -> Scores:
        """The weight of each text: 1 for a query, η for all its units together."""
        return np.where(pairs.shares > 0, units * pairs.shares, 1.0)

    def shrinkage(self, mass: Scores) -> float:
        """c: the constant added to the mass of every taught row."""
        return float(np.median(mass))

    @cached_property
    def wrong_rows(self) -> WrongRows | None:
        """None if no row was wrong. It is shrunk by the median mass of the rows that were wrong."""
        pairs = self.wrong
        if not len(pairs.rows):
            return None
        shape = (len(self.base), len(self.texts))
        starts = np.searchsorted(pairs.rows, np.arange(len(self.base) + 1))
        matrix = sparse.csr_array((pairs.grades, pairs.columns, starts), shape)
        weights = _divide_rows(matrix, self.row_totals(matrix))
        rows = np.unique(pairs.rows)
        if not self.block.unit:
            return WrongRows(weights, rows, np.zeros((0, 0), np.float32))
        return WrongRows(weights, rows, np.asarray(weights[rows] @ self.block.vectors.astype(np.float64)))

    def moments(self, credit: Credit, totals: Scores) -> Moments | None:
        """None where keys are not normalised (sparse keys)."""
        if not self.base.unit or not len(self.base):
            return None
        sums = (self.whole or self)._row_sums(credit)
        along, square = sums.along.copy(), sums.square.copy()
        if self.missing is not None:  # the sums of the whole, minus those of the missing pairs
            missing = self._sum(self.missing, self._compute_omega(self.missing, credit))
            along -= np.vecdot(self.base.vectors, missing)
            square += np.vecdot(missing, missing) - 2 * np.vecdot(sums.vectors, missing)
        return Moments(credit, totals, along / totals, square / totals**2)

    def norms(self, step: float, moments: Moments | None, demotion: float = 0.0) -> Scores:
        """ν: the length of k⁰ + λV − γN before it is normalised."""
        if moments is None or not (step or demotion):
            return np.ones(len(self.base))
        square = 1 + 2 * step * moments.along + step**2 * moments.square
        if demotion and self.wrong_rows is not None:
            along, own, cross = self._demotion_products(self.wrong_rows, moments)
            square = square - 2 * demotion * along + demotion**2 * own - 2 * step * demotion * cross
        return np.sqrt(np.maximum(square, 1e-12))

    def _demotion_products(self, wrong: WrongRows, moments: Moments) -> tuple[Scores, Scores, Scores]:
        """k⁰·N, N·N and V·N of all rows."""
        if moments.credit not in self._products:
            rows, vectors = wrong.rows, wrong.vectors
            along, own, cross = np.zeros((3, len(self.base)))
            along[rows] = np.vecdot(self.base.vectors[rows], vectors)
            own[rows] = np.vecdot(vectors, vectors)
            some = np.flatnonzero(np.isin(self.pairs.rows, rows))
            sums = self._sum(self.pairs.where(some), self._omega(moments.credit).take(some))
            cross[rows] = np.vecdot(sums[rows], vectors) / moments.totals[rows]
            self._products[moments.credit] = along, own, cross
        return self._products[moments.credit]

    def _row_sums(self, credit: Credit) -> Sums:
        if credit not in self._sums:
            vectors = self._sum(self.pairs, self._omega(credit))
            self._sums[credit] = Sums(vectors, np.vecdot(self.base.vectors, vectors), np.vecdot(vectors, vectors))
        return self._sums[credit]

    def _sum(self, pairs: Pairs, omega: Scores) -> Vectors:
        """Σ ω e of each row."""
        parts = omega.astype(np.float32), pairs.columns, _starts(pairs.rows, len(self.base))
        matrix = sparse.csr_array(parts, (len(self.base), len(self.texts)))
        return np.asarray(matrix @ self.block.vectors)

    @cached_property
    def _omegas(self) -> dict[Credit, Scores]:
        return {}

    @cached_property
    def _sums(self) -> dict[Credit, Sums]:
        return {}

    @cached_property
    def _products(self) -> dict[Credit, tuple[Scores, Scores, Scores]]:
        return {}

    def count_words(self) -> dict[str, int]:
        """Every taught word, and how many documents were taught with it."""
        words = sorted({word for text in self.words for word in text})
        if not words:
            return {}
        place = {word: index for index, word in enumerate(words)}
        occurrences = sparse.csr_array(
            (
                np.ones(sum(map(len, self.words)), np.int32),
                np.array([place[word] for text in self.words for word in text], np.int64),
                np.cumsum([0, *map(len, self.words)]),
            ),
            (len(self.texts), len(words)),
        )
        pairs = self.pairs
        shape = (len(self.documents), len(self.texts))
        taught = sparse.csr_array((np.ones(len(pairs.rows), np.int32), (self._places(pairs), pairs.columns)), shape)
        counts = np.bincount((taught @ occurrences).indices, minlength=len(words))
        return {word: count for word, count in zip(words, counts.tolist(), strict=True) if count}

    def overlay(self, choice: Choice, lens: Lens | None = None) -> Overlay:
        if not choice.demotion and len(self.wrong.rows):  # documents that were only wrong are not touched then
            none = self.wrong.where(np.zeros(len(self.wrong.rows), bool))
            return self.restrict(self.pairs, none).overlay(choice, lens)
        credit = choice.credit
        weights, totals = self.row_weights(credit)
        bent = (choice.step or choice.demotion) and not choice.locality
        moments = self.moments(credit, totals) if bent else None
        norms = self.norms(choice.step, moments, choice.demotion)
        against = None
        if choice.demotion and self.wrong_rows is not None:
            against = sparse.csr_array(choice.step * weights - choice.demotion * self.wrong_rows.weights)
        learned = self.count_words()
        overlay = Overlay(
            self.touched, self.base, self.texts, self.block, weights, norms, choice, learned, lens, against
        )
        known = self.taught_texts if choice.gate_weights else NOBODY
        return replace(overlay, named=self.named, known=known)


def _starts(rows: Numbers, count: int) -> Numbers:
    """Where each of so many rows begins in a sorted list of rows, and the end."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=count)))


def _divide_rows(matrix: sparse.csr_array, totals: Scores) -> sparse.csr_array:
    """Each row divided by its total."""
    shares = matrix.data / np.repeat(totals, np.diff(matrix.indptr))
    return sparse.csr_array((shares, matrix.indices, matrix.indptr), matrix.shape)


def attribute(retriever: Retriever, lessons: Judgements) -> Attribution:
    """Pair the documents that have a row in this retriever with the texts that they were taught."""
    judged = chain(lessons.grades.values(), lessons.wrong.values())
    numbers = np.array(sorted(set[int]().union(*judged)), np.int64)
    keys = retriever.base.fetch(numbers)
    touched, base = Touched.of(keys.documents, keys.sizes), keys.block
    units = (unit for units in lessons.units.values() for unit in units)
    texts = tuple(sorted({*lessons.queries, *units, *lessons.wrong}))
    pairing = Pairing(retriever, lessons, touched, base, texts)
    words = [retriever.words(text) for text in texts]
    named = frozenset(chain.from_iterable(lessons.named.spans.values()))
    pairs = pairing.right(), pairing.wrong()
    return Attribution(touched, base, texts, retriever.texts(texts), words, *pairs, named=named)
