"""Is a difference more than luck? Paired randomisation tests, intervals, Holm's correction, and who won and lost.

Where a system ran with several seeds, each query's score is averaged over them first: queries are what is drawn, seeds
only repeat them. The smallest p of several seeds, or (query, seed) pairs taken for separate queries, find differences
where there are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TypeVar

import numpy as np

from evokey.types import Scores

ROUNDS = 10_000
EXACT = 12
"""Up to so many queries that differ, all signs are tried instead of some by lot."""
TIE = 1e-9
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same queries."""

    queries: int
    difference: float
    """Of the means: positive, the first is better."""
    low: float
    high: float
    """Its interval of 95 %."""
    p: float
    wins: int
    losses: int
    ties: int
    worst: float
    """The greatest loss of a single query: 0 where none loses."""
    worst_query: str | None


def average(seeds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Each query's mean over the seeds that tested it."""
    found: dict[str, list[float]] = defaultdict(list)
    for values in seeds:
        for query, value in values.items():
            found[query].append(value)
    return {query: fmean(values) for query, values in found.items()}


def compare(one: Mapping[str, float], other: Mapping[str, float]) -> Comparison:
    """Compare two systems over the queries that both answered."""
    shared = sorted(one.keys() & other.keys())
    differences = np.array([one[id] - other[id] for id in shared])
    if not shared:
        return Comparison(0, 0.0, 0.0, 0.0, 1.0, 0, 0, 0, 0.0, None)
    place = int(np.argmin(differences))
    lost = bool(differences[place] < -TIE)
    return Comparison(
        len(shared),
        float(differences.mean()),
        *interval(differences),
        p_value(differences),
        int((differences > TIE).sum()),
        int((differences < -TIE).sum()),
        int((np.abs(differences) <= TIE).sum()),
        float(differences[place]) if lost else 0.0,
        shared[place] if lost else None,
    )


def p_value(differences: Scores, seed: int = 0) -> float:
    """Two-sided: how often would a mean this far from 0 come about if each difference had its sign by lot?"""
    telling = differences[np.abs(differences) > TIE]
    observed = abs(float(telling.sum()))
    if not len(telling):
        return 1.0
    if len(telling) <= EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(telling))))
        return float((np.abs(signs @ telling) >= observed - TIE).mean())
    chance, beyond = np.random.default_rng(seed), 0
    for _ in range(10):
        signs = chance.choice(np.array([-1.0, 1.0]), size=(ROUNDS // 10, len(telling)))
        beyond += int((np.abs(signs @ telling) >= observed - TIE).sum())
    return (beyond + 1) / (ROUNDS + 1)


def interval(differences: Scores, seed: int = 0) -> tuple[float, float]:
    """Between which two values 95 % of the means lie when the queries are drawn again, with replacement."""
    chance, means = np.random.default_rng(seed), []
    for _ in range(10):
        drawn = chance.integers(0, len(differences), (ROUNDS // 10, len(differences)), dtype=np.int32)
        means.append(differences[drawn].mean(axis=1))
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """p values of a family of tests, corrected for their number: step down from the smallest."""
    corrected: dict[K, float] = {}
    largest = 0.0
    for place, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(values) - place) * p))
        corrected[name] = largest
    return {name: corrected[name] for name in values}
