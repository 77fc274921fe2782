"""The guarded policy: propose, cross-fit with "nothing" among the choices, and publish only what held-out queries like.

Each retriever finds its own choice; what is finally judged is the fused ranking. A function of the set of lessons and
the documents alone: asked twice, in whatever order the lessons came, it answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any, ClassVar, TypeVar

import numpy as np

from evokey.errors import InvalidSettings
from evokey.evolution.attribution import Attribution, attribute
from evokey.evolution.bystanders import as_they_are, beside
from evokey.evolution.evidence import FOLDS, Taught, folds, sample
from evokey.evolution.focus import Focus
from evokey.evolution.judge import Judge, ideal
from evokey.evolution.policy import Log, Proposal
from evokey.evolution.trial import Trial
from evokey.fusion import DEPTH, Fusion, Weights
from evokey.lens import Lens, Turn
from evokey.overlay import UNTAUGHT, Overlay
from evokey.retriever import Retriever
from evokey.types import Choice, Quality, Ranking, Scores

SPREADS = (0.0, 0.5, 1.0)
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
UNITS = (0.0, 0.5, 1.0, 2.0)
HANDICAPS = (None, 0.4, 0.3, 0.2, 0.1, 0.0)
AWAY = (0.1, 0.2, 0.4)
FEW = 20
"""Below so many queries a cross-fit says nothing: recall rows alone."""
FEW_HANDICAPS = (0.2, 0.1, 0.0)
FAITHFUL = 0.9
"""The share of the possible gain for taught queries that a choice must give them."""
STRANGERS = 0.5
"""The share of future queries, among documents that no lesson touches, that is about such documents."""
HARM = 2.0
NEAR, CLEARLY = 0.5, 1.0
"""How many standard errors behind the best still count as good as the best; and how many ahead are clearly better."""
EQUAL = 0.01
"""What taught queries may lose among choices that count as equal."""
TRIFLE = 0.0005
"""The share of held-out quality that may be lost for their sake, if it is within the noise."""
ASKED, OWN_ASKED = 80, 250
"""Queries asked at the most: in each fold, and of the taught ones themselves."""
TRIED = 3
"""Lenses that are tried with every step."""
HEARD = 32
"""Queries of the traffic below which nothing is known of it."""
UNSETTLED, INTRUDED = 0.05, 0.005
"""What bystanders among the traffic may lose of their first ten (nDCG@10): because a lens orders them anew, and because
documents that learned push in."""
NOTHING = Choice()
LENSES = ("none", "dense", "all")
T = TypeVar("T")
Outcomes = Mapping[T, Scores]
"""nDCG@10 of some queries under each choice."""
Plan = tuple[tuple[Choice, ...], Weights]
"""A choice for each retriever, and the weight of each in the fused score."""


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
        plans = jury.sparing(_plans([self.choose(fit) for fit in fits], untaught, fusion.weightings()), untaught)
        held_out, bystanders = jury.held_out(plans), jury.held_out(plans, bystanders=True)
        shares = {"strangers": fits[0].strangers, "untouched": fits[0].untouched}
        expected = traffic(held_out, bystanders, untaught, **shares)
        plan = self.decide(held_out, expected, jury.taught(plans), untaught)
        quality = Quality(float(held_out[untaught].mean()), float(held_out[plan].mean()), len(held_out[plan]))
        return self._proposal(names, plan, untaught, jury, quality)

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        if not (log.taught.queries or (choice.away and log.taught.wrong)):
            return UNTAUGHT
        attribution = self._attribution(retriever, log.taught, wrong=choice.away > 0)
        self._attributed.clear()
        if choice.turn is None:
            return attribution.overlay(choice)
        lenses = Focus(retriever, attribution, choice.anchored).lenses((choice.turn,))
        return attribution.overlay(choice, lenses.get(choice.turn))

    def _attribution(self, retriever: Retriever, lessons: Taught, *, wrong: bool) -> Attribution:
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
        return _chosen_plan(held_out, expected, taught, untaught)

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


class Fit:
    """One retriever's cross-fit."""

    def __init__(
        self,
        policy: Guarded,
        retriever: Retriever,
        lessons: Taught,
        pools: Mapping[str, Ranking],
        pins: Taught,
        searched: Sequence[str],
    ) -> None:
        self._policy = policy
        wrong = policy.negatives and retriever.kind != "multi"  # appended vectors push nobody away
        attribution = policy._attribution(retriever, lessons, wrong=wrong)
        wanted = policy.lens in ("all", retriever.kind) and len(lessons.queries) >= FEW
        focus = Focus(retriever, attribution) if wanted else None
        others = beside(retriever, attribution, searched)
        turns = focus.turns(at_home=len(searched) >= HEARD and not others) if focus else ()
        lenses = focus.lenses(turns) if focus else {}
        self._beside = Trial(retriever, attribution, as_they_are(others, pools), pools, lenses)
        self._anchored = focus.anchored if focus else 0
        self._lenses = [turn for turn in lenses if self._kept(*self._turned(turn, [NOTHING])) >= 1 - UNSETTLED]
        self.pinned = Trial(retriever, attribution, pins, pools, lenses, deep=True)  # a promise is kept to the letter
        self.folds = [
            _held(retriever, attribution, lessons.only(inside), pools, focus.lenses(turns, index) if focus else {})
            for index, inside in enumerate(folds(lessons.queries))
        ]
        self.own = Trial(retriever, attribution, lessons.only(sample(lessons.queries, OWN_ASKED)), pools, lenses)
        asked = sum(len(trial.asked) for trial in self.folds)
        self.strangers = sum(trial.strangers() for trial in self.folds) / max(asked, 1)
        """The share of the held-out queries whose documents the other folds never touched."""
        self.untouched = 1 - len(attribution.learners) / max(len(retriever.store.rows), 1)
        self._pushes = attribution.push is not None

    def choices(self) -> list[Choice]:
        """The grid, without what makes a pinned query worse."""
        return _sparing(self.pinned.outcomes(self._policy.grid(self.own.has_units)), NOTHING)

    def choose(self) -> Choice:
        """First without a lens; then all lenses join; then the best of these, with keys that move less or more."""
        plain = self._pushing(self._chosen(self._policy.grid(self.own.has_units))[0])
        if not self._lenses:
            return plain
        turned = {turn: self._turned(turn, (NOTHING, plain)) for turn in self._lenses}
        expected = self._chosen([NOTHING, plain, *chain(*turned.values())])[1]
        worth = {
            turn: [float(expected[one].mean()) for one in some if one in expected] for turn, some in turned.items()
        }
        best = sorted((turn for turn in worth if worth[turn]), key=lambda turn: -max(worth[turn]))[:TRIED]
        moves = [replace(plain, step=step) for step in (0.0, *STEPS)]
        choice, expected = self._chosen([NOTHING, plain, *chain(*(self._turned(turn, moves) for turn in best))])
        clearly = plain not in expected or _behind(expected[choice], expected[plain]) > CLEARLY
        return choice if clearly else plain  # a lens changes every question: it must be worth it

    def _pushing(self, plain: Choice) -> Choice:
        """The same choice, with wrong documents pushed away if that is better."""
        if not self._pushes:
            return plain
        return self._chosen([NOTHING, plain, *(replace(plain, away=away) for away in AWAY)])[0]

    def _turned(self, turn: Turn, choices: Sequence[Choice]) -> list[Choice]:
        """The same choices, through a lens."""
        return [replace(one, lens=turn[0], gate=turn[1], anchored=self._anchored) for one in dict.fromkeys(choices)]

    def _quiet(self, choices: Sequence[Choice]) -> list[Choice]:
        """Those under which documents that learned do not push in on bystanders."""
        if not self._beside.asked:
            return list(choices)
        self._beside.outcomes(choices)  # all at once
        alone = {
            choice: replace(NOTHING, lens=choice.lens, gate=choice.gate, anchored=choice.anchored) for choice in choices
        }
        return [choice for choice in choices if self._kept(choice) >= self._kept(alone[choice]) - INTRUDED]

    def _kept(self, choice: Choice) -> float:
        """How much of what bystanders find untaught they find under a choice."""
        return float(self._beside.outcomes([choice])[choice].mean()) if self._beside.asked else 1.0

    def _chosen(self, grid: Sequence[Choice]) -> tuple[Choice, Outcomes[Choice]]:
        choices = self._quiet(_sparing(self.pinned.outcomes(list(dict.fromkeys(grid))), NOTHING))
        folds = [trial.outcomes_and_bystanders(choices) for trial in self.folds]
        held_out = _joined([asked for asked, _ in folds])
        bystanders = _joined([others for _, others in folds])
        expected = traffic(held_out, bystanders, NOTHING, strangers=self.strangers, untouched=self.untouched)
        return chosen(held_out, expected, self.own.outcomes(choices), NOTHING, reserved), expected


class Jury:
    """Judges plans by the fused ranking."""

    def __init__(self, fits: Sequence[Fit], fusion: Fusion, lessons: Taught, pins: Taught) -> None:
        self._fits, self._fusion, self._grades = fits, fusion, lessons.grades
        self._pinned = pins.grades

    def sparing(self, plans: Sequence[Plan], untaught: Plan) -> list[Plan]:
        """Those of the plans that make no pinned query worse."""
        judged = self._judged(plans, [fit.pinned for fit in self._fits], grades=self._pinned)
        return _sparing(judged, untaught)

    def held_out(self, plans: Sequence[Plan], *, bystanders: bool = False) -> dict[Plan, Scores]:
        trials = [[fit.folds[index] for fit in self._fits] for index in range(FOLDS)]
        return _joined([self._judged(plans, fold, bystanders=bystanders) for fold in trials])

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


def _held(
    retriever: Retriever,
    attribution: Attribution,
    inside: Taught,
    pools: Mapping[str, Ranking],
    lenses: Mapping[Turn, Lens],
) -> Trial:
    """The queries of one fold, asked of what the other folds taught."""
    others = attribution.without(frozenset(inside.queries))
    return Trial(retriever, others, inside.only(sample(inside.queries, ASKED)), pools, lenses)


def _still(choice: Choice) -> Choice:
    """The same lens, and nothing else."""
    return replace(NOTHING, lens=choice.lens, gate=choice.gate, anchored=choice.anchored)


def _grid(units: bool) -> list[Choice]:
    """Nothing first: among equals the first is taken."""
    weights = UNITS if units else (0.0,)
    still = [Choice(units=eta, handicap=handicap) for eta in weights for handicap in HANDICAPS]
    moving = [Choice(*move) for move in product(SPREADS, STEPS, weights, HANDICAPS)]
    return [NOTHING, *(choice for choice in still if choice.handicap is not None), *moving]


def _plans(choices: Sequence[Choice], untaught: Plan, weightings: Sequence[Weights]) -> list[Plan]:
    """Every retriever taught or not, and with the wrong pushed away or not, under all weightings; the untaught plan
    first."""
    taught_or_not = list(product(*(dict.fromkeys((NOTHING, replace(one, away=0.0), one)) for one in choices)))
    return list(dict.fromkeys([untaught, *product(taught_or_not, weightings)]))


def _all(choice: Choice, untaught: Plan) -> Plan:
    return tuple(choice for _ in untaught[0]), untaught[1]


def reserved(choice: Choice) -> float:
    """How far recall rows hold back: they reach into questions that nobody has taught yet."""
    return np.inf if choice.handicap is None else choice.handicap


def chosen(
    held_out: Outcomes[T],
    expected: Outcomes[T],
    taught: Outcomes[T],
    untaught: T,
    reserve: Callable[[T], float] = lambda _: 0.0,
) -> T:
    """The choice to make, from what each does to held-out queries, to expected traffic, and to the taught queries.

    1. Harmless: held-out queries do not fall below the untaught index (but for a trifle that is within the noise).
    2. Faithful: of these, those that give the taught queries most of what any of them gives.
    3. Of these, as good as the best for the traffic to expect (within the noise), the best for the taught queries;
       among equals the most reserved, and then the best for the traffic.
    """
    harmless = [choice for choice in held_out if _harmless(held_out[choice], held_out[untaught])]
    own = {choice: float(taught[choice].mean()) for choice in harmless}
    enough = own[untaught] + FAITHFUL * (max(own.values()) - own[untaught])
    faithful = [choice for choice in harmless if own[choice] >= enough]
    best = max((expected[choice] for choice in faithful), key=lambda scores: float(scores.mean()))
    near = [choice for choice in faithful if _behind(best, expected[choice]) <= NEAR]
    most = max(own[choice] for choice in near)
    equals = [choice for choice in near if own[choice] >= most - EQUAL]
    return max(equals, key=lambda choice: (reserve(choice), float(expected[choice].mean())))


def traffic(
    held_out: Outcomes[T], bystanders: Outcomes[T], untaught: T, *, strangers: float, untouched: float
) -> Outcomes[T]:
    """Held-out outcomes as future traffic would have them.

    Lessons say how people ask about documents that are asked about; others will ask about the rest. Their share is
    taken to be at least half of the share of documents that no lesson touches. Where fewer of the held-out queries are
    such strangers to what was taught, the missing ones are made up for by bystanders: the same queries, had their own
    documents learned nothing. What bystanders lose counts twice: they have nothing to gain.
    """
    expected = STRANGERS * untouched
    if strangers >= expected:
        return held_out
    share = (expected - strangers) / (1 - strangers)
    level = bystanders[untaught]
    harmed = {choice: level + HARM * (scores - level) for choice, scores in bystanders.items()}
    return {choice: (1 - share) * scores + share * harmed[choice] for choice, scores in held_out.items()}


def _joined(folds: Sequence[Outcomes[T]]) -> dict[T, Scores]:
    return {choice: np.concatenate([fold[choice] for fold in folds]) for choice in folds[0]}


def _chosen_plan(held_out: Outcomes[Plan], expected: Outcomes[Plan], taught: Outcomes[Plan], untaught: Plan) -> Plan:
    """Other weights than the untaught ones only if they are clearly better: they change every ranking."""
    usual = {plan: scores for plan, scores in held_out.items() if plan[1] == untaught[1]}
    plan, other = chosen(usual, expected, taught, untaught), chosen(held_out, expected, taught, untaught)
    return other if _behind(expected[other], expected[plan]) > CLEARLY else plan


def _sparing(pinned: Outcomes[T], untaught: T) -> list[T]:
    """Choices under which no pinned query is worse than in the untaught index."""
    return [choice for choice, scores in pinned.items() if (scores >= pinned[untaught] - 1e-9).all()]


def _harmless(scores: Scores, untaught: Scores) -> bool:
    loss = float(untaught.mean() - scores.mean())
    return loss <= 0 or (loss <= TRIFLE * untaught.mean() and _behind(untaught, scores) <= 1)


def _behind(best: Scores, scores: Scores) -> float:
    """How far scores are behind the best ones, in standard errors of the paired difference."""
    difference = best - scores
    error = float(difference.std() / np.sqrt(len(difference)))
    return float(difference.mean()) / max(error, 1e-12)
