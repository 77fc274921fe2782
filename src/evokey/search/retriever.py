"""Encoder + key builder + store: one way to find documents. Base and overlay meet here, and nowhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from operator import mul
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from evokey.encoders.cached import Cached, Kept
from evokey.encoders.given import Given
from evokey.encoders.staged import Staged
from evokey.errors import InvalidVector
from evokey.keys.full import Full
from evokey.ledger.documents import Entry
from evokey.protocols import Bag, Corpus, Cost, KeyBuilder, Snapshot, SparseEncoder, Store
from evokey.registry import Options
from evokey.scoring.block import NO_NUMBERS, Block, Keys
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.scoring.late import LateBlock, LateQuestion
from evokey.scoring.sparse import SparseBlock, SparseQuestion
from evokey.search.imported import find_mismatch, merge
from evokey.search.overlay import Overlay
from evokey.search.rewording import Rewording, turn
from evokey.types import Document, Expansion, KeyText, Numbers, Ranking, Scores, Vectors

REPEATED = 5
"""How often a query's own words count in an expanded question that goes by words."""
AWAY = 0.25
"""How far negative units push an expanded question away."""
LONGEST = 512
"""Vectors of an expanded question, in late interaction."""
TAUGHT = "taught.sqlite"
"""Where taught texts are kept encoded."""


class NoCorpus:
    """No document at all, for what does not depend on others."""

    documents = 0

    def frequency(self, word: str) -> int:
        return 0


NO_CORPUS = NoCorpus()


class Retriever(ABC):
    """What memory and evolution ask of a retriever of any kind. Frozen, its base keys stay as they are."""

    kind: ClassVar[str]
    revision: str = ""
    """Of its encoder, if it was tuned."""
    seen: Container[str] = ()
    """Queries that a tuned encoder was trained on."""
    _frozen: Snapshot | None = None
    _live: Numbers = NO_NUMBERS

    def __init__(self, name: str, encoder: Any, keys: KeyBuilder, folder: Path | None, store: Store) -> None:
        self.name, self.store, self._encoder, self._keys = name, store, encoder, keys
        self._taught = remember_taught(encoder, folder)
        self._staged = Staged(encoder, folder)

    @property
    def key_space(self) -> str:
        """What its keys and pools go by: those of another revision are not mixed with them."""
        return f"{self.name}@{self.revision}" if self.revision else self.name

    def keep_taught_in(self, kept: Kept) -> None:
        """Where taught texts are kept encoded, in the place of a file of this machine."""
        if isinstance(self._taught, Cached) and self._taught is not self._encoder:
            self._taught.close()
            self._taught = Cached.around(self._encoder, kept)

    def keep_nothing(self) -> None:
        """Write nothing of what is encoded from now on to the memory."""
        if isinstance(self._taught, Cached) and self._taught is not self._encoder:
            self._taught.keep_nothing()

    def freeze(self, live: Numbers) -> Self:
        """The same retriever, with the base keys as they are now, whatever is written later; live: the documents."""
        frozen = copy(self)
        frozen._frozen, frozen._live = self.store.snapshot, live
        return frozen

    @cached_property
    def documents(self) -> Numbers:
        """The living documents that have keys."""
        return self._live[self.base.sizes(self._live) > 0]

    @property
    def base(self) -> Snapshot:
        """The base keys."""
        return self.store.snapshot if self._frozen is None else self._frozen

    @property
    def encoder(self) -> Any:
        return self._encoder

    @property
    def cost(self) -> Cost:
        """What encoding costs."""
        cost: Cost = self._encoder.cost
        return cost

    reads_text: ClassVar[bool] = True
    """Whether any text can be encoded, and not only what a vector was handed in for."""

    def rows(self, document: Document) -> Sequence[KeyText]:
        """The texts that the keys of a document are made of, as far as these depend on the document alone."""
        return self._keys.rows(document, NO_CORPUS)

    def has_rows_of(self, other: Retriever) -> bool:
        """Whether the keys of both are made of the same texts."""
        return type(self._keys) is type(other._keys) and vars(self._keys) == vars(other._keys)

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        """What the store is to hold of these documents. Where encoding costs something, it is paid for once."""
        keyed = [(entry.number, row.text) for entry in entries for row in self._keys.rows(entry.document, corpus)]
        made = self._staged.documents([text for _, text in keyed])
        return self._keys_of(_numbers(entries), np.array([number for number, _ in keyed], np.int64), made)

    @contextmanager
    def workers(self, described: Options, count: int) -> Iterator[None]:
        """Meanwhile documents are encoded in so many processes, by encoders of these settings."""
        self._staged.pooled.start(described, count)
        try:
            yield
        finally:
            self._staged.pooled.stop()

    @abstractmethod
    def _keys_of(self, covered: Numbers, owners: Numbers, made: Any) -> Keys:
        """Of encoded texts and their owners; without those of which nothing was made."""

    def save(self, *, force: bool = False) -> None:
        """Write keys that are in memory only: all of them where they cost something or if forced, else when many. Then
        what is kept until they are on disk goes."""
        self.store.flush(force=force or self.cost != "nothing")
        self._staged.clear()

    @abstractmethod
    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> Any:
        """A text as it is asked now."""

    @abstractmethod
    def expand(self, expansion: Expansion, learned: Mapping[str, int]) -> Any:
        """A query and its units as one question."""

    @abstractmethod
    def lesson(self, text: str, learned: Mapping[str, int]) -> Any:
        """A text of a lesson as a question: where encoding costs something, it is kept encoded."""

    @abstractmethod
    def reword(self, rewording: Rewording, learned: Mapping[str, int]) -> Any:
        """A taught query as it may be asked in other words. Nothing is paid for, and nothing kept."""

    @abstractmethod
    def texts(self, texts: Sequence[str]) -> Block[Any]:
        """Taught texts as rows: the document side of the encoder."""

    def forget(self, texts: Sequence[str]) -> None:
        """Erase what is kept of these texts."""
        if isinstance(self._taught, Cached):
            self._taught.forget(texts)

    def words(self, text: str) -> frozenset[str]:
        """The words of a text, where a retriever goes by words."""
        return frozenset()


def search(retriever: Retriever, question: Any, k: int, overlay: Overlay, among: Numbers | None = None) -> Ranking:
    """The k best documents by base and overlay together."""
    question = overlay.turn(question)
    if overlay.shelved is not None:
        best = overlay.shelved.rank(retriever.base, question, k, among)
        if best is not None:
            return best
    (found,) = retriever.base.search([question], max(k, overlay.depth), without=overlay.all_documents, within=among)
    return overlay.rank(question, found, k, among)


class DenseRetriever(Retriever):
    kind = "dense"
    encodes: ClassVar[bool] = True
    """Whether any text can be encoded."""

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        """A vector that came with a document, of an index that was imported, is its key; unless the encoder is another
        one now."""
        self._tell_dimension()
        handed = [entry for entry in entries if entry.vector is not None]
        if not handed or not self.takes_vectors:
            return super().keys(entries, corpus)
        vectors = np.stack([_decode_vector(entry) for entry in handed])
        if self.find_mismatch([entry.document for entry in handed], vectors) is not None:
            return super().keys(entries, corpus)
        rest = super().keys([entry for entry in entries if entry.vector is None], corpus)
        return merge(_numbers(entries), rest, Keys(_numbers(handed), _numbers(handed), DenseBlock(vectors)))

    @property
    def takes_vectors(self) -> bool:
        """Whether documents may come with their vectors: where a document has one key, of all its text."""
        return type(self._keys) is Full

    def find_mismatch(self, documents: Sequence[Document], vectors: Vectors) -> tuple[str, float] | None:
        """Of a sample, the first document of which the encoder makes another vector: its id, and their similarity."""
        self._tell_dimension()
        texts = [self.rows(one)[0].text if self.rows(one) else "" for one in documents]
        found = find_mismatch(self._encoder.documents, texts, vectors)
        return None if found is None else (documents[found[0]].id, found[1])

    def _keys_of(self, covered: Numbers, owners: Numbers, made: Vectors) -> Keys:
        self.check_dimension(made)
        said = np.flatnonzero(np.linalg.norm(made, axis=1) > 0) if len(made) else NO_NUMBERS
        return Keys(covered, owners[said], DenseBlock(made[said]))

    def check_dimension(self, vectors: Vectors) -> None:
        held = self.base.dimension
        if len(vectors) and held is not None and held != vectors.shape[1]:
            raise InvalidVector(
                f"this memory holds vectors of {held} dimensions; {vectors.shape[1]} were given. "
                f"All vectors of a memory come from one encoder: check which one made these."
            )

    def _tell_dimension(self) -> None:
        """An encoder that learns its dimension from its first answer would believe a wrong one."""
        expect: Callable[[int], None] | None = getattr(self._encoder, "expect", None)
        if expect is not None and (held := self.base.dimension) is not None:
            expect(held)

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> DenseQuestion:
        self._tell_dimension()
        return DenseQuestion(self._encoder.queries([text])[0])

    def expand(self, expansion: Expansion, learned: Mapping[str, int]) -> DenseQuestion:
        """The query and its units with equal say, however far units lie apart (blend), or all as one text (concat); a
        little away from negative units."""
        self._tell_dimension()
        query = self._encoder.queries([as_text(expansion) if expansion.search == "concat" else expansion.query])[0]
        vector = query.astype(np.float64)
        if expansion.texts and expansion.search != "concat":
            vector = vector + _unit(self._encoder.documents(expansion.texts).mean(axis=0, dtype=np.float64))
        if expansion.unwanted:
            vector = vector - AWAY * self._encoder.documents(expansion.unwanted).mean(axis=0)
        return DenseQuestion(_unit(vector).astype(np.float32))

    def lesson(self, text: str, learned: Mapping[str, int]) -> DenseQuestion:
        self._tell_dimension()
        return DenseQuestion(self._taught.queries([text])[0])

    def reword(self, rewording: Rewording, learned: Mapping[str, int]) -> DenseQuestion:
        if self._encoder.cost == "nothing" and self.encodes:
            vector = self._encoder.queries([rewording.text])[0]
            if np.linalg.norm(vector) > 0:
                return DenseQuestion(vector)
        own, other = (self.lesson(one, learned).vector for one in (rewording.query, rewording.other))
        return DenseQuestion(turn(own, other, rewording.similarity))

    def texts(self, texts: Sequence[str]) -> DenseBlock:
        self._tell_dimension()
        return DenseBlock(self._taught.documents(texts))


class GivenRetriever(DenseRetriever):
    """Vectors come from the caller: with the documents, and with each question."""

    reads_text = False
    _encoder: Given
    encodes: ClassVar[bool] = False

    def find_mismatch(self, documents: Sequence[Document], vectors: Vectors) -> None:
        """Nobody but the caller knows."""

    def __init__(self, name: str, encoder: Given, keys: KeyBuilder, folder: Path | None, store: Store) -> None:
        super().__init__(name, encoder, keys, folder, store)
        self._lessons = self._taught = Given()

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        """A vector, not a text, makes a row."""
        vectors = np.stack([_decode_vector(entry) for entry in entries])
        self.check_dimension(vectors)
        return Keys(_numbers(entries), _numbers(entries), DenseBlock(vectors))

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> DenseQuestion:
        if vector is None:
            return super().question(text, learned)
        self.check_dimension(vector[None])
        return DenseQuestion(vector)

    def remember(self, vectors: Mapping[str, Vectors], *, afresh: bool = True) -> None:
        """The query vectors of lessons: of all, or of those that came since; nothing else is known."""
        if afresh:
            self._encoder.known = dict(vectors)
        else:
            self._encoder.known.update(vectors)
        self._lessons.known = self._encoder.known

    def remember_apart(self, public: Mapping[str, Vectors], every: Mapping[str, Vectors]) -> None:
        """The same where some documents are restricted: who asks is known by the public lessons alone."""
        self._encoder.known = dict(public)
        self._lessons.known = {**every, **public}


class LateRetriever(Retriever):
    kind = "multi"

    def _keys_of(self, covered: Numbers, owners: Numbers, made: Sequence[Vectors]) -> Keys:
        said = [row for row, vectors in enumerate(made) if len(vectors)]
        return Keys(covered, owners[said], LateBlock.of([made[row] for row in said]))

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> LateQuestion:
        return LateQuestion(self._encoder.queries([text])[0])

    def expand(self, expansion: Expansion, learned: Mapping[str, int]) -> LateQuestion:
        """The vectors of all; negative units have no say."""
        vectors = [*self._encoder.queries([expansion.query]), *self._encoder.documents(expansion.texts)]
        return LateQuestion(np.concatenate(vectors)[:LONGEST])

    def lesson(self, text: str, learned: Mapping[str, int]) -> LateQuestion:
        return LateQuestion(self._taught.queries([text])[0])

    def reword(self, rewording: Rewording, learned: Mapping[str, int]) -> LateQuestion:
        """Every other vector: words cannot be dropped without encoding what is left."""
        return LateQuestion(self._taught.queries([rewording.query])[0][::2])

    def texts(self, texts: Sequence[str]) -> LateBlock:
        return LateBlock.of(self._taught.documents(texts))


class Idf(dict[int, float]):
    """What terms weigh that so many of the rows hold, each worked out once; 0 for those that none holds."""

    def __init__(self, encoder: SparseEncoder, rows: int) -> None:
        super().__init__({0: 0.0})
        self._encoder, self.rows, self.unheard = encoder, rows, encoder.idf(rows, 0)

    def __missing__(self, frequency: int) -> float:
        found = self[frequency] = self._encoder.idf(self.rows, frequency)
        return found


class SparseRetriever(Retriever):
    kind = "sparse"

    def __init__(self, name: str, encoder: Any, keys: KeyBuilder, folder: Path | None, store: Store) -> None:
        super().__init__(name, encoder, keys, folder, store)
        self._idf = Idf(encoder, 0)

    def _keys_of(self, covered: Numbers, owners: Numbers, made: Sequence[Bag]) -> Keys:
        said = [row for row, bag in enumerate(made) if bag]
        return Keys(covered, owners[said], SparseBlock.of([made[row] for row in said]))

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> SparseQuestion:
        return self.weigh(self._encoder.queries([text])[0], learned)

    def expand(self, expansion: Expansion, learned: Mapping[str, int]) -> SparseQuestion:
        """The words of all, the query's several times; words that only negative units have are left out."""
        query, *units = self._encoder.queries([expansion.query, *expansion.texts])
        against = {word for bag in self._encoder.queries(expansion.unwanted) for word in bag}
        words: dict[str, float] = {word: REPEATED * count for word, count in query.items()}
        for bag in units:
            for word, count in bag.items():
                if word in query or word not in against:
                    words[word] = words.get(word, 0) + count
        return self.weigh(words, learned)

    def lesson(self, text: str, learned: Mapping[str, int]) -> SparseQuestion:
        return self.weigh(self._taught.queries([text])[0], learned)

    def reword(self, rewording: Rewording, learned: Mapping[str, int]) -> SparseQuestion:
        if self._encoder.cost != "nothing":
            bag = self._taught.queries([rewording.query])[0]
            return self.weigh({term: bag[term] for term in sorted(bag)[::2]}, learned)
        return self.weigh(self._encoder.queries([rewording.text])[0], learned)

    def weigh(self, bag: Bag, learned: Mapping[str, int]) -> SparseQuestion:
        """A query's terms as they weigh now; `learned` gives the frequency of words that only teaching has brought."""
        counted, terms = self.base.counts, tuple(sorted(bag))
        if self._idf.rows != counted.rows:
            self._idf = Idf(self._encoder, counted.rows)
        idf, frequencies, absent = self._idf, counted.frequencies(terms), frozenset[str]()
        if not all(frequencies):
            found = list(zip(terms, frequencies, strict=True))
            absent = frozenset(term for term, frequency in found if not frequency)
            frequencies = [frequency or learned.get(term, 0) for term, frequency in found]
        weights, counts = tuple([idf[one] for one in frequencies]), tuple([bag[term] for term in terms])
        weighed = tuple(map(mul, counts, weights))
        return SparseQuestion(terms, weighed, self._encoder, counted.average, counts, weights, idf.unheard, absent)

    def texts(self, texts: Sequence[str]) -> SparseBlock:
        return SparseBlock.of(self._taught.documents(texts))

    def words(self, text: str) -> frozenset[str]:
        return frozenset(self._taught.queries([text])[0])


def as_text(expansion: Expansion) -> str:
    return " ".join([expansion.query, *expansion.texts])


def remember_taught(encoder: Any, folder: Path | None) -> Any:
    """The same encoder; with a memory of its own for taught texts where encoding costs something."""
    if encoder.cost == "nothing" or folder is None or isinstance(encoder, Cached):
        return encoder
    return Cached.around(encoder, folder / TAUGHT)


def _unit(vector: Scores) -> Scores:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))


def _numbers(entries: Sequence[Entry]) -> Numbers:
    return np.array([entry.number for entry in entries], np.int64)


def _decode_vector(entry: Entry) -> Vectors:
    if entry.vector is None:
        raise InvalidVector(
            f"document {entry.document.id!r} came without a vector, and this memory takes them from the caller "
            f"(encoder 'given'). Pass vectors=… to add, one row for each document."
        )
    return entry.vector
