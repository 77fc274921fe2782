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
from evokey.evolution.choosing import sparing
from evokey.evolution.crossfit import FEW, NOTHING, STEPS, Fit
from evokey.evolution.evaluation import Evaluation
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.nearness import EVERY_QUESTION
from evokey.evolution.plans import Jury, Plan, choose_plan, make_plans
from evokey.evolution.policy import Log, Proposal
from evokey.search.fusion import Fusion
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.retriever import Retriever
from evokey.types import Choice, Quality, Ranking, Reach

SPREADS = (0.0, 0.5, 1.0)
UNITS = (0.0, 0.5, 1.0, 2.0)
PENALTIES = (None, 0.4, 0.3, 0.2, 0.1, 0.0)
FEW_PENALTIES = (0.2, 0.1, 0.0)
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
    recall: ClassVar[Sequence[float]] = tuple(one for one in PENALTIES if one is not None)
    """Handicaps of recall rows where nothing else is learned."""
    _attributed: dict[str, tuple[tuple[Judgements, Any, bool], Attribution]] = field(
        default_factory=dict, init=False, repr=False
    )
    """What was attributed last, by retriever: for which lessons and rows, and whether with the wrong ones."""
    hears: ClassVar[bool] = True

    def propose(
        self,
        retrievers: Sequence[Retriever],
        fusion: Fusion,
        lessons: Judgements,
        pools: Mapping[str, Mapping[str, Ranking]],
        protected: Judgements,
        searched: Sequence[str] = (),
    ) -> Proposal:
        names = fusion.names
        untaught = Plan(tuple(NOTHING for _ in names), fusion.untaught)
        fits = [Fit(self, one, lessons, pools[one.name], protected, searched) for one in retrievers]
        jury = Jury(fits, fusion, lessons, protected)
        if len(lessons.queries) < FEW:
            return self._few(names, untaught, jury)
        plans = make_plans([self.choose(fit) for fit in fits], untaught, fusion.weightings(), self.recall)
        known = Evaluation(jury, plans, untaught, (fits[0].unrelated, fits[0].untouched))
        plan = known.tighten(self.decide(known, untaught))
        held_out, taught, unrelated = known.quality(plan)
        near = jury.nearness
        everywhere = plan.least == EVERY_QUESTION and plan.weights == untaught.weights
        reach = None if near is None or everywhere else Reach(near.retriever.name, plan.least, jury.weights_level)
        return replace(
            _proposal(names, plan, taught),
            held_out=held_out,
            unrelated=unrelated,
            reach=reach,
            changes=plan != untaught,
        )

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        if not (log.taught.queries or (choice.demotion and log.taught.wrong)):
            return UNTAUGHT
        attribution = self.attribution(retriever, log.taught, wrong=choice.demotion > 0)
        self._attributed.clear()
        if choice.lens_id is None:
            return attribution.overlay(choice)
        lenses = LensTrainer(retriever, attribution, choice.last_anchor).train((choice.lens_id,))
        return attribution.overlay(choice, lenses.get(choice.lens_id))

    def attribution(self, retriever: Retriever, lessons: Judgements, *, wrong: bool) -> Attribution:
        """Kept from the proposal until it is published. wrong: with what speaks against documents."""
        key = lessons, retriever.base.version, wrong
        known = self._attributed.get(retriever.name)
        if known is None or known[0][0] is not lessons or known[0][1] != key[1] or known[0][2] < wrong:
            heard = lessons if wrong else replace(lessons, wrong={})
            known = self._attributed[retriever.name] = key, self.attribute(retriever, heard)
        return known[1]

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        """Who was taught what."""
        return attribute(retriever, lessons)

    def grid(self, units: bool) -> list[Choice]:
        """What there is to choose from; units: whether any lesson has expansion units."""
        return _grid(units)

    def choose(self, fit: Fit) -> Choice:
        """One retriever's choice."""
        return fit.choose()

    def decide(self, known: Evaluation, untaught: Plan) -> Plan:
        """What all retrievers do together."""
        return choose_plan(known.held_out, known.expected, known.taught, untaught, known.unrelated)

    def _few(self, names: Sequence[str], untaught: Plan, jury: Jury) -> Proposal:
        """Recall rows alone, at the largest penalty at which the taught queries do best."""
        rows = [_all(Choice(penalty=penalty), untaught) for penalty in self.recall if penalty in FEW_PENALTIES]
        plans = sparing(jury.protected([*rows, untaught]).outcomes, untaught)
        own = jury.taught([*plans, untaught]).outcomes
        plan = max(plans, key=lambda plan: round(float(own[plan].mean()), 3))
        plan = plan if own[plan].any() else untaught
        taught = Quality(float(own[untaught].mean()), float(own[plan].mean()), len(own[plan]))
        return replace(_proposal(names, plan, taught), changes=plan != untaught)


def _proposal(names: Sequence[str], plan: Plan, taught: Quality) -> Proposal:
    choice, weights = dict(zip(names, plan.choices, strict=True)), dict(zip(names, plan.weights, strict=True))
    return Proposal(choice, weights, None, taught, changes=True)


def _grid(units: bool) -> list[Choice]:
    """Nothing first: among equals the first is taken."""
    weights = UNITS if units else (0.0,)
    still = [Choice(unit_weight=eta, penalty=penalty) for eta in weights for penalty in PENALTIES]
    moving = [Choice(*move) for move in product(SPREADS, STEPS, weights, PENALTIES)]
    return [NOTHING, *(choice for choice in still if choice.penalty is not None), *moving]


def _all(choice: Choice, untaught: Plan) -> Plan:
    return untaught._replace(choices=tuple(choice for _ in untaught.choices))
