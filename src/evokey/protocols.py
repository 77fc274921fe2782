"""One small protocol per stage: what a new key builder, encoder, language model or expander must offer, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Generator as Generator_
from typing import ClassVar, Literal, Protocol

from evokey.types import Answer, Attempt, Completion, Document, Expansion, Hit, Message, Ruling, Scores, Vectors

Bag = Mapping[str, float]
"""A text as a sparse vector: term → count or weight."""

Cost = Literal["nothing", "time", "money"]
"""What encoding a text costs. Where it costs something, texts that were taught are kept encoded; where it costs time,
they are encoded one by one, so that a vector does not depend on the company it was made in."""


class Corpus(Protocol):
    """How the living documents use words, for key builders that weigh them."""

    @property
    def documents(self) -> int: ...

    def frequency(self, word: str) -> int:
        """How many documents hold the word (lower case, letters and digits)."""
        ...


class KeyBuilder(Protocol):
    """Document → the texts by which it is found, one for each row; none for a document that says nothing."""

    def texts(self, document: Document, corpus: Corpus) -> Sequence[str]: ...


class DenseEncoder(Protocol):
    """Text → unit vectors. A row of zeros means: this text has no vector."""

    kind: ClassVar[str]
    cost: ClassVar[Cost]
    identity: str
    """Name, revision, dimension and normalisation: two encoders with one identity give the same vectors."""

    def documents(self, texts: Sequence[str]) -> Vectors: ...

    def queries(self, texts: Sequence[str]) -> Vectors: ...


class MultiEncoder(Protocol):
    """Text → several unit vectors each (late interaction), a matrix; without a row, the text has none."""

    kind: ClassVar[str]
    cost: ClassVar[Cost]
    identity: str

    def documents(self, texts: Sequence[str]) -> list[Vectors]: ...

    def queries(self, texts: Sequence[str]) -> list[Vectors]: ...


class SparseEncoder(Protocol):
    """Text → terms. What a term weighs depends on the collection, so the weighting is a separate matter."""

    kind: ClassVar[str]
    cost: ClassVar[Cost]
    identity: str

    def documents(self, texts: Sequence[str]) -> list[Bag]: ...

    def queries(self, texts: Sequence[str]) -> list[Bag]: ...

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        """A row's term weighs count / (count + pivot), the pivot growing with the row's length; None: just count."""
        ...

    def idf(self, documents: int, frequency: int) -> float:
        """What a query term weighs that so many of the documents hold."""
        ...


Encoder = DenseEncoder | MultiEncoder | SparseEncoder


class Reranker(Protocol):
    """Looks at the query and each document together, after the search."""

    identity: str

    def scores(self, query: str, documents: Sequence[Document]) -> Scores:
        """One score for each document, higher is better."""
        ...


class LLM(Protocol):
    """Messages → an answer. A call that fails, times out or is refused raises LLMFailed, after its retries."""

    identity: str
    """Provider and model."""

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0
    ) -> Completion: ...

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        """The same answer, piece by piece."""
        ...


Look = Callable[[str, int], Sequence[Document]]
"""A text and a number → the documents that the memory finds with it now, best first."""


class Expander(Protocol):
    """Query → expansion. A model that fails or answers nonsense raises ExpansionFailed."""

    identity: str
    """Name and whatever decides the answer: model, prompt."""

    def expand(self, query: str, look: Look) -> Expansion: ...


class Generator(Protocol):
    """Query and hits → an answer that cites them."""

    identity: str

    def answer(self, query: str, hits: Sequence[Hit]) -> Answer: ...

    def stream(self, query: str, hits: Sequence[Hit]) -> Generator_[str, None, Answer]:
        """The same, piece by piece; its return value is the whole answer."""
        ...


class Verifier(Protocol):
    """Attempt → ruling. What cannot be told (NaN, a failed call, nonsense) is an abstention, never an error."""

    identity: str
    looks_at: ClassVar[Literal["retrieval", "generation", "both"]]

    def verify(self, attempt: Attempt) -> Ruling: ...
