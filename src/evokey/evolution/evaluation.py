"""The effect of plans on everybody: held-out, taught and protected queries, and unrelated questions.

A plan may act on all questions, or only on those near a taught one. The untaught index answers the others, so the
outcomes with any threshold follow from the outcomes without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.choosing import Populations, no_query_worse
from evokey.evolution.plans import SAME_QUESTION, Plan, PlanOutcomes, PlanScorer
from evokey.types import Quality

KEPT_GAIN = 0.95
"""The share of the held-out gain that must be kept when a plan is limited to fewer questions."""
MOST = 0.5
"""The share of documents that learned nothing from which on most of what people may ask is about something else."""
MAX_LOSS = 0.005
"""What unrelated questions may lose of their untaught results (nDCG@10)."""


class Evaluation:
    def __init__(self, scorer: PlanScorer, plans: Sequence[Plan]) -> None:
        self._scorer, self._untaught = scorer, scorer.untaught
        self._held_out, self._as_unrelated = scorer.held_out(plans), scorer.held_out(plans, as_unrelated=True)
        self._taught, self._protected = scorer.taught(plans), scorer.protected(plans)
        self._traffic, self._rewordings = scorer.traffic(plans), scorer.rewordings(plans)
        decaying = any(choice.half_life for plan in plans for choice in plan.choices)
        self._among = scorer.newer if decaying else None
        """The held-out queries that choose: the newer ones, where older lessons may lose weight."""
        widest = [plan for plan in map(self._widen, plans) if plan is not None]
        weights = self._untaught.weights
        wide = any(
            plan.only_taught_keys and plan.weights == weights and plan.threshold < SAME_QUESTION for plan in widest
        )
        self.plans = [
            plan for plan in widest if not (wide and plan.only_taught_keys and plan.threshold == SAME_QUESTION)
        ]
        """Those that harm nobody, each acting on as many questions as possible. Plans that only answer the same
        question again are left out if there are wider ones of their kind."""

    def _widen(self, plan: Plan) -> Plan | None:
        """The plan with the lowest threshold at which it harms nobody; None if there is none."""
        if plan == self._untaught:
            return plan
        if plan.weights != self._untaught.weights and self._scorer.nearness is None:
            return None  # learned weights act near lessons only, and nothing measures what is near
        levels = [plan._replace(threshold=threshold) for threshold in self._scorer.thresholds]
        if not plan.only_taught_keys:
            return next(filter(self._is_safe, levels), None)
        harmless = (one for one in levels if self._is_safe(one) and self._loss(self._held_out, one) <= MAX_LOSS)
        # What was taught is always found again, at least when the same question is asked.
        return next(harmless, next(filter(self._spares_protected, reversed(levels)), None))

    def _is_safe(self, plan: Plan) -> bool:
        """Whether no protected query gets worse, and unrelated traffic loses almost nothing."""
        spares_traffic = self._traffic is None or self._loss(self._traffic, plan) <= MAX_LOSS
        return spares_traffic and self._spares_protected(plan)

    def _spares_protected(self, plan: Plan) -> bool:
        protected = self._protected.of([plan, self._untaught], self._untaught)
        return no_query_worse(protected[plan], protected[self._untaught])

    def _loss(self, scored: PlanOutcomes, plan: Plan) -> float:
        """The share of their nDCG that queries lose."""
        outcomes = scored.of([plan, self._untaught], self._untaught)
        before, after = (float(outcomes[one].mean()) for one in (self._untaught, plan))
        return 1 - after / before if before else 0.0

    @cached_property
    def populations(self) -> Populations[Plan]:
        """What the plans mean to everybody."""
        return self._populate(self.plans)

    def _populate(self, plans: Sequence[Plan]) -> Populations[Plan]:
        plans = list(dict.fromkeys([*plans, self._untaught]))
        scored = (self._held_out, self._as_unrelated, self._rewordings, self._taught)
        held_out, as_unrelated, rewordings, taught = (some.of(plans, self._untaught) for some in scored)
        groups = (held_out, self._scorer.related, as_unrelated, rewordings, taught)
        found = Populations(*groups, self._untaught, self._scorer.untouched)
        return found if self._among is None else found.among(self._among)

    def narrow(self, plan: Plan) -> Plan:
        """The same plan, acting on as few questions as possible while most of its gain is kept: for held-out queries,
        and for these with what unrelated ones lose. Where most documents learned nothing, it does not act on questions
        that are farther than almost all taught ones are from each other: nothing is known of these. Taught questions
        kept as keys that bring nobody anything act near taught queries anyway."""
        thresholds = (one for one in self._scorer.thresholds[:-1] if one > plan.threshold)
        narrower = [plan._replace(threshold=threshold) for threshold in thresholds]
        known = self._populate([plan, *narrower])
        gain = {one: float((known.held_out[one] - known.held_out[self._untaught]).mean()) for one in (plan, *narrower)}
        worth = {one: known.expect_held_out(one) for one in (plan, *narrower)}
        if known.blind or gain[plan] <= 0:  # simulated rewordings are nearer to what was taught than real ones
            narrower = [one for one in narrower if one.threshold in self._scorer.low_thresholds]
            gain = worth = {one: float(known.expected[one].mean()) for one in (plan, *narrower)}
        if plan == self._untaught or (plan.only_taught_keys and gain[plan] <= 0):
            return plan

        def keeps_enough(one: Plan) -> bool:
            if one.threshold == self._scorer.low_thresholds[0] and self._scorer.untouched >= MOST:
                return self._is_safe(one)
            enough = gain[one] >= KEPT_GAIN * max(gain[plan], 0.0)
            return enough and worth[one] >= min(KEPT_GAIN * worth[plan], worth[plan]) and self._is_safe(one)

        return max([plan, *filter(keeps_enough, narrower)], key=lambda one: one.threshold)

    def quality(self, plan: Plan) -> tuple[Quality, Quality, Quality]:
        """Of held-out, taught and unrelated questions."""
        unrelated = self._as_unrelated if self._traffic is None else self._traffic
        held_out = self._quality(self._held_out, plan, self._among)
        return held_out, self._quality(self._taught, plan), self._quality(unrelated, plan)

    def _quality(self, scored: PlanOutcomes, plan: Plan, among: NDArray[np.bool_] | None = None) -> Quality:
        outcomes = scored.of([plan, self._untaught], self._untaught)
        before, after = outcomes[self._untaught], outcomes[plan]
        if among is not None:
            before, after = before[among], after[among]
        return Quality(float(before.mean()), float(after.mean()), len(after))
