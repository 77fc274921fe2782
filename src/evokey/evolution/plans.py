"""Plans, judged by the fused ranking: what all retrievers do together, and for which questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from evokey.evolution.choosing import BEYOND_DOUBT, Outcomes, behind, choose, joined
from evokey.evolution.crossfit import NOTHING, Fit
from evokey.evolution.folds import FOLDS
from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF, TableNdcg, ideal_dcg
from evokey.evolution.nearness import EVERY_QUESTION, Nearest, Nearness
from evokey.evolution.trial import Trial
from evokey.search.fusion import DEPTH, Fusion, Weights
from evokey.types import Choice, Ranking, Scores

HARDLY = 0.1
"""The share of held-out queries about documents that no other lesson touches, among all that might be, below which
hardly anything is known of such questions."""
SAME = 0.95
"""The likeness of a question that is all but the same."""


class Plan(NamedTuple):
    choices: tuple[Choice, ...]
    """One for each retriever."""
    weights: Weights
    """The weight of each in the fused score."""
    least: float = EVERY_QUESTION
    """How like a taught query a question must be for the plan to act on it."""

    @property
    def reserve(self) -> float:
        """How far recall rows hold back."""
        return min(one.reserve for one in self.choices)

    @property
    def recalls(self) -> bool:
        """Whether taught queries are kept as keys of every retriever, and nothing else is learned."""
        return all(one.recalls for one in self.choices)


@dataclass(frozen=True)
class Judged:
    """nDCG@10 of some queries under each plan, wherever it acts; and how near each is to a taught query."""

    outcomes: Mapping[Plan, Scores]
    near: Nearest | None = None
    sure: float = EVERY_QUESTION
    """How near it must be for other weights than the untaught ones."""

    def at(self, plans: Iterable[Plan], untaught: Plan) -> dict[Plan, Scores]:
        """The same under plans that act near taught queries alone: the untaught index answers the others."""
        return {plan: self._at(plan, untaught) for plan in plans}

    def _at(self, plan: Plan, untaught: Plan) -> Scores:
        whole = plan._replace(least=EVERY_QUESTION)
        scores = self.outcomes[whole]
        if self.near is None:
            return scores
        if plan.weights != untaught.weights:
            usual = self.outcomes[whole._replace(weights=untaught.weights)]
            scores = np.where(self.near >= self.sure, scores, usual)
        return np.where(self.near >= plan.least, scores, self.outcomes[untaught])


class Jury:
    """Judges plans by the fused ranking."""

    def __init__(self, fits: Sequence[Fit], fusion: Fusion, lessons: Judgements, protected: Judgements) -> None:
        self._fits, self._fusion, self._lessons, self._protected = fits, fusion, lessons, protected
        measure = next((fit.retriever for fit in fits if fit.retriever.kind != "sparse"), None)
        self.nearness = Nearness(measure, lessons.judged) if measure is not None and lessons.queries else None

    @cached_property
    def floor(self) -> float:
        """How near a question should be. Where hardly a lesson is about a document that no other lesson is about, it
        cannot be told what questions about the others would lose: it should be nearer than these are."""
        fit = self._fits[0]
        if self.nearness is None or fit.unrelated >= HARDLY * fit.untouched:
            return EVERY_QUESTION
        return self.nearness.of_untouched(fit.learners)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """How near a question may have to be, the least first."""
        if self.nearness is None:
            return (EVERY_QUESTION,)
        return tuple(sorted({EVERY_QUESTION, *self.nearness.levels, self.floor, SAME}))

    @cached_property
    def weights_level(self) -> float:
        """How near it must be for learned weights."""
        return EVERY_QUESTION if self.nearness is None else max(self.nearness.weights_level, self.floor)

    def protected(self, plans: Sequence[Plan]) -> Judged:
        trials = [fit.protected for fit in self._fits]
        return Judged(
            self._judge(plans, trials, grades=self._protected.grades), self._near(trials[0].queries), self.weights_level
        )

    def held_out(self, plans: Sequence[Plan], *, bystanders: bool = False) -> Judged:
        trials = [[fit.folds[index] for fit in self._fits] for index in range(FOLDS)]
        near = None
        if self.nearness is not None:
            near = np.concatenate(
                [self.nearness.measure(fold[0].queries, without=index) for index, fold in enumerate(trials)]
            )
        return Judged(
            joined([self._judge(plans, fold, bystanders=bystanders) for fold in trials]), near, self.weights_level
        )

    def taught(self, plans: Sequence[Plan]) -> Judged:
        return Judged(self._judge(plans, [fit.own for fit in self._fits]))

    def traffic(self, plans: Sequence[Plan]) -> Judged | None:
        """Questions of the traffic that are far from every lesson; None if there were none. What they find untaught
        counts as right."""
        measured = next((fit for fit in self._fits if fit.retriever.kind != "sparse"), self._fits[0])
        found = {query: numbers for query in measured.strangers if (numbers := self._found(query))}
        if not found:
            return None
        trials = [fit.ask(Judgements(found, {})) for fit in self._fits]
        return Judged(self._judge(plans, trials, grades=found), self._near(trials[0].queries), self.weights_level)

    def _found(self, query: str) -> dict[int, float]:
        """What a query finds untaught: the first ten of the fused ranking."""
        pools = [fit.pools[query] for fit in self._fits]
        trusts = [fit.retriever.lesson(query, {}).trust for fit in self._fits]
        fused = self._fusion.fused(pools, trusts, self._fusion.untaught, CUTOFF) if len(pools) > 1 else pools[0]
        return dict.fromkeys(fused.numbers[:CUTOFF].tolist(), 1.0)

    def _near(self, asked: Sequence[str]) -> Nearest | None:
        return None if self.nearness is None else self.nearness.measure(asked)

    def _judge(
        self,
        plans: Sequence[Plan],
        trials: Sequence[Trial],
        *,
        bystanders: bool = False,
        grades: Mapping[str, Mapping[int, float]] | None = None,
    ) -> dict[Plan, Scores]:
        if len(trials) == 1:
            choices = list(dict.fromkeys(plan.choices[0] for plan in plans))
            outcomes = trials[0].outcomes_with_unrelated(choices)[1] if bystanders else trials[0].outcomes(choices)
            return {plan: outcomes[plan.choices[0]] for plan in plans}
        variants = [list(dict.fromkeys(plan.choices[part] for plan in plans)) for part in range(len(trials))]
        ranked = [
            {choice: trial.rankings(choice, DEPTH, as_unrelated=bystanders) for choice in choices}
            for trial, choices in zip(trials, variants, strict=True)
        ]
        known = self._lessons.grades if grades is None else grades
        judged = [
            self._fused(known[query], plans, variants, ranked, index) for index, query in enumerate(trials[0].queries)
        ]
        return {plan: np.array([scores[column] for scores in judged]) for column, plan in enumerate(plans)}

    def _fused(
        self,
        grades: Mapping[int, float],
        plans: Sequence[Plan],
        variants: Sequence[Sequence[Choice]],
        ranked: Sequence[Mapping[Choice, Sequence[tuple[Ranking, float]]]],
        index: int,
    ) -> Scores:
        """nDCG@10 of one query under every plan: all variants share one table of normalised scores."""
        parts = [ranked[part][choice][index] for part, choices in enumerate(variants) for choice in choices]
        numbers, shares = self._fusion.table([ranking for ranking, _ in parts], [trust for _, trust in parts])
        if not len(numbers):
            return np.zeros(len(plans))
        first = np.cumsum([0, *(len(choices) for choices in variants)])
        mix = np.zeros((len(plans), len(parts)))
        for row, plan in enumerate(plans):
            for part, (choice, weight) in enumerate(zip(plan.choices, plan.weights, strict=True)):
                mix[row, first[part] + variants[part].index(choice)] = weight
        scores = mix @ shares
        gains = np.array([grades.get(int(number), 0.0) for number in numbers], np.float32)
        table = np.where(scores > 0, scores, -np.inf).astype(np.float32)
        return TableNdcg(np.broadcast_to(gains, table.shape), np.full(len(plans), ideal_dcg(grades)))(table)


def make_plans(
    choices: Sequence[Choice], untaught: Plan, weightings: Sequence[Weights], recall: Sequence[float]
) -> list[Plan]:
    """Every retriever taught or not, and with the wrong pushed away or not, under all weightings; recall rows alone,
    with these penalties; the untaught plan first."""
    variants = [dict.fromkeys((NOTHING, replace(one, demotion=0.0), one)) for one in choices]
    rows = [untaught._replace(choices=tuple(Choice(penalty=penalty) for _ in choices)) for penalty in recall]
    return list(dict.fromkeys([untaught, *rows, *(Plan(*both) for both in product(product(*variants), weightings))]))


def choose_plan(
    held_out: Outcomes[Plan], expected: Outcomes[Plan], taught: Outcomes[Plan], untaught: Plan, unrelated: float
) -> Plan:
    """Other weights than the untaught ones only if they are better beyond doubt: they change every ranking."""
    usual = {plan: scores for plan, scores in held_out.items() if plan.weights == untaught.weights}
    plan, other = (choose(some, expected, taught, untaught, unrelated=unrelated) for some in (usual, held_out))
    return other if behind(expected[other], expected[plan]) > BEYOND_DOUBT else plan
