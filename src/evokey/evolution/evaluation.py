"""What plans do to everybody: held-out queries, the taught ones, protected ones, and questions about other things.

A plan may act on all questions, or on those alone that are near a taught one; the untaught index answers the others, so
what it does at any nearness follows from what it does everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from evokey.evolution.choosing import Outcomes, harmless_for, traffic
from evokey.evolution.plans import SAME, Judged, Jury, Plan
from evokey.types import Quality

GAIN_KEPT, GAIN_KEPT_UNKNOWN = 0.9, 0.6
"""The share of the held-out gain that is kept when what was learned is made to reach fewer questions; and where nobody
can tell what questions about other documents would lose."""
LOST = 0.005
"""What questions about other things may lose of what they find untaught (nDCG@10)."""


class Evaluation:
    def __init__(self, jury: Jury, plans: Sequence[Plan], untaught: Plan, shares: tuple[float, float]) -> None:
        """shares: of held-out queries that are about untouched documents, and of documents that are untouched."""
        self._jury, self._untaught = jury, untaught
        self.unrelated, self._untouched = shares
        self._held_out, self._bystanders = jury.held_out(plans), jury.held_out(plans, bystanders=True)
        self._taught, self._protected, self._traffic = jury.taught(plans), jury.protected(plans), jury.traffic(plans)
        loosest = [plan for plan in map(self._loosest, plans) if plan is not None]
        weights = untaught.weights
        wide = any(plan.recalls and plan.weights == weights and plan.least < SAME for plan in loosest)
        self.plans = [plan for plan in loosest if not (wide and plan.recalls and plan.least == SAME)]
        """Those that harm nobody, each acting on as many questions as it may; recall rows that act only where the same
        is asked, if there are no others."""

    def _loosest(self, plan: Plan) -> Plan | None:
        if plan == self._untaught:
            return plan
        if plan.weights != self._untaught.weights and self._jury.nearness is None:
            return None  # learned weights act near lessons alone, and nobody can tell what is near
        levels = [plan._replace(least=least) for least in self._jury.levels]
        if not plan.recalls:
            return next(filter(self._spares, levels), None)
        quiet = (one for one in levels if self._spares(one) and self._loss(self._held_out, one) <= LOST)
        # What was taught is found again, always: at the least where the same is asked.
        return next(quiet, next(filter(self._keeps_promises, reversed(levels)), None))

    def _spares(self, plan: Plan) -> bool:
        """Whether no protected query gets worse, and questions of the traffic about other things lose next to
        nothing."""
        heard = self._traffic is None or self._loss(self._traffic, plan) <= LOST
        return heard and self._keeps_promises(plan)

    def _keeps_promises(self, plan: Plan) -> bool:
        """Whether no protected query gets worse."""
        protected = self._protected.at([plan, self._untaught], self._untaught)
        return harmless_for(protected[plan], protected[self._untaught])

    def _loss(self, judged: Judged, plan: Plan) -> float:
        """The share of their nDCG that queries lose."""
        outcomes = judged.at([plan, self._untaught], self._untaught)
        before, after = (float(outcomes[one].mean()) for one in (self._untaught, plan))
        return 1 - after / before if before else 0.0

    @cached_property
    def held_out(self) -> Outcomes[Plan]:
        return self._held_out.at(self.plans, self._untaught)

    @cached_property
    def expected(self) -> Outcomes[Plan]:
        return self._expect(self.plans)

    def _expect(self, plans: Sequence[Plan]) -> Outcomes[Plan]:
        """Held-out outcomes as future traffic would have them."""
        plans = list(dict.fromkeys([*plans, self._untaught]))
        held_out, bystanders = (some.at(plans, self._untaught) for some in (self._held_out, self._bystanders))
        return traffic(held_out, bystanders, self._untaught, strangers=self.unrelated, untouched=self._untouched)

    @cached_property
    def taught(self) -> Outcomes[Plan]:
        return self._taught.at(self.plans, self._untaught)

    def tighten(self, plan: Plan) -> Plan:
        """The same plan, acting on as few questions as leave most of the held-out gain. Recall rows that bring held-out
        queries nothing act near taught queries anyway."""
        levels = [plan._replace(least=least) for least in self._jury.levels[:-1] if least > plan.least]
        judged = self._held_out.at([plan, *levels, self._untaught], self._untaught)
        gain = {one: float((judged[one] - judged[self._untaught]).mean()) for one in (plan, *levels)}
        if plan == self._untaught or (plan.recalls and gain[plan] <= 0):
            return plan

        def enough(one: Plan) -> bool:
            share = GAIN_KEPT_UNKNOWN if one.least <= self._jury.floor else GAIN_KEPT
            return gain[one] >= share * max(gain[plan], 0.0) and self._spares(one)

        return max([plan, *filter(enough, levels)], key=lambda one: one.least)

    def quality(self, plan: Plan) -> tuple[Quality, Quality, Quality]:
        """Of held-out, taught and unrelated questions."""
        unrelated = self._bystanders if self._traffic is None else self._traffic
        return tuple(
            self._quality(some.at([plan, self._untaught], self._untaught), plan)
            for some in (self._held_out, self._taught, unrelated)
        )  # type: ignore[return-value]

    def _quality(self, outcomes: Outcomes[Plan], plan: Plan) -> Quality:
        before, after = outcomes[self._untaught], outcomes[plan]
        return Quality(float(before.mean()), float(after.mean()), len(after))
