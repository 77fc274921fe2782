"""One small protocol per stage: what a new key builder, encoder, language model or expander must offer, and no more."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as Generator_
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from evokey.scoring.block import NO_NUMBERS, Found, Keys
from evokey.scoring.inverted import Weighting
from evokey.types import (
    Answer,
    Attempt,
    Completion,
    Document,
    Expansion,
    Hit,
    KeyText,
    Message,
    Numbers,
    Ruling,
    Scores,
    Vectors,
)

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

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]: ...


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


class SparseEncoder(Weighting, Protocol):
    """Text → terms. What a term weighs depends on the collection, so the weighting is a separate matter."""

    kind: ClassVar[str]
    cost: ClassVar[Cost]
    identity: str

    def documents(self, texts: Sequence[str]) -> list[Bag]: ...

    def queries(self, texts: Sequence[str]) -> list[Bag]: ...


Encoder = DenseEncoder | MultiEncoder | SparseEncoder


@dataclass(frozen=True, slots=True)
class Space:
    """What a retriever tells a store whose keys they are. A store is made by `StoreClass(space, **options)`."""

    folder: Path | None
    """Where the retriever keeps its files, for what a store keeps beside the memory; None: nothing is kept."""
    encoder: Encoder
    """Of the keys: keys of two identities never mix. For sparse keys it also says what terms weigh."""
    database: Any = None
    """The database that the memory is in, for a store that keeps keys there; None: the memory is a directory."""

    @property
    def identity(self) -> str:
        return self.encoder.identity


class Origin(Protocol):
    """The ledger, as far as keys depend on it: it gives documents their numbers, and one that was restored from a
    backup gives numbers again, to other documents."""

    @property
    def writer(self) -> str:
        """The last that has written documents: noted beside the keys, after these."""
        ...

    def owns(self, writer: str, newest: int) -> bool:
        """Whether documents up to a number, as that writer left them, are those that the ledger has now."""
        ...


class Counts(Protocol):
    """What questions to sparse keys are weighed by: all rows that can be found."""

    @property
    def rows(self) -> int: ...

    @property
    def average(self) -> float:
        """The average length of a row: the sum of its counts."""
        ...

    def frequencies(self, terms: Sequence[str]) -> Sequence[int]:
        """How many rows hold each term."""
        ...


class Snapshot(Protocol):
    """The keys as they were at one moment. A store that has no such states answers by what it holds now."""

    @property
    def version(self) -> Hashable:
        """Equal where the keys are the same."""
        ...

    @property
    def dimension(self) -> int | None:
        """Of dense keys; None where there are none yet."""
        ...

    @property
    def counts(self) -> Counts:
        """Of sparse keys."""
        ...

    def __len__(self) -> int:
        """How many documents can be found."""
        ...

    def sizes(self, numbers: Numbers) -> Numbers:
        """How many rows each of these documents has: 0 for one that says nothing, −1 for one whose keys are missing."""
        ...

    def search(
        self, questions: Sequence[Any], k: int, *, without: Numbers = NO_NUMBERS, within: Numbers | None = None
    ) -> list[Found]:
        """For each question the k best documents, equals by their number, outside of `without` (sorted) and inside of
        `within`, if given. Documents score as their best row does, as `Block.scores` has it."""
        ...

    def fetch(self, numbers: Numbers) -> Keys:
        """The keys of these documents, in their order, as far as they are here. Those of a number never change."""
        ...


class Store(Protocol):
    """Keeps the keys of documents, by number, and finds them. It knows nothing of learning.

    Made by `StoreClass(space, **options)`. The ledger is the truth: what a store lost is made again and written again.
    One thread writes at a time; snapshots are read by many.
    """

    kinds: ClassVar[frozenset[str]]
    """Of the keys that it takes: dense, sparse, multi."""
    exact: ClassVar[bool]
    """Whether a search finds the k best, with scores that are the same bits as those of `Block.scores`. A store that
    has the bits and may miss a document says so by `rescores = True`: what it finds is not scored once more."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def changed(self) -> bool:
        """Whether keys may have come from others since `follow`."""
        ...

    def open(self, origin: Origin) -> None:
        """The ledger that numbers the documents. Keys that were made for others must not be used."""
        ...

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        """From now on these documents live and no others: `added` have come and `removed` have gone since the last
        call. Whether keys were taken up that others have written."""
        ...

    def write(self, keys: Keys) -> None:
        """Add keys. Documents whose keys are here already are passed over, so that it can be done twice."""
        ...

    def flush(self, *, force: bool = True) -> None:
        """Bring to disk what is in memory only: when it is much, or now if forced."""
        ...

    def check(self) -> list[str]:
        """What is damaged, a sentence each."""
        ...

    def drop(self) -> None:
        """All keys go: they are to be made again."""
        ...


@runtime_checkable
class IndexingStore(Store, Protocol):
    """A store that indexes its keys in the background, to find them without looking at all."""

    target: float
    """Of the ten best documents, the share that searches are to find."""

    @property
    def measured(self) -> float | None:
        """The share that they find, as it was measured last; None: all."""
        ...

    def recall(self, questions: Sequence[Any]) -> float:
        """The same, measured now with these questions; without any, as it was measured last."""
        ...

    def watch(self, questions: Sequence[Any]) -> None:
        """Measure it in the background, and take care that it is as high as the settings ask for."""
        ...

    def wait(self) -> None:
        """Until what is being indexed is done."""
        ...

    def finish(self) -> None:
        """Index all keys, now."""
        ...

    def stop(self) -> None:
        """Stop what goes on in the background; whoever writes next begins it again."""
        ...


class Shelf(Protocol):
    """Vectors that a store keeps under a name, beside its keys: row by row, written once, and never changed."""

    def count(self) -> int:
        """How many rows there are; −1 while they are not all there."""
        ...

    def write(self, pieces: Iterable[Vectors]) -> None:
        """All rows, in their order, in the place of what is there."""
        ...

    def near(self, vector: Vectors, count: int) -> tuple[Numbers, Scores, float]:
        """So many rows with the greatest inner products, the best first; and what no other row has more than: −∞ where
        there is no other."""
        ...

    def fetch(self, rows: Numbers) -> Vectors:
        """Some rows, in this order."""
        ...


@runtime_checkable
class ShelvingStore(Store, Protocol):
    """A store that keeps large overlays, too: on shelves, never among its keys."""

    shelve_from: int
    """Rows from which on it costs less to ask the engine than to hold and score them in every process; 0: never."""

    def shelf(self, name: str) -> Shelf: ...

    def shelves(self) -> list[str]:
        """The names of all shelves, those included that are not all there."""
        ...

    def clear_shelf(self, name: str) -> None:
        """It goes, with all that is on it."""
        ...


class Reranker(Protocol):
    """Looks at the query and each document together, after the search. Of a document with more characters than
    `longest` (2,000 where a reranker does not say) it is given the passage that answers, and what stands around it."""

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
