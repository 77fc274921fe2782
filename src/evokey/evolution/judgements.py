"""What the lessons say together: which documents are right or wrong for which query, whichever retriever is asked.

This is a function of the set of lessons. Their order does not matter, with one exception: of several verdicts of one
actor on the same query and document, the latest counts.

What people say comes first: a question that a language model wrote counts less (voices.SYNTHETIC_WEIGHT), says nothing
about a document that people have judged for the same question, and judges no choice where a person has taught.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from evokey.evolution.voices import SYNTHETIC_WEIGHT, Pair, Voices, split_synthetic
from evokey.ledger.lessons import Vote
from evokey.ledger.passages import Spans
from evokey.types import Document


@dataclass(frozen=True, slots=True)
class Named:
    """Passages that lessons name: what is taught about a document is credited to them."""

    spans: Spans
    documents: Mapping[int, Document]
    """Those that have such passages."""


DAY = 86_400.0
"""In seconds."""
NOTHING_NAMED = Named({}, {})


@dataclass(frozen=True)
class Judgements:
    """Queries in alphabetical order, each with its relevant documents (numbers) and their grades."""

    grades: Mapping[str, Mapping[int, float]]
    units: Mapping[str, Sequence[str]]
    wrong: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Queries (these and others) with the documents that were named wrong, and how wrong they are."""
    evidence: Mapping[Pair, float] = field(default_factory=dict)
    """Where several voices teach: the weight of a verdict on a query and a document, if it is less than 1."""
    ages: Mapping[Pair, float] = field(default_factory=dict)
    """How many days a verdict on a query and a document is older than the newest lesson, if it is."""
    jury: frozenset[str] | None = None
    """The queries by which choices are judged, where several voices or a language model teach; None: all."""
    synthetic: frozenset[str] = frozenset()
    """Those of the queries that only a language model has asked."""
    named: Named = NOTHING_NAMED
    """Passages that lessons name."""
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

    @property
    def jurors(self) -> Sequence[str]:
        """Those of the queries by which choices are judged."""
        return self.queries if self.jury is None else [query for query in self.queries if query in self.jury]

    def only(self, queries: Sequence[str]) -> Judgements:
        return Judgements({query: self.grades[query] for query in queries}, self.units, named=self.named)


def merge_votes(votes: Iterable[Vote], units: Mapping[str, Sequence[str]], voices: Voices | None = None) -> Judgements:
    """The latest verdict of each actor, then the mean over actors; above 0 is right, below 0 is wrong. voices: weighs
    them, if there are several. What a language model asked is added with less weight."""
    people, synthetic = split_synthetic(votes)
    merged = _merge(people, units, voices)
    if not synthetic:
        return merged
    written = _merge(synthetic, units, None)
    return replace(_add_synthetic(merged, written), ages=_ages(people, synthetic))


def _add_synthetic(people: Judgements, written: Judgements) -> Judgements:
    """What people say, and beside it the verdicts on other questions and documents."""
    judged = {(query, number) for some in (people.grades, people.wrong) for query in some for number in some[query]}
    added = {
        query: {number: grade for number, grade in grades.items() if (query, number) not in judged}
        for query, grades in written.grades.items()
    }
    added = {query: grades for query, grades in added.items() if grades}
    grades = {query: {**added.get(query, {}), **people.grades.get(query, {})} for query in {*added, *people.grades}}
    weights = {(query, number): SYNTHETIC_WEIGHT for query, some in added.items() for number in some}
    jury = people.jury if people.jury is not None else frozenset(people.grades) or None
    return replace(
        people,
        grades={query: dict(sorted(grades[query].items())) for query in sorted(grades)},
        evidence={**people.evidence, **weights},
        units={**written.units, **people.units},
        jury=jury,
        synthetic=frozenset(added) - people.grades.keys(),
    )


def leave_to_people(votes: Sequence[Vote]) -> list[Vote]:
    """The votes without those of a language model on questions that people have judged."""
    people, synthetic = split_synthetic(votes)
    judged = {vote.query for vote in people if any(vote.verdicts.values())}
    return [*people, *(vote for vote in synthetic if vote.query not in judged)] if synthetic else people


def _merge(votes: Sequence[Vote], units: Mapping[str, Sequence[str]], voices: Voices | None) -> Judgements:
    by_query: dict[str, list[Vote]] = {}
    for vote in votes:
        by_query.setdefault(vote.query, []).append(vote)
    means = (
        {query: _mean_verdicts(by_query[query]) for query in sorted(by_query)} if voices is None else _settle(voices)
    )
    grades = {query: right for query, verdicts in means.items() if (right := _right(verdicts))}
    wrong = {query: found for query, verdicts in means.items() if (found := _wrong(verdicts))}
    known = {query: units[query] for query in grades if query in units}
    merged = Judgements(grades, known, wrong, ages=_ages(votes))
    return merged if voices is None else replace(merged, evidence=voices.evidence(), jury=voices.jury())


def _ages(votes: Sequence[Vote], synthetic: Sequence[Vote] = ()) -> Mapping[Pair, float]:
    """In days. A verdict that was given again is as old as its latest vote. Ages count from the newest vote of people:
    their lessons are no older because a language model wrote something later."""
    latest: dict[Pair, float] = {}
    for vote in (*votes, *synthetic):
        for number in vote.verdicts:
            latest[vote.query, number] = max(vote.time, latest.get((vote.query, number), vote.time))
    newest = max((vote.time for vote in votes or synthetic if vote.verdicts), default=0.0)
    return {pair: (newest - time) / DAY for pair, time in latest.items() if time < newest}


def _settle(voices: Voices) -> Mapping[str, Mapping[int, float]]:
    """The verdict on each document, by query."""
    found: dict[str, dict[int, float]] = {}
    for query, number in sorted(voices.verdicts):
        found.setdefault(query, {})[number] = voices.settle((query, number))
    return found


def _right(verdicts: Mapping[int, float]) -> Mapping[int, float]:
    """Those above 0: usually all of them."""
    return verdicts if min(verdicts.values(), default=0) > 0 else {n: g for n, g in verdicts.items() if g > 0}


def _wrong(verdicts: Mapping[int, float]) -> Mapping[int, float]:
    """Those below 0, and how far below: usually none."""
    return {n: -g for n, g in verdicts.items() if g < 0} if min(verdicts.values(), default=0) < 0 else {}


def _mean_verdicts(votes: Sequence[Vote]) -> Mapping[int, float]:
    """The mean verdict on each document."""
    if len(votes) == 1:
        return votes[0].verdicts
    latest: dict[int, dict[str | None, float]] = {}
    for vote in votes:
        for number, grade in vote.verdicts.items():
            latest.setdefault(number, {})[vote.actor] = grade
    means = {}
    for number in sorted(latest):
        grades = sorted(grade for grade in latest[number].values() if grade)  # 0 takes a verdict back
        if grades:
            means[number] = sum(grades) / len(grades)
    return means
