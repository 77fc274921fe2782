"""The words that an answer shares with a gold one: F1 of the two bags of words, the best over the gold answers."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Literal

from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain_unanswered, check, credit_citations, rule
from evokey.verifiers.words import squad


class TokenF1:
    name: ClassVar[str] = "token-f1"
    looks_at: ClassVar[Literal["generation"]] = "generation"

    def __init__(self, threshold: float = 0.5) -> None:
        check(self.name, threshold=threshold)
        self.threshold = threshold
        self.identity = f"token-f1/{threshold:g}"

    def verify(self, attempt: Attempt) -> Ruling:
        missing = abstain_unanswered(attempt)
        if missing or attempt.answer is None:
            return missing or Ruling(None)
        best = max(f1(attempt.answer.plain, gold) for gold in attempt.expected)
        return credit_citations(rule(best, self.threshold, "token F1"), attempt)


def f1(said: str, gold: str) -> float:
    """2·shared / (words of one + words of the other); two texts without a word are the same nothing."""
    one, other = squad(said), squad(gold)
    if not one and not other:
        return 1.0
    return 2 * (Counter(one) & Counter(other)).total() / (len(one) + len(other))
