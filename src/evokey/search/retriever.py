"""Encoder + store + key builder: one way to find documents. Base and overlay meet here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from evokey.encoders.cached import Cached
from evokey.encoders.given import Given
from evokey.encoders.staged import Staged
from evokey.errors import InvalidVector
from evokey.ledger.documents import Entry
from evokey.protocols import Corpus, Cost, DenseEncoder, KeyBuilder, MultiEncoder, SparseEncoder
from evokey.search.overlay import Overlay
from evokey.stores.embedded import NO_NUMBERS, Block, Scan
from evokey.stores.flat import DenseBlock, DenseQuestion, FlatStore
from evokey.stores.late import LateBlock, LateQuestion, LateStore
from evokey.stores.sparse import SparseBlock, SparseQuestion, SparseStore
from evokey.types import Expansion, Numbers, Ranking, Scores, Vectors

REPEATED = 5
"""How often a query's own words count in an expanded question that goes by words."""
AWAY = 0.25
"""How far negative units push an expanded question away."""
LONGEST = 512
"""Vectors of an expanded question, in late interaction."""
TAUGHT = "taught.sqlite"
"""Where taught texts are kept encoded."""


class Keys(NamedTuple):
    """The base keys of some documents, as a store takes them."""

    covered: Numbers
    """The documents, those without a row included."""
    owners: Numbers
    """The document of each row."""
    block: Any


class Retriever(Protocol):
    """What memory and evolution ask of a retriever, dense or sparse."""

    name: str
    kind: str

    @property
    def cost(self) -> Cost:
        """What encoding costs."""
        ...

    @property
    def store(self) -> FlatStore | LateStore | SparseStore: ...

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        """What the store is to hold of these documents. Where encoding costs something, it is paid for once."""
        ...

    def save(self, *, force: bool = False) -> None:
        """Write keys that are in memory only: all of them where they cost something or if forced, else when many."""
        ...

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> Any:
        """A text as it is asked now."""
        ...

    def expanded(self, expansion: Expansion, learned: Mapping[str, int]) -> Any:
        """A query and its units as one question."""
        ...

    def lesson(self, text: str, learned: Mapping[str, int]) -> Any:
        """A text of a lesson as a question: where encoding costs something, it is kept encoded."""
        ...

    def forget(self, texts: Sequence[str]) -> None:
        """Erase what is kept of these texts."""
        ...

    def texts(self, texts: Sequence[str]) -> Block[Any]:
        """Taught texts as rows: the document side of the encoder."""
        ...

    def words(self, text: str) -> frozenset[str]:
        """The words of a text, where a retriever goes by words."""
        ...


def search(retriever: Retriever, question: Any, k: int, overlay: Overlay, among: Numbers | None = None) -> Ranking:
    """The k best documents by base and overlay together."""
    question = overlay.turned(question)
    scan = retriever.store.scan(question)
    own = overlay.restricted
    if own is None and among is None and (found := overlay.joined(scan, question, k)) is not None:
        return found
    best = scan.top(k, overlay.all_documents, among)
    if len(overlay.documents):
        best = _with_touched(best, k, overlay, scan, question, among)
    if own is not None and (among is None or np.isin(own.documents, among).any()):
        best = _with_touched(best, k, own, scan, question.weigh_unheard(), among)
    return best


def _with_touched(best: Ranking, k: int, overlay: Overlay, scan: Scan, question: Any, among: Numbers | None) -> Ranking:
    """The k best of a ranking and of what an overlay has touched."""
    scores = overlay.scores(scan, question)
    reach = scores >= best.scores[-1] if len(best) == k else scores > scan.floor
    if among is not None:
        reach &= np.isin(overlay.documents, among)
    reaching = reach.nonzero()[0]
    if not len(reaching):
        return best
    numbers = np.concatenate([best.numbers, overlay.documents[reaching]])
    scores = np.concatenate([best.scores, scores[reaching]])
    order = np.lexsort((numbers, -scores))[:k]
    return Ranking(numbers[order], scores[order])


class DenseRetriever:
    kind = "dense"

    def __init__(self, name: str, encoder: DenseEncoder, keys: KeyBuilder, folder: Path | None) -> None:
        self.name, self._encoder, self._keys = name, encoder, keys
        self._taught: DenseEncoder = kept(encoder, folder)
        self._expect: Callable[[int], None] | None = getattr(encoder, "expect", None)
        self._staged = Staged(encoder, folder)
        self._store = FlatStore(folder, encoder.identity)

    @property
    def store(self) -> FlatStore:
        return self._store

    @property
    def cost(self) -> Cost:
        return self._encoder.cost

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        keyed = [(entry, text) for entry in entries for text in self._keys.texts(entry.document, corpus)]
        self._tell_dimension()
        vectors = self._staged.documents([text for _, text in keyed])
        self.check_dimension(vectors)
        said = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0) if len(vectors) else NO_NUMBERS
        owners = np.array([keyed[row][0].number for row in said], np.int64)
        return Keys(_numbers(entries), owners, DenseBlock(vectors[said]))

    def save(self, *, force: bool = False) -> None:
        save(self, self._staged, force)

    def check_dimension(self, vectors: Vectors) -> None:
        held = self._dimension
        if len(vectors) and held is not None and held != vectors.shape[1]:
            raise InvalidVector(
                f"this memory holds vectors of {held} dimensions; {vectors.shape[1]} were given. "
                f"All vectors of a memory come from one encoder: check which one made these."
            )

    @property
    def _dimension(self) -> int | None:
        held = (segment.block.vectors.shape[1] for segment in self.store.rows.segments if len(segment.block))
        return next(held, None)

    def _tell_dimension(self) -> None:
        """An encoder that learns its dimension from its first answer would believe a wrong one."""
        if self._expect is not None and (held := self._dimension) is not None:
            self._expect(held)

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> DenseQuestion:
        self._tell_dimension()
        return DenseQuestion(self._encoder.queries([text])[0])

    def expanded(self, expansion: Expansion, learned: Mapping[str, int]) -> DenseQuestion:
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

    def texts(self, texts: Sequence[str]) -> DenseBlock:
        self._tell_dimension()
        return DenseBlock(self._taught.documents(texts))

    def forget(self, texts: Sequence[str]) -> None:
        forgotten(self._taught, texts)

    def words(self, text: str) -> frozenset[str]:
        return frozenset()


class GivenRetriever(DenseRetriever):
    """Vectors come from the caller: with the documents, and with each question."""

    _encoder: Given

    def __init__(self, name: str, encoder: Given, keys: KeyBuilder, folder: Path | None) -> None:
        super().__init__(name, encoder, keys, folder)
        self._lessons = self._taught = Given()

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        """A vector, not a text, makes a row."""
        vectors = np.stack([_handed(entry) for entry in entries])
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


class LateRetriever:
    kind = "multi"

    def __init__(self, name: str, encoder: MultiEncoder, keys: KeyBuilder, folder: Path | None) -> None:
        self.name, self._encoder, self._keys = name, encoder, keys
        self._taught: MultiEncoder = kept(encoder, folder)
        self._staged = Staged(encoder, folder)
        self._store = LateStore(folder, encoder.identity)

    @property
    def store(self) -> LateStore:
        return self._store

    @property
    def cost(self) -> Cost:
        return self._encoder.cost

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        keyed = [(entry.number, text) for entry in entries for text in self._keys.texts(entry.document, corpus)]
        matrices = self._staged.documents([text for _, text in keyed])
        said = [(number, vectors) for (number, _), vectors in zip(keyed, matrices, strict=True) if len(vectors)]
        owners = np.array([number for number, _ in said], np.int64)
        return Keys(_numbers(entries), owners, LateBlock.of([vectors for _, vectors in said]))

    def save(self, *, force: bool = False) -> None:
        save(self, self._staged, force)

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> LateQuestion:
        return LateQuestion(self._encoder.queries([text])[0])

    def expanded(self, expansion: Expansion, learned: Mapping[str, int]) -> LateQuestion:
        """The vectors of all; negative units have no say."""
        vectors = [*self._encoder.queries([expansion.query]), *self._encoder.documents(expansion.texts)]
        return LateQuestion(np.concatenate(vectors)[:LONGEST])

    def lesson(self, text: str, learned: Mapping[str, int]) -> LateQuestion:
        return LateQuestion(self._taught.queries([text])[0])

    def texts(self, texts: Sequence[str]) -> LateBlock:
        return LateBlock.of(self._taught.documents(texts))

    def forget(self, texts: Sequence[str]) -> None:
        forgotten(self._taught, texts)

    def words(self, text: str) -> frozenset[str]:
        return frozenset()


class SparseRetriever:
    kind = "sparse"

    def __init__(self, name: str, encoder: SparseEncoder, keys: KeyBuilder, folder: Path | None) -> None:
        self.name, self._encoder, self._keys = name, encoder, keys
        self._taught: SparseEncoder = kept(encoder, folder)
        self._staged = Staged(encoder, folder)
        self._store = SparseStore(folder, encoder.identity, encoder)

    @property
    def store(self) -> SparseStore:
        return self._store

    @property
    def cost(self) -> Cost:
        return self._encoder.cost

    def keys(self, entries: Sequence[Entry], corpus: Corpus) -> Keys:
        keyed = [(entry.number, text) for entry in entries for text in self._keys.texts(entry.document, corpus)]
        bags = self._staged.documents([text for _, text in keyed])
        said = [(number, bag) for (number, _), bag in zip(keyed, bags, strict=True) if bag]
        owners = np.array([number for number, _ in said], np.int64)
        return Keys(_numbers(entries), owners, SparseBlock.of([bag for _, bag in said]))

    def save(self, *, force: bool = False) -> None:
        save(self, self._staged, force)

    def question(self, text: str, learned: Mapping[str, int], vector: Vectors | None = None) -> SparseQuestion:
        return self.store.question(self._encoder.queries([text])[0], learned)

    def expanded(self, expansion: Expansion, learned: Mapping[str, int]) -> SparseQuestion:
        """The words of all, the query's several times; words that only negative units have are left out."""
        query, *units = self._encoder.queries([expansion.query, *expansion.texts])
        against = {word for bag in self._encoder.queries(expansion.unwanted) for word in bag}
        words: dict[str, float] = {word: REPEATED * count for word, count in query.items()}
        for bag in units:
            for word, count in bag.items():
                if word in query or word not in against:
                    words[word] = words.get(word, 0) + count
        return self.store.question(words, learned)

    def lesson(self, text: str, learned: Mapping[str, int]) -> SparseQuestion:
        return self.store.question(self._taught.queries([text])[0], learned)

    def texts(self, texts: Sequence[str]) -> SparseBlock:
        return SparseBlock.of(self._taught.documents(texts))

    def words(self, text: str) -> frozenset[str]:
        return frozenset(self._taught.queries([text])[0])

    def forget(self, texts: Sequence[str]) -> None:
        forgotten(self._taught, texts)


def save(retriever: Retriever, staged: Staged, force: bool) -> None:
    """The keys first, and then what is kept until they are on disk goes."""
    retriever.store.save(force=force or retriever.cost != "nothing")
    staged.clear()


def as_text(expansion: Expansion) -> str:
    return " ".join([expansion.query, *expansion.texts])


def kept(encoder: Any, folder: Path | None) -> Any:
    """The same encoder; with a memory of its own for taught texts where encoding costs something."""
    if encoder.cost == "nothing" or folder is None or isinstance(encoder, Cached):
        return encoder
    return Cached.around(encoder, folder / TAUGHT)


def forgotten(encoder: Any, texts: Sequence[str]) -> None:
    if isinstance(encoder, Cached):
        encoder.forget(texts)


def _unit(vector: Scores) -> Scores:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))


def _numbers(entries: Sequence[Entry]) -> Numbers:
    return np.array([entry.number for entry in entries], np.int64)


def _handed(entry: Entry) -> Vectors:
    if entry.vector is None:
        raise InvalidVector(
            f"document {entry.document.id!r} came without a vector, and this memory takes them from the caller "
            f"(encoder 'given'). Pass vectors=… to add, one row for each document."
        )
    return entry.vector
