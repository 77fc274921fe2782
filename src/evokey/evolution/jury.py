"""Plans, judged by the fused ranking: what all retrievers do together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from evokey.evolution.choosing import CLEARLY, Outcomes, behind, chosen, joined, sparing
from evokey.evolution.evidence import FOLDS, Taught
from evokey.evolution.fit import NOTHING, Fit
from evokey.evolution.judge import Judge, ideal
from evokey.evolution.trial import Trial
from evokey.fusion import DEPTH, Fusion, Weights
from evokey.types import Choice, Ranking, Scores

Plan = tuple[tuple[Choice, ...], Weights]
"""A choice for each retriever, and the weight of each in the fused score."""


class Jury:
    """Judges plans by the fused ranking."""

    def __init__(self, fits: Sequence[Fit], fusion: Fusion, lessons: Taught, pins: Taught) -> None:
        self._fits, self._fusion, self._grades = fits, fusion, lessons.grades
        self._pinned = pins.grades

    def sparing(self, plans: Sequence[Plan], untaught: Plan) -> list[Plan]:
        """Those of the plans that make no pinned query worse."""
        judged = self._judged(plans, [fit.pinned for fit in self._fits], grades=self._pinned)
        return sparing(judged, untaught)

    def held_out(self, plans: Sequence[Plan], *, bystanders: bool = False) -> dict[Plan, Scores]:
        trials = [[fit.folds[index] for fit in self._fits] for index in range(FOLDS)]
        return joined([self._judged(plans, fold, bystanders=bystanders) for fold in trials])

    def taught(self, plans: Sequence[Plan]) -> dict[Plan, Scores]:
        return self._judged(plans, [fit.own for fit in self._fits])

    def _judged(
        self,
        plans: Sequence[Plan],
        trials: Sequence[Trial],
        *,
        bystanders: bool = False,
        grades: Mapping[str, Mapping[int, float]] | None = None,
    ) -> dict[Plan, Scores]:
        if len(trials) == 1:
            choices = list(dict.fromkeys(plan[0][0] for plan in plans))
            outcomes = trials[0].outcomes_and_bystanders(choices)[1] if bystanders else trials[0].outcomes(choices)
            return {plan: outcomes[plan[0][0]] for plan in plans}
        variants = [list(dict.fromkeys(plan[0][part] for plan in plans)) for part in range(len(trials))]
        ranked = [
            {choice: trial.rankings(choice, DEPTH, bystanders=bystanders) for choice in choices}
            for trial, choices in zip(trials, variants, strict=True)
        ]
        known = self._grades if grades is None else grades
        judged = [
            self._fused(known[query], plans, variants, ranked, index) for index, query in enumerate(trials[0].asked)
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
        for row, (choices, weights) in enumerate(plans):
            for part, (choice, weight) in enumerate(zip(choices, weights, strict=True)):
                mix[row, first[part] + variants[part].index(choice)] = weight
        scores = mix @ shares
        gains = np.array([grades.get(int(number), 0.0) for number in numbers], np.float32)
        table = np.where(scores > 0, scores, -np.inf).astype(np.float32)
        return Judge(np.broadcast_to(gains, table.shape), np.full(len(plans), ideal(grades)))(table)


def planned(choices: Sequence[Choice], untaught: Plan, weightings: Sequence[Weights]) -> list[Plan]:
    """Every retriever taught or not, and with the wrong pushed away or not, under all weightings; the untaught plan
    first."""
    taught_or_not = list(product(*(dict.fromkeys((NOTHING, replace(one, away=0.0), one)) for one in choices)))
    return list(dict.fromkeys([untaught, *product(taught_or_not, weightings)]))


def chosen_plan(held_out: Outcomes[Plan], expected: Outcomes[Plan], taught: Outcomes[Plan], untaught: Plan) -> Plan:
    """Other weights than the untaught ones only if they are clearly better: they change every ranking."""
    usual = {plan: scores for plan, scores in held_out.items() if plan[1] == untaught[1]}
    plan, other = chosen(usual, expected, taught, untaught), chosen(held_out, expected, taught, untaught)
    return other if behind(expected[other], expected[plan]) > CLEARLY else plan
