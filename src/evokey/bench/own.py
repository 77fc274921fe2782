"""Would learning help here? The lessons, seeds and traffic of a memory or a layer answer, and nothing of it is changed.

Every question of a lesson is tested once, by what evolve would learn from the lessons on the other questions: a third
is left out at a time, and the rest goes through the whole of evolve, choices and guard included. So no question is
tested on what it taught, nor on a choice that it took part in. People's questions and synthetic ones are told apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.bench.own_subjects import LayerSubject, MemorySubject, Ranker, Subject
from evokey.bench.significance import interval
from evokey.errors import InvalidInput
from evokey.evolution.crossfit import MIN_CROSSFIT
from evokey.evolution.folds import sample
from evokey.evolution.ndcg import ndcg
from evokey.layer.layer import Layer
from evokey.memory import Memory
from evokey.types import SYNTHETIC, Scores

PARTS = 3
"""Parts of the questions: each is tested on what the others taught."""
MOST = 1_500
"""Questions that are tested, at most: of each kind."""
DEPTH = 10
PEOPLE = "people"
Grades = Mapping[str, Mapping[int, float]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Effect:
    """nDCG@10 of some questions without learning and with it; the interval of 95 % is that of the difference."""

    questions: int
    untaught: float
    taught: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        return self.taught - self.untaught

    @property
    def clear(self) -> bool:
        """Whether it is more than chance."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Kind:
    """What learning does to one kind of questions: those of people, or synthetic ones."""

    name: str
    questions: int
    held_out: Effect | None
    """Tested on what the others taught; None: there are too few to tell."""
    related: Effect | None = None
    """Those of them that share a document with what was taught."""
    unrelated: Effect | None = None
    asked_again: Effect | None = None
    """The questions themselves, asked again in the same words after all of them were learned."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Searched questions that nobody judged: how much of their untaught first ten they keep."""

    questions: int
    share: float


@dataclass(frozen=True, slots=True)
class OwnReport:
    documents: int
    lessons: int
    kinds: Mapping[str, Kind]
    by_seeds: Effect | None
    """People's questions, had synthetic lessons alone taught; None where only one kind has taught."""
    traffic: Kept | None
    judged_traffic: Effect | None = None
    judge: str | None = None
    verdicts: tuple[str, ...] = ()
    unasked: int = 0
    """Questions that take no part: what the search function of a layer returns for them is not known."""
    beside: bool = False
    """Whether it is about a layer beside a search function."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Scored:
    """nDCG@10 of each question: untaught, on what the others taught, and on what all taught."""

    before: Mapping[str, float]
    held_out: Mapping[str, float]
    related: Mapping[str, bool]
    """Whether the others taught one of its documents."""
    again: Mapping[str, float]


class Bench:
    """Measures a memory, or a layer beside a search function. Writes nothing to it."""

    def __init__(self, at: Memory | Layer, progress: Progress = lambda done, total: None) -> None:
        self._at, self._progress, self._done, self._steps = at, progress, 0, 0
        self._subject: Subject = LayerSubject(at) if isinstance(at, Layer) else MemorySubject(at)
        self.untaught, self._lessons = self._subject.untaught, self._subject.lessons
        self.grades: Grades = self._subject.taught.grades
        synthetic = self._subject.taught.synthetic
        self.questions = {
            PEOPLE: [query for query in self.grades if query not in synthetic],
            SYNTHETIC: sorted(synthetic),
        }

    @property
    def memory(self) -> Memory:
        """What is measured, for who reads its documents."""
        if isinstance(self._at, Layer):
            raise InvalidInput("a layer beside a search function keeps no documents to read")
        return self._at

    def run(self) -> OwnReport:
        questions = [query for some in self.questions.values() for query in sample(some, MOST)]
        both = all(self.questions.values())
        self._steps = (PARTS + 1 + both) if questions else 0
        before = self._score(self.untaught, questions)
        held_out, related = self._cross_fit(questions) if len(questions) >= MIN_CROSSFIT else ({}, {})
        self.taught = self.learn(()) if questions else self.untaught
        scored = Scored(before, held_out, related, self._score(self.taught, questions))
        kinds = {name: self._describe(name, scored) for name in self.questions}
        report = OwnReport(self._subject.documents, len(self._lessons), kinds, None, self._keep(self.taught))
        report = replace(report, unasked=self._subject.unasked, beside=isinstance(self._at, Layer))
        if both:
            report = replace(report, by_seeds=self._measure_seeds(before))
        return replace(report, verdicts=tuple(give_verdicts(report)))

    def learn(self, without: Iterable[int]) -> Ranker:
        """What evolve would publish, without some lessons."""
        ranker = self._subject.learn(without)
        self._done += 1
        self._progress(self._done, self._steps)
        return ranker

    def _cross_fit(self, questions: Sequence[str]) -> tuple[dict[str, float], dict[str, bool]]:
        """The score of each question on what the others taught; and whether these taught one of its documents."""
        scores, related = dict[str, float](), dict[str, bool]()
        for part in range(PARTS):
            tested = [query for query in questions if part_of(query) == part]
            ranker = self.learn(one.number for one in self._lessons if part_of(one.query) == part)
            known = {number for query in self.grades if part_of(query) != part for number in self.grades[query]}
            scores |= self._score(ranker, tested)
            related |= {query: not known.isdisjoint(self.grades[query]) for query in tested}
        return scores, related

    def _score(self, ranker: Ranker, questions: Sequence[str]) -> dict[str, float]:
        return {query: ndcg(ranker.rank(query, DEPTH).numbers, self.grades[query]) for query in questions}

    def _describe(self, name: str, scored: Scored) -> Kind:
        questions = sample(self.questions[name], MOST)
        repeated = compare(scored.before, scored.again, questions)
        if len(questions) < MIN_CROSSFIT:
            return Kind(name, len(self.questions[name]), None, asked_again=repeated)
        related, unrelated = ([one for one in questions if scored.related[one] is wanted] for wanted in (True, False))
        tested = [compare(scored.before, scored.held_out, some) for some in (questions, related, unrelated)]
        return Kind(name, len(self.questions[name]), tested[0], tested[1], tested[2], repeated)

    def _measure_seeds(self, before: Mapping[str, float]) -> Effect | None:
        ranker = self.learn(one.number for one in self._lessons if one.actor != SYNTHETIC)
        questions = sample(self.questions[PEOPLE], MOST)
        return compare(before, self._score(ranker, questions), questions)

    def _keep(self, ranker: Ranker) -> Kept | None:
        """What searched questions that nobody taught keep of their first ten."""
        asked = [query for query in self._subject.traffic if query not in self.grades]
        found = [[set(one.rank(query, DEPTH).numbers.tolist()) for one in (self.untaught, ranker)] for query in asked]
        shares = [len(before & after) / len(before) for before, after in found if before]
        return Kept(len(shares), float(np.mean(shares))) if shares else None


def part_of(query: str) -> int:
    """Other parts than the folds of evolve: these must not know which question is tested."""
    return int.from_bytes(hashlib.sha256(f"bench {query}".encode()).digest()[:8]) % PARTS


def compare(before: Mapping[str, float], after: Mapping[str, float], questions: Sequence[str]) -> Effect | None:
    if not questions:
        return None
    scores: list[NDArray[np.float64]] = [np.array([one[query] for query in questions]) for one in (before, after)]
    return effect(*scores)


def effect(before: Scores, after: Scores) -> Effect:
    return Effect(len(before), float(before.mean()), float(after.mean()), *interval(after - before))


def give_verdicts(report: OwnReport) -> Iterable[str]:
    """What the figures say, in sentences: for people's questions, for synthetic ones, and for what is searched."""
    if not any(kind.questions for kind in report.kinds.values()):
        otherwise = "" if report.beside else ", or let a language model write questions: evokey seed"
        yield (
            f"too little is known: there is no lesson yet, and {MIN_CROSSFIT} questions are needed. Give feedback"
            + otherwise
        )
    for kind in report.kinds.values():
        if kind.questions:
            yield _verdict(kind)
    if report.by_seeds is not None:
        yield f"synthetic lessons alone, on people's questions: {describe(report.by_seeds)}"
    if report.traffic is not None:
        kept = report.traffic
        yield f"{kept.questions} searched questions that nobody taught keep {kept.share:.1%} of their first ten hits"
    if report.unasked:
        yield (
            f"{report.unasked} taught questions took no part, because what the search function returns for them is not "
            f"known: evolve asks it, in Python"
        )


def _verdict(kind: Kind) -> str:
    whose = "people's questions" if kind.name == PEOPLE else "synthetic questions"
    if kind.held_out is None:
        missing = MIN_CROSSFIT - kind.questions
        return (
            f"{whose}: too little is known. There are lessons on {kind.questions}, and at least {MIN_CROSSFIT} are "
            f"needed ({missing} more); about 100 give a useful interval"
        )
    shown = kind.related if kind.related is not None else kind.held_out
    where = "on questions about what was taught" if kind.related is not None else "on other questions"
    others = "" if kind.unrelated is None else f"; unrelated questions: {describe(kind.unrelated)}"
    doubt = "" if kind.name == PEOPLE else " (a model wrote these: people may ask otherwise)"
    return f"{whose}: {_answer(kind.held_out)}: {describe(shown)} {where}{others}{doubt}"


def _answer(one: Effect) -> str:
    if not one.clear:
        return "no clear effect"
    return "learning helps here" if one.gain > 0 else "learning does harm here"


def describe(one: Effect) -> str:
    """The change, its interval, and how many questions would tell more where it is not clear."""
    if one.low == one.high == 0:
        return f"unchanged ({one.questions} questions)"
    if not one.untaught:
        return f"{one.untaught:.3f} → {one.taught:.3f} ({one.questions} questions)"
    gain, low, high = (value / one.untaught for value in (one.gain, one.low, one.high))
    more = (
        ""
        if one.clear or not one.gain
        else f"; to be sure of a change this large: about {_estimate_questions(one):,} questions"
    )
    return f"{gain:+.1%} ({low:+.1%} to {high:+.1%}, {one.questions} questions{more})"


def _estimate_questions(one: Effect) -> int:
    """Questions with which the interval would leave 0 out, were the change the same."""
    half = (one.high - one.low) / 2
    return int(np.ceil(one.questions * (half / abs(one.gain)) ** 2 / 10) * 10)
