"""ROUGE-L or ROUGE-1 of the answer against the gold ones (F-measure of the package rouge-score), the best of them."""

from __future__ import annotations

from typing import ClassVar, Literal

from rouge_score.rouge_scorer import RougeScorer

from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain, abstain_unanswered, check, credit_citations, one_of, rule
from evokey.verifiers.words import every

LONGEST = 2_000
"""Words: the longest common sequence costs their product."""
TYPES = {"rouge-l": "rougeL", "rouge-1": "rouge1"}


class Rouge:
    name: ClassVar[str] = "rouge"
    looks_at: ClassVar[Literal["generation"]] = "generation"

    def __init__(self, metric: Literal["rouge-l", "rouge-1"] = "rouge-l", threshold: float = 0.5) -> None:
        one_of(self.name, "metric", metric, tuple(TYPES))
        check(self.name, threshold=threshold)
        self.metric, self.threshold = metric, threshold
        self._scorer = RougeScorer([TYPES[metric]], tokenizer=Words())
        self.identity = f"{metric}/{threshold:g}"

    def verify(self, attempt: Attempt) -> Ruling:
        missing = abstain_unanswered(attempt)
        if missing or attempt.answer is None:
            return missing or Ruling(None)
        if max(len(every(text)) for text in (attempt.answer.plain, *attempt.expected)) > LONGEST:
            return abstain(f"an answer is longer than {LONGEST} words")
        return credit_citations(
            rule(self.score(attempt.answer.plain, attempt.expected), self.threshold, self.metric), attempt
        )

    def score(self, said: str, expected: tuple[str, ...]) -> float:
        golds = [gold for gold in expected if gold.strip()]
        return max(float(self._scorer.score(gold, said)[TYPES[self.metric]].fmeasure) for gold in golds)


class Words:
    """Any script, where the package's own words are a–z and 0–9."""

    def tokenize(self, text: str) -> list[str]:
        return every(text)
