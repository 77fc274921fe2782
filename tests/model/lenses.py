"""The lens, worked out slowly from the formulas of docs/lens.md: part of the oracle, and like it shares no code.

A lens is made of plain values: taught queries, each with what was right for it, as vectors or as weighed words.
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
HELD = {0.0: 0.3, 0.25: 1.0}
"""What an anchor weighs beside a taught query, by the gate."""
NARROWEST = 0.01
"""A gate opens over at least so much of nearness."""
DOUBT = 2.0
Vector = NDArray[np.float64]
Words = Mapping[str, float]
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

    @classmethod
    def made(
        cls, ways: Mapping[str, tuple[Vector, Vector]], anchors: Sequence[Vector], strength: float, gate: float
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
            left += HELD[gate] * np.outer(seen, seen)
        near = [max(float(a @ b) for j, b in enumerate(spots) if i != j) for i, a in enumerate(spots)]
        shut, opened = _quantile(near, gate), _quantile(near, 2 * gate + 0.25)
        pulls = np.linalg.solve(left, wanted)
        centres = dict(zip(names, spots, strict=True))
        return cls(centres, dict(zip(names, pulls, strict=True)), min(shut, opened - NARROWEST), opened)

    def turned(self, asked: Vector) -> Vector | None:
        """None: the question passes unchanged."""
        nearest = max(self.because(asked).values())
        gate = min(1.0, max(0.0, (nearest - self.shut) / (self.open - self.shut)))
        if not gate:
            return None
        pull = sum(math.exp((float(asked @ self.centres[z]) - 1) / WIDTH) * self.pulls[z] for z in self.centres)
        turned = asked + gate * pull
        return np.asarray(turned / max(float(np.linalg.norm(turned)), 1e-12))

    def because(self, asked: Vector) -> Because:
        return {name: float(asked @ centre) for name, centre in self.centres.items()}


@dataclass(frozen=True)
class Sparse:
    strength: float
    lessons: Sequence[tuple[str, frozenset[str], Words]]
    """Taught queries, their words, and the words of what was right (shares of 1)."""

    @classmethod
    def made(cls, ways: Mapping[str, tuple[frozenset[str], Words]], strength: float) -> Sparse | None:
        """ways: taught query → its words, and the weighed words of what was right for it."""
        if len(ways) < MIN_QUERIES:
            return None
        shares = {
            query: {w: x / sum(spoken.values()) for w, x in spoken.items()} for query, (_, spoken) in ways.items()
        }
        return cls(strength, [(query, asked, shares[query]) for query, (asked, _) in ways.items()])

    def turned(self, asked: Words) -> Words | None:
        """None: the question passes unchanged."""
        brought: Counter[str] = Counter()
        for word, weight in asked.items():
            having = [spoken for _, words, spoken in self.lessons if word in words]
            for spoken in having:
                for other, share in spoken.items():
                    brought[other] += weight * share / (len(having) + DOUBT)  # type: ignore[assignment]
        if not brought or not sum(asked.values()):
            return None
        return {word: asked.get(word, 0.0) + self.strength * brought[word] for word in asked.keys() | brought.keys()}

    def because(self, asked: Words) -> Because:
        shared = {query: float(len(words & asked.keys())) for query, words, _ in self.lessons}
        return {query: count for query, count in shared.items() if count}


Lens = Dense | Sparse


def _kernels(a: Vector, many: Sequence[Vector]) -> Vector:
    return np.array([math.exp((float(a @ b) - 1) / WIDTH) for b in many])


def _quantile(values: Sequence[float], share: float) -> float:
    """Between two values in proportion."""
    ordered, at = sorted(values), share * (len(values) - 1)
    low = ordered[math.floor(at)]
    return low + (ordered[math.ceil(at)] - low) * (at - math.floor(at))
