"""Late interaction: a row is several vectors, and so is a question.

A row's likeness to each vector of the question is that of its best vector; the score is the mean (MaxSim). ⊕ appends:
a grown key has the vectors of what it was taught beside its own, scaled by the evidence for them, up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.scoring.block import Arrays, Block, ordinals
from evokey.scoring.soundness import check_lists, check_vectors
from evokey.types import Numbers, Scores, Vectors


@dataclass(frozen=True, slots=True)
class LateQuestion:
    vectors: Vectors
    self_similarity: float = 1.0
    trust: float = 1.0
    asked: None = None
    """No lens turns these questions."""

    def weigh_unheard(self) -> LateQuestion:
        """Every word counts here."""
        return self

    def distance(self, other: LateQuestion) -> float:
        return 0.0

    def by_word(self) -> list[tuple[str, float, LateQuestion]]:
        return []


class LateBlock(Block[LateQuestion]):
    parts = 32

    def __init__(self, vectors: Vectors, starts: Numbers) -> None:
        self.vectors, self.starts = vectors, starts
        """The vectors of all rows, end to end; where each begins, and the end. A row without any is like nothing."""

    @classmethod
    def of(cls, rows: Sequence[Vectors]) -> Self:
        starts = np.cumsum([0, *map(len, rows)])
        return cls(np.concatenate(rows) if rows else np.zeros((0, 0), np.float32), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def likeness(self, question: LateQuestion) -> NDArray[np.float32]:
        found = np.full((len(self), len(question.vectors)), -np.inf, np.float32)
        said = np.flatnonzero(np.diff(self.starts))
        if len(said):
            for column, vector in enumerate(question.vectors):  # one dot product at a time: see DenseBlock
                found[said, column] = np.maximum.reduceat(np.vecdot(self.vectors, vector), self.starts[said])
        return found / np.float32(max(len(question.vectors), 1))

    def table(self, questions: Sequence[LateQuestion]) -> NDArray[np.float32]:
        """Questions have different numbers of vectors: what is missing is as good as nothing."""
        width = max((len(question.vectors) for question in questions), default=0)
        table = np.zeros((len(questions), len(self), width), np.float32)
        for place, question in enumerate(questions):
            table[place, :, : len(question.vectors)] = self.likeness(question)
        return table

    @staticmethod
    def total(likeness: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(likeness.sum(axis=-1))

    @staticmethod
    def pull(texts: NDArray[Any], evidence: sparse.csr_array) -> Any:
        return texts, evidence

    @staticmethod
    def grow(base: NDArray[Any], pulled: Any, step: float, norms: Scores) -> NDArray[Any]:
        texts, evidence = pulled
        scale = np.minimum(1, step * evidence.data).astype(base.dtype)[:, None]
        said = bring(texts[..., evidence.indices, :], scale)
        taught = np.flatnonzero(np.diff(evidence.indptr))
        best = base.copy()
        if len(taught):
            most = np.maximum.reduceat(said, evidence.indptr[taught], axis=-2)
            best[..., taught, :] = np.maximum(best[..., taught, :], most)
        return np.asarray(best.sum(axis=-1))

    def take(self, rows: Numbers) -> Self:
        sizes = np.diff(self.starts)[rows]
        places = np.repeat(self.starts[rows], sizes) + ordinals(sizes)
        return type(self)(np.ascontiguousarray(self.vectors[places]), np.concatenate([[0], np.cumsum(sizes)]))

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        full = [block for block in blocks if len(block)]
        if not full:
            return blocks[0]
        sizes = np.concatenate([np.diff(block.starts) for block in full])
        return cls(np.concatenate([block.vectors for block in full]), np.concatenate([[0], np.cumsum(sizes)]))

    @classmethod
    def empty(cls) -> Self:
        return cls.of([])

    def arrays(self) -> Arrays:
        return {"vectors": self.vectors, "starts": self.starts}

    @classmethod
    def check(cls, arrays: Arrays, rows: int) -> None:
        check_vectors(arrays["vectors"])
        check_lists(arrays["starts"], rows, len(arrays["vectors"]))

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(arrays["vectors"], arrays["starts"])


def bring(said: NDArray[Any], scale: NDArray[Any] | float = 1.0) -> NDArray[Any]:
    """What appended texts bring by their likeness; an unlike one brings nothing, however lightly it weighs."""
    return np.where(said > 0, scale * said, -np.inf)
