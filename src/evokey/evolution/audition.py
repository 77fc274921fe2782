"""The audition: what do the lessons of each voice, and what each document learned, do to the questions of others?

Some questions of every voice are asked on what the other folds taught, with two usual choices. A taught document that
rises into a top ten changes the nDCG of that question, by the verdicts of the voice that asked it. The change is
ascribed to the taught text of the document that is most like the question, and so to the voices that taught it; and,
the other way round, to the voices that call that pair wrong. Then

- a document that enters the top tens of too many voices that have nothing to do with it, in the fused ranking or that
  of one retriever, does not learn from voices that named it for many questions;
- voices that taught more than usual, and whose lessons cost others more than they bring, are left out, if together they
  cost a noticeable part of everybody's nDCG.

The owner's lessons are never left out. All of it is a function of the set of lessons and the documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from evokey.evolution.attribution import Attribution, attribute
from evokey.evolution.folds import sample, split_folds
from evokey.evolution.grid import NOTHING
from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF, ideal_dcg
from evokey.evolution.trial import Trial
from evokey.evolution.voices import EVIDENCE, Voice, Voices
from evokey.search.fusion import FUSION_DEPTH, Fusion
from evokey.search.retriever import Retriever
from evokey.types import Choice, Ranking, Scores

USUAL, ROWS = Choice(spread=0.5, step=1.0, penalty=0.1), Choice(penalty=0.0)
"""What is taught with: a usual choice, and taught questions kept as keys at their strongest."""
QUESTIONS, LEAST_QUESTIONS = 400, 3
"""Questions that are asked at most, all voices together; and of each voice at least, if it has so many."""
ENTERED = 0.02
"""The share of the questions of others that a document may enter without having to do with them; or, if one of these is
more:"""
TIMES_CHANCE, TIMES_USUAL = 2, 3
"""this multiple of what ten documents drawn by lot would enter; and of what taught documents enter on the mean."""
REPEATED = 3
"""A voice that insists on so many documents like that is not heard on any document that it insists on."""
WITNESSES = 3
"""Voices that must be affected before anything is left out; questions, if there are hardly so many voices."""
HEAVY = 3
"""A voice with more than so many times the usual number of queries is auditioned."""
NOTICEABLE, SURE, LIKELY = 0.01, 2.0, 1.0
"""What voices must cost others to be left out: a share of everybody's nDCG, all of them together; and a number of
standard errors: surely if they teach, likely if they only contradict. Each alone must be likely to cost others."""
Rankings = Sequence[tuple[Ranking, float]]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the audition takes place: the untaught index."""

    retrievers: Sequence[Retriever]
    fusion: Fusion
    pools: Mapping[str, Mapping[str, Ranking]]
    """The untaught results of queries, by retriever."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as one voice asks it: by the verdicts of this voice."""

    voice: Voice
    query: str
    grades: Mapping[int, float]
    weight: float
    """All questions of a voice together weigh 1; each of the owner's does."""
    witness: tuple[Voice, str]
    """Who is affected: a voice; or a question, of the owner or where there are few voices."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a document that learned does to a question."""

    question: Question
    document: int
    taught_by: str
    """The taught query that is most like the question."""
    change: float
    """Of the question's nDCG@10."""
    entered: bool
    """Whether it came into the top ten without being right."""


Role = tuple[Voice, bool]
"""A voice as far as it calls documents right, or wrong (False)."""
Unwanted = tuple[frozenset[Role], frozenset[tuple[Voice, int]]]
"""Roles to leave out, and voices that are left out of what one document learns."""
NOBODY: Unwanted = frozenset(), frozenset()


def audition(units: Mapping[str, Sequence[str]], voices: Voices, stage: Stage) -> Unwanted:
    """What is better left out."""
    judges = Audition(units, voices)
    return judges.decide(stage) if judges.needed else NOBODY


class Audition:
    def __init__(self, units: Mapping[str, Sequence[str]], voices: Voices) -> None:
        self._voices = voices
        self._discredited: set[Voice] = set()
        """Voices that insist on a crowding document: what they lose by the lessons of others says nothing."""
        grades: dict[str, dict[int, float]] = {}
        for (query, number), said in sorted(voices.verdicts.items(), key=lambda one: one[0]):
            right = [grade for grade in said.values() if grade > 0]
            if right:
                grades.setdefault(query, {})[number] = fmean(right)
        self._lessons = Judgements(grades, {query: units[query] for query in grades if query in units})
        """Everything that any voice calls right, whatever others say."""

    @cached_property
    def heavy(self) -> set[Voice]:
        """Voices that taught or contradicted more than usual."""
        most = max(HEAVY * self._voices.usual, EVIDENCE)
        said = {who: set(queries) for who, queries in self._voices.queries.items()}
        for (query, _), who in ((pair, who) for pair, grades in self._voices.verdicts.items() for who in grades):
            said.setdefault(who, set()).add(query)
        return {who for who, queries in said.items() if len(queries) > most and not self._voices.is_trusted(who)}

    @cached_property
    def insistent(self) -> dict[int, set[Voice]]:
        """Documents, and the voices that named them for many questions."""
        named = Counter((who, number) for (_, number), who in self._right)
        found: dict[int, set[Voice]] = {}
        for (who, number), count in named.items():
            if count > self._voices.most_evidence(who) and not self._voices.is_trusted(who):
                found.setdefault(number, set()).add(who)
        return found

    @property
    def _right(self) -> Iterator[tuple[tuple[str, int], Voice]]:
        verdicts = self._voices.verdicts.items()
        return ((pair, who) for pair, grades in verdicts for who, grade in grades.items() if grade > 0)

    @property
    def needed(self) -> bool:
        return bool(self.heavy or self.insistent) and len(self.questions) > WITNESSES

    @cached_property
    def questions(self) -> list[Question]:
        queries, found = self._voices.queries, []
        few = len(queries) <= 2 * WITNESSES
        most = max(LEAST_QUESTIONS, QUESTIONS // max(len(queries), 1))
        for who, own in queries.items():
            asked = sample(own, QUESTIONS if self._voices.is_trusted(who) else most)
            trusted = self._voices.is_trusted(who)
            weight = 1.0 if trusted else 1 / len(asked)
            for query in asked:
                witness = (who, query if trusted or few else "")
                found.append(Question(who, query, self._grades(who, query), weight, witness))
        return found

    def _grades(self, voice: Voice, query: str) -> dict[int, float]:
        verdicts = ((number, self._voices.verdicts[query, number]) for number in self._lessons.grades[query])
        return {number: said[voice] for number, said in verdicts if said.get(voice, 0.0) > 0}

    def decide(self, stage: Stage) -> Unwanted:
        (effects, *others), before = self._perform(stage)
        least = max(ENTERED, TIMES_CHANCE * CUTOFF / max(len(stage.retrievers[0].documents), 1))
        found = (self._find_crowding(some, least) for some in (effects, *others))
        crowded = self._spread(set[tuple[Voice, int]]().union(*found))
        rest = [one for one in effects if not self._find_blame(one) <= crowded]
        self._discredited = {who for who, _ in crowded}
        teaching, contradicting = (self._find_unwanted(rest, right, before) for right in (True, False))
        return frozenset(teaching | contradicting), frozenset(crowded)

    # ---- documents that enter too many questions

    def _find_crowding(self, effects: Sequence[Effect], least: float) -> set[tuple[Voice, int]]:
        """Documents that enter too many questions of others, each with the voices that insist on it. least: the share
        of the questions that is too many."""
        shares = {number: self._entry_share(number, effects) for number in self._count_entries(effects)}
        touched = len({number for grades in self._lessons.grades.values() for number in grades})
        found = set()
        for number, share in shares.items():
            usual = (sum(shares.values()) - share) / max(touched - 1, 1)
            if share > max(least, TIMES_USUAL * usual):
                found |= {(who, number) for who in self.insistent.get(number, ())}
        return found

    def _spread(self, crowded: set[tuple[Voice, int]]) -> set[tuple[Voice, int]]:
        """With all documents that the same voices insist on, if it is many."""
        repeated = {who for who, count in Counter(who for who, _ in crowded).items() if count >= REPEATED}
        return crowded | {(who, number) for number, some in self.insistent.items() for who in some & repeated}

    def _count_entries(self, effects: Iterable[Effect]) -> list[int]:
        """Documents that enter questions of enough voices."""
        witnesses: dict[int, set[tuple[Voice, str]]] = {}
        for one in effects:
            if one.entered:
                witnesses.setdefault(one.document, set()).add(one.question.witness)
        return sorted(number for number, some in witnesses.items() if len(some) >= WITNESSES)

    def _entry_share(self, number: int, effects: Iterable[Effect]) -> float:
        """The share of the questions of voices that did not name a document which it enters."""
        own = self._teachers[number]
        others = sum(one.weight for one in self.questions if one.voice not in own or one.voice is None)
        entered = (
            one.question.weight
            for one in effects
            if one.document == number and one.entered and (one.question.voice not in own or one.question.voice is None)
        )
        return sum(entered) / others if others else 0.0

    @cached_property
    def _teachers(self) -> dict[int, set[Voice]]:
        found: dict[int, set[Voice]] = {}
        for (_, number), who in self._right:
            found.setdefault(number, set()).add(who)
        return found

    # ---- voices that cost others more than they bring

    def _find_unwanted(self, effects: Sequence[Effect], right: bool, before: float) -> set[Role]:
        """Gains of voices that are left out themselves do not count: they may agree with each other only."""
        roles, found = {(who, right) for who in self.heavy}, set[Role]()
        while more := {role for role in roles - found if self._costs(effects, {role}, found) > LIKELY}:
            found |= more
        cost = self._changes(effects, found, found).values()
        noticeable = len(cost) > 1 and fmean(cost) < -NOTICEABLE * before
        return found if noticeable and self._costs(effects, found, found) > (SURE if right else LIKELY) else set()

    def _costs(self, effects: Iterable[Effect], group: set[Role], without: set[Role]) -> float:
        """What a group of voices costs others, in standard errors; 0 if too few lose by it."""
        changes = self._changes(effects, group, without).values()
        if sum(change < 0 for change in changes) < WITNESSES:
            return 0.0
        error = stdev(changes) / math.sqrt(len(changes))
        return -fmean(changes) / max(error, 1e-12)

    def _changes(
        self, effects: Iterable[Effect], group: set[Role], without: set[Role]
    ) -> dict[tuple[Voice, str], float]:
        """What the lessons of a group change for each other voice, without some voices."""
        own = {who for who, _ in group | without} | self._discredited
        others = [one for one in self.questions if one.voice not in own]
        found = {one.witness: 0.0 for one in others}
        for one in effects:
            if one.question.witness in found:
                change = sum(part for role, part in self._ascribe(one) if role in group)
                found[one.question.witness] += one.question.weight * change
        return found

    def _find_blame(self, effect: Effect) -> set[tuple[Voice, int]]:
        said = self._voices.verdicts[effect.taught_by, effect.document]
        return {(who, effect.document) for who, grade in said.items() if grade > 0}

    def _ascribe(self, effect: Effect) -> Iterator[tuple[Role, float]]:
        """Those who taught it share the change; those who contradict it would undo it."""
        said = self._voices.verdicts[effect.taught_by, effect.document]
        right, wrong = ([who for who, grade in said.items() if sign * grade > 0] for sign in (1, -1))
        yield from (((who, True), effect.change / len(right)) for who in right)
        yield from (((who, False), -effect.change / len(wrong)) for who in wrong)

    # ---- asking

    def _perform(self, stage: Stage) -> tuple[list[list[Effect]], float]:
        """The effects on all questions, in each view; and their mean nDCG@10 in the untaught index, voice by voice."""
        asked: dict[str, list[Question]] = {}
        for question in self.questions:
            asked.setdefault(question.query, []).append(question)
        pools = [stage.pools[one.name] for one in stage.retrievers]
        attributions = [attribute(one, self._lessons) for one in stage.retrievers]
        effects, before = list[list[Effect]](), 0.0
        for fold in split_folds(self._lessons.queries):
            parts = [one.leave_out(frozenset(fold)) for one in attributions]
            queries = [query for query in fold if query in asked]
            for scene in _ask(stage, parts, pools, self._lessons.only(queries)):
                effects = effects or [[] for _ in scene.views]
                for question in asked[scene.query]:
                    before += question.weight * _ndcg(scene.views[0].untaught, question.grades)
                    for found, view in zip(effects, scene.views, strict=True):
                        found += scene.effects(question, view)
        return effects, before / sum(one.weight for one in self.questions)


class View(NamedTuple):
    """What a query finds in the untaught index, and on what the other folds taught."""

    untaught: list[int]
    taught: list[int]


@dataclass(frozen=True)
class Scene:
    """One query, asked in several views: with a usual choice; then with rows, fused and in each retriever alone."""

    query: str
    views: Sequence[View]
    nearest: Callable[[int], str | None]
    """The taught query of a document that is most like this one; None if it was taught nothing."""

    def effects(self, question: Question, view: View) -> Iterator[Effect]:
        untaught, taught = view
        after = _ndcg(taught, question.grades)
        for rank, number in enumerate(taught[:CUTOFF]):
            before = untaught.index(number) if number in untaught else FUSION_DEPTH
            source = self.nearest(number) if rank < before else None
            if source is None:
                continue
            others = [one for one in taught if one != number]
            if before < FUSION_DEPTH:
                others.insert(before, number)
            change = after - _ndcg(others, question.grades)
            entered = before >= CUTOFF and number not in question.grades
            yield Effect(question, number, source, change, entered)


def _ask(
    stage: Stage, parts: Sequence[Attribution], pools: Sequence[Mapping[str, Ranking]], queries: Judgements
) -> Iterator[Scene]:
    """The queries of a fold, on what the other folds taught."""
    both = list(zip(stage.retrievers, parts, strict=True))
    trials = [Trial(*one, queries, pool) for one, pool in zip(both, pools, strict=True)]
    units = 1.0 if parts[0].has_units else 0.0
    choices = NOTHING, replace(USUAL, unit_weight=units), replace(ROWS, unit_weight=units)
    ranked = [[one.rankings(choice, FUSION_DEPTH) for one in trials] for choice in choices]
    likeness = np.zeros((len(queries.queries), len(parts[0].texts)))
    for weight, one in zip(stage.fusion.untaught, both, strict=True):
        likeness += weight * _likeness(*one, queries.queries)
    for place, query in enumerate(queries.queries):
        before, usual, rows = ([one[place] for one in some] for some in ranked)
        untaught = _fuse(stage.fusion, before)
        views = [View(untaught, _fuse(stage.fusion, some)) for some in (usual, rows)]
        if len(both) > 1:
            views += [View(_numbers(one), _numbers(other)) for (one, _), (other, _) in zip(before, rows, strict=True)]
        yield Scene(query, views, Nearest(parts, likeness[place]))


@dataclass(frozen=True)
class Nearest:
    """Finds the taught query behind what a document learned."""

    parts: Sequence[Attribution]
    likeness: Scores
    """Of every text with the question."""

    def __call__(self, number: int) -> str | None:
        for part in self.parts:
            place = part.touched.place(number)
            if place is None:
                continue
            rows = part.touched.rows(number)
            span = slice(*np.searchsorted(part.pairs.rows, (rows.start, rows.stop)))
            if span.start < span.stop:
                best = int(np.argmax(self.likeness[part.pairs.columns[span]]))
                return part.texts[int(part.pairs.queries[span][best])]
        return None


def _likeness(retriever: Retriever, part: Attribution, queries: Sequence[str]) -> Scores:
    """How like each query each taught text is, as a share of the query's self-similarity."""
    if not queries or not len(part.block):
        return np.zeros((len(queries), len(part.texts)))
    words = part.count_words()
    questions = [retriever.lesson(query, words) for query in queries]
    own = np.array([max(one.self_similarity, 1e-9) for one in questions])
    return np.asarray(part.block.total(part.block.table(questions)) / own[:, None])


def _fuse(fusion: Fusion, parts: Rankings) -> list[int]:
    rankings, trusts = [one for one, _ in parts], [trust for _, trust in parts]
    fused = fusion.fused(rankings, trusts, fusion.untaught, FUSION_DEPTH) if len(rankings) > 1 else rankings[0]
    return _numbers(fused)


def _numbers(ranking: Ranking) -> list[int]:
    return [int(number) for number in ranking.numbers]


def _ndcg(numbers: Sequence[int], grades: Mapping[int, float]) -> float:
    gains = (grades.get(number, 0.0) / np.log2(rank + 2) for rank, number in enumerate(numbers[:CUTOFF]))
    return float(sum(gains)) / ideal_dcg(grades)
