"""Restricted documents learn only from their own lessons, and no other document learns from these.

The lessons are split by document before a policy sees them. The choice, the frequencies of taught words, the lens, the
fusion weights and the decision to publish them come from the public part only. A restricted document then learns from
its own lessons, with the public choice; every constant comes from the public part or from that document:

    c           the weight of its heaviest lesson, instead of the median mass of all taught rows
    n           the public documents that the query credits, and this one
    units       of the lessons that name it
    new words   a word that no document has gets the weight of an unknown word, whether it was taught or not

So a search among other documents gives the same bits with these lessons and without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from evokey.evolution.attribution import Attribution, attribute
from evokey.evolution.judgements import Judgements, merge_votes
from evokey.ledger.lessons import Vote
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.types import Choice, Scores

SAFE = 0.1
"""The penalty of taught questions kept as keys where the public choice keeps none: what was taught is found again, and
little else changes."""
UnitLesson = tuple[str, Sequence[str], Sequence[int]]
"""A query, its units, and the documents that the lesson holds for."""


@dataclass(frozen=True)
class RestrictedJudgements(Judgements):
    """Lessons on restricted documents."""

    apart: ClassVar[bool] = True
    own_units: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    public: Mapping[str, int] = field(default_factory=dict)
    """How many public documents a query credits."""

    def units_for(self, query: str, number: int) -> Sequence[str]:
        return self.own_units.get((query, number), ())


class RestrictedAttribution(Attribution):
    def row_totals(self, matrix: sparse.csr_array) -> Scores:
        """Σω + c of each row, c its heaviest text; 1 where nothing was taught."""
        total = np.ones(matrix.shape[0])
        some = np.flatnonzero(np.diff(matrix.indptr))
        if len(some):
            starts = matrix.indptr[some]
            total[some] = np.add.reduceat(matrix.data, starts) + np.maximum.reduceat(matrix.data, starts)
        return total


def split(
    votes: Sequence[Vote], lessons: Sequence[UnitLesson], restricted: Collection[int], public: Judgements
) -> RestrictedJudgements:
    """The judgements on restricted documents (their numbers are given); public: those on the others. A lesson that
    names both is split in two; its units go to both."""
    units, own_units = _own_units(lessons, restricted)
    own = merge_votes(select(votes, restricted, inside=True), units)
    credited = {query: len(public.grades.get(query, ())) for query in own.grades}
    return RestrictedJudgements(own.grades, own.units, own.wrong, own.evidence, own_units=own_units, public=credited)


def select(votes: Iterable[Vote], restricted: Collection[int], *, inside: bool) -> Iterator[Vote]:
    """The votes on restricted documents (inside), or on the others."""
    for vote in votes:
        kept = {number: grade for number, grade in vote.verdicts.items() if (number in restricted) is inside}
        if kept:
            yield vote._replace(verdicts=kept)


def public_units(lessons: Iterable[UnitLesson], restricted: Collection[int]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for query, units, numbers in lessons:
        if any(number not in restricted for number in numbers):
            found.setdefault(query, set()).update(units)
    return {query: sorted(units) for query, units in found.items()}


def _own_units(
    lessons: Iterable[UnitLesson], restricted: Collection[int]
) -> tuple[dict[str, list[str]], dict[tuple[str, int], list[str]]]:
    """The units of each query, and those of each query for each restricted document."""
    every: dict[str, set[str]] = {}
    own: dict[tuple[str, int], set[str]] = {}
    for query, units, numbers in lessons:
        for number in numbers:
            if number in restricted:
                every.setdefault(query, set()).update(units)
                own.setdefault((query, number), set()).update(units)
    return {query: sorted(found) for query, found in every.items()}, {key: sorted(found) for key, found in own.items()}


def overlay(retriever: Retriever, lessons: RestrictedJudgements, choice: Choice) -> Overlay | None:
    """What restricted documents learned, with the choice that came from the public lessons; None if nothing."""
    if choice.penalty is None or choice.gate_weights:  # the gate is of the public part: nothing of it acts here
        penalty = SAFE if choice.penalty is None else min(choice.penalty, SAFE)
        choice = replace(choice, penalty=penalty, gate_weights=(), sharpness=0.0)
    used = lessons if choice.demotion else replace(lessons, wrong={})
    if not (used.grades or used.wrong):
        return None
    found = _attribute(retriever, used).overlay(choice)
    if choice.demotion and found.against is None:  # computed in one way, whether another document was wrong or not
        against = choice.step * found.evidence
        against.eliminate_zeros()
        found = replace(found, against=against)
    return replace(found, learned={}) if len(found.documents) else None


def _attribute(retriever: Retriever, lessons: RestrictedJudgements) -> RestrictedAttribution:
    found = attribute(retriever, lessons)
    pairs = found.pairs
    credited = np.array([1 + lessons.public.get(text, 0) for text in found.texts], np.float64)
    parts = {one.name: getattr(found, one.name) for one in fields(found)}
    return RestrictedAttribution(**{**parts, "pairs": replace(pairs, credited=credited[pairs.queries])})
