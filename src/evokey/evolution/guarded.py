"""The guarded policy: propose, cross-fit with "nothing" among the choices, and publish only what held-out queries like.

Each retriever finds its own choice; what is finally judged is the fused ranking. A function of the set of lessons and
the documents alone: asked twice, in whatever order the lessons came, it answers the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

from evokey.errors import InvalidSettings
from evokey.evolution.attribution import Attribution, attribute
from evokey.evolution.choosing import Outcomes, traffic
from evokey.evolution.evidence import Taught
from evokey.evolution.fit import FEW, NOTHING, STEPS, Fit
from evokey.evolution.focus import Focus
from evokey.evolution.jury import Jury, Plan, chosen_plan, planned
from evokey.evolution.policy import Log, Proposal
from evokey.fusion import Fusion
from evokey.overlay import UNTAUGHT, Overlay
from evokey.retriever import Retriever
from evokey.types import Choice, Quality, Ranking

SPREADS = (0.0, 0.5, 1.0)
UNITS = (0.0, 0.5, 1.0, 2.0)
HANDICAPS = (None, 0.4, 0.3, 0.2, 0.1, 0.0)
FEW_HANDICAPS = (0.2, 0.1, 0.0)
LENSES = ("none", "dense", "all")


@dataclass
class Guarded:
    lens: str = "none"
    """Which retrievers' questions may pass a lens: none, dense, or all. Off until it is measured on all sets."""

    negatives: bool = True
    """Whether documents that were named wrong may be pushed away from the query."""

    def __post_init__(self) -> None:
        if self.lens not in LENSES:
            raise InvalidSettings(f"policy guarded: lens is one of {', '.join(LENSES)}, not {self.lens!r}")

    weighs: ClassVar[bool] = False
    _attributed: dict[str, tuple[tuple[Taught, Any, bool], Attribution]] = field(
        default_factory=dict, init=False, repr=False
    )
    """What was attributed last, by retriever: for which lessons and rows, and whether with the wrong ones."""
    hears: ClassVar[bool] = True

    def propose(
        self,
        retrievers: Sequence[Retriever],
        fusion: Fusion,
        lessons: Taught,
        pools: Mapping[str, Mapping[str, Ranking]],
        pins: Taught,
        searched: Sequence[str] = (),
    ) -> Proposal:
        names = fusion.names
        untaught: Plan = (tuple(NOTHING for _ in names), fusion.untaught)
        fits = [Fit(self, one, lessons, pools[one.name], pins, searched) for one in retrievers]
        jury = Jury(fits, fusion, lessons, pins)
        if len(lessons.queries) < FEW:
            return self._few(names, untaught, jury)
        plans = jury.sparing(planned([self.choose(fit) for fit in fits], untaught, fusion.weightings()), untaught)
        held_out, bystanders = jury.held_out(plans), jury.held_out(plans, bystanders=True)
        shares = {"strangers": fits[0].strangers, "untouched": fits[0].untouched}
        expected = traffic(held_out, bystanders, untaught, **shares)
        plan = self.decide(held_out, expected, jury.taught(plans), untaught)
        quality = Quality(float(held_out[untaught].mean()), float(held_out[plan].mean()), len(held_out[plan]))
        return self._proposal(names, plan, untaught, jury, quality)

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        if not (log.taught.queries or (choice.away and log.taught.wrong)):
            return UNTAUGHT
        attribution = self.attribution(retriever, log.taught, wrong=choice.away > 0)
        self._attributed.clear()
        if choice.turn is None:
            return attribution.overlay(choice)
        lenses = Focus(retriever, attribution, choice.anchored).lenses((choice.turn,))
        return attribution.overlay(choice, lenses.get(choice.turn))

    def attribution(self, retriever: Retriever, lessons: Taught, *, wrong: bool) -> Attribution:
        """Kept from the proposal until it is published. wrong: with what speaks against documents."""
        key = lessons, retriever.store.rows, wrong
        known = self._attributed.get(retriever.name)
        if known is None or known[0][0] is not lessons or known[0][1] is not key[1] or known[0][2] < wrong:
            heard = lessons if wrong else replace(lessons, wrong={})
            known = self._attributed[retriever.name] = key, self.attribute(retriever, heard)
        return known[1]

    def attribute(self, retriever: Retriever, lessons: Taught) -> Attribution:
        """Who was taught what."""
        return attribute(retriever, lessons)

    def grid(self, units: bool) -> list[Choice]:
        """What there is to choose from; units: whether any lesson has expansion units."""
        return _grid(units)

    def choose(self, fit: Fit) -> Choice:
        """One retriever's choice."""
        return fit.choose()

    def decide(
        self, held_out: Outcomes[Plan], expected: Outcomes[Plan], taught: Outcomes[Plan], untaught: Plan
    ) -> Plan:
        """What all retrievers do together."""
        return chosen_plan(held_out, expected, taught, untaught)

    def _few(self, names: Sequence[str], untaught: Plan, jury: Jury) -> Proposal:
        """Recall rows alone, at the largest handicap at which the taught queries do best."""
        rows = [_all(Choice(handicap=handicap), untaught) for handicap in FEW_HANDICAPS]
        plans = jury.sparing([*rows, untaught], untaught)
        own = jury.taught(plans)
        plan = max(plans, key=lambda plan: round(float(own[plan].mean()), 3))
        return self._proposal(names, plan if own[plan].any() else untaught, untaught, jury, held_out=None)

    def _proposal(
        self, names: Sequence[str], plan: Plan, untaught: Plan, jury: Jury, held_out: Quality | None
    ) -> Proposal:
        own = jury.taught([untaught, plan])
        taught = Quality(float(own[untaught].mean()), float(own[plan].mean()), len(own[plan]))
        choice, weights = (dict(zip(names, part, strict=True)) for part in plan)
        return Proposal(choice, weights, held_out, taught, changes=plan != untaught)  # type: ignore[arg-type]


def _grid(units: bool) -> list[Choice]:
    """Nothing first: among equals the first is taken."""
    weights = UNITS if units else (0.0,)
    still = [Choice(units=eta, handicap=handicap) for eta in weights for handicap in HANDICAPS]
    moving = [Choice(*move) for move in product(SPREADS, STEPS, weights, HANDICAPS)]
    return [NOTHING, *(choice for choice in still if choice.handicap is not None), *moving]


def _all(choice: Choice, untaught: Plan) -> Plan:
    return tuple(choice for _ in untaught[0]), untaught[1]
