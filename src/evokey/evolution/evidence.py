"""What the lessons say, taken together: who was verified right for which query, whatever retriever asks.

A function of the set of lessons: nothing here depends on the order in which they came, except that of several
verdicts of one actor on one query and document the latest counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from evokey.ledger.lessons import Vote

FOLDS = 10


@dataclass(frozen=True)
class Taught:
    """Queries in alphabetical order, each with the documents (numbers) that were right, and how right."""

    grades: Mapping[str, Mapping[int, float]]
    units: Mapping[str, Sequence[str]]
    wrong: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Queries, of these and of others, with the documents that somebody named wrong, and how wrong."""
    apart: ClassVar[bool] = False
    """Whether what a document learns must be the same to the last bit, whichever other documents are taught."""

    @cached_property
    def queries(self) -> tuple[str, ...]:
        return tuple(self.grades)

    def units_for(self, query: str, number: int) -> Sequence[str]:
        """The expansion units of a query that may count for a document."""
        return self.units.get(query, ())

    @property
    def judged(self) -> tuple[str, ...]:
        """All queries for which a document was named right or wrong, in alphabetical order."""
        return tuple(sorted({*self.grades, *self.wrong}))

    def only(self, queries: Sequence[str]) -> Taught:
        return Taught({query: self.grades[query] for query in queries}, self.units)


def taught(votes: Iterable[Vote], units: Mapping[str, Sequence[str]]) -> Taught:
    """Merge verdicts: the latest of each actor, then the mean over actors; above 0 is right, below is wrong."""
    heard: dict[str, list[tuple[str | None, Mapping[int, float]]]] = {}
    for query, actor, said in votes:
        heard.setdefault(query, []).append((actor, said))
    merged = {query: _merged(heard[query]) for query in sorted(heard)}
    grades = {query: right for query, said in merged.items() if (right := _right(said))}
    wrong = {query: bad for query, said in merged.items() if (bad := _wrong(said))}
    return Taught(grades, {query: units[query] for query in grades if query in units}, wrong)


def _right(said: Mapping[int, float]) -> Mapping[int, float]:
    """Those above 0: mostly, all are."""
    return said if min(said.values(), default=0) > 0 else {n: g for n, g in said.items() if g > 0}


def _wrong(said: Mapping[int, float]) -> Mapping[int, float]:
    """Those below 0, and how far below: mostly, none is."""
    return {n: -g for n, g in said.items() if g < 0} if min(said.values(), default=0) < 0 else {}


def _merged(heard: Sequence[tuple[str | None, Mapping[int, float]]]) -> Mapping[int, float]:
    """The mean verdict on each document."""
    if len(heard) == 1:
        return heard[0][1]
    latest: dict[int, dict[str | None, float]] = {}
    for actor, said in heard:
        for number, grade in said.items():
            latest.setdefault(number, {})[actor] = grade
    merged = {}
    for number in sorted(latest):
        given = sorted(grade for grade in latest[number].values() if grade)  # 0 takes a verdict back
        if given:
            merged[number] = sum(given) / len(given)
    return merged


def _hash(query: str) -> int:
    return int.from_bytes(hashlib.sha256(query.encode()).digest()[:8])


def fold(query: str) -> int:
    """Which part of the cross-fit a query belongs to: fixed by its text alone."""
    return _hash(query) % FOLDS


def folds(queries: Sequence[str]) -> list[list[str]]:
    """All queries by fold."""
    found: list[list[str]] = [[] for _ in range(FOLDS)]
    for query in queries:
        found[fold(query)].append(query)
    return found


def sample(queries: Sequence[str], size: int) -> list[str]:
    """At most so many of the queries, chosen by their texts alone, in alphabetical order."""
    return sorted(sorted(queries, key=_hash)[:size])
