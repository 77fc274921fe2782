"""Questions of several seeds taken together: the mean of a group, and the interval of its relative change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROUNDS, AT_ONCE = 10_000, 500


@dataclass
class Pool:
    """Scores of a group before and after. A question that several seeds ask is one question, with the sum of its
    scores: intervals draw questions, not pairs of a question and a seed."""

    sums: dict[str, list[float]] = field(default_factory=dict)
    pairs: int = 0

    def add(self, ids: Iterable[str], before: Mapping[str, float], after: Mapping[str, float]) -> None:
        for id in ids:
            sums = self.sums.setdefault(id, [0.0, 0.0])
            sums[0] += before[id]
            sums[1] += after[id]
            self.pairs += 1

    def summary(self) -> dict[str, Any] | None:
        """Means, the relative change with its interval of 95 %, and how many; None for an empty group."""
        if not self.pairs:
            return None
        before, after = np.array(list(self.sums.values())).T
        means = [float(one.sum()) / self.pairs for one in (before, after)]
        change = [float(after.sum() / before.sum() - 1), *interval(before, after)] if before.any() else None
        return {"ndcg": means, "change": change, "questions": len(self.sums), "pairs": self.pairs}


def interval(before: np.ndarray, after: np.ndarray, seed: int = 0) -> Sequence[float]:
    """Between which two values 95 % of the relative changes lie when the questions are drawn again."""
    chance, found = np.random.default_rng(seed), []
    for _ in range(ROUNDS // AT_ONCE):
        drawn = chance.integers(0, len(before), (AT_ONCE, len(before)), dtype=np.int32)
        sums = before[drawn].sum(axis=1)
        found.append(after[drawn].sum(axis=1)[sums > 0] / sums[sums > 0] - 1)
    low, high = np.quantile(np.concatenate(found), (0.025, 0.975))
    return [float(low), float(high)]
