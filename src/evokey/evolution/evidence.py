"""What the lessons say, taken together: who was verified right for which query, whatever retriever asks.

A function of the set of lessons: nothing here depends on the order in which they came, except that of several
verdicts of one actor on one query and document the latest counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evokey.ledger.lessons import Credit

FOLDS = 10


@dataclass(frozen=True)
class Taught:
    """Queries in alphabetical order, each with the documents (numbers) that were right, and how right."""

    grades: Mapping[str, Mapping[int, float]]
    units: Mapping[str, Sequence[str]]

    @cached_property
    def queries(self) -> tuple[str, ...]:
        return tuple(self.grades)

    def only(self, queries: Sequence[str]) -> Taught:
        return Taught({query: self.grades[query] for query in queries}, self.units)


def taught(credits: Sequence[Credit], units: Mapping[str, Sequence[str]]) -> Taught:
    """Merge verdicts: the latest of each actor, then the mean over actors; right is a mean above 0."""
    latest: dict[tuple[str, int], dict[str | None, float]] = {}
    for credit in credits:
        latest.setdefault((credit.query, credit.number), {})[credit.actor] = credit.grade
    grades: dict[str, dict[int, float]] = {}
    for query, number in sorted(latest):
        votes = sorted(grade for grade in latest[query, number].values() if grade)  # 0 takes a verdict back
        if sum(votes) > 0:
            grades.setdefault(query, {})[number] = sum(votes) / len(votes)
    return Taught(grades, {query: units[query] for query in grades if query in units})


def _hash(query: str) -> int:
    return int.from_bytes(hashlib.sha256(query.encode()).digest()[:8])


def fold(query: str) -> int:
    """Which part of the cross-fit a query belongs to: fixed by its text alone."""
    return _hash(query) % FOLDS


def sample(queries: Sequence[str], size: int) -> list[str]:
    """At most so many of the queries, chosen by their texts alone, in alphabetical order."""
    return sorted(sorted(queries, key=_hash)[:size])
