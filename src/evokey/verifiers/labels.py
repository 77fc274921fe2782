"""Judged documents: recall, hit or nDCG among the first k hits.

A judgement above 0 is right; 0 or below is wrong, for somebody looked and did not take it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain, check, count, one_of, rule

Metric = Literal["recall", "hit", "ndcg"]


class Labels:
    name: ClassVar[str] = "labels"
    looks_at: ClassVar[Literal["retrieval"]] = "retrieval"

    def __init__(self, metric: Metric = "recall", k: int = 10, threshold: float = 0.5) -> None:
        one_of(self.name, "metric", metric, ("recall", "hit", "ndcg"))
        count(self.name, k=k)
        check(self.name, threshold=threshold)
        self.metric, self.k, self.threshold = metric, k, threshold
        self.identity = f"labels/{metric}@{k}/{threshold:g}"

    def verify(self, attempt: Attempt) -> Ruling:
        """The judged documents among all hits get their grades, whatever comes of the attempt: labels are the truth."""
        judged = {id: grade for id, grade in (attempt.relevant or {}).items() if math.isfinite(grade)}
        right = {id: grade for id, grade in judged.items() if grade > 0}
        found = list(dict.fromkeys(hit.id for hit in attempt.hits))
        grades = {id: judged[id] if judged[id] else -1.0 for id in found if id in judged}
        if not right:
            return abstain("no document is judged right for this query", grades=grades)
        return rule(self._measure(found, right), self.threshold, f"{self.metric}@{self.k}", grades)

    def _measure(self, found: Sequence[str], right: Mapping[str, float]) -> float:
        gains = [right.get(id, 0.0) for id in found[: self.k]]
        hits = sum(gain > 0 for gain in gains)
        if self.metric == "ndcg":
            return _dcg(gains) / _dcg(sorted(right.values(), reverse=True)[: self.k])
        return hits / len(right) if self.metric == "recall" else float(hits > 0)


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))
