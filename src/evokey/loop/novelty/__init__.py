"""Whether an intent is new: an expansion is paid for once per intent, so a query in other words must be known again.

Cosine alone is not enough, since opposite questions are near each other in every vector space. A query is known when an
earlier one is near *and* nothing says otherwise: numbers, names, negations, opposites, what is asked for, what goes
where, and every word that carries meaning. In doubt a query is new: that costs one call, while a
false match costs the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evokey import checks
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import InvalidSettings
from evokey.loop.novelty.agreement import Agreement
from evokey.loop.novelty.reading import Reading, read
from evokey.protocols import DenseEncoder
from evokey.types import Vectors

__all__ = ["Match", "Novelty"]
NEAR = 0.85
"""The least cosine of two wordings of one intent. Calibrated with WordLlama: under one match in a hundred is false."""
MOST_COMPARED = 32
FIRST_ROWS = 64
SAME_WORDS = "the same words"


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier query of the same intent."""

    query: str
    similarity: float
    why: str


@dataclass(frozen=True, slots=True)
class _Known:
    """One state, complete: readers take it whole, the writer puts the next in its place."""

    queries: list[str]
    readings: list[Reading]
    rows: dict[str, int]
    """Fold → row."""
    vectors: Vectors
    """One row for each query, then room to grow into."""
    count: int


class Novelty:
    """The queries that were expanded. One thread writes, any number ask.

    The set is what counts: adding in another order, or twice, makes no difference to what is known.
    """

    def __init__(self, encoder: DenseEncoder | None = None, *, near: float = NEAR) -> None:
        if not 0 < near <= 1:
            raise InvalidSettings(f"near is a cosine above 0 and at most 1, not {near}")
        self.encoder: DenseEncoder = encoder or WordLlamaEncoder()
        self.near = near
        self._agreement = Agreement()
        self._writing = threading.Lock()
        self._known = _Known([], [], {}, np.zeros((0, 0), np.float32), 0)

    def __len__(self) -> int:
        return self._known.count

    @property
    def queries(self) -> tuple[str, ...]:
        """As they were first added, in that order."""
        known = self._known
        return tuple(known.queries[: known.count])

    def known(self, query: str) -> Match | None:
        """The nearest earlier query with the same intent; None when the intent is new."""
        query, known = checks.query(query), self._known
        reading = read(query)
        row = known.rows.get(reading.fold, known.count)
        if row < known.count:
            return Match(known.queries[row], 1.0, SAME_WORDS)
        for similarity, row in self._nearest(query, known):
            if self._agreement.difference(reading, known.readings[row]) is None:
                return Match(known.queries[row], similarity, "near, and nothing differs")
        return None

    def add(self, query: str) -> None:
        self.add_many([query])

    def add_many(self, queries: Iterable[str]) -> int:
        """Adds those not yet there, encoded together; returns how many they were."""
        given: dict[str, tuple[str, Reading]] = {}
        for query in map(checks.query, queries):
            reading = read(query)
            given.setdefault(reading.fold, (query, reading))
        with self._writing:
            known = self._known
            new = [pair for fold, pair in given.items() if fold not in known.rows]
            if new:
                vectors = np.asarray(self.encoder.queries([query for query, _ in new]), np.float32)
                self._known = _grown(known, new, vectors)
        return len(new)

    def remove(self, query: str) -> bool:
        """Forgets a query: its intent is new again, unless another wording is known. False when it was not there."""
        fold = read(checks.query(query)).fold
        with self._writing:
            known = self._known
            if fold not in known.rows:
                return False
            gone = known.rows[fold]
            kept = [row for row in range(known.count) if row != gone]
            readings = [known.readings[row] for row in kept]
            self._known = _Known(
                [known.queries[row] for row in kept],
                readings,
                {reading.fold: row for row, reading in enumerate(readings)},
                known.vectors[kept],
                len(kept),
            )
        return True

    def _nearest(self, query: str, known: _Known) -> list[tuple[float, int]]:
        """Best first; equal ones in the order of their words, so that it does not matter which came first."""
        if not known.count:
            return []
        vector = np.asarray(self.encoder.queries([query]), np.float32)[0]
        similarities = known.vectors[: known.count] @ vector
        near = np.flatnonzero(similarities >= self.near)
        if len(near) > MOST_COMPARED:
            near = near[np.argpartition(-similarities[near], MOST_COMPARED)[:MOST_COMPARED]]
        found = [(min(round(float(similarities[row]), 6), 1.0), int(row)) for row in near]
        return sorted(found, key=lambda one: (-one[0], known.readings[one[1]].fold))


def _grown(known: _Known, new: list[tuple[str, Reading]], vectors: Vectors) -> _Known:
    """The next state. Rows and list entries beyond a state's count are never read through it, so both are shared."""
    count = known.count + len(new)
    room = known.vectors
    if count > len(room):
        room = np.zeros((max(2 * len(room), count, FIRST_ROWS), vectors.shape[1]), np.float32)
        if known.count:
            room[: known.count] = known.vectors[: known.count]
    room[known.count : count] = vectors
    for query, reading in new:
        known.rows[reading.fold] = len(known.readings)
        known.queries.append(query)
        known.readings.append(reading)
    return _Known(known.queries, known.readings, known.rows, room, count)
