"""Plans: what all retrievers do together, and for which questions. They are scored by the fused ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.choosing import MUCH_BETTER, Populations, errors_behind, join_folds
from evokey.evolution.crossfit import CrossFit
from evokey.evolution.folds import FOLDS
from evokey.evolution.grid import NOTHING
from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF, TableNdcg, ideal_dcg
from evokey.evolution.nearness import EVERY_QUESTION, Nearest, Nearness
from evokey.evolution.openings import Gate
from evokey.evolution.policy import TrainingData
from evokey.evolution.trial import Trial
from evokey.search.fusion import FUSION_DEPTH, Weights
from evokey.types import Choice, Ranking, Scores

FEW_UNRELATED = 0.1
"""If the share of unrelated held-out queries is below this part of the share of untouched documents, hardly anything is
known about questions on these documents."""
LOW = 2
"""How many of the thresholds are low."""
SAME_QUESTION = 0.95
"""The similarity of a question that is almost the same."""


class Plan(NamedTuple):
    choices: tuple[Choice, ...]
    """One for each retriever."""
    weights: Weights
    """The weight of each in the fused score."""
    threshold: float = EVERY_QUESTION
    """How similar to a taught query a question must be for the plan to act on it."""

    @property
    def only_taught_keys(self) -> bool:
        """Whether taught questions are kept as keys of every retriever, and nothing else is learned."""
        return all(one.only_taught_keys for one in self.choices)


@dataclass(frozen=True)
class PlanOutcomes:
    """nDCG@10 of some queries under each plan that acts on all of them; and their similarity to taught queries."""

    everywhere: Mapping[Plan, Scores]
    near: Nearest | None = None
    weights_threshold: float = EVERY_QUESTION
    """How similar a query must be for learned fusion weights."""

    def of(self, plans: Iterable[Plan], untaught: Plan) -> dict[Plan, Scores]:
        """Of plans with thresholds: the untaught index answers the queries that are not similar enough."""
        return {plan: self._of(plan, untaught) for plan in plans}

    def _of(self, plan: Plan, untaught: Plan) -> Scores:
        whole = plan._replace(threshold=EVERY_QUESTION)
        scores = self.everywhere[whole]
        if self.near is None:
            return scores
        if plan.weights != untaught.weights:
            usual = self.everywhere[whole._replace(weights=untaught.weights)]
            scores = np.where(self.near >= self.weights_threshold, scores, usual)
        return np.where(self.near >= plan.threshold, scores, self.everywhere[untaught])


class PlanScorer:
    """Scores plans by the fused ranking, for each population of queries."""

    def __init__(self, fits: Sequence[CrossFit], data: TrainingData) -> None:
        self._fits, self._fusion, self._lessons, self._protected = fits, data.fusion, data.lessons, data.protected
        self.untaught = Plan(tuple(NOTHING for _ in fits), data.fusion.untaught)
        self._dense = next((fit for fit in fits if fit.retriever.kind != "sparse"), None)
        self.nearness: Nearness | None = None
        if self._dense is not None and data.lessons.queries:
            self.nearness = Nearness(self._dense.retriever, data.lessons.judged)

    @property
    def related(self) -> NDArray[np.bool_]:
        """Which held-out queries share a document with what the other folds taught."""
        return self._fits[0].related

    @property
    def newer(self) -> NDArray[np.bool_]:
        """Which held-out queries are of the newer half."""
        return self._fits[0].newer

    @property
    def unrelated(self) -> float:
        """The share of unrelated held-out queries."""
        return self._fits[0].unrelated

    @property
    def untouched(self) -> float:
        """The share of untouched documents."""
        return self._fits[0].untouched

    @cached_property
    def min_threshold(self) -> float:
        """If hardly any lesson is about a document of its own, nothing says what questions on other documents would
        lose: then a plan should act only on questions that are nearer to a taught query than these documents are."""
        if self.nearness is None or self.unrelated >= FEW_UNRELATED * self.untouched:
            return EVERY_QUESTION
        return self.nearness.of_untouched(self._fits[0].learners)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """Similarities that a plan may require, the lowest first."""
        if self.nearness is None:
            return (EVERY_QUESTION,)
        return tuple(sorted({EVERY_QUESTION, *self.nearness.thresholds, self.min_threshold, SAME_QUESTION}))

    @cached_property
    def low_thresholds(self) -> tuple[float, ...]:
        """Those that hardly any question on what was taught fails to reach."""
        return self.thresholds if self.nearness is None else self.nearness.thresholds[:LOW]

    @cached_property
    def weights_threshold(self) -> float:
        """The similarity that is required for learned fusion weights."""
        return EVERY_QUESTION if self.nearness is None else max(self.nearness.weights_threshold, self.min_threshold)

    def set_gate(self, gate: Gate) -> None:
        """Take this gate for all trials, without a lens."""
        for fit in self._fits:
            fit.set_gate(gate)

    def protected(self, plans: Sequence[Plan]) -> PlanOutcomes:
        return self._with_nearness(plans, [fit.protected for fit in self._fits], self._protected)

    def held_out(self, plans: Sequence[Plan], *, as_unrelated: bool = False) -> PlanOutcomes:
        trials = [[fit.folds[fold] for fit in self._fits] for fold in range(FOLDS)]
        near = None
        if self.nearness is not None:
            measure = self.nearness.measure
            near = np.concatenate([measure(trial[0].queries, without=fold) for fold, trial in enumerate(trials)])
        outcomes = join_folds([self._score(plans, some, self._lessons, as_unrelated) for some in trials])
        return PlanOutcomes(outcomes, near, self.weights_threshold)

    def taught(self, plans: Sequence[Plan]) -> PlanOutcomes:
        return PlanOutcomes(self._score(plans, [fit.taught for fit in self._fits], self._lessons))

    def rewordings(self, plans: Sequence[Plan]) -> PlanOutcomes:
        """Taught queries in other words."""
        trials, near = [fit.rewordings for fit in self._fits], None
        if self.nearness is not None and self._dense is not None:
            asked = self._dense.rewordings
            near = self.nearness.measure_questions([asked.question(query) for query in asked.queries])
        return PlanOutcomes(self._score(plans, trials, trials[0].judgements), near, self.weights_threshold)

    def traffic(self, plans: Sequence[Plan]) -> PlanOutcomes | None:
        """Queries of the traffic that are far from every lesson; None if there were none. Their untaught results count
        as relevant."""
        queries = (self._dense or self._fits[0]).unrelated_traffic
        found = Judgements({query: numbers for query in queries if (numbers := self._search_untaught(query))}, {})
        if not found.queries:
            return None
        return self._with_nearness(plans, [fit.score(found) for fit in self._fits], found)

    def _search_untaught(self, query: str) -> dict[int, float]:
        """The first ten documents of the fused untaught ranking."""
        pools = [fit.pools[query] for fit in self._fits]
        trusts = [fit.retriever.lesson(query, {}).trust for fit in self._fits]
        fused = self._fusion.fused(pools, trusts, self._fusion.untaught, CUTOFF) if len(pools) > 1 else pools[0]
        return dict.fromkeys(fused.numbers[:CUTOFF].tolist(), 1.0)

    def _with_nearness(self, plans: Sequence[Plan], trials: Sequence[Trial], judgements: Judgements) -> PlanOutcomes:
        near = None if self.nearness is None else self.nearness.measure(trials[0].queries)
        return PlanOutcomes(self._score(plans, trials, judgements), near, self.weights_threshold)

    def _score(
        self, plans: Sequence[Plan], trials: Sequence[Trial], judgements: Judgements, as_unrelated: bool = False
    ) -> dict[Plan, Scores]:
        """nDCG@10 of the queries of a trial per retriever, under every plan."""
        if len(trials) == 1:
            choices = list(dict.fromkeys(plan.choices[0] for plan in plans))
            outcomes = trials[0].outcomes_with_unrelated(choices)[1] if as_unrelated else trials[0].outcomes(choices)
            return {plan: outcomes[plan.choices[0]] for plan in plans}
        variants = [list(dict.fromkeys(plan.choices[part] for plan in plans)) for part in range(len(trials))]
        ranked = [
            {choice: trial.rankings(choice, FUSION_DEPTH, as_unrelated=as_unrelated) for choice in choices}
            for trial, choices in zip(trials, variants, strict=True)
        ]
        scored = [
            self._fuse(judgements.grades[query], plans, variants, ranked, index)
            for index, query in enumerate(trials[0].queries)
        ]
        return {plan: np.array([scores[column] for scores in scored]) for column, plan in enumerate(plans)}

    def _fuse(
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
    options: Sequence[Sequence[Choice]], untaught: Plan, weightings: Sequence[Weights], penalties: Sequence[float]
) -> list[Plan]:
    """Every retriever hardly taught or with one of its options, with demotion or without, under all fusion weights; and
    taught questions kept as keys, and nothing else, with these penalties. The untaught plan comes first."""
    hardly = [Choice(penalty=penalty) for penalty in penalties[:1]] or [NOTHING]
    variants = [dict.fromkeys([*hardly, *(replace(one, demotion=0.0) for one in some), *some]) for some in options]
    only_keys = [same_choice(Choice(penalty=penalty), untaught) for penalty in penalties]
    combined = (Plan(*both) for both in product(product(*variants), weightings))
    return list(dict.fromkeys([untaught, *only_keys, *combined]))


def same_choice(choice: Choice, untaught: Plan) -> Plan:
    """A plan in which all retrievers make one choice."""
    return untaught._replace(choices=tuple(choice for _ in untaught.choices))


def choose_plan(populations: Populations[Plan]) -> Plan:
    """Learned fusion weights only if they are much better: they change every ranking."""
    weights = populations.untaught.weights
    plan = populations.only(lambda plan: plan.weights == weights).choose_openly(_has_gate)
    other = populations.only(lambda plan: plan.weights != weights).choose()
    expected = populations.expected
    return other if errors_behind(expected[other], expected[plan]) > MUCH_BETTER else plan


def _has_gate(plan: Plan) -> bool:
    """Whether a gate limits what some retriever learned."""
    return any(one.sharpness for one in plan.choices)
