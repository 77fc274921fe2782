"""What is learned beside an engine: every plan is cross-validated, "nothing" included, as in a memory (evolution/).

Questions are scored on what the other folds taught. The rule that chooses and the gate are those of a memory; what is
chosen among is simpler, because there are no keys to move: how much likeness to taught questions counts beside the
engine's own scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Protocol

import numpy as np

from evokey.evolution import gating, guarded
from evokey.evolution.choosing import FEW_UNRELATED, Populations, join_folds, safe_choices
from evokey.evolution.crossfit import FOLD_SAMPLE, MIN_CROSSFIT, REWORDED_SAMPLE, TAUGHT_SAMPLE
from evokey.evolution.evaluation import KEPT_GAIN
from evokey.evolution.folds import fold_of, sample, split_folds
from evokey.evolution.judgements import Judgements
from evokey.evolution.nearness import SLACK
from evokey.evolution.openings import Gate
from evokey.evolution.policy import Proposal
from evokey.layer.scoring import ALL_SIGNALS, Plan, Weights, even
from evokey.layer.teaching import Teaching
from evokey.layer.trial import Trial
from evokey.search.gate import SIGNALS
from evokey.search.rewording import reword
from evokey.types import Choice, Quality, Ranking, Reach, Scores

NAME = "questions"
"""What the choice of a layer is called in reports: taught questions are all it has."""
NOTHING = Choice()
KERNELS = (1.0, 2.0, 4.0)
SPREAD = 0.5
STEPS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
DISCOUNTS = (0.0, 0.05, 0.1, 0.2)
"""What the commonest documents lose is about five times as much."""
PENALTIES = (1.0, 0.2, 0.0)
"""At a penalty of 1, only a question that is asked in (almost) the same words is found by a taught one."""
SHARPNESS = (0.0, 1.0, 2.0, 4.0)
DEMOTIONS = (0.5, 1.0, 2.0)
GROUPS = 3
"""Ways to weigh likeness (measures and power) that are tried with everything else."""
MAX_LOSS, DOUBT = 0.007, 0.5
"""The share of their nDCG that unrelated questions may lose, beyond so many standard errors. Of many plans the one is
chosen that looks best, so that other questions lose more: up to a percent."""
FEW_REAL = 5
"""With so many unrelated held-out questions, these and simulated ones are trusted alike in this."""
FINDS_LITTLE = 0.1
"""Where the engine's own nDCG is below this, there is little to lose."""
QUANTILES = (0.0, 0.05, 0.1)
"""Of how like related held-out questions are to the nearest taught one: where learning may stop acting."""
HIGH_QUANTILES = (0.25, 0.5)
"""The same where the engine finds little: what unrelated questions lose is not known there."""
FEW = Choice(spread=SPREAD, step=2.0, penalty=0.1, sharpness=1.0, kernel=2.0)
"""What is learned from too few lessons to cross-validate, if it does no harm."""
FEW_PENALTIES = (0.2, 0.1, 0.0)
FEW_GATE = (*guarded.FEW_GATE, *([0.0] * (ALL_SIGNALS - SIGNALS)))


class Likeness(Protocol):
    def __call__(self, queries: Sequence[str], *, again: bool = False) -> Scores:
        """How like questions are to the taught ones: measures × questions × taught questions. again: they are taught
        ones in other words, for which nobody has asked the engine."""
        ...


@dataclass(frozen=True)
class Material:
    """What is learned from."""

    lessons: Judgements
    protected: Judgements
    pools: Mapping[str, Ranking]
    """What the engine returned for every taught and protected question."""
    depth: int
    """How many results it was asked for."""
    names: tuple[str, ...]
    """Of the measures of likeness: the encoders, and last the engine's results."""
    likeness: Likeness


class Fit:
    def __init__(self, material: Material) -> None:
        self._material, self._teaching = material, Teaching.of(material.lessons)
        lessons = material.lessons
        self.untaught = Plan(NOTHING, mixes(len(material.names) - 1)[0])
        self._folds = [self._hold_out(fold, queries) for fold, queries in enumerate(split_folds(lessons.queries))]
        self._taught = self._score(lessons.only(sample(lessons.jurors, TAUGHT_SAMPLE)))
        self._protected = self._score(material.protected)
        self._rewordings = self._reword()

    def propose(self) -> Proposal:
        few = len(self._material.lessons.jurors) < MIN_CROSSFIT
        gate = self._set_gate(FEW_GATE) if few else self._train_gate()
        plan = self._choose_few() if few else self._choose()
        reach = None if plan == self.untaught else Reach(NAME, 0.0 if few else self._narrow(plan), 0.0)
        choice = plan.choice if plan == self.untaught else replace(plan.choice, gate_weights=gate)
        weights = dict(zip(self._material.names, plan.weights, strict=True))
        taught = _quality(self._taught.outcomes([plan, self.untaught]), plan, self.untaught)
        proposal = Proposal({NAME: choice}, weights, None, taught, plan != self.untaught, reach)
        if few:
            return proposal
        held, apart = (
            _quality(self._score_held_out([plan, self.untaught], apart), plan, self.untaught) for apart in (False, True)
        )
        return replace(proposal, held_out=held, unrelated=apart)

    # ---- the questions

    def _hold_out(self, fold: int, queries: Sequence[str]) -> Trial:
        """The questions of one fold, on what the others taught."""
        lessons = self._material.lessons
        jury, own = set(lessons.jurors), np.array([fold_of(text) == fold for text in self._teaching.texts], bool)
        asked = lessons.only(sample([query for query in queries if query in jury], FOLD_SAMPLE))
        return self._score(asked, self._teaching.leave_out(own))

    def _score(self, asked: Judgements, teaching: Teaching | None = None) -> Trial:
        material = self._material
        tables = material.likeness(asked.queries)
        return Trial(teaching or self._teaching, tables, asked, material.pools, material.depth)

    def _reword(self) -> Trial:
        """Taught questions in other words. What the engine would return for these is not known; what it returned for
        the question itself takes its place."""
        material, lessons = self._material, self._material.lessons
        found = reword(sample(lessons.jurors, REWORDED_SAMPLE), REWORDED_SAMPLE)
        named = {f"{one.query}\n{at}": one for at, one in enumerate(found)}
        asked = Judgements({name: lessons.grades[one.query] for name, one in named.items()}, {})
        tables = material.likeness([one.text for one in named.values()], again=True)
        pools = {**material.pools, **{name: material.pools[one.query] for name, one in named.items()}}
        return Trial(self._teaching, tables, asked, pools, material.depth)

    def _score_held_out(self, plans: Sequence[Plan], as_unrelated: bool = False) -> dict[Plan, Scores]:
        return join_folds([trial.outcomes(plans, as_unrelated=as_unrelated) for trial in self._folds])

    # ---- the choice

    def _choose(self) -> Plan:
        """First how much common documents lose, by that alone; then how likeness is weighed, by a few choices of
        everything else; then everything else."""
        discount = self._choose_discount()
        rough = {group: _rough(*group, discount) for group in self._groups()}
        found = self._limit_loss(self._populate([plan for plans in rough.values() for plan in plans]))
        worth = {group: self._worth(found, plans) for group, plans in rough.items()}
        best = sorted(worth, key=lambda group: -worth[group])[:GROUPS]
        tried = [plan for group in best for one in sorted({0.0, discount}) for plan in _whole(*group, one)]
        plan = self._limit_loss(self._populate(tried)).choose()
        if plan == self.untaught or not len(self._teaching.wrong.texts):
            return plan
        demoting = [plan._replace(choice=replace(plan.choice, demotion=one)) for one in DEMOTIONS]
        return self._populate([plan, *demoting]).choose()

    def _choose_discount(self) -> float:
        plans = {one: self._only_discount(one) for one in DISCOUNTS}
        found = self._populate(list(plans.values()))
        worth = {one: self._worth(found, [plan]) for one, plan in plans.items()}
        return max(worth, key=lambda one: worth[one])

    def _only_discount(self, discount: float) -> Plan:
        return self.untaught._replace(choice=Choice(discount=discount))

    def _limit_loss(self, found: Populations[Plan]) -> Populations[Plan]:
        return found.only(lambda plan: self._loss(found, plan) <= MAX_LOSS)

    def _groups(self) -> list[tuple[Weights, float]]:
        return list(product(mixes(len(self._material.names) - 1), KERNELS))

    def _worth(self, found: Populations[Plan], plans: Sequence[Plan]) -> float:
        return max((float(found.expected[plan].mean()) for plan in plans if plan in found.expected), default=-np.inf)

    def _loss(self, found: Populations[Plan], plan: Plan) -> float:
        """The share of their nDCG that unrelated questions lose by what was taught, beyond doubt; 0 where too few say
        so. Beside real ones, simulated ones count a little."""
        apart = self._only_discount(plan.choice.discount)
        apart = apart if apart in found.held_out else self.untaught
        before, real = float(found.held_out[self.untaught].mean()), ~self._related
        if real.sum() < FEW_UNRELATED or before < FINDS_LITTLE:
            return 0.0
        trusted = real.sum() / (real.sum() + FEW_REAL)
        gains = [
            (trusted, (found.held_out[plan] - found.held_out[apart])[real]),
            (1 - trusted, found.as_unrelated[plan] - found.as_unrelated[apart]),
        ]
        gain = sum(weight * float(one.mean()) for weight, one in gains if weight)
        error = sum(weight**2 * float(one.var()) / len(one) for weight, one in gains if weight) ** 0.5
        return float(-(gain + DOUBT * error) / before)

    def _populate(self, plans: Sequence[Plan]) -> Populations[Plan]:
        """What each plan means to everybody, without those that make a protected question worse."""
        apart = [self._only_discount(plan.choice.discount) for plan in plans]
        all_plans = list(dict.fromkeys([self.untaught, *apart, *plans]))
        safe = safe_choices(self._protected.outcomes(all_plans), self.untaught)
        return Populations(
            self._score_held_out(safe),
            self._related,
            self._score_held_out(safe, as_unrelated=True),
            self._rewordings.outcomes(safe),
            self._taught.outcomes(safe),
            self.untaught,
            self._untouched,
        )

    @cached_property
    def _related(self) -> np.ndarray:
        """Which held-out questions share a document with what the other folds taught."""
        return np.concatenate([trial.related for trial in self._folds])

    @cached_property
    def _untouched(self) -> float:
        """The share of documents that learned nothing, among those that the engine has shown."""
        shown = {number for pool in self._material.pools.values() for number in pool.numbers.tolist()}
        learners = set(self._teaching.learners.tolist())
        return 1 - len(learners) / max(len(shown | learners), 1)

    def _set_gate(self, gate: Gate) -> Gate:
        for trial in (*self._folds, self._taught, self._protected, self._rewordings):
            trial.gate = gate
        return gate

    def _train_gate(self) -> Gate:
        """Learn which questions are about something taught, and tell the trials."""
        found = gating.train(self._folds, self._rewordings, None)
        for trial, probabilities in zip(self._folds, found.held_out, strict=True):
            trial.gate = probabilities
        self._rewordings.gate = found.reworded
        self._taught.gate = self._protected.gate = found.whole
        return found.whole

    def _narrow(self, plan: Plan) -> float:
        """How like a taught question a question must be, at the least: as much as keeps nearly all of the gain."""
        near = np.concatenate([trial.nearest for trial in self._folds])
        again, some = self._rewordings.nearest, self._related if self._related.any() else ~self._related
        found = self._populate([plan])
        little = found.held_out[self.untaught].mean() < FINDS_LITTLE
        quantiles = QUANTILES + (HIGH_QUANTILES if little else ())
        levels = sorted({float(one) - SLACK for one in np.quantile(near[some], quantiles, method="lower")})

        def gain(level: float) -> float:
            """What is expected if nothing is learned about questions that are less like."""
            limited = replace(
                found,
                held_out=_limit(found.held_out, plan, self.untaught, near >= level),
                as_unrelated=_limit(found.as_unrelated, plan, self.untaught, near >= level),
                rewordings=_limit(found.rewordings, plan, self.untaught, again >= level),
            )
            return float(limited.expected[plan].mean())

        gains = {level: gain(level) for level in levels}
        return max(level for level in levels if gains[level] >= KEPT_GAIN * max(gains.values()))

    def _choose_few(self) -> Plan:
        """Too few lessons to cross-validate: a usual choice, if each taught question loses nothing by what the others
        taught; else taught questions are found again, at the largest penalty at which they do best."""
        weights = self.untaught.weights
        rows = [Plan(Choice(penalty=one, kernel=FEW.kernel), weights) for one in FEW_PENALTIES]
        plans = [self.untaught, Plan(FEW, weights), *rows]
        safe = safe_choices(self._protected.outcomes(plans), self.untaught)
        others, taught = self._score_held_out(safe), self._taught.outcomes(safe)
        harmless = [one for one in safe if others[one].sum() >= others[self.untaught].sum() - 1e-9 or one in rows]
        best = max(round(float(taught[one].mean()), 3) for one in harmless)
        return next(one for one in [*plans[1:], self.untaught] if one in harmless and taught[one].mean() >= best - 0.01)


def mixes(encoders: int) -> list[Weights]:
    """How much each measure of likeness may count: one alone, two alike, or all; first, the encoders alike."""
    measures = encoders + 1
    parts = [set(some) for count in (1, 2, measures) for some in combinations(range(measures), count)]
    found = [tuple(float(at in some) / len(some) for at in range(measures)) for some in parts]
    return list(dict.fromkeys([even(encoders), *found]))


def _rough(weights: Weights, kernel: float, discount: float) -> list[Plan]:
    usual = Choice(SPREAD, penalty=0.2, kernel=kernel, discount=discount)
    return [
        Plan(replace(usual, step=step, sharpness=sharp), weights) for step, sharp in product((1.0, 8.0), (1.0, 4.0))
    ]


def _whole(weights: Weights, kernel: float, discount: float) -> Iterator[Plan]:
    for step, penalty, sharpness in product(STEPS, PENALTIES, SHARPNESS):
        choice = Choice(SPREAD, step, penalty=penalty, sharpness=sharpness, kernel=kernel, discount=discount)
        yield Plan(choice, weights)


def _limit(found: Mapping[Plan, Scores], plan: Plan, untaught: Plan, inside: np.ndarray) -> dict[Plan, Scores]:
    return {untaught: found[untaught], plan: np.where(inside, found[plan], found[untaught])}


def _quality(found: Mapping[Plan, Scores], plan: Plan, untaught: Plan) -> Quality:
    before, after = found[untaught], found[plan]
    return Quality(float(before.mean()), float(after.mean()), len(after))
