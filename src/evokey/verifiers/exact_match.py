"""The answer is one of the gold ones, word for word (SQuAD's normalisation, and accents)."""

from __future__ import annotations

from typing import ClassVar, Literal

from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain_unanswered, credit_citations, rule
from evokey.verifiers.words import squad


class ExactMatch:
    name: ClassVar[str] = "exact-match"
    looks_at: ClassVar[Literal["generation"]] = "generation"

    def __init__(self) -> None:
        self.identity = self.name

    def verify(self, attempt: Attempt) -> Ruling:
        missing = abstain_unanswered(attempt)
        if missing or attempt.answer is None:
            return missing or Ruling(None)
        said = squad(attempt.answer.plain)
        return credit_citations(
            rule(float(any(squad(gold) == said for gold in attempt.expected)), 1, "exact match"), attempt
        )
