"""One retriever's cross-fit: every query is asked of what the other folds have taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from evokey.evolution.attribution import Attribution
from evokey.evolution.choosing import CLEARLY, Outcomes, behind, choose, joined, sparing, traffic
from evokey.evolution.folds import sample, split_folds
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.traffic import find_unrelated, judge_by_untaught
from evokey.evolution.trial import Trial
from evokey.search.lens import Lens, Turn
from evokey.search.retriever import Retriever
from evokey.types import Choice, Ranking

if TYPE_CHECKING:
    from evokey.evolution.guarded import Guarded

STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DEMOTIONS = (0.1, 0.2, 0.4)
FEW = 20
"""Below so many queries a cross-fit says nothing: recall rows alone."""
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


class Fit:
    """One retriever's cross-fit."""

    def __init__(
        self,
        policy: Guarded,
        retriever: Retriever,
        lessons: Judgements,
        pools: Mapping[str, Ranking],
        protected: Judgements,
        searched: Sequence[str],
    ) -> None:
        self._policy, self.retriever, self.pools = policy, retriever, pools
        wrong = policy.negatives and retriever.kind != "multi"  # appended vectors push nobody away
        attribution = policy.attribution(retriever, lessons, wrong=wrong)
        wanted = policy.lens in ("all", retriever.kind) and len(lessons.queries) >= FEW
        focus = LensTrainer(retriever, attribution) if wanted else None
        self._attribution = attribution
        self.strangers = find_unrelated(retriever, attribution, searched)
        """Queries of the traffic that are far from every lesson."""
        turns = focus.settings(traffic_related=len(searched) >= HEARD and not self.strangers) if focus else ()
        self._all_lenses = lenses = focus.train(turns) if focus else {}
        self._beside = self.ask(judge_by_untaught(self.strangers, pools))
        self._last_anchor = focus.last_anchor if focus else 0
        self._lenses = [turn for turn in lenses if self._kept(*self._turned(turn, [NOTHING])) >= 1 - UNSETTLED]
        self.protected = Trial(
            retriever, attribution, protected, pools, lenses, deep=True
        )  # a promise is kept to the letter
        self.folds = [
            _held(retriever, attribution, lessons.only(inside), pools, focus.train(turns, index) if focus else {})
            for index, inside in enumerate(split_folds(lessons.queries))
        ]
        self.own = Trial(retriever, attribution, lessons.only(sample(lessons.queries, OWN_ASKED)), pools, lenses)
        asked = sum(len(trial.queries) for trial in self.folds)
        self.unrelated = sum(trial.count_unrelated() for trial in self.folds) / max(asked, 1)
        """The share of the held-out queries whose documents the other folds never touched."""
        self.learners = attribution.learners
        self.untouched = 1 - len(attribution.learners) / max(len(retriever.base), 1)
        self._pushes = attribution.wrong_rows is not None

    def ask(self, queries: Judgements) -> Trial:
        """These queries, asked of all that was taught."""
        return Trial(self.retriever, self._attribution, queries, self.pools, self._all_lenses)

    def choices(self) -> list[Choice]:
        """The grid, without what makes a protected query worse."""
        return sparing(self.protected.outcomes(self._policy.grid(self.own.has_units)), NOTHING)

    def choose(self) -> Choice:
        """First without a lens, then with wrong documents pushed away; then all lenses join; then the best of these,
        with keys that move less or more."""
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
        clearly = plain not in expected or behind(expected[choice], expected[plain]) > CLEARLY
        return choice if clearly else plain  # a lens changes every question: it must be worth it

    def _pushing(self, plain: Choice) -> Choice:
        """The same choice, with wrong documents pushed away if that is better."""
        if not self._pushes:
            return plain
        return self._chosen([NOTHING, plain, *(replace(plain, demotion=demotion) for demotion in DEMOTIONS)])[0]

    def _turned(self, turn: Turn, choices: Sequence[Choice]) -> list[Choice]:
        """The same choices, through a lens."""
        return [
            replace(one, lens_parameter=turn[0], gate_quantile=turn[1], last_anchor=self._last_anchor)
            for one in dict.fromkeys(choices)
        ]

    def _quiet(self, choices: Sequence[Choice]) -> list[Choice]:
        """Those under which documents that learned do not push in on bystanders."""
        if not self._beside.queries:
            return list(choices)
        self._beside.outcomes(choices)  # all at once
        alone = {
            choice: replace(
                NOTHING,
                lens_parameter=choice.lens_parameter,
                gate_quantile=choice.gate_quantile,
                last_anchor=choice.last_anchor,
            )
            for choice in choices
        }
        return [choice for choice in choices if self._kept(choice) >= self._kept(alone[choice]) - INTRUDED]

    def _kept(self, choice: Choice) -> float:
        """How much of what bystanders find untaught they find under a choice."""
        return float(self._beside.outcomes([choice])[choice].mean()) if self._beside.queries else 1.0

    def _chosen(self, grid: Sequence[Choice]) -> tuple[Choice, Outcomes[Choice]]:
        choices = self._quiet(sparing(self.protected.outcomes(list(dict.fromkeys(grid))), NOTHING))
        folds = [trial.outcomes_with_unrelated(choices) for trial in self.folds]
        held_out = joined([asked for asked, _ in folds])
        bystanders = joined([others for _, others in folds])
        expected = traffic(held_out, bystanders, NOTHING, strangers=self.unrelated, untouched=self.untouched)
        return choose(
            held_out, expected, self.own.outcomes(choices), NOTHING, most_reserved=True, unrelated=self.unrelated
        ), expected


def _held(
    retriever: Retriever,
    attribution: Attribution,
    inside: Judgements,
    pools: Mapping[str, Ranking],
    lenses: Mapping[Turn, Lens],
) -> Trial:
    """The queries of one fold, asked of what the other folds taught."""
    others = attribution.leave_out(frozenset(inside.queries))
    return Trial(retriever, others, inside.only(sample(inside.queries, ASKED)), pools, lenses)
