"""Several rankings → one: a weighted sum, of scores stretched to 0…1 (weighted) or of reciprocal ranks (reciprocal).

Reciprocal ranks throw away how sure each retriever is: an unequal pair fused so is worse than its better part, so
weighted is the default. A ranking may also be trusted less for one question: BM25 when the documents do not know the
question's words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evokey.errors import InvalidSettings
from evokey.types import Numbers, Ranking, Scores

FUSION_DEPTH = 100
"""How much of each ranking takes part."""
UNTAUGHT_SPARSE_WEIGHT = 0.75
QUARTERS = 4
"""Weights that may be learned: all shares of so many parts."""
FEW = 4
"""Up to so many retrievers. Of more, each alone and all alike."""
RANK_OFFSET = 60
LEAST_TRUST = 1e-3
"""A distrusted ranking still orders what no other ranking has."""
LAST = 1e-6
Weights = tuple[float, ...]


class Fusion(ABC):
    """How the rankings of some retrievers become one; `kinds` gives their names, in order, and dense or sparse."""

    def __init__(self, kinds: Mapping[str, str], weights: Sequence[float] | None = None) -> None:
        self.names = tuple(kinds)
        self.untaught: Weights = _checked(weights, self.names) if weights else _usual(tuple(kinds.values()))

    @abstractmethod
    def shares(self, ranking: Ranking) -> Scores:
        """What a ranking says for each of its documents, at most 1."""

    def weightings(self) -> list[Weights]:
        """Weights that teaching may choose, the untaught ones first."""
        count = len(self.names)
        lone: list[list[int]] = [*np.eye(count, dtype=int).tolist(), [1] * count]
        parts = list(_parts(QUARTERS, count)) if count <= FEW else lone
        return list(dict.fromkeys([self.untaught, *(_shared(part) for part in parts)]))

    def table(self, rankings: Sequence[Ranking], trusts: Sequence[float]) -> tuple[Numbers, Scores]:
        """All documents of the rankings (sorted) and, for each ranking, its trusted share of their scores."""
        numbers = np.unique(np.concatenate([ranking.numbers for ranking in rankings]))
        shares = np.zeros((len(rankings), len(numbers)))
        for row, (ranking, trust) in enumerate(zip(rankings, trusts, strict=True)):
            shares[row, np.searchsorted(numbers, ranking.numbers)] = max(trust, LEAST_TRUST) * self.shares(ranking)
        return numbers, shares

    def fused(self, rankings: Sequence[Ranking], trusts: Sequence[float], weights: Sequence[float], k: int) -> Ranking:
        """The k best of a weighted sum over the first hundred of each ranking; what lies deeper follows behind.

        A document of which only weightless rankings know is not found.
        """
        heads = [Ranking(ranking.numbers[:FUSION_DEPTH], ranking.scores[:FUSION_DEPTH]) for ranking in rankings]
        numbers, shares = self.table(heads, trusts)
        head = _ordered(numbers, np.asarray(weights) @ shares)
        if k <= len(head):
            return Ranking(head.numbers[:k], head.scores[:k])
        tail = _deeper(rankings, weights, head)
        return Ranking(np.concatenate([head.numbers, tail.numbers])[:k], np.concatenate([head.scores, tail.scores])[:k])


class Weighted(Fusion):
    def shares(self, ranking: Ranking) -> Scores:
        """From 1 (its best) to almost 0 (its last): still more than not being in it."""
        if not len(ranking):
            return ranking.scores
        # A ranking shorter than the depth is complete: what is not in it has nothing, and its last still has something.
        low = ranking.scores[-1] if len(ranking) >= FUSION_DEPTH else min(ranking.scores[-1], 0.0)
        high = ranking.scores[0]
        if high <= low:
            return np.ones(len(ranking))
        return np.asarray(LAST + (1 - LAST) * (ranking.scores - low) / (high - low))


class Reciprocal(Fusion):
    def shares(self, ranking: Ranking) -> Scores:
        return (RANK_OFFSET + 1) / (RANK_OFFSET + 1 + np.arange(len(ranking)))


def _usual(kinds: tuple[str, ...]) -> Weights:
    if sorted(kinds) == ["dense", "sparse"]:
        return tuple(UNTAUGHT_SPARSE_WEIGHT if kind == "sparse" else 1 - UNTAUGHT_SPARSE_WEIGHT for kind in kinds)
    return tuple(1 / len(kinds) for _ in kinds)


def _checked(weights: Sequence[float], names: Sequence[str]) -> Weights:
    if len(weights) != len(names):
        raise InvalidSettings(f"fusion needs one weight for each of {', '.join(names)}, not {list(weights)}")
    if not all(0 <= weight < float("inf") for weight in weights) or not sum(weights) > 0:
        raise InvalidSettings(f"weights of a fusion are 0 or more, and not all 0: {list(weights)}")
    return _shared(weights)


def _shared(weights: Sequence[float]) -> Weights:
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _parts(total: int, count: int) -> Iterator[list[int]]:
    """All ways to share a total among so many."""
    if count == 1:
        yield [total]
        return
    for first in range(total + 1):
        for rest in _parts(total - first, count - 1):
            yield [first, *rest]


def _deeper(rankings: Sequence[Ranking], weights: Sequence[float], head: Ranking) -> Ranking:
    """What only lies beyond the depth, by its ranks, scored below all of the head."""
    numbers = np.setdiff1d(np.concatenate([ranking.numbers[FUSION_DEPTH:] for ranking in rankings]), head.numbers)
    scores = np.zeros(len(numbers))
    for ranking, weight in zip(rankings, weights, strict=True):
        ranks = np.arange(FUSION_DEPTH, len(ranking))
        inside = np.isin(ranking.numbers[FUSION_DEPTH:], numbers)
        scores[np.searchsorted(numbers, ranking.numbers[FUSION_DEPTH:][inside])] += (
            weight * FUSION_DEPTH / (ranks[inside] + 1)
        )
    lowest = float(head.scores[-1]) if len(head) else 1.0
    return _ordered(numbers, lowest * scores)


def _ordered(numbers: Numbers, scores: Scores) -> Ranking:
    order = np.lexsort((numbers, -scores))
    order = order[scores[order] > 0]
    return Ranking(numbers[order], scores[order])
