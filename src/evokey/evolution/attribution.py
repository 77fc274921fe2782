"""Evidence → weights: how strongly each taught text pulls each row of a document's key, for one retriever.

A query that credits n documents with grade g gives each ω = g·n^−β; its expansion units together weigh η·ω, shared by
how well each unit finds the document; a unit that finds it less than half as well as the best one is dropped.
αᵢₑ = ω / (Σω + c): shrunk by c, the median mass of a taught row, so that a document seen once moves little.
Where a document has several rows (chunks), a text is credited to the row it matches best.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.evidence import Taught
from evokey.lens import Lens
from evokey.overlay import Overlay, Touched
from evokey.retriever import Retriever
from evokey.stores.embedded import Block, ordinals
from evokey.stores.flat import DenseBlock
from evokey.types import Choice, Numbers, Scores

RESEMBLANCE = 0.5
Moments = tuple[Scores, Scores]
ASKED = 256
"""Texts asked at a time."""


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

    def only(self, queries: frozenset[str]) -> Self:
        """What these queries alone have taught."""
        asked = np.array([text in queries for text in self.texts], bool)
        return self.having(self.pairs.where(asked[self.pairs.queries]))

    def having(self, pairs: Pairs) -> Self:
        """These pairs alone, with the documents and texts that they need."""
        columns = np.unique(np.concatenate([pairs.columns, pairs.queries]))
        sizes = np.diff(self.touched.starts)
        places = np.unique(self._places(pairs))
        rows = np.repeat(self.touched.starts[places], sizes[places]) + ordinals(sizes[places])
        return type(self)(
            Touched.of(self.documents[places], sizes[places]),
            self.base.take(rows),
            tuple(self.texts[column] for column in columns),
            self.block.take(columns),
            [self.words[column] for column in columns],
            pairs.renumbered(rows, columns),
        )

    @property
    def documents(self) -> Numbers:
        return self.touched.documents

    def _places(self, pairs: Pairs) -> Numbers:
        """The document (its place among the touched ones) of each pair."""
        return np.searchsorted(self.touched.starts, pairs.rows, side="right") - 1

    @cached_property
    def has_units(self) -> bool:
        return bool((self.pairs.shares > 0).any())

    def weights(self, spread: float, units: float) -> sparse.csr_array:
        """α for one β and η. Pairs without weight are left out: they are no recall rows either."""
        pairs = self.pairs
        omega = pairs.grades * pairs.credited ** (-spread) * self.say(units)
        used = omega > 0
        shape = (len(self.base), len(self.texts))
        matrix = sparse.coo_array((omega[used], (pairs.rows[used], pairs.columns[used])), shape=shape).tocsr()
        mass: Scores = np.asarray(matrix.sum(axis=1), np.float64).ravel()
        if not mass.any():
            return sparse.csr_array(shape)
        total = np.where(mass > 0, mass + self.shrinkage(mass[mass > 0]), 1.0)
        return sparse.csr_array(sparse.diags_array(1 / total) @ matrix)

    def say(self, units: float) -> Scores:
        """What each pair has to say for itself: a query 1, its units η together."""
        return np.where(self.pairs.shares > 0, units * self.pairs.shares, 1.0)

    def shrinkage(self, mass: Scores) -> float:
        """c: what is added to the mass of every taught row."""
        return float(np.median(mass))

    def norms(self, weights: sparse.csr_array, step: float, moments: Moments | None = None) -> Scores:
        """ν: the length of k⁰ + λV before it is brought back to 1. Sparse keys are not normalised."""
        if not len(self.documents) or not isinstance(self.base, DenseBlock) or not step:
            return np.ones(len(self.base))
        along, square = moments or self.moments(weights) or (np.zeros(0), np.zeros(0))
        return np.sqrt(np.maximum(1 + 2 * step * along + step**2 * square, 1e-12))

    def moments(self, weights: sparse.csr_array) -> Moments | None:
        """k⁰·V and V·V of each row: with them the norm is known for every step."""
        if not isinstance(self.base, DenseBlock) or not isinstance(self.block, DenseBlock):
            return None
        moved = weights @ self.block.vectors.astype(np.float64)
        return np.vecdot(self.base.vectors.astype(np.float64), moved), np.vecdot(moved, moved)

    def learned(self) -> dict[str, int]:
        """Every taught word, and how many documents were taught with it."""
        found: dict[str, set[int]] = defaultdict(set)
        for place, column in zip(self._places(self.pairs).tolist(), self.pairs.columns.tolist(), strict=True):
            for word in self.words[column]:
                found[word].add(place)
        return {word: len(documents) for word, documents in sorted(found.items())}

    def overlay(self, choice: Choice, lens: Lens | None = None) -> Overlay:
        weights = self.weights(choice.spread, choice.units)
        norms = self.norms(weights, choice.step)
        return Overlay(self.touched, self.texts, self.block, weights, norms, choice, self.learned(), lens)


@dataclass(frozen=True)
class Pairs:
    """Columns of equal length: a row of a document, a text (column), and what binds them."""

    rows: Numbers
    columns: Numbers
    queries: Numbers
    """The text (column) of the query that was verified."""
    grades: Scores
    credited: Scores
    """How many documents the query credits."""
    shares: Scores
    """A unit's share among its query's units; 0 for the query itself."""

    def where(self, kept: NDArray[np.bool_]) -> Pairs:
        return Pairs(
            self.rows[kept],
            self.columns[kept],
            self.queries[kept],
            self.grades[kept],
            self.credited[kept],
            self.shares[kept],
        )

    def renumbered(self, rows: Numbers, columns: Numbers) -> Pairs:
        """The same pairs when only these rows and columns are left."""
        return replace(
            self,
            rows=np.searchsorted(rows, self.rows),
            columns=np.searchsorted(columns, self.columns),
            queries=np.searchsorted(columns, self.queries),
        )


def attribute(retriever: Retriever, lessons: Taught) -> Attribution:
    """Pair the documents that have a row here with the texts they were taught."""
    numbers = np.array(sorted({number for grades in lessons.grades.values() for number in grades}), np.int64)
    rows = retriever.store.rows
    documents = rows.having(numbers)
    touched = Touched.of(documents, rows.sizes(documents))
    base = retriever.store.take(documents)
    texts = tuple(sorted({*lessons.queries, *(unit for units in lessons.units.values() for unit in units)}))
    pairs = _paired(lessons, touched, texts, _Match(retriever, touched, base, lessons))
    return Attribution(touched, base, texts, retriever.texts(texts), [retriever.words(text) for text in texts], pairs)


def _paired(lessons: Taught, touched: Touched, texts: Sequence[str], match: _Match) -> Pairs:
    known = set(touched.documents.tolist())
    column = {text: index for index, text in enumerate(texts)}
    found: list[tuple[int, int, int, float, int, float]] = []
    for query, grades in lessons.grades.items():
        asked = column[query]
        for number, grade in grades.items():
            if number in known:
                found.append((match.row(query, number), asked, asked, grade, len(grades), 0.0))
                for unit, share in match.shares(query, number):
                    found.append((match.row(unit, number), column[unit], asked, grade, len(grades), share))
    parts = list(zip(*found, strict=True)) or [()] * 6
    rows, columns, queries = (np.array(part, np.int64) for part in parts[:3])
    return Pairs(rows, columns, queries, *(np.array(part, np.float64) for part in parts[3:]))


class _Match:
    """How well texts, each asked by itself, find documents: which row is credited, and how a query's units share."""

    def __init__(self, retriever: Retriever, touched: Touched, base: Block[Any], lessons: Taught) -> None:
        self._units, self._touched = lessons.units, touched
        asked = {unit for units in lessons.units.values() for unit in units}
        if touched.several:
            asked |= set(lessons.queries)
        texts = sorted(asked)
        self._place = {text: index for index, text in enumerate(texts)}
        self._table: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        if texts and len(base):
            questions = [retriever.lesson(text, {}) for text in texts]
            parts = [base.total(base.table(questions[at : at + ASKED])) for at in range(0, len(texts), ASKED)]
            self._table = np.concatenate(parts)

    def row(self, text: str, number: int) -> int:
        """The row of a document that a text matches best."""
        rows = self._touched.rows(number)
        first = int(rows.start)
        return first if rows.stop - first == 1 else first + int(np.argmax(self._table[self._place[text], rows]))

    def shares(self, query: str, number: int) -> list[tuple[str, float]]:
        """The units that count for a document, and their shares of the query's credit."""
        units: Sequence[str] = self._units.get(query, ())
        if not units:
            return []
        rows = self._touched.rows(number)
        gains = np.array([max(0.0, float(self._table[self._place[unit], rows].max())) for unit in units])
        gains[gains < RESEMBLANCE * gains.max()] = 0
        total = gains.sum()
        return [(unit, gain / total) for unit, gain in zip(units, gains, strict=True) if gain > 0] if total else []
