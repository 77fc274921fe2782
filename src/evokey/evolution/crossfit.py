"""One retriever's cross-fit: every query is scored on what the other folds taught, under every choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from evokey.evolution.attribution import Attribution
from evokey.evolution.choosing import BETTER, Outcomes, choose, errors_behind, expect_traffic, join_folds, safe_choices
from evokey.evolution.folds import sample, split_folds
from evokey.evolution.grid import DEMOTIONS, NOTHING, STEPS
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.policy import TrainingData
from evokey.evolution.traffic import find_unrelated, judge_by_untaught
from evokey.evolution.trial import Trial
from evokey.search.lens import Lens, LensId
from evokey.search.retriever import Retriever
from evokey.types import Choice

MIN_CROSSFIT = 20
"""With fewer queries a cross-fit says nothing: then taught questions are only kept as keys."""
FOLD_SAMPLE, TAUGHT_SAMPLE = 80, 250
"""Queries that are scored at most: of each fold, and of the taught queries themselves."""
LENSES_WITH_STEPS = 3
"""Lenses that are tried with every step."""
MIN_TRAFFIC = 32
"""With fewer queries of the traffic, nothing is known of it."""
LENS_LOSS, KEYS_LOSS = 0.05, 0.005
"""What unrelated traffic may lose (nDCG@10 of its untaught first ten): by a lens, and by documents that learned."""


class CrossFit:
    def __init__(
        self,
        retriever: Retriever,
        attribution: Attribution,
        grid: Sequence[Choice],
        trainer: LensTrainer | None,
        data: TrainingData,
    ) -> None:
        """grid: the choices without lens and demotion; trainer: makes lenses, None to try none."""
        self.retriever, self._attribution, self._grid, self._trainer = retriever, attribution, grid, trainer
        self.pools, lessons = data.pools[retriever.name], data.lessons
        self.unrelated_traffic = find_unrelated(retriever, attribution, data.traffic)
        """Queries of the traffic that are far from every lesson."""
        settings = self._lens_settings(len(data.traffic))
        self._all_lenses = trainer.train(settings) if trainer else {}
        self._traffic = self.score(judge_by_untaught(self.unrelated_traffic, self.pools))
        self._lenses = [one for one in self._all_lenses if self._kept(*self._add_lens(one, [NOTHING])) >= 1 - LENS_LOSS]
        # No exception for a protected query: it is scored with documents outside its pool, too.
        self.protected = self.score(data.protected, deep=True)
        self.folds = [
            self._held_out(lessons, queries, trainer.train(settings, fold) if trainer else {})
            for fold, queries in enumerate(split_folds(lessons.queries))
        ]
        self.taught = self.score(lessons.only(sample(lessons.jurors, TAUGHT_SAMPLE)))
        count = sum(len(trial.queries) for trial in self.folds)
        self.unrelated = sum(trial.count_unrelated() for trial in self.folds) / max(count, 1)
        """The share of the held-out queries whose documents the other folds never touched."""
        self.learners = attribution.learners
        self.untouched = 1 - len(attribution.learners) / max(len(retriever.base), 1)

    def _lens_settings(self, traffic: int) -> tuple[LensId, ...]:
        related = traffic >= MIN_TRAFFIC and not self.unrelated_traffic
        return self._trainer.settings(traffic_related=related) if self._trainer else ()

    def score(self, queries: Judgements, *, deep: bool = False) -> Trial:
        """A trial of these queries on everything taught."""
        return Trial(self.retriever, self._attribution, queries, self.pools, self._all_lenses, deep=deep)

    def _held_out(self, lessons: Judgements, fold: Sequence[str], lenses: dict[LensId, Lens]) -> Trial:
        """A trial of the queries of one fold, on what the other folds taught."""
        others, jury = self._attribution.leave_out(frozenset(fold)), set(lessons.jurors)
        queries = lessons.only(sample([query for query in fold if query in jury], FOLD_SAMPLE))
        return Trial(self.retriever, others, queries, self.pools, lenses)

    def choices(self) -> list[Choice]:
        """The grid, without choices that make a protected query worse."""
        return safe_choices(self.protected.outcomes(self._grid), NOTHING)

    def choose(self) -> Choice:
        """First without a lens, then with demotion of wrong documents; then with every lens; then with the best lenses
        and every step."""
        plain = self._try_demotion(self._choose(self._grid)[0])
        if not self._lenses:
            return plain
        by_lens = {lens: self._add_lens(lens, (NOTHING, plain)) for lens in self._lenses}
        expected = self._choose([NOTHING, plain, *chain(*by_lens.values())])[1]
        allowed = {lens: [one for one in some if one in expected] for lens, some in by_lens.items()}
        worth = {lens: [float(expected[one].mean()) for one in some] for lens, some in allowed.items()}
        best = sorted((lens for lens in worth if worth[lens]), key=lambda lens: -max(worth[lens]))[:LENSES_WITH_STEPS]
        moves = [replace(plain, step=step) for step in (0.0, *STEPS)]
        choice, expected = self._choose([NOTHING, plain, *chain(*(self._add_lens(lens, moves) for lens in best))])
        better = plain not in expected or errors_behind(expected[choice], expected[plain]) > BETTER
        return choice if better else plain  # a lens changes every question: it must be clearly better

    def _try_demotion(self, plain: Choice) -> Choice:
        """The same choice, with wrong documents demoted if that is better."""
        if self._attribution.wrong_rows is None:
            return plain
        return self._choose([NOTHING, plain, *(replace(plain, demotion=demotion) for demotion in DEMOTIONS)])[0]

    def _add_lens(self, lens: LensId, choices: Sequence[Choice]) -> list[Choice]:
        """The same choices with a lens."""
        anchor = self._trainer.last_anchor if self._trainer else 0
        with_lens = partial(replace, lens_parameter=lens[0], gate_quantile=lens[1], last_anchor=anchor)
        return [with_lens(one) for one in dict.fromkeys(choices)]

    def _spare_traffic(self, choices: Sequence[Choice]) -> list[Choice]:
        """Choices under which documents that learned do not displace the results of unrelated traffic. What the lens of
        a choice changes by itself does not count here."""
        if not self._traffic.queries:
            return list(choices)
        self._traffic.outcomes(choices)  # all at once
        lens_alone = {
            one: NOTHING if one.lens_id is None else self._add_lens(one.lens_id, [NOTHING])[0] for one in choices
        }
        return [one for one in choices if self._kept(one) >= self._kept(lens_alone[one]) - KEYS_LOSS]

    def _kept(self, choice: Choice) -> float:
        """How much of its untaught results unrelated traffic keeps under a choice (nDCG@10)."""
        return float(self._traffic.outcomes([choice])[choice].mean()) if self._traffic.queries else 1.0

    def _choose(self, grid: Sequence[Choice]) -> tuple[Choice, Outcomes[Choice]]:
        """The best choice of a grid; and the expected outcomes of all that are allowed."""
        choices = self._spare_traffic(safe_choices(self.protected.outcomes(list(dict.fromkeys(grid))), NOTHING))
        folds = [trial.outcomes_with_unrelated(choices) for trial in self.folds]
        held_out = join_folds([queries for queries, _ in folds])
        as_unrelated = join_folds([unrelated for _, unrelated in folds])
        expected = expect_traffic(held_out, as_unrelated, NOTHING, unrelated=self.unrelated, untouched=self.untouched)
        taught = self.taught.outcomes(choices)
        return choose(held_out, expected, taught, NOTHING, prefer_penalty=True, unrelated=self.unrelated), expected
