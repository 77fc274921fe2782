"""Evidence → weights: how strongly each taught text pulls each row of a document's key, for one retriever.

A query that credits n documents with grade g gives each ω = g·n^−β; its expansion units together weigh η·ω, shared by
how well each unit finds the document; a unit that finds it less than half as well as the best one is dropped.
αᵢₑ = ω / (Σω + c): shrunk by c, the median mass of a taught row, so that a document seen once moves little.
Where a document has several rows (chunks), a text is credited to the row it matches best.

Documents that somebody named wrong for a query may be pushed away from it, by γ Σ ω f(q) / (Σω + c′): never by more
than γ, however many say so. A document that nobody judged is never pushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from evokey.evolution.evidence import Taught
from evokey.evolution.pairs import Pairs, paired
from evokey.search.lens import Lens
from evokey.search.overlay import Overlay, Touched
from evokey.search.retriever import Retriever
from evokey.stores.embedded import Block, ordinals
from evokey.stores.flat import DenseBlock
from evokey.types import Choice, Numbers, Scores, Vectors


class Evidence(NamedTuple):
    weights: sparse.csr_array
    """α"""
    total: Scores
    """Σω + c of each row."""


class Push(NamedTuple):
    """What is against the rows that were wrong."""

    weights: sparse.csr_array
    """ω / (Σω + c′)"""
    rows: Numbers
    vectors: Vectors
    """N = Σ of the weighted texts, of these rows; none where keys are not normalised."""


class Moments(NamedTuple):
    """How what was taught lies to the keys, row by row: with it the length of a moved key is known for every step."""

    way: tuple[float, float]
    """β and η."""
    total: Scores
    along: Scores
    """k⁰·V"""
    square: Scores
    """V·V"""


class Sums(NamedTuple):
    vectors: Vectors
    along: Scores
    """Times the key."""
    square: Scores
    """Times itself."""


@dataclass(frozen=True)
class Attribution:
    """Who was taught what, for one retriever: pairs of a touched document's row and a text."""

    touched: Touched
    base: Block[Any]
    """The base keys of the documents."""
    texts: tuple[str, ...]
    block: Block[Any]
    """The texts as rows."""
    words: Sequence[frozenset[str]]
    """The words of each text, where the retriever goes by words."""
    pairs: Pairs
    wrong: Pairs
    """Who was wrong for what, and how wrong: grades are of that."""
    whole: Attribution | None = None
    """What this is a part of, if it is one: the same documents and texts, with fewer pairs."""
    kept: Numbers | None = None
    """Which of the whole's pairs these are."""
    missing: Pairs | None = None
    """The pairs that the whole has and this part has not."""

    def without(self, queries: frozenset[str]) -> Self:
        """What the others have taught, among the same documents and texts: some of them have learned nothing then."""
        theirs = np.array([text in queries for text in self.texts], bool)
        gone, wrong = theirs[self.pairs.queries], self.wrong.where(~theirs[self.wrong.queries])
        kept, missing = np.flatnonzero(~gone), self.pairs.where(gone)
        return replace(self, pairs=self.pairs.where(kept), wrong=wrong, whole=self, kept=kept, missing=missing)

    def only(self, queries: frozenset[str]) -> Self:
        """What these queries alone have taught."""
        asked = np.array([text in queries for text in self.texts], bool)
        return self.having(*(pairs.where(asked[pairs.queries]) for pairs in (self.pairs, self.wrong)))

    def having(self, pairs: Pairs, wrong: Pairs) -> Self:
        """These pairs alone, with the documents and texts that they need."""
        columns = np.unique(np.concatenate([pairs.columns, pairs.queries, wrong.columns]))
        sizes = np.diff(self.touched.starts)
        places = np.unique(self._places(pairs.joined(wrong)))
        rows = np.repeat(self.touched.starts[places], sizes[places]) + ordinals(sizes[places])
        return type(self)(
            Touched.of(self.documents[places], sizes[places]),
            self.base.take(rows),
            tuple(self.texts[column] for column in columns),
            self.block.take(columns),
            [self.words[column] for column in columns],
            pairs.renumbered(rows, columns),
            wrong.renumbered(rows, columns),
        )

    @property
    def documents(self) -> Numbers:
        return self.touched.documents

    @property
    def learners(self) -> Numbers:
        """The documents that have learned anything."""
        learned = np.zeros(len(self.documents), bool)
        learned[self._places(self.pairs)] = True
        return self.documents[learned]

    def _places(self, pairs: Pairs) -> Numbers:
        """The document (its place among the touched ones) of each pair."""
        several = self.touched.several
        return np.searchsorted(self.touched.starts, pairs.rows, side="right") - 1 if several else pairs.rows

    @cached_property
    def has_units(self) -> bool:
        return bool((self.pairs.shares > 0).any())

    def weights(self, spread: float, units: float) -> sparse.csr_array:
        """α for one β and η. Pairs without weight are left out: they are no recall rows either."""
        return self.evidence(spread, units).weights

    def evidence(self, spread: float, units: float) -> Evidence:
        omega, pairs, shape = self._weighed(spread, units), self.pairs, (len(self.base), len(self.texts))
        if self.has_units:
            used = omega > 0
            omega, pairs = omega[used], pairs.where(used)
        matrix = sparse.csr_array((omega, pairs.columns, _starts(pairs.rows, len(self.base))), shape)
        if self.has_units:
            matrix.sum_duplicates()  # a unit that two queries brought
        total = self.total(matrix)
        return Evidence(_shared(matrix, total), total)

    def _weighed(self, spread: float, units: float) -> Scores:
        """What all pairs weigh. It is the same in a part as in the whole."""
        if self.whole is not None and self.kept is not None:
            return self.whole._weighed(spread, units).take(self.kept)
        key = (spread, units)
        if key not in self._omegas:
            self._omegas[key] = self._omega(self.pairs, *key)
        return self._omegas[key]

    def _omega(self, pairs: Pairs, spread: float, units: float) -> Scores:
        """What each pair weighs."""
        counts = np.arange(1, pairs.credited.max(initial=0) + 1) ** (-spread)  # few differ, and powers are slow
        return np.asarray(pairs.grades * counts[pairs.credited.astype(np.int64) - 1] * self.say(pairs, units))

    def total(self, matrix: sparse.csr_array) -> Scores:
        """Σω + c of each row; 1 where nothing was taught."""
        mass = np.zeros(matrix.shape[0])
        taught = np.flatnonzero(np.diff(matrix.indptr))
        if len(taught):
            mass[taught] = np.add.reduceat(matrix.data, matrix.indptr[taught])
            mass[taught] += self.shrinkage(mass[taught])
        return np.where(mass > 0, mass, 1.0)

    def say(self, pairs: Pairs, units: float) -> Scores:
        """What each pair has to say for itself: a query 1, its units η together."""
        return np.where(pairs.shares > 0, units * pairs.shares, 1.0)

    def shrinkage(self, mass: Scores) -> float:
        """c: what is added to the mass of every taught row."""
        return float(np.median(mass))

    @cached_property
    def push(self) -> Push | None:
        """What is against the rows that were wrong; None if none was. Their own median mass shrinks it."""
        pairs = self.wrong
        if not len(pairs.rows):
            return None
        shape = (len(self.base), len(self.texts))
        starts = np.searchsorted(pairs.rows, np.arange(len(self.base) + 1))
        matrix = sparse.csr_array((pairs.grades, pairs.columns, starts), shape)
        weights = _shared(matrix, self.total(matrix))
        rows = np.unique(pairs.rows)
        if not isinstance(self.block, DenseBlock):
            return Push(weights, rows, np.zeros((0, 0), np.float32))
        return Push(weights, rows, np.asarray(weights[rows] @ self.block.vectors.astype(np.float64)))

    def moments(self, spread: float, units: float, total: Scores) -> Moments | None:
        """None where keys are not normalised: sparse ones."""
        if not isinstance(self.base, DenseBlock) or not len(self.base):
            return None
        sums = (self.whole or self)._sums_of(spread, units)
        along, square = sums.along.copy(), sums.square.copy()
        if self.missing is not None:  # what the whole has, less what this part has not
            missing = self._sum(self.missing, self._omega(self.missing, spread, units))
            along -= np.vecdot(self.base.vectors, missing)
            square += np.vecdot(missing, missing) - 2 * np.vecdot(sums.vectors, missing)
        return Moments((spread, units), total, along / total, square / total**2)

    def norms(self, step: float, moments: Moments | None, demotion: float = 0.0) -> Scores:
        """ν: the length of k⁰ + λV − γN before it is brought back to 1."""
        if moments is None or not (step or demotion):
            return np.ones(len(self.base))
        square = 1 + 2 * step * moments.along + step**2 * moments.square
        if demotion and self.push is not None:
            along, own, cross = self._against(self.push, moments)
            square = square - 2 * demotion * along + demotion**2 * own - 2 * step * demotion * cross
        return np.sqrt(np.maximum(square, 1e-12))

    def _against(self, push: Push, moments: Moments) -> tuple[Scores, Scores, Scores]:
        """k⁰·N, N·N and V·N of all rows."""
        assert isinstance(self.base, DenseBlock)
        if moments.way not in self._pushes:
            along, own, cross = np.zeros((3, len(self.base)))
            along[push.rows] = np.vecdot(self.base.vectors[push.rows], push.vectors)
            own[push.rows] = np.vecdot(push.vectors, push.vectors)
            some = np.flatnonzero(np.isin(self.pairs.rows, push.rows))
            vectors = self._sum(self.pairs.where(some), self._weighed(*moments.way).take(some))
            cross[push.rows] = np.vecdot(vectors[push.rows], push.vectors) / moments.total[push.rows]
            self._pushes[moments.way] = along, own, cross
        return self._pushes[moments.way]

    def _sums_of(self, spread: float, units: float) -> Sums:
        """Σ ω e of each row, and how it lies to the key."""
        assert isinstance(self.base, DenseBlock)
        key = (spread, units)
        if key not in self._sums:
            vectors = self._sum(self.pairs, self._weighed(*key))
            self._sums[key] = Sums(vectors, np.vecdot(self.base.vectors, vectors), np.vecdot(vectors, vectors))
        return self._sums[key]

    def _sum(self, pairs: Pairs, omega: Scores) -> Vectors:
        """Σ ω e of each row."""
        assert isinstance(self.block, DenseBlock)
        parts = omega.astype(np.float32), pairs.columns, _starts(pairs.rows, len(self.base))
        matrix = sparse.csr_array(parts, (len(self.base), len(self.texts)))
        return np.asarray(matrix @ self.block.vectors)

    @cached_property
    def _omegas(self) -> dict[tuple[float, float], Scores]:
        return {}

    @cached_property
    def _sums(self) -> dict[tuple[float, float], Sums]:
        return {}

    @cached_property
    def _pushes(self) -> dict[tuple[float, float], tuple[Scores, Scores, Scores]]:
        return {}

    def learned(self) -> dict[str, int]:
        """Every taught word, and how many documents were taught with it."""
        words = sorted({word for said in self.words for word in said})
        if not words:
            return {}
        place = {word: index for index, word in enumerate(words)}
        said = sparse.csr_array(
            (
                np.ones(sum(map(len, self.words)), np.int32),
                np.array([place[word] for spoken in self.words for word in spoken], np.int64),
                np.cumsum([0, *map(len, self.words)]),
            ),
            (len(self.texts), len(words)),
        )
        pairs = self.pairs
        shape = (len(self.documents), len(self.texts))
        taught = sparse.csr_array((np.ones(len(pairs.rows), np.int32), (self._places(pairs), pairs.columns)), shape)
        counts = np.bincount((taught @ said).indices, minlength=len(words))
        return {word: count for word, count in zip(words, counts.tolist(), strict=True) if count}

    def overlay(self, choice: Choice, lens: Lens | None = None) -> Overlay:
        if not choice.demotion and len(self.wrong.rows):  # who was wrong and nothing else has not been touched
            return self.having(self.pairs, self.wrong.where(np.zeros(len(self.wrong.rows), bool))).overlay(choice, lens)
        weights, total = self.evidence(choice.spread, choice.unit_weight)
        moments = self.moments(choice.spread, choice.unit_weight, total) if choice.step or choice.demotion else None
        norms = self.norms(choice.step, moments, choice.demotion)
        against = None
        if choice.demotion and self.push is not None:
            against = sparse.csr_array(choice.step * weights - choice.demotion * self.push.weights)
        return Overlay(self.touched, self.texts, self.block, weights, norms, choice, self.learned(), lens, against)


def _starts(rows: Numbers, count: int) -> Numbers:
    """Where each of so many rows begins among these, which are in order, and the end."""
    return np.append(0, np.cumsum(np.bincount(rows, minlength=count)))


def _shared(matrix: sparse.csr_array, total: Scores) -> sparse.csr_array:
    """Weights as shares of their rows' totals."""
    shares = matrix.data / np.repeat(total, np.diff(matrix.indptr))
    return sparse.csr_array((shares, matrix.indices, matrix.indptr), matrix.shape)


def attribute(retriever: Retriever, lessons: Taught) -> Attribution:
    """Pair the documents that have a row here with the texts they were taught."""
    judged = chain(lessons.grades.values(), lessons.wrong.values())
    numbers = np.array(sorted(set[int]().union(*judged)), np.int64)
    rows = retriever.store.rows
    documents = rows.having(numbers)
    touched = Touched.of(documents, rows.sizes(documents))
    base = retriever.store.take(documents)
    units = (unit for units in lessons.units.values() for unit in units)
    texts = tuple(sorted({*lessons.queries, *units, *lessons.wrong}))
    pairs, wrong = paired(retriever, lessons, touched, base, texts)
    words = [retriever.words(text) for text in texts]
    return Attribution(touched, base, texts, retriever.texts(texts), words, pairs, wrong)
