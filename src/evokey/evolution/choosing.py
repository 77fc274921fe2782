"""The rule that chooses: no harm to held-out queries first, then the taught queries, then the expected ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evokey.types import Scores

TAUGHT_GAIN = 0.95
"""The share of the possible gain of taught queries that a choice must give them."""
UNTOUCHED_TRAFFIC = 0.5
"""The expected share of future queries about untouched documents, as a part of these documents' share."""
REWORDED_GAIN = 0.75
"""The share of the possible gain of rewordings that a choice must give them."""
REWORDED, ALL_REWORDED = 0.15, 0.4
"""The weight of rewordings beside held-out queries: where some of these are related to lessons, and where none is.
Simulated rewordings gain more than real ones do; but in the second case nothing else speaks for those whom lessons are
for."""
HARM = 6.0
"""The weight of what unrelated queries lose: they have nothing to gain."""
FEW_UNRELATED = 20
"""With so many unrelated held-out queries, these and simulated ones are trusted alike."""
MUCH_BETTER = 3.0
"""In standard errors."""
TAUGHT_TOLERANCE = 0.01
"""What taught queries may lose by a choice that helps other wordings."""
UNGATED_LOSS = 0.01
"""The share of their nDCG that held-out queries may lose, where none of them is related to a lesson, so that there is
no gate."""
LARGEST_LOSS = 0.015
"""The share of their nDCG that held-out queries may lose where none of them is related to a lesson, and rewordings gain
more; where some are related, nothing. One standard error is added to what they lose: of many choices some look harmless
by chance."""
T = TypeVar("T")
Outcomes = Mapping[T, Scores]
"""nDCG@10 of some queries under each choice."""


@dataclass(frozen=True)
class Populations(Generic[T]):
    """What each choice means to everybody: nDCG@10 query by query."""

    held_out: Outcomes[T]
    """Queries on what the other folds taught."""
    related: NDArray[np.bool_]
    """Which of these share a document with what the other folds taught."""
    as_unrelated: Outcomes[T]
    """The same queries, as if their own documents had learned nothing."""
    rewordings: Outcomes[T]
    """Taught queries in other words."""
    taught: Outcomes[T]
    untaught: T
    untouched: float
    """The share of documents that learned nothing."""

    @cached_property
    def expected(self) -> Outcomes[T]:
        """What each choice brings to future queries: rewordings, other questions on what was taught, and questions
        about the rest. What the last lose counts more. Lessons show how people ask about the documents that were
        taught; if too few held-out queries are about the rest, the missing ones are simulated."""
        return {choice: self._expect(choice) for choice in self.held_out}

    def _expect(self, choice: T) -> Scores:
        gain = self.held_out[choice] - self.held_out[self.untaught]
        simulated = self.as_unrelated[choice] - self.as_unrelated[self.untaught]
        again = self.rewordings[choice] - self.rewordings[self.untaught]
        count, weight = len(gain) + len(again), self._rewording_weight if len(again) else 0.0
        gain = self._weigh(gain, simulated)
        parts = ((1 - weight) * count / max(len(gain), 1) * gain, weight * count / max(len(again), 1) * again)
        return np.concatenate(parts)

    def _weigh(self, gain: Scores, simulated: Scores) -> Scores:
        """Related and unrelated queries, each group by its expected share. What is known of the second comes from
        queries that are unrelated, and from simulated ones while these are few."""
        found, real = float((~self.related).sum()), ~self.related
        trusted = found / (found + FEW_UNRELATED)
        share = max(self.unrelated, UNTOUCHED_TRAFFIC * self.untouched) if self.related.any() else 1.0
        lost = (trusted * gain[real].mean() if found else 0.0) + (1 - trusted) * simulated.mean()
        harm = share * (HARM if lost < 0 else 1.0)
        weights = np.where(
            real, harm * trusted / max(self.unrelated, 1e-9), (1 - share) / max(1 - self.unrelated, 1e-9)
        )
        return np.asarray(weights * gain + harm * (1 - trusted) * simulated)

    @property
    def _rewording_weight(self) -> float:
        """The weight of rewordings."""
        return REWORDED + (ALL_REWORDED - REWORDED) * self.blind

    @property
    def blind(self) -> float:
        """How little held-out queries say about what lessons bring: from 0 if a tenth of them is related, to 1."""
        return max(0.0, 10 * self.unrelated - 9)

    @property
    def unrelated(self) -> float:
        """The share of unrelated queries among those held out."""
        return 1 - float(self.related.mean()) if len(self.related) else 0.0

    def only(self, wanted: Callable[[T], bool]) -> Populations[T]:
        """These of the choices, and the untaught index."""
        held_out = {one: some for one, some in self.held_out.items() if one == self.untaught or wanted(one)}
        return replace(self, held_out=held_out)

    def among(self, queries: NDArray[np.bool_]) -> Populations[T]:
        """The same for some of the held-out queries."""
        some = [{one: scores[queries] for one, scores in of.items()} for of in (self.held_out, self.as_unrelated)]
        return replace(self, held_out=some[0], related=self.related[queries], as_unrelated=some[1])

    def expect_held_out(self, choice: T) -> float:
        """What a choice brings to questions that nobody taught: without rewordings."""
        gain, simulated = (of[choice] - of[self.untaught] for of in (self.held_out, self.as_unrelated))
        return float(self._weigh(gain, simulated).mean())

    def choose(self) -> T:
        """The best choice.

        1. It is expected to help, and held-out queries lose almost nothing.
        2. Of these choices, those that give the taught queries most of what any of them gives, as they were asked and
           in other words.
        3. Of these, the best for the expected queries.
        """
        own = {choice: float(scores.mean()) for choice, scores in self.taught.items() if choice in self.held_out}
        harmless = [choice for choice in self.held_out if choice == self.untaught or self._harmless(choice)]
        again = {choice: float(self.rewordings[choice].sum()) for choice in harmless}
        faithful = _with_gain(harmless, again, self.untaught, REWORDED_GAIN)
        recalling = _with_gain(faithful, own, self.untaught, TAUGHT_GAIN)
        return max(recalling, key=lambda choice: float(self.expected[choice].mean()))

    def choose_openly(self, gated: Callable[[T], bool]) -> T:
        """The best choice; where held-out queries say nothing about what lessons bring, rather one without a gate, if
        these lose little by it: simulated rewordings are nearer to what was taught than real ones, so they do not show
        what a gate keeps from these."""
        best = self.choose()
        if not (self.blind and gated(best)):
            return best
        found = self.only(lambda choice: not gated(choice)).choose()
        again, own = (
            {choice: float(of[choice].sum()) for choice in (best, found, self.untaught)}
            for of in (self.rewordings, self.taught)
        )
        helps = found in _with_gain([best, found], again, self.untaught, REWORDED_GAIN)
        helps = helps and found in _with_gain([best, found], own, self.untaught, TAUGHT_GAIN)
        helps = helps and found != self.untaught
        return found if helps and self._loss(found) <= UNGATED_LOSS * self.blind else best

    def _loss(self, choice: T, errors: float = 0.0) -> float:
        """The share of their untaught nDCG that held-out queries lose; and so many standard errors."""
        lost = self.held_out[self.untaught] - self.held_out[choice]
        doubt = errors * float(lost.std() / np.sqrt(len(lost)))
        return (float(lost.mean()) + doubt) / max(float(self.held_out[self.untaught].mean()), 1e-12)

    def _harmless(self, choice: T) -> bool:
        allowed = LARGEST_LOSS * self.blind
        return bool(self.expected[choice].mean() >= 0 and self._loss(choice, errors=self.blind) <= allowed)


def _with_gain(choices: Sequence[T], own: Mapping[T, float], untaught: T, share: float) -> list[T]:
    """Those that give this share of what any of them gives."""
    enough = own[untaught] + share * (max(own[choice] for choice in choices) - own[untaught])
    return [choice for choice in choices if own[choice] >= enough]


def safe_choices(protected: Outcomes[T], untaught: T) -> list[T]:
    """Choices under which no protected query is worse than in the untaught index."""
    return [choice for choice, scores in protected.items() if no_query_worse(scores, protected[untaught])]


def no_query_worse(scores: Scores, untaught: Scores) -> bool:
    return bool((scores >= untaught - 1e-9).all())


def join_folds(folds: Sequence[Outcomes[T]]) -> dict[T, Scores]:
    return {choice: np.concatenate([fold[choice] for fold in folds]) for choice in folds[0]}


def errors_behind(best: Scores, scores: Scores) -> float:
    """How far scores are behind the best ones, in standard errors of the paired difference."""
    difference = best - scores
    error = float(difference.std() / np.sqrt(len(difference)))
    return float(difference.mean()) / max(error, 1e-12)
