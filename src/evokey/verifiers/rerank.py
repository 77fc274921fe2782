"""A reranker's score, document by document: above the threshold a document is right."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from evokey.errors import ServiceFailed
from evokey.passages.reading import excerpt, reading_limit
from evokey.protocols import Reranker
from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain, check, count, first, rule


class Rerank:
    name: ClassVar[str] = "rerank"
    looks_at: ClassVar[Literal["retrieval"]] = "retrieval"

    def __init__(self, reranker: Reranker, threshold: float, *, k: int = 10, wrong: float | None = None) -> None:
        """Scores differ from reranker to reranker, so the threshold has no default. wrong: a document that scores
        below it is vouched against; between the two nothing is said."""
        count(self.name, k=k)
        check(self.name, threshold=threshold, wrong=wrong)
        self.reranker, self.threshold, self.k = reranker, threshold, k
        self.wrong = -math.inf if wrong is None else min(wrong, threshold)
        self.identity = f"rerank@{k}/{threshold:g}/{self.wrong:g}/{reranker.identity}"

    def verify(self, attempt: Attempt) -> Ruling:
        hits = first(attempt.hits, self.k)
        if not hits or not attempt.query.strip():
            return abstain("nothing was found" if not hits else "nothing was asked")
        try:
            read = [excerpt(hit, reading_limit(self.reranker)) for hit in hits]
            made = self.reranker.scores(attempt.query, read)
        except ServiceFailed as error:
            return abstain(f"{self.reranker.identity} did not answer: {error}")
        if len(made) != len(hits):
            return abstain(f"{self.reranker.identity} gave {len(made)} scores for {len(hits)} documents")
        scores = {hit.id: float(score) for hit, score in zip(hits, made, strict=True) if math.isfinite(score)}
        grades = {
            id: 1.0 if score >= self.threshold else -1.0
            for id, score in scores.items()
            if score >= self.threshold or score < self.wrong
        }
        return rule(max(scores.values(), default=math.nan), self.threshold, "the best score", grades)
