"""What the lessons say together: which documents are right or wrong for which query, whichever retriever is asked.

This is a function of the set of lessons. Their order does not matter, with one exception: of several verdicts of one
actor on the same query and document, the latest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from evokey.ledger.lessons import Vote


@dataclass(frozen=True)
class Judgements:
    """Queries in alphabetical order, each with its relevant documents (numbers) and their grades."""

    grades: Mapping[str, Mapping[int, float]]
    units: Mapping[str, Sequence[str]]
    wrong: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Queries (these and others) with the documents that were named wrong, and how wrong they are."""
    apart: ClassVar[bool] = False
    """Whether a document must learn the same to the last bit, whichever other documents are taught."""

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

    def only(self, queries: Sequence[str]) -> Judgements:
        return Judgements({query: self.grades[query] for query in queries}, self.units)


def merge_votes(votes: Iterable[Vote], units: Mapping[str, Sequence[str]]) -> Judgements:
    """The latest verdict of each actor, then the mean over actors; above 0 is right, below 0 is wrong."""
    by_query: dict[str, list[tuple[str | None, Mapping[int, float]]]] = {}
    for query, actor, verdicts in votes:
        by_query.setdefault(query, []).append((actor, verdicts))
    means = {query: _mean_verdicts(by_query[query]) for query in sorted(by_query)}
    grades = {query: right for query, verdicts in means.items() if (right := _right(verdicts))}
    wrong = {query: found for query, verdicts in means.items() if (found := _wrong(verdicts))}
    return Judgements(grades, {query: units[query] for query in grades if query in units}, wrong)


def _right(verdicts: Mapping[int, float]) -> Mapping[int, float]:
    """Those above 0: usually all of them."""
    return verdicts if min(verdicts.values(), default=0) > 0 else {n: g for n, g in verdicts.items() if g > 0}


def _wrong(verdicts: Mapping[int, float]) -> Mapping[int, float]:
    """Those below 0, and how far below: usually none."""
    return {n: -g for n, g in verdicts.items() if g < 0} if min(verdicts.values(), default=0) < 0 else {}


def _mean_verdicts(votes: Sequence[tuple[str | None, Mapping[int, float]]]) -> Mapping[int, float]:
    """The mean verdict on each document."""
    if len(votes) == 1:
        return votes[0][1]
    latest: dict[int, dict[str | None, float]] = {}
    for actor, verdicts in votes:
        for number, grade in verdicts.items():
            latest.setdefault(number, {})[actor] = grade
    means = {}
    for number in sorted(latest):
        grades = sorted(grade for grade in latest[number].values() if grade)  # 0 takes a verdict back
        if grades:
            means[number] = sum(grades) / len(grades)
    return means
