"""How far what was learned reaches: only a question that is near a taught one is answered by what was learned.

Questions about other things are answered by the untaught index, to the last bit: its keys, words and fusion weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.search.retriever import Retriever
from evokey.types import Reach

Likeness = NDArray[np.float32]
TINY = np.float32(1e-12)
EVERYWHERE = Reach("", -np.inf, -np.inf)


class Neighbours:
    """Taught queries, and how like a question is to each of them, by one retriever: as a share of what the larger of
    the two is like itself."""

    def __init__(self, retriever: Retriever, queries: Sequence[str], reach: Reach = EVERYWHERE) -> None:
        self.reach, self._queries = reach, frozenset(queries)
        self._texts = retriever.texts(queries)
        self._own = _own([retriever.lesson(query, {}) for query in queries])

    def nearest(self, query: str, question: Any) -> float:
        """How like a query is to the nearest of them; what was taught in the same words is as near as can be."""
        if query in self._queries:
            return 1.0
        totals = self._texts.total(self._texts.likeness(question))
        return float((totals / np.maximum(self._own, question.self_similarity)).max(initial=-np.inf))

    def table(self, questions: Sequence[Any]) -> Likeness:
        """The likeness of questions (first axis) to each of them."""
        larger = np.maximum(_own(questions)[:, None], self._own)
        return np.asarray(self._texts.total(self._texts.table(questions)) / larger, np.float32)


def _own(questions: Sequence[Any]) -> Likeness:
    """What each question is like itself."""
    return np.maximum(np.array([question.self_similarity for question in questions], np.float32), TINY)
