"""The rule that chooses: harmless first, then faithful to what was taught, then good for the traffic to expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from evokey.types import Scores

FAITHFUL = 0.9
"""The share of the possible gain for taught queries that a choice must give them."""
RECALLED, FOUND = 0.75, 0.98
"""The share of what recall rows alone would give taught queries below which these are what is learned; and the share
that recall rows must then give. Where held-out queries cannot speak for anything else, it is asked of every choice."""
ALL_UNRELATED = 0.9
"""The share of held-out queries about untouched documents from which on they cannot: they have nothing to gain."""
STRANGERS = 0.5
"""The share of future queries, among documents that no lesson touches, that is about such documents."""
HARM = 2.0
NEAR, CLEARLY, BEYOND_DOUBT = 0.5, 1.0, 2.0
"""How many standard errors behind the best still count as good as the best; and how many ahead are clearly better, or
beyond doubt."""
EQUAL = 0.01
"""What taught queries may lose among choices that count as equal."""
TRIFLE = 0.0005
"""The share of held-out quality that may be lost for their sake, if it is within the noise."""
T = TypeVar("T", bound="Option")
Outcomes = Mapping[T, Scores]
"""nDCG@10 of some queries under each choice."""


class Option(Protocol):
    """A choice of one retriever, or a plan of all."""

    @property
    def reserve(self) -> float:
        """How far recall rows hold back: they reach into questions that nobody has taught yet."""
        ...

    @property
    def recalls(self) -> bool:
        """Whether taught queries are kept as keys, and nothing else is learned."""
        ...


def choose(
    held_out: Outcomes[T],
    expected: Outcomes[T],
    taught: Outcomes[T],
    untaught: T,
    *,
    most_reserved: bool = False,
    unrelated: float = 0.0,
) -> T:
    """The choice to make, from what each does to held-out queries, to expected traffic, and to the taught queries.

    1. Harmless: held-out queries do not fall below the untaught index (but for a trifle that is within the noise).
    2. Faithful: of these, those that give the taught queries most of what any of them gives.
    3. Of these, as good as the best for the traffic to expect (within the noise), the best for the taught queries;
       among equals the most reserved, if wanted, and then the best for the traffic.
    4. What was taught is found again, always: where the choice so made does not see to that, taught queries are kept
       as keys, and nothing else is learned. (Where every question is taught once, no held-out query is related to a
       lesson, and all that is learned looks like cost.) unrelated: the share of such held-out queries.
    """
    own = {choice: float(scores.mean()) for choice, scores in taught.items() if choice in held_out}
    blind = unrelated >= ALL_UNRELATED
    harmless = [choice for choice in held_out if _harmless(held_out[choice], held_out[untaught])]
    faithful = _faithful(harmless, own, untaught, FAITHFUL)
    best = max((expected[choice] for choice in faithful), key=lambda scores: float(scores.mean()))
    near = [choice for choice in faithful if behind(best, expected[choice]) <= NEAR]
    most = max(own[choice] for choice in near)
    equals = [choice for choice in near if own[choice] >= most - EQUAL]

    def rank(choice: T) -> tuple[float, ...]:
        """Who has nothing to gain cannot tell which of the equals is better: the taught queries and caution do."""
        worth = float(expected[choice].mean())
        return (round(own[choice], 2), choice.reserve, worth) if blind else (most_reserved and choice.reserve, worth)

    usual = max(equals, key=rank)
    recalling = [choice for choice in held_out if choice.recalls]
    enough = FOUND if blind else RECALLED
    if not recalling or usual in _faithful([*recalling, usual], own, untaught, enough):
        return usual
    found = _faithful(recalling, own, untaught, FOUND)
    return max(found, key=lambda choice: (choice.reserve, float(expected[choice].mean())))


def _faithful(choices: Sequence[T], own: Mapping[T, float], untaught: T, share: float) -> list[T]:
    """Those that give the taught queries this share of what any of them gives."""
    enough = own[untaught] + share * (max(own[choice] for choice in choices) - own[untaught])
    return [choice for choice in choices if own[choice] >= enough]


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


def sparing(protected: Outcomes[T], untaught: T) -> list[T]:
    """Choices under which no protected query is worse than in the untaught index."""
    return [choice for choice, scores in protected.items() if harmless_for(scores, protected[untaught])]


def harmless_for(scores: Scores, untaught: Scores) -> bool:
    """Whether no single query is worse off."""
    return bool((scores >= untaught - 1e-9).all())


def joined(folds: Sequence[Outcomes[T]]) -> dict[T, Scores]:
    return {choice: np.concatenate([fold[choice] for fold in folds]) for choice in folds[0]}


def _harmless(scores: Scores, untaught: Scores) -> bool:
    loss = float(untaught.mean() - scores.mean())
    return loss <= 0 or (loss <= TRIFLE * untaught.mean() and behind(untaught, scores) <= 1)


def behind(best: Scores, scores: Scores) -> float:
    """How far scores are behind the best ones, in standard errors of the paired difference."""
    difference = best - scores
    error = float(difference.std() / np.sqrt(len(difference)))
    return float(difference.mean()) / max(error, 1e-12)
