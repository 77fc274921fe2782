"""One small protocol per stage: what a new key builder, encoder or ledger must offer, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from evokey.types import Document, Scores, Vectors

Bag = Mapping[str, float]
"""A text as a sparse vector: term → count or weight."""


class KeyBuilder(Protocol):
    """Document → the texts by which it is found; none for a document that says nothing."""

    def texts(self, document: Document) -> Sequence[str]: ...


class DenseEncoder(Protocol):
    """Text → unit vectors. A row of zeros means: this text has no vector."""

    kind: ClassVar[str]
    identity: str
    """Name and revision: two encoders with one identity give the same vectors."""

    def documents(self, texts: Sequence[str]) -> Vectors: ...

    def queries(self, texts: Sequence[str]) -> Vectors: ...


class SparseEncoder(Protocol):
    """Text → terms. What a term weighs depends on the collection, so the weighting is a separate matter."""

    kind: ClassVar[str]
    identity: str

    def documents(self, texts: Sequence[str]) -> list[Bag]: ...

    def queries(self, texts: Sequence[str]) -> list[Bag]: ...

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        """A row's term weighs count / (count + pivot), the pivot growing with the row's length; None: just count."""
        ...

    def idf(self, documents: int, frequency: int) -> float:
        """What a query term weighs that so many of the documents hold."""
        ...


Encoder = DenseEncoder | SparseEncoder
