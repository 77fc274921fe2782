"""Which part of a found document answers the query.

A document with several rows has a passage for each of them: the one whose base key is nearest to the query answers. A
document with one row is cut into windows, and these are compared with the query by encoders that cost nothing, or by
their words. Several retrievers are weighed as in the ranking. What was learned has no say in this: it speaks for a
document, and the passage is to be the part of it that is nearest to what was asked. One thing is different: where
lessons name passages of a document, its rows count with what they have learned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evokey.encoders.bm25 import BM25
from evokey.keys.sentences import Span
from evokey.passages import parts
from evokey.scoring.block import Block
from evokey.scoring.sparse import SparseBlock, SparseQuestion
from evokey.search.fusion import LEAST_TRUST
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.search.view import Asked
from evokey.types import Document, Passage, Scores

TINY = 1e-12
MANY = 64
"""Windows of a document above which only their words are compared: some 50,000 characters."""
KEPT = 4_000_000
"""Characters of the documents that stay cut and encoded: some 60 MB with what is made of them."""


@dataclass(frozen=True, slots=True)
class Located:
    """The passages of a document, and how near each is to a query, from 0 to 1."""

    passages: Sequence[Passage]
    scores: Scores

    @property
    def best(self) -> Passage:
        """The nearest; of equals, the first."""
        return self.passages[int(self.scores.argmax())]


def row_spans(retriever: Retriever, number: int, document: Document) -> list[Span]:
    """The part of the text that each row of a document stands for; none where it has one row, or a row of no part."""
    count = int(retriever.base.sizes(np.array([number]))[0])
    spans = parts.spans(retriever.rows(document)) if count > 1 else []
    return spans if len(spans) == count else []


def passages_of(retrievers: Sequence[Retriever], number: int, document: Document) -> list[Passage]:
    """All passages of a document: its rows, where a retriever has several of it, else windows of its text."""
    return _passages(document, all_row_spans(retrievers, number, document))


def all_row_spans(retrievers: Sequence[Retriever], number: int, document: Document) -> list[list[Span]]:
    """The same for each retriever. A text is cut once for all whose keys are made of the same parts."""
    found: list[list[Span]] = []
    for place, one in enumerate(retrievers):
        alike = next((at for at in range(place) if retrievers[at].has_rows_of(one) and found[at]), None)
        same = alike is not None and len(found[alike]) == one.base.sizes(np.array([number]))[0]
        found.append(found[alike] if alike is not None and same else row_spans(one, number, document))
    return found


def _passages(document: Document, spans: Iterable[list[Span]]) -> list[Passage]:
    several = next(filter(None, spans), None)
    return parts.windows(document) if several is None else parts.passages(document, several)


class Cut:
    """A document in its passages, and what encoders make of these when they are first asked."""

    def __init__(self, retrievers: Sequence[Retriever], number: int, document: Document) -> None:
        self.spans = all_row_spans(retrievers, number, document)
        self.passages = _passages(document, self.spans)
        self._encoded: dict[str, Block[Any]] = {}

    def encode(self, retriever: Retriever) -> Block[Any]:
        found = self._encoded.get(retriever.key_space)
        if found is None:
            texts = [one.text for one in self.passages]
            found = self._encoded[retriever.key_space] = retriever.texts(texts)
        return found


class Cuts:
    """Documents that were found lately stay cut and encoded: that takes most of the time of a search with passages."""

    def __init__(self, most: int = KEPT) -> None:
        """most: characters of these documents."""
        self._kept: dict[Hashable, tuple[int, Cut]] = {}
        """The last used one last."""
        self._room = most
        self._mutex = threading.Lock()

    def get(self, retrievers: Sequence[Retriever], number: int, document: Document) -> Cut:
        rows = [(one.key_space, int(one.base.sizes(np.array([number]))[0])) for one in retrievers]
        key = (number, document.title, document.text, document.sections, *rows)
        with self._mutex:
            known = self._kept.pop(key, None)
            if known is not None:
                self._kept[key] = known
                return known[1]
        made = Cut(retrievers, number, document)
        self._keep(key, len(document.text), made)
        return made

    def _keep(self, key: Hashable, size: int, cut: Cut) -> None:
        with self._mutex:
            if key in self._kept:
                return
            self._kept[key] = size, cut
            self._room -= size
            while self._room < 0:
                self._room += self._kept.pop(next(iter(self._kept)))[0]


class Locator:
    """The passages of a found document, for the query that found it. It is asked when somebody wants to know."""

    def __init__(self, ask: Callable[[], Asked], number: int, document: Document, cuts: Cuts) -> None:
        self._ask, self._number, self._document, self._cuts = ask, number, document, cuts

    def __call__(self) -> Passage:
        return self.all().best

    def all(self) -> Located:
        return locate(self._ask(), self._number, self._document, self._cuts)


def locate(asked: Asked, number: int, document: Document, cuts: Cuts) -> Located:
    """How near each passage of a document is to a query."""
    retrievers = asked.view.retrievers
    cut = cuts.get(retrievers, number, document)
    found = cut.passages
    if len(found) == 1:
        return Located(found, np.ones(1))
    places, total = [(one.start, one.end) for one in found], np.zeros(len(found))
    for retriever, question, own in zip(retrievers, asked.questions, cut.spans, strict=True):
        overlay = asked.view.overlays.of[retriever.name].part(number)
        by_rows = own == places
        scores = (
            _row_scores(retriever, question, number, overlay) if by_rows else _text_scores(retriever, question, cut)
        )
        if scores is not None:
            weight = asked.view.overlays.weights.get(retriever.name, 1.0)
            total += max(weight * question.trust, LEAST_TRUST) * _share(scores)
    if not total.any():
        total = _share(by_words(asked.query, [one.text for one in found]))
    return Located(found, total)


def _row_scores(retriever: Retriever, question: Any, number: int, overlay: Overlay) -> Scores:
    keys = retriever.base.fetch(np.array([number])).block
    scores = overlay.row_scores(question, number, keys) if number in overlay.named else keys.scores(question)
    return np.where(np.isfinite(scores), scores, -1.0)


def _text_scores(retriever: Retriever, question: Any, cut: Cut) -> Scores | None:
    """None where it cannot tell without cost."""
    many = retriever.kind != "sparse" and len(cut.passages) > MANY
    if retriever.cost != "nothing" or not retriever.reads_text or many:
        return None
    (scores,) = cut.encode(retriever).scores_of_each([question])
    return np.asarray(scores, np.float64)


def _share(scores: Scores) -> Scores:
    """Of the best, 1; zeros where none is like the question."""
    scores = np.maximum(scores, 0.0)
    most = float(scores.max())
    return scores / most if most > TINY else np.zeros(len(scores))


def by_words(query: str, texts: Sequence[str]) -> Scores:
    """BM25 among these texts alone."""
    encoder = BM25()
    block, (asked,) = SparseBlock.of(encoder.documents(texts)), encoder.queries([query])
    terms = tuple(sorted(asked))
    held = np.diff(block.counts.tocsc().indptr)
    idf = [encoder.idf(len(texts), int(held[block.place[term]])) if term in block.place else 0.0 for term in terms]
    counts = tuple(asked[term] for term in terms)
    weights = tuple(count * weight for count, weight in zip(counts, idf, strict=True))
    average = float(block.lengths.mean()) if len(texts) else 0.0
    return block.scores(SparseQuestion(terms, weights, encoder, average, counts, tuple(idf), 0.0))
