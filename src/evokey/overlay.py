"""What an epoch has learned for one retriever: the rows of the touched documents, scored beside the store's own search.

A touched document i is found by the best of its rows:

    its moved key      (q·k⁰ᵢ + λ Σₑ αᵢₑ q·e) / νᵢ        e: taught texts, ν: the norm of the moved key (dense), else 1
    its recall rows    max over its taught texts of q·e  −  δ · (self-similarity of q)

Both need only q·e for the taught texts, so an overlay keeps these texts once, as a block, and who was taught what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from evokey.stores.embedded import NO_NUMBERS, Block
from evokey.stores.flat import DenseBlock
from evokey.types import Choice, Numbers, Scores


@dataclass(frozen=True, slots=True)
class Overlay:
    documents: Numbers
    """The touched documents, sorted."""
    names: tuple[str, ...]
    """The taught texts, as they were said."""
    texts: Block[Any] | None
    evidence: sparse.csr_array
    """α: documents × texts. Its pattern says which texts are a document's recall rows; every row has an entry."""
    norms: Scores
    choice: Choice
    learned: Mapping[str, int]
    """Every taught word: how many documents were taught with it. It counts where no living document has the word."""

    def scores(self, base: Scores, question: Any) -> Scores:
        """Scores of the touched documents, given their base scores."""
        if self.texts is None:
            return base
        likeness = self.likeness(question)
        best = base
        if self.choice.step:
            best = (base + self.choice.step * (self.evidence @ likeness)) / self.norms
        if self.choice.handicap is not None:
            rows = np.maximum.reduceat(likeness[self.evidence.indices], self.evidence.indptr[:-1])
            best = np.maximum(best, rows - self.choice.handicap * question.self_similarity)
        return best

    def likeness(self, question: Any) -> Scores:
        """q·e for every taught text."""
        return np.zeros(0) if self.texts is None else np.asarray(self.texts.scores(question), np.float64)

    def taught(self, number: int) -> tuple[Numbers, Scores]:
        """Which texts a document was taught, and their α."""
        row = int(np.searchsorted(self.documents, number))
        if row >= len(self.documents) or self.documents[row] != number:
            return NO_NUMBERS, np.zeros(0)
        span = slice(self.evidence.indptr[row], self.evidence.indptr[row + 1])
        return self.evidence.indices[span].astype(np.int64), self.evidence.data[span]

    def moved(self, number: int, base: Block[Any]) -> float:
        """How far a document's key has moved: 1 − cosine (dense), or the mass of learned weight (sparse)."""
        texts, weights = self.taught(number)
        if not len(texts) or not self.choice.step or self.texts is None:
            return 0.0
        pull = self.choice.step * weights
        if not isinstance(base, DenseBlock) or not isinstance(self.texts, DenseBlock):
            return float(pull.sum())
        key = base.vectors[0].astype(np.float64)
        moved = key + pull @ self.texts.vectors[texts].astype(np.float64)
        return float(1 - key @ moved / max(float(np.linalg.norm(moved)), 1e-12))

    def norm(self, number: int) -> float:
        return float(self.norms[int(np.searchsorted(self.documents, number))])


UNTAUGHT = Overlay(NO_NUMBERS, (), None, sparse.csr_array((0, 0)), np.zeros(0), Choice(), {})
