"""Dense rows: one vector each, scored by inner product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evokey.scoring.block import Arrays, Block
from evokey.scoring.soundness import check_vectors
from evokey.types import Numbers, Vectors


@dataclass(frozen=True, slots=True)
class DenseQuestion:
    vector: Vectors
    self_similarity: float = 1.0
    trust: float = 1.0
    asked: DenseQuestion | None = None
    """The question as it was asked, where a lens has turned it."""

    def weigh_unheard(self) -> DenseQuestion:
        """Every word counts here."""
        return self

    def distance(self, other: DenseQuestion) -> float:
        return float(1 - self.vector.astype(np.float64) @ other.vector)

    def by_word(self) -> list[tuple[str, float, DenseQuestion]]:
        return []


class DenseBlock(Block[DenseQuestion]):
    unit = True

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int | None:
        return self.vectors.shape[1] if len(self) else None

    def likeness(self, question: DenseQuestion, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        # One dot product a row, at the speed of memory. A matrix product would not be faster, and its bits depend on
        # where a row lies.
        found: NDArray[np.float32] = np.vecdot(self.vectors, question.vector, out=out)
        return found

    def table(self, questions: Sequence[DenseQuestion]) -> NDArray[np.float32]:
        if not questions:
            return np.zeros((0, len(self)), np.float32)
        return np.stack([question.vector for question in questions]) @ self.vectors.T

    @staticmethod
    def localise(likeness: NDArray[Any], own: Any, locality: float) -> NDArray[Any]:
        """exp((q·e − 1) / τ)"""
        return np.asarray(np.exp((likeness - 1) / np.asarray(locality, likeness.dtype)))

    def take(self, rows: Numbers) -> Self:
        return type(self)(np.ascontiguousarray(self.vectors[rows]))

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        full = [block.vectors for block in blocks if len(block)]
        return cls(np.concatenate(full)) if full else blocks[0]

    @classmethod
    def empty(cls) -> Self:
        return cls(np.zeros((0, 0), np.float32))

    def arrays(self) -> Arrays:
        return {"vectors": self.vectors}

    @classmethod
    def check(cls, arrays: Arrays, rows: int) -> None:
        check_vectors(arrays["vectors"])
        if len(arrays["vectors"]) != rows:
            raise ValueError(f"{rows} rows have {len(arrays['vectors'])} vectors")

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(arrays["vectors"])
