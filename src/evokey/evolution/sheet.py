"""Some queries against all touched documents, before any choice is made: what every choice starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evokey.evolution.tables import Table
from evokey.search.overlay import Touched
from evokey.stores.embedded import Block
from evokey.types import Scores


@dataclass(frozen=True, slots=True)
class Sheet:
    """Some asked queries (first axis) against all touched documents, before any choice."""

    asked: Sequence[str]
    questions: Sequence[Any]
    touched: Touched
    block: type[Block[Any]]
    rows: Table
    """Likeness of the touched documents' rows."""
    likeness: Table
    """Of the taught texts."""
    spoken: Table
    """The same, to the queries as they were asked: without a lens."""
    base: Table
    """Untaught scores of the documents."""
    floor: float

    @property
    def least(self) -> float:
        """The least score with which a document is found."""
        return float(np.nextafter(np.float32(self.floor), np.float32(np.inf)))

    def moved(self, pulled: Any, step: float, norms: Scores) -> Table:
        """Scores with keys moved by one step λ: what is pulled, and the norms of the moved keys."""
        return np.asarray(self.touched.best(self.block.grown(self.rows, pulled, step, norms)), np.float32)

    @property
    def self_similarity(self) -> Table:
        """Of each query, as a column."""
        return np.array([question.self_similarity for question in self.questions], np.float32)[:, None]
