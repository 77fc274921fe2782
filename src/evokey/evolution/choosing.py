"""The rule that chooses: no harm to held-out queries first, then the taught queries, then the expected traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from evokey.types import Scores

TAUGHT_GAIN = 0.9
"""The share of the possible gain of taught queries that a choice must give them."""
KEYS_NEEDED, KEYS_GAIN = 0.75, 0.98
"""Taught questions kept as keys, and nothing else, are chosen if another choice gives taught queries less than the
first share of what these keys give; the keys must then give the second share. Where held-out queries cannot judge (see
ALL_UNRELATED), the second share is required of every choice."""
ALL_UNRELATED = 0.9
"""From this share of unrelated queries on, held-out queries cannot judge: they have nothing to gain."""
UNTOUCHED_TRAFFIC = 0.5
"""The expected share of future queries about untouched documents, as a part of these documents' share."""
HARM = 2.0
"""The weight of losses of unrelated queries."""
AS_GOOD, BETTER, MUCH_BETTER = 0.5, 1.0, 2.0
"""In standard errors: how far behind the best still counts as good as the best, and how far ahead counts as better or
as much better."""
TAUGHT_TOLERANCE = 0.01
"""What taught queries may lose among choices that count as equal."""
NEGLIGIBLE = 0.0005
"""The share of held-out nDCG that may be lost if it is within the noise."""
T = TypeVar("T", bound="Option")
Outcomes = Mapping[T, Scores]
"""nDCG@10 of some queries under each choice."""


class Option(Protocol):
    """A choice of one retriever, or a plan of all."""

    @property
    def effective_penalty(self) -> float:
        """The penalty of taught questions kept as keys: the larger, the less they change other questions."""
        ...

    @property
    def only_taught_keys(self) -> bool:
        """Whether taught questions are kept as keys, and nothing else is learned."""
        ...


def choose(
    held_out: Outcomes[T],
    expected: Outcomes[T],
    taught: Outcomes[T],
    untaught: T,
    *,
    prefer_penalty: bool = False,
    unrelated: float = 0.0,
) -> T:
    """The best choice, by its outcomes for held-out queries, for the expected traffic and for the taught queries.

    1. Held-out queries do not get worse than in the untaught index (except for a negligible loss within the noise).
    2. Of these choices, those that give the taught queries most of what any of them gives.
    3. Of these, the choices that are as good as the best for the expected traffic (within the noise), and of these the
       best for the taught queries; among equals the largest penalty, if wanted, and then the best for the traffic.
    4. What was taught is always found again: if the choice does not ensure that, taught questions are kept as keys, and
       nothing else is learned. (If every question is taught once, no held-out query is related to a lesson, and all
       that is learned looks like a cost.) unrelated: the share of such held-out queries.
    """
    own = {choice: float(scores.mean()) for choice, scores in taught.items() if choice in held_out}
    blind = unrelated >= ALL_UNRELATED
    harmless = [choice for choice in held_out if _harmless(held_out[choice], held_out[untaught])]
    equals = _best(_with_taught_gain(harmless, own, untaught, TAUGHT_GAIN), expected, own)

    def rank(choice: T) -> tuple[float, ...]:
        """Held-out queries that have nothing to gain cannot order the equals: the taught queries and the penalty do."""
        worth, penalty = float(expected[choice].mean()), choice.effective_penalty
        return (round(own[choice], 2), penalty, worth) if blind else (prefer_penalty and penalty, worth)

    best = max(equals, key=rank)
    only_keys = [choice for choice in held_out if choice.only_taught_keys]
    needed = KEYS_GAIN if blind else KEYS_NEEDED
    if not only_keys or best in _with_taught_gain([*only_keys, best], own, untaught, needed):
        return best
    sufficient = _with_taught_gain(only_keys, own, untaught, KEYS_GAIN)
    return max(sufficient, key=lambda choice: (choice.effective_penalty, float(expected[choice].mean())))


def _with_taught_gain(choices: Sequence[T], own: Mapping[T, float], untaught: T, share: float) -> list[T]:
    """Those that give the taught queries this share of what any of them gives."""
    enough = own[untaught] + share * (max(own[choice] for choice in choices) - own[untaught])
    return [choice for choice in choices if own[choice] >= enough]


def _best(choices: Sequence[T], expected: Outcomes[T], own: Mapping[T, float]) -> list[T]:
    """Those that are as good as the best for the expected traffic, and of these the best for taught queries."""
    best = max((expected[choice] for choice in choices), key=lambda scores: float(scores.mean()))
    near = [choice for choice in choices if errors_behind(best, expected[choice]) <= AS_GOOD]
    most = max(own[choice] for choice in near)
    return [choice for choice in near if own[choice] >= most - TAUGHT_TOLERANCE]


def expect_traffic(
    held_out: Outcomes[T], as_unrelated: Outcomes[T], untaught: T, *, unrelated: float, untouched: float
) -> Outcomes[T]:
    """Held-out outcomes, weighted as in future traffic.

    Lessons show how people ask about the documents that were taught; others will ask about the rest. Their share is
    taken to be half of the share of untouched documents. If fewer of the held-out queries are unrelated, the missing
    ones are simulated: by the same queries, as if their own documents had learned nothing. Their losses count twice,
    because they have nothing to gain.
    """
    wanted = UNTOUCHED_TRAFFIC * untouched
    if unrelated >= wanted:
        return held_out
    share = (wanted - unrelated) / (1 - unrelated)
    level = as_unrelated[untaught]
    harmed = {choice: level + HARM * (scores - level) for choice, scores in as_unrelated.items()}
    return {choice: (1 - share) * scores + share * harmed[choice] for choice, scores in held_out.items()}


def safe_choices(protected: Outcomes[T], untaught: T) -> list[T]:
    """Choices under which no protected query is worse than in the untaught index."""
    return [choice for choice, scores in protected.items() if no_query_worse(scores, protected[untaught])]


def no_query_worse(scores: Scores, untaught: Scores) -> bool:
    return bool((scores >= untaught - 1e-9).all())


def join_folds(folds: Sequence[Outcomes[T]]) -> dict[T, Scores]:
    return {choice: np.concatenate([fold[choice] for fold in folds]) for choice in folds[0]}


def _harmless(scores: Scores, untaught: Scores) -> bool:
    loss = float(untaught.mean() - scores.mean())
    return loss <= 0 or (loss <= NEGLIGIBLE * untaught.mean() and errors_behind(untaught, scores) <= 1)


def errors_behind(best: Scores, scores: Scores) -> float:
    """How far scores are behind the best ones, in standard errors of the paired difference."""
    difference = best - scores
    error = float(difference.std() / np.sqrt(len(difference)))
    return float(difference.mean()) / max(error, 1e-12)
