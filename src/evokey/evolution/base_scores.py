"""Scores of some queries against all touched documents, before any choice: every choice is computed from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evokey.evolution.tables import Table
from evokey.scoring.block import Block
from evokey.search.overlay import Touched
from evokey.types import Scores


@dataclass(frozen=True, slots=True)
class BaseScores:
    """Tables of queries (first axis) against the rows, texts or documents of an attribution."""

    queries: Sequence[str]
    questions: Sequence[Any]
    touched: Touched
    block: type[Block[Any]]
    rows: Table
    """Likeness of the touched documents' rows."""
    texts: Table
    """Likeness of the taught texts."""
    plain_texts: Table
    """The same for the queries as they were asked, without a lens."""
    documents: Table
    """Untaught scores of the touched documents."""
    floor: float

    @property
    def least(self) -> float:
        """The lowest score with which a document is found."""
        return float(np.nextafter(np.float32(self.floor), np.float32(np.inf)))

    def move(self, pull: Any, step: float, norms: Scores) -> Table:
        """Scores of documents when keys move by λ times the pull of their texts; norms: of the moved keys."""
        return np.asarray(self.touched.best(self.block.grow(self.rows, pull, step, norms)), np.float32)

    def localise(self, locality: float) -> Table:
        """Likeness of the taught texts, as far as they count."""
        return self.block.localise(self.texts, self.self_similarity, locality) if locality else self.texts

    @property
    def self_similarity(self) -> Table:
        """Of each query, as a column."""
        return np.array([question.self_similarity for question in self.questions], np.float32)[:, None]
