"""Dense rows, searched one and all by inner product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from evokey.stores.embedded import Block, EmbeddedStore, Scan
from evokey.stores.segments import Arrays
from evokey.stores.soundness import check_vectors
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


class DenseBlock(Block[DenseQuestion]):
    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.vectors)

    def likeness(self, question: DenseQuestion, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        # One dot product a row, at the speed of memory. A matrix product would not be faster, and its bits depend on
        # where a row lies.
        found: NDArray[np.float32] = np.vecdot(self.vectors, question.vector, out=out)
        return found

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
    def check(cls, arrays: Arrays, rows: int) -> None:
        check_vectors(arrays["vectors"])
        if len(arrays["vectors"]) != rows:
            raise ValueError(f"{rows} rows have {len(arrays['vectors'])} vectors")

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(arrays["vectors"])


class FlatStore(EmbeddedStore[DenseBlock]):
    kinds: ClassVar[frozenset[str]] = frozenset({"dense"})
    block = DenseBlock

    def scan(self, question: DenseQuestion) -> Scan:
        rows = self.rows
        scores = np.empty(len(rows.owners), np.float32)
        for segment, start in zip(rows.segments, rows.starts.tolist(), strict=False):
            if len(segment.block):
                segment.block.likeness(question, out=scores[start : start + len(segment.block)])
        return Scan(rows, scores, self.block)
