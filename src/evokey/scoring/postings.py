"""Postings: what each term weighs in which rows. Worked out when first asked for, kept, and summed into scores."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import _sparsetools  # y += A x into an array of ours: its public form makes a new matrix and array

from evokey.scoring.block import NO_NUMBERS
from evokey.scoring.inverted import Inverted, Weighting
from evokey.types import Numbers, Scores

KEPT, FEWEST_KEPT = 32, 1 << 17
"""Postings kept worked out, as a multiple of the rows, and at least: 16 bytes each. Beyond that they are made again."""
LEAST = 16
"""What a term is counted for beside its rows, so that terms without any do not pile up."""


class Counted(Protocol):
    """Rows with their term counts: what postings are made from."""

    def __len__(self) -> int: ...

    @property
    def place(self) -> Mapping[str, int]: ...

    @property
    def inverted(self) -> Inverted: ...


@dataclass(frozen=True, slots=True)
class Posting:
    """The living rows that hold a term, and what it weighs in each."""

    rows: Numbers
    weights: Scores
    top: float
    """The greatest of the weights."""
    span: Numbers
    """0 and the number of rows: as a column of a sparse matrix, where it starts and ends."""

    @classmethod
    def of(cls, rows: Numbers, weights: Scores) -> Posting:
        top = float(np.maximum.reduce(weights)) if len(rows) else 0.0
        return cls(rows, weights, top, np.array((0, len(rows))))


Held = Sequence[tuple[Posting, float]]
NOWHERE = Posting.of(NO_NUMBERS, np.zeros(0))


class Postings:
    """Of some blocks laid end to end, beside documents of an average length."""

    def __init__(
        self, blocks: Sequence[Counted], encoder: Weighting, average: float, dead: Numbers = NO_NUMBERS
    ) -> None:
        self._blocks, self._encoder, self._average, self._dead = blocks, encoder, average, dead
        self._starts: list[int] = np.cumsum([0, *map(len, blocks)]).tolist()
        self._pivots = [encoder.pivots(block.inverted.lengths, average) for block in blocks]
        self._alive = np.ones(self._starts[-1], bool)
        self._alive[dead] = False
        self._kept: dict[str, Posting] = {}
        self._room = max(KEPT * self._starts[-1], FEWEST_KEPT)
        self._keeping = threading.Lock()

    def at(self, average: float) -> Postings:
        """The postings by an average length: these, or new ones for a question that was weighed at another time."""
        return self if average == self._average else Postings(self._blocks, self._encoder, average, self._dead)

    def of(self, term: str) -> Posting:
        found = self._kept.get(term)
        return self._made(term) if found is None else found

    def held(self, terms: Iterable[str], weights: Iterable[float]) -> Held:
        """The postings of a question's terms and what these weigh in it, in its order."""
        of = self.of
        return [
            (posting, weight)
            for term, weight in zip(terms, weights, strict=True)
            if weight and (posting := of(term)) is not NOWHERE
        ]

    def summed(self, held: Held) -> Scores:
        """Scores of all rows. A row is in a posting once, so its sum runs in the order of the terms."""
        size = self._starts[-1]
        scores, asked = np.zeros(size), np.array([weight for _, weight in held])
        for at, (posting, _) in enumerate(held):
            weight = asked[at : at + 1]
            _sparsetools.csc_matvec(size, 1, posting.span, posting.rows, posting.weights, weight, scores)
        return scores

    def _made(self, term: str) -> Posting:
        parts = self._parts(term)
        if not parts:
            return self._keep(term, NOWHERE)
        rows, weights = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        return self._keep(term, Posting.of(rows, weights))

    def _parts(self, term: str) -> list[tuple[Numbers, Scores]]:
        """The living rows that hold a term, and its weight in them, block by block."""
        found = []
        for block, start, pivots in zip(self._blocks, self._starts, self._pivots, strict=False):
            at = block.place.get(term)
            if at is None:
                continue
            rows, weights = block.inverted.posting(at, pivots)
            rows = rows + start if start else rows
            if len(self._dead):
                alive = self._alive[rows]
                rows, weights = rows[alive], weights[alive]
            found.append((rows, weights))
        return found

    def _keep(self, term: str, posting: Posting) -> Posting:
        """The oldest make room: all at once would have them all made again."""
        with self._keeping:
            if term not in self._kept:
                self._kept[term] = posting
                self._room -= len(posting.rows) + LEAST
            while self._room < 0 and len(self._kept) > 1:
                self._room += len(self._kept.pop(next(iter(self._kept))).rows) + LEAST
        return posting
