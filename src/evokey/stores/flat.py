"""Dense rows, searched one and all by inner product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evokey.stores.embedded import Block, EmbeddedStore, Scan
from evokey.stores.segments import Arrays
from evokey.types import Numbers, Scores, Vectors


@dataclass(frozen=True, slots=True)
class DenseQuestion:
    vector: Vectors
    self_similarity: float = 1.0
    trust: float = 1.0


class DenseBlock(Block[DenseQuestion]):
    tolerance = 1e-5

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.vectors)

    def scores(self, question: DenseQuestion) -> NDArray[np.float32]:
        return self.vectors @ question.vector

    def exact(self, question: DenseQuestion, rows: Numbers) -> Scores:
        return np.asarray(np.vecdot(self.vectors[rows], question.vector), np.float64)

    def table(self, questions: Sequence[DenseQuestion]) -> NDArray[np.float32]:
        if not questions:
            return np.zeros((0, len(self)), np.float32)
        return np.stack([question.vector for question in questions]) @ self.vectors.T

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
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(arrays["vectors"])


class FlatStore(EmbeddedStore[DenseBlock]):
    block = DenseBlock

    def scan(self, question: DenseQuestion) -> Scan[DenseQuestion]:
        rows = self.rows
        parts = [segment.block.scores(question) for segment in rows.segments if len(segment.block)]
        scores = np.concatenate([np.zeros(0, np.float32), *parts])
        return Scan(rows, question, scores)
