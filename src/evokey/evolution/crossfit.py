"""One retriever's cross-fit: every query is scored on what the other folds taught, under every choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution import gating
from evokey.evolution.attribution import Attribution
from evokey.evolution.choosing import Populations, errors_behind, join_folds, safe_choices
from evokey.evolution.folds import sample, split_folds
from evokey.evolution.grid import COARSE_PENALTIES, DEMOTIONS, HALF_LIVES, NOTHING, lens_grid
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.openings import CrossFitted, Gate
from evokey.evolution.policy import TrainingData
from evokey.evolution.traffic import find_unrelated, judge_by_untaught
from evokey.evolution.trial import Trial
from evokey.evolution.trial_pools import CollectionSample
from evokey.search.lens import Lens, LensId
from evokey.search.retriever import Retriever
from evokey.search.rewording import reword
from evokey.types import Choice

MIN_CROSSFIT = 20
"""With fewer queries a cross-fit says nothing: then taught questions are only kept as keys."""
FOLD_SAMPLE, TAUGHT_SAMPLE, REWORDED_SAMPLE = 80, 250, 200
"""Queries that are scored at most: of each fold, of the taught queries themselves, and of these in other words."""
COMPARED_RIDGES, LENSES_WITH_STEPS = 2, 2
"""Pairs of a gate and a metric that are tried with every ridge, and lenses that are tried with every step."""
OPTION_SHARPNESS = (0.0, 1.0, 4.0)
"""How sharp the gates of several options are."""
MOMENT = 1e-6
"""In days."""
DECAY_GAIN = 1.0
"""Older lessons lose weight if newer queries gain more by it than so many standard errors."""
MIN_TRAFFIC = 32
"""With fewer queries of the traffic, nothing is known of it."""
LENS_LOSS, KEYS_LOSS = 0.02, 0.005
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
        self._steps = {choice.step for choice in grid}
        self.pools, lessons = data.pools[retriever.name], data.lessons
        self._ages = _query_ages(lessons)
        self.together = len(data.retrievers) > 1
        """Whether there are other retrievers."""
        self.unrelated_traffic = find_unrelated(retriever, attribution, data.traffic)
        """Queries of the traffic that are far from every lesson."""
        self._lens_ids = trainer.settings(traffic_related=self._traffic_related(len(data.traffic))) if trainer else ()
        self._all_lenses = trainer.train(self._lens_ids) if trainer else {}
        self._sample = CollectionSample.of(retriever)
        self._gates: dict[LensId | None, Gate | CrossFitted] = {}
        self._tried: dict[Choice, None] = {}
        self._traffic = self.score(judge_by_untaught(self.unrelated_traffic, self.pools))
        # No exception for a protected query: it is scored with documents outside its pool, too.
        self.protected = self.score(data.protected, deep=True)
        self.folds = [
            self._try_fold(lessons, queries, trainer.train(self._lens_ids, fold) if trainer else {})
            for fold, queries in enumerate(split_folds(lessons.queries))
        ]
        self.taught = self.score(lessons.only(sample(lessons.jurors, TAUGHT_SAMPLE)))
        self.rewordings = self._score_rewordings(lessons)
        self.related = np.concatenate([trial.related for trial in self.folds])
        """Which held-out queries share a document with what the other folds taught."""
        self.learners = attribution.learners
        self.untouched = 1 - len(attribution.learners) / max(len(retriever.base), 1)

    def _traffic_related(self, traffic: int) -> bool:
        """Whether people are known to ask about what was taught."""
        return traffic >= MIN_TRAFFIC and not self.unrelated_traffic

    @property
    def unrelated(self) -> float:
        """The share of the held-out queries whose documents the other folds never touched."""
        return 1 - float(self.related.mean()) if len(self.related) else 0.0

    @cached_property
    def newer(self) -> NDArray[np.bool_]:
        """Which held-out queries are of the newer half."""
        ages = np.array([self._ages.get(query, 0.0) for trial in self.folds for query in trial.queries])
        return ages < max(float(np.median(ages)), MOMENT)

    def score(self, queries: Judgements, *, deep: bool = False) -> Trial:
        """A trial of these queries on everything taught."""
        trial = self._trial(self._attribution, queries, self._all_lenses, deep=deep)
        trial.gates = self._gates
        return trial

    def _score_rewordings(self, lessons: Judgements) -> Trial:
        """A trial of taught queries in other words, on everything taught."""
        found = reword(sample(lessons.jurors, REWORDED_SAMPLE), REWORDED_SAMPLE)
        reworded = {f"{one.query}\n{at}": one for at, one in enumerate(found)}
        queries = Judgements({name: lessons.grades[one.query] for name, one in reworded.items()}, {})
        return self._trial(self._attribution, queries, self._all_lenses, reworded=reworded)

    def _trial(
        self, attribution: Attribution, queries: Judgements, lenses: Mapping[LensId, Lens], **options: Any
    ) -> Trial:
        return Trial(self.retriever, attribution, queries, self.pools, lenses, sample=self._sample, **options)

    def _train_gate(self, lens: LensId | None) -> None:
        """Learn which questions are about something taught, and tell the trials."""
        found = gating.train(self.folds, self.rewordings, lens)
        self._gates[lens], self.rewordings.gates[lens] = found.whole, found.reworded
        for trial, probabilities in zip(self.folds, found.held_out, strict=True):
            trial.gates[lens] = probabilities

    def set_gate(self, gate: Gate) -> None:
        """Take this gate instead of training one."""
        self._gates[None] = gate
        for trial in (*self.folds, self.rewordings):
            trial.gates[None] = gate

    def add_gate(self, choice: Choice) -> Choice:
        """The choice with the coefficients of its gate."""
        if choice.lens_id not in self._gates and None in self._gates:
            self._train_gate(choice.lens_id)
        gate = self._gates.get(choice.lens_id)
        if choice.nothing or gate is None or isinstance(gate, CrossFitted):
            return choice
        return replace(choice, gate_weights=gate)

    def _try_fold(self, lessons: Judgements, fold: Sequence[str], lenses: Mapping[LensId, Lens]) -> Trial:
        """A trial of the queries of one fold, on what the other folds taught."""
        others, jury = self._attribution.leave_out(frozenset(fold)), set(lessons.jurors)
        queries = lessons.only(sample([query for query in fold if query in jury], FOLD_SAMPLE))
        return self._trial(others, queries, lenses)

    def choices(self) -> list[Choice]:
        """The grid, without choices that make a protected query worse."""
        return safe_choices(self.protected.outcomes(self._grid), NOTHING)

    def choose(self) -> Choice:
        """The best choice. First without a lens, then with demotion of wrong documents; then with every lens; then with
        the best lenses, every step, and a gate or none."""
        plain = self._try_decay(self._try_demotion(self._populate(self._grid).choose_openly(_has_gate)))
        lenses = self._best_lenses(plain)
        moves = [plain, *(self._beside_lens(one, plain) for one in lens_grid() if one.step in self._steps)]
        with_lens = chain(*(self._add_lens(lens, moves) for lens in lenses))
        return self._populate_beside(plain, with_lens).choose_openly(_has_gate) if lenses else plain

    def _populate_beside(self, plain: Choice, others: Iterable[Choice]) -> Populations[Choice]:
        """What they mean to the queries that chose: the newer ones, where older lessons lose weight."""
        found = self._populate([NOTHING, plain, *others])
        return found.among(self.newer) if plain.half_life else found

    def _best_lenses(self, plain: Choice) -> list[LensId]:
        """The best lenses, beside a choice or alone: first gates and metrics are compared, then ridges."""
        usual = [one for one in self._lens_ids if self._trainer and one[0] == self._trainer.usual]
        usual = self._rank_lenses(usual, plain)[:COMPARED_RIDGES]
        stronger = [one for one in self._lens_ids if one[1:] in {best[1:] for best in usual}]
        return self._rank_lenses(stronger, plain)[:LENSES_WITH_STEPS]

    def _rank_lenses(self, lenses: Iterable[LensId], plain: Choice) -> list[LensId]:
        """The best first, without a gate; but none that costs unrelated traffic too much. They are for questions that
        nobody taught: rewordings gain more by keys."""
        plain = replace(plain, sharpness=0.0)
        alone = {lens: self._add_lens(lens, [NOTHING])[0] for lens in lenses}
        alone = {lens: one for lens, one in alone.items() if self._retention(one) >= 1 - LENS_LOSS}
        by_lens = {lens: self._add_lens(lens, (NOTHING, plain)) for lens in alone}
        known = self._populate_beside(plain, chain(*by_lens.values()))
        worth = {
            lens: [known.expect_held_out(one) for one in some if one in known.held_out]
            for lens, some in by_lens.items()
        }
        return sorted((lens for lens in worth if worth[lens]), key=lambda lens: -max(worth[lens]))

    def _beside_lens(self, one: Choice, plain: Choice) -> Choice:
        """A choice to try with a lens, as far as it may differ from the choice without."""
        penalty = None if plain.penalty is None and not plain.nothing else one.penalty
        one = replace(one, penalty=penalty, unit_weight=plain.unit_weight)
        return replace(one, demotion=plain.demotion, half_life=plain.half_life)

    def options(self) -> list[Choice]:
        """The best choice first; then the best of those with a gate and without, and of those without a lens: together
        with other retrievers, another choice may be better than the best."""
        best = self.choose()
        known = self._populate(list(self._tried))
        sharp = (partial(_has_sharpness, sharpness) for sharpness in OPTION_SHARPNESS)
        groups: list[Callable[[Choice], bool]] = [_has_no_lens, *sharp]
        found = [best, *(known.only(group).choose() for group in groups)]
        return [one for one in dict.fromkeys(found) if not one.nothing]

    def _try_demotion(self, plain: Choice) -> Choice:
        """The same choice, with wrong documents demoted if that is better."""
        if self._attribution.wrong_rows is None:
            return plain
        keys = [
            Choice(unit_weight=plain.unit_weight, penalty=one) for one in COARSE_PENALTIES if plain.penalty is not None
        ]
        bases = dict.fromkeys([plain, replace(plain, sharpness=0.0), *keys])  # a gate may spare what is in the way
        demoting = [replace(base, demotion=one) for base in bases for one in DEMOTIONS]
        return self._populate([NOTHING, plain, *demoting]).choose()

    def _try_decay(self, plain: Choice) -> Choice:
        """The same choice, with older lessons losing weight if the newer half of the queries is better off by that:
        what old lessons say of old questions may no longer hold."""
        oldest = max(self._ages.values(), default=0.0)
        moves = [one for one in (plain, *lens_grid()) if one.step in self._steps and one.step]
        decaying = [replace(one, half_life=days) for days in HALF_LIVES if days <= oldest for one in moves]
        if not decaying or np.count_nonzero(self.newer) < MIN_CROSSFIT:
            return plain
        newer = self._populate([NOTHING, plain, *decaying]).among(self.newer)
        best = newer.choose()
        ahead = errors_behind(newer.expected[best], newer.expected[plain])
        return best if best.half_life and ahead > DECAY_GAIN else plain

    def _add_lens(self, lens: LensId, choices: Sequence[Choice]) -> list[Choice]:
        """The same choices with a lens."""
        anchor = self._trainer.last_anchor if self._trainer else 0
        with_lens = partial(
            replace, lens_parameter=lens[0], gate_quantile=lens[1], whitening=lens[2], last_anchor=anchor
        )
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
        return [one for one in choices if self._retention(one) >= self._retention(lens_alone[one]) - KEYS_LOSS]

    def _retention(self, choice: Choice) -> float:
        """How much of its untaught results unrelated traffic keeps under a choice (nDCG@10)."""
        return float(self._traffic.outcomes([choice])[choice].mean()) if self._traffic.queries else 1.0

    def _populate(self, grid: Sequence[Choice]) -> Populations[Choice]:
        """What the choices of a grid mean to everybody, without those that are not allowed."""
        sparse = self.retriever.kind == "sparse"
        for lens in {None, *(choice.lens_id for choice in grid if choice.sharpness or sparse)} - self._gates.keys():
            self._train_gate(lens)
        self._tried.update(dict.fromkeys(grid))
        choices = self._spare_traffic(safe_choices(self.protected.outcomes(list(dict.fromkeys(grid))), NOTHING))
        folds = [trial.outcomes_with_unrelated(choices) for trial in self.folds]
        return Populations(
            join_folds([queries for queries, _ in folds]),
            self.related,
            join_folds([unrelated for _, unrelated in folds]),
            self.rewordings.outcomes(choices),
            self.taught.outcomes(choices),
            NOTHING,
            self.untouched,
        )


def _has_gate(choice: Choice) -> bool:
    return choice.sharpness > 0


def _has_no_lens(choice: Choice) -> bool:
    return choice.lens_id is None


def _has_sharpness(sharpness: float, choice: Choice) -> bool:
    return choice.sharpness == sharpness


def _query_ages(lessons: Judgements) -> dict[str, float]:
    """The age of the newest verdict on each query, in days; empty if all are of one moment."""
    if not lessons.ages:
        return {}
    age = lessons.ages.get
    return {query: min(age((query, number), 0.0) for number in grades) for query, grades in lessons.grades.items()}
