"""Several rankings → one: a weighted sum of scores, each ranking's top stretched to 0…1.

Reciprocal ranks would throw away how sure each retriever is: an unequal pair fused so is worse than its better part.
A ranking may also be trusted less for one question: BM25 when the documents do not know the question's words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evokey.types import Numbers, Ranking, Scores

DEPTH = 100
"""How much of each ranking takes part."""
UNTAUGHT_SPARSE_WEIGHT = 0.75
WEIGHT_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_TRUST = 1e-3
"""A distrusted ranking still orders what no other ranking has."""
LAST = 1e-6


def untaught_weights(kinds: Mapping[str, str]) -> dict[str, float]:
    """By retriever name; kinds says which are dense and which sparse."""
    if sorted(kinds.values()) == ["dense", "sparse"]:
        share = {"sparse": UNTAUGHT_SPARSE_WEIGHT, "dense": 1 - UNTAUGHT_SPARSE_WEIGHT}
        return {name: share[kind] for name, kind in kinds.items()}
    return {name: 1 / len(kinds) for name in kinds}


def stretched(ranking: Ranking) -> Scores:
    """Scores of a ranking from 1 (its best) to almost 0 (its last): still more than not being in it."""
    if not len(ranking):
        return ranking.scores
    # A ranking shorter than the depth is complete: what is not in it has nothing, and its last still has something.
    low = ranking.scores[-1] if len(ranking) >= DEPTH else min(ranking.scores[-1], 0.0)
    high = ranking.scores[0]
    if high <= low:
        return np.ones(len(ranking))
    return np.asarray(LAST + (1 - LAST) * (ranking.scores - low) / (high - low))


def table(rankings: Sequence[Ranking], trusts: Sequence[float]) -> tuple[Numbers, Scores]:
    """All documents of the rankings (sorted) and, for each ranking, its trusted share of their scores."""
    numbers = np.unique(np.concatenate([ranking.numbers for ranking in rankings]))
    shares = np.zeros((len(rankings), len(numbers)))
    for row, (ranking, trust) in enumerate(zip(rankings, trusts, strict=True)):
        shares[row, np.searchsorted(numbers, ranking.numbers)] = max(trust, LEAST_TRUST) * stretched(ranking)
    return numbers, shares


def fused(rankings: Sequence[Ranking], trusts: Sequence[float], weights: Sequence[float], k: int) -> Ranking:
    """The k best of a weighted sum over the first hundred of each ranking; what lies deeper follows behind.

    A document of which only weightless rankings know is not found.
    """
    heads = [Ranking(ranking.numbers[:DEPTH], ranking.scores[:DEPTH]) for ranking in rankings]
    numbers, shares = table(heads, trusts)
    head = _ordered(numbers, np.asarray(weights) @ shares)
    if k <= len(head):
        return Ranking(head.numbers[:k], head.scores[:k])
    tail = _deeper(rankings, weights, head)
    return Ranking(np.concatenate([head.numbers, tail.numbers])[:k], np.concatenate([head.scores, tail.scores])[:k])


def _deeper(rankings: Sequence[Ranking], weights: Sequence[float], head: Ranking) -> Ranking:
    """What only lies beyond the depth, by its ranks, scored below all of the head."""
    numbers = np.setdiff1d(np.concatenate([ranking.numbers[DEPTH:] for ranking in rankings]), head.numbers)
    scores = np.zeros(len(numbers))
    for ranking, weight in zip(rankings, weights, strict=True):
        ranks = np.arange(DEPTH, len(ranking))
        inside = np.isin(ranking.numbers[DEPTH:], numbers)
        scores[np.searchsorted(numbers, ranking.numbers[DEPTH:][inside])] += weight * DEPTH / (ranks[inside] + 1)
    lowest = float(head.scores[-1]) if len(head) else 1.0
    return _ordered(numbers, lowest * scores)


def _ordered(numbers: Numbers, scores: Scores) -> Ranking:
    order = np.lexsort((numbers, -scores))
    order = order[scores[order] > 0]
    return Ranking(numbers[order], scores[order])
