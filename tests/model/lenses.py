"""The lens, worked out slowly from the formulas of docs/lens.md: part of the oracle, and like it shares no code.

A lens is made of plain values: taught queries, each with what was right for it, as vectors.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_QUERIES, EXAMPLES, CENTRES = 4, 14, 9
"""Taught queries: below these there is no lens, more are not learned from, more are no centres. So small a world needs
other numbers than a large one; the machine sets evokey's to the same."""
WIDTH, JITTER = 0.25, 1e-6
OPEN_HELD, WARY_HELD, WARY = 0.3, 1.0, 0.25
"""What an anchor weighs beside a taught query: with an open gate, and with one shut at this quantile."""
DOUBT = 8.0
NARROWEST = 0.01
"""A gate opens over at least so much of nearness."""
Vector = NDArray[np.float64]
Because = Mapping[str, float]
"""Taught query → how much it has to do with a question."""


def sampled(queries: Sequence[str], size: int) -> list[str]:
    """Those whose SHA-256 begins lowest, in alphabetical order."""
    return sorted(sorted(queries, key=lambda query: hashlib.sha256(query.encode()).hexdigest()[:16])[:size])


@dataclass(frozen=True)
class Dense:
    centres: Mapping[str, Vector]
    pulls: Mapping[str, Vector]
    shut: float
    open: float
    metric: NDArray[np.float64]

    @classmethod
    def made(
        cls,
        ways: Mapping[str, tuple[Vector, Vector]],
        anchors: Sequence[Vector],
        strength: float,
        gate: float,
        mildness: float,
    ) -> Dense | None:
        """ways: taught query → where it lies, and where what was right for it lies."""
        names = sampled(list(ways), CENTRES)
        if len(ways) < MIN_QUERIES or len(names) < 2:
            return None
        spots = [ways[name][0] for name in names]
        left = strength * np.array([_kernels(spot, spots) for spot in spots]) + JITTER * np.eye(len(names))
        wanted = np.zeros((len(names), len(spots[0])))
        for asked, right in ways.values():
            seen = _kernels(asked, spots)
            left += np.outer(seen, seen)
            wanted += np.outer(seen, right - asked)
        for anchor in anchors:
            seen = _kernels(anchor, spots)
            left += (WARY_HELD if gate >= WARY else OPEN_HELD) * np.outer(seen, seen)
        near = [max(float(a @ b) for j, b in enumerate(spots) if i != j) for i, a in enumerate(spots)]
        shut, opened = _quantile(near, gate), _quantile(near, 2 * gate + 0.25)
        pulls = np.linalg.solve(left, wanted)
        centres = dict(zip(names, spots, strict=True))
        metric = _metric(anchors, len(spots[0]), mildness)
        return cls(centres, dict(zip(names, pulls, strict=True)), min(shut, opened - NARROWEST), opened, metric)

    def turned(self, asked: Vector) -> Vector | None:
        """None: the question passes unchanged."""
        nearest = max(self.because(asked).values())
        gate = min(1.0, max(0.0, (nearest - self.shut) / (self.open - self.shut)))
        if not gate:
            return None
        pull = sum(math.exp((float(asked @ self.centres[z]) - 1) / WIDTH) * self.pulls[z] for z in self.centres)
        turned = asked + gate * (self.metric @ (asked + pull) - asked)
        return np.asarray(turned / max(float(np.linalg.norm(turned)), 1e-12))

    def because(self, asked: Vector) -> Because:
        return {name: float(asked @ centre) for name, centre in self.centres.items()}


@dataclass(frozen=True)
class Words:
    factors: Mapping[str, float]
    queries: Mapping[str, Sequence[str]]

    @classmethod
    def made(cls, ways: Mapping[str, tuple[frozenset[str], Mapping[str, float]]], strength: float) -> Words | None:
        """ways: taught query → its words, and of each of them the share of the right documents that has it."""
        if len(ways) < MIN_QUERIES:
            return None
        said = {
            word: [query for query, (words, _) in ways.items() if word in words]
            for words, _ in ways.values()
            for word in words
        }
        held = {word: sum(ways[query][1].get(word, 0.0) for query in queries) for word, queries in said.items()}
        if not any(held.values()):
            return None
        usual = sum(held.values()) / sum(len(said[word]) for word in said if held[word])
        rates = {word: (held[word] + DOUBT * usual) / (len(said[word]) + DOUBT) for word in said}
        return cls({word: (rate / usual) ** strength for word, rate in rates.items()}, said)

    def because(self, asked: frozenset[str]) -> Because:
        return {
            query: float(count)
            for query, count in Counter(q for word in asked for q in self.queries.get(word, ())).items()
        }


Lens = Dense | Words


def _metric(anchors: Sequence[Vector], size: int, mildness: float) -> NDArray[np.float64]:
    """What evens out the directions in which anchors differ; the unit matrix for a mildness of 0."""
    if not mildness:
        return np.eye(size)
    spread = np.zeros((size, size))
    if len(anchors) > 1:
        mean = np.mean(anchors, axis=0)
        for anchor in anchors:
            spread += np.outer(anchor - mean, anchor - mean)
        spread *= size / max(float(np.trace(spread)), 1e-12)
    inverse = np.linalg.inv(spread + mildness * np.eye(size))
    return np.asarray(inverse * size / np.trace(inverse))


def _kernels(a: Vector, many: Sequence[Vector]) -> Vector:
    return np.array([math.exp((float(a @ b) - 1) / WIDTH) for b in many])


def _quantile(values: Sequence[float], share: float) -> float:
    """Between two values in proportion."""
    ordered, at = sorted(values), share * (len(values) - 1)
    low = ordered[math.floor(at)]
    return low + (ordered[math.ceil(at)] - low) * (at - math.floor(at))
