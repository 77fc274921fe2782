"""The guarded policy: cross-validate every choice, "learn nothing" included, and propose only what held-out queries
support.

Each retriever makes its own choice; what is evaluated in the end is the fused ranking. The proposal is a function of
the set of lessons and the documents: the order in which lessons came does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from evokey.errors import InvalidSettings
from evokey.evolution.attribution import Attribution, attribute
from evokey.evolution.choosing import LARGEST_LOSS, TAUGHT_TOLERANCE, safe_choices
from evokey.evolution.crossfit import MIN_CROSSFIT, CrossFit
from evokey.evolution.evaluation import Evaluation
from evokey.evolution.grid import PENALTIES, local_grid, make_grid
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.nearness import EVERY_QUESTION
from evokey.evolution.plans import Plan, PlanScorer, choose_plan, make_plans, same_choice
from evokey.evolution.policy import Log, Proposal, TrainingData
from evokey.search.gate import SIGNALS
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.retriever import Retriever
from evokey.types import Choice, Quality, Reach, Scores

FEW_PENALTIES = (0.2, 0.1, 0.0)
"""Penalties to choose from when there are too few lessons to cross-validate."""
FEW_GATE = (-4.0, 8.0, *([0.0] * (SIGNALS - 1)))
"""Half open for a question that is half as similar to a taught one as it can be."""
FEW = (Choice(spread=0.5, step=1.0, penalty=0.1, sharpness=1.0, gate_weights=FEW_GATE),)
"""What is learned then if it does no harm."""
LENSES = ("none", "dense", "all")


@dataclass
class Guarded:
    lens: str = "all"
    """Which retrievers may learn a lens (query map): none, dense, or all."""

    negatives: bool = True
    """Whether documents that were named wrong for a query may be demoted."""

    local: bool = False
    """Whether local keys are tried, too: behind a gate they brought nothing on the sets measured."""

    depends_on_corpus: ClassVar[bool] = False
    uses_traffic: ClassVar[bool] = True
    auditions: ClassVar[bool] = True
    """Lessons that harm what others ask are left out (audition.py)."""
    penalties: ClassVar[Sequence[float]] = PENALTIES
    """Penalties of taught questions kept as keys where nothing else is learned."""
    few: ClassVar[Sequence[Choice]] = FEW
    _attributed: dict[str, tuple[tuple[Judgements, Any, bool], Attribution]] = field(
        default_factory=dict, init=False, repr=False
    )
    """The latest attribution of each retriever: for which lessons and rows, and whether with wrong documents."""

    def __post_init__(self) -> None:
        if self.lens not in LENSES:
            raise InvalidSettings(f"policy guarded: lens is one of {', '.join(LENSES)}, not {self.lens!r}")

    def propose(self, data: TrainingData) -> Proposal:
        fits = [self.fit(retriever, data) for retriever in data.retrievers]
        scorer = PlanScorer(fits, data)
        if len(data.lessons.jurors) < MIN_CROSSFIT:
            return self._propose_few(data.fusion.names, scorer)
        untaught = scorer.untaught
        options = [self.options(fit) for fit in fits]
        evaluation = Evaluation(scorer, make_plans(options, untaught, data.fusion.weightings(), self.penalties))
        plan = evaluation.narrow(self.decide(evaluation))
        held_out, taught, unrelated = evaluation.quality(plan)
        gated = plan._replace(choices=tuple(fit.add_gate(one) for fit, one in zip(fits, plan.choices, strict=True)))
        proposal = _proposal(data.fusion.names, gated, untaught, taught)
        return replace(proposal, held_out=held_out, unrelated=unrelated, reach=_reach(plan, scorer))

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        if not (log.taught.queries or (choice.demotion and log.taught.wrong)):
            return UNTAUGHT
        attribution = self.attribution(retriever, log.taught, wrong=choice.demotion > 0)
        self._attributed.clear()
        trainer = choice.lens_id and LensTrainer.of(retriever, attribution, choice.last_anchor)
        lenses = trainer.train((choice.lens_id,)) if trainer and choice.lens_id else {}
        return attribution.overlay(choice, choice.lens_id and lenses.get(choice.lens_id))

    def fit(self, retriever: Retriever, data: TrainingData) -> CrossFit:
        wrong = self.negatives and retriever.kind != "multi"  # appended vectors cannot demote a document
        attribution = self.attribution(retriever, data.lessons, wrong=wrong)
        with_lens = self.lens in ("all", retriever.kind) and len(data.lessons.jurors) >= MIN_CROSSFIT
        trainer = LensTrainer.of(retriever, attribution) if with_lens else None
        grid = [*self.grid(attribution.has_units), *(local_grid(retriever.kind) if self.local else ())]
        return CrossFit(retriever, attribution, grid, trainer, data)

    def attribution(self, retriever: Retriever, lessons: Judgements, *, wrong: bool) -> Attribution:
        """Kept from the proposal until it is published. wrong: with the documents that were named wrong."""
        key = lessons, retriever.base.version, wrong
        known = self._attributed.get(retriever.name)
        if known is None or known[0][0] is not lessons or known[0][1] != key[1] or known[0][2] < wrong:
            used = lessons if wrong else replace(lessons, wrong={})
            known = self._attributed[retriever.name] = key, self.attribute(retriever, used)
        return known[1]

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        """Which documents were taught which texts."""
        return attribute(retriever, lessons)

    def grid(self, units: bool) -> list[Choice]:
        """The choices to compare; units: whether a lesson has expansion units."""
        return make_grid(units)

    def options(self, fit: CrossFit) -> Sequence[Choice]:
        """The choices of one retriever that are worth trying together with those of others."""
        return fit.options() if fit.together else [fit.choose()]

    def decide(self, known: Evaluation) -> Plan:
        """The plan of all retrievers."""
        return choose_plan(known.populations)

    def _propose_few(self, names: Sequence[str], scorer: PlanScorer) -> Proposal:
        """Too few lessons to cross-validate: a choice that helped other wordings on every set measured, if each taught
        query loses nothing by what the others taught; else taught questions are kept as keys, and nothing else is
        learned, at the largest penalty at which taught queries do best."""
        untaught = scorer.untaught
        scorer.set_gate(FEW_GATE)
        bold = [same_choice(choice, untaught) for choice in self.few]
        kept = [Choice(penalty=one, gate_weights=FEW_GATE) for one in self.penalties if one in FEW_PENALTIES]
        keys = [same_choice(choice, untaught) for choice in kept]
        safe = safe_choices(scorer.protected([*bold, *keys, untaught]).everywhere, untaught)
        others, taught = scorer.held_out(safe).everywhere, scorer.taught(safe).everywhere
        harmless = [one for one in bold if one in safe and _keeps(others[one], others[untaught])]
        found = {one: round(float(taught[one].mean()), 3) for one in safe if one not in bold or one in harmless}
        best = max(found.values())
        bold = [one for one in harmless if found[one] >= best - TAUGHT_TOLERANCE]
        plan = (bold or sorted(found, key=lambda one: -found[one]))[0]
        plan = plan if taught[plan].any() else untaught
        before, after = taught[untaught], taught[plan]
        return _proposal(names, plan, untaught, Quality(float(before.mean()), float(after.mean()), len(after)))


def _keeps(scores: Scores, untaught: Scores) -> bool:
    """Whether queries lose almost nothing."""
    return bool(scores.mean() >= (1 - LARGEST_LOSS) * untaught.mean())


def _proposal(names: Sequence[str], plan: Plan, untaught: Plan, taught: Quality) -> Proposal:
    choice, weights = dict(zip(names, plan.choices, strict=True)), dict(zip(names, plan.weights, strict=True))
    return Proposal(choice, weights, None, taught, changes=plan != untaught)


def _reach(plan: Plan, scorer: PlanScorer) -> Reach | None:
    """None if the plan acts on every question."""
    everywhere = plan.threshold == EVERY_QUESTION and plan.weights == scorer.untaught.weights
    if scorer.nearness is None or everywhere:
        return None
    return Reach(scorer.nearness.retriever.name, plan.threshold, scorer.weights_threshold)
