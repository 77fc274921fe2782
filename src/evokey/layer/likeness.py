"""How like two questions are: a cosine for each measure, from 0 (nothing in common) to 1 (the same question).

The taught questions are a small collection of their own. A word weighs by how few of them have it. Beside the encoders,
the engine says how like two questions are: by how far it returns the same documents for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from evokey.encoders.cached import Cached
from evokey.errors import InvalidSettings
from evokey.protocols import Bag
from evokey.search.retriever import remember_taught
from evokey.types import Scores

RESULTS = "engine"
"""The name of the likeness by what the engine returned."""
COMPARED = 20
"""Results of two questions that are compared."""


class Measure(Protocol):
    """One encoder's word on how like questions are to the taught ones."""

    def table(self, questions: Sequence[str]) -> Scores:
        """Questions (first axis) × taught questions, each from 0 to 1."""
        ...


class WordMeasure:
    """By words in common: BM25's saturation and idf, of vectors of length 1."""

    def __init__(self, encoder: Any, texts: Sequence[str]) -> None:
        self._encoder = encoder
        bags: Sequence[Bag] = encoder.documents(list(texts))
        lengths = [sum(bag.values()) for bag in bags]
        self._average = float(np.mean(lengths)) if lengths else 1.0
        frequency: dict[str, int] = {}
        for bag in bags:
            for word in bag:
                frequency[word] = frequency.get(word, 0) + 1
        self._columns = {word: column for column, word in enumerate(frequency)}
        # The root, so that the product of two vectors weighs a word by its idf, as BM25 does.
        self._idf = {word: math.sqrt(encoder.idf(len(bags), count)) for word, count in frequency.items()}
        self._unknown = math.sqrt(encoder.idf(len(bags), 0))
        self._taught = self._matrix(bags).tocsc()

    def table(self, questions: Sequence[str]) -> Scores:
        asked = self._matrix(self._encoder.documents(list(questions)))
        return np.asarray(np.clip((asked @ self._taught.T).toarray(), 0.0, 1.0))

    def _matrix(self, bags: Sequence[Bag]) -> sparse.csr_array:
        """Rows of length 1. A word that nobody taught makes a question less like all of them."""
        columns, values, starts = list[int](), list[float](), [0]
        for bag in bags:
            (pivot,) = self._encoder.pivots(np.array([sum(bag.values())], np.float64), self._average)
            weights = {word: self._weigh(word, count, pivot) for word, count in bag.items()}
            length = max(math.sqrt(sum(one * one for one in weights.values())), 1e-12)
            known = [word for word in weights if word in self._columns]
            columns += [self._columns[word] for word in known]
            values += [weights[word] / length for word in known]
            starts.append(len(columns))
        parts = np.array(values, np.float64), np.array(columns, np.int64), np.array(starts, np.int64)
        return sparse.csr_array(parts, (len(bags), len(self._columns)))

    def _weigh(self, word: str, count: float, pivot: float) -> float:
        return float(count / (count + pivot) * self._idf.get(word, self._unknown))


class VectorMeasure:
    """By meaning: the cosine of dense vectors."""

    def __init__(self, encoder: Any, texts: Sequence[str], taught: Any) -> None:
        """taught: the encoder that keeps what it encodes, where encoding costs something."""
        self._encoder = encoder
        self._taught = np.asarray(taught.queries(list(texts)) if len(texts) else np.zeros((0, 1)))

    def table(self, questions: Sequence[str]) -> Scores:
        if not len(self._taught):
            return np.zeros((len(questions), 0))
        vectors = np.asarray(self._encoder.queries(list(questions)))
        return np.asarray(np.clip((vectors @ self._taught.T).astype(np.float64), 0.0, 1.0))


class Results(NamedTuple):
    """What an engine returned for one question, best first."""

    documents: Sequence[int | str]
    """Numbers or ids."""
    shares: Scores
    """Their scores, as shares of the range of this list."""


class ResultMeasure:
    """By what the engine returns: the cosine of the squared shares of its first results."""

    def __init__(self, taught: Sequence[Results]) -> None:
        found = dict.fromkeys(document for one in taught for document in one.documents[:COMPARED])
        self._columns = {document: column for column, document in enumerate(found)}
        self._taught = self._matrix(taught).T.tocsr()

    def table(self, asked: Sequence[Results]) -> Scores:
        return np.asarray(np.clip((self._matrix(asked) @ self._taught).toarray(), 0.0, 1.0))

    def _matrix(self, found: Sequence[Results]) -> sparse.csr_array:
        """Rows of length 1; documents that were found for no taught question make a question less like all of them."""
        columns, values, starts = list[int](), list[float](), [0]
        for one in found:
            weights = np.asarray(one.shares[:COMPARED]) ** 2
            weights = weights / max(float(np.linalg.norm(weights)), 1e-12)
            pairs = zip(one.documents[:COMPARED], weights.tolist(), strict=True)
            known = [(self._columns[document], weight) for document, weight in pairs if document in self._columns]
            columns += [column for column, _ in known]
            values += [weight for _, weight in known]
            starts.append(len(columns))
        parts = np.array(values, np.float64), np.array(columns, np.int64), np.array(starts, np.int64)
        return sparse.csr_array(parts, (len(found), len(self._columns)))


class Likeness:
    """How like questions are to the taught ones, by every encoder and by the engine's results."""

    def __init__(self, measures: Mapping[str, Measure], texts: Sequence[str], results: ResultMeasure | None) -> None:
        """results: None where they are not asked for."""
        self.names, self._measures, self._results = tuple(measures), tuple(measures.values()), results
        self._place = {text: column for column, text in enumerate(texts)}

    def tables(self, questions: Sequence[str]) -> Scores:
        """Encoders × questions × taught questions. A question that was taught in the same words is as like as can
        be."""
        found = np.array([measure.table(questions) for measure in self._measures])
        return self._mark_same(questions, found.reshape(len(self._measures), len(questions), len(self._place)))

    def with_results(self, questions: Sequence[str], tables: Scores, found: Sequence[Results] | None) -> Scores:
        """The same, and last the likeness by what the engine returned for the questions; where that is not known, it is
        what the encoders say together."""
        if found is None:
            last = tables.mean(axis=0)
        elif self._results is None:
            last = np.zeros(tables.shape[1:])
        else:
            last = self._results.table(found)
        return self._mark_same(questions, np.concatenate([tables, last[None]]))

    def _mark_same(self, questions: Sequence[str], tables: Scores) -> Scores:
        for row, question in enumerate(questions):
            if question in self._place:
                tables[:, row, self._place[question]] = 1.0
        return tables


@dataclass(frozen=True)
class Comparison:
    """An encoder by which questions are compared."""

    name: str
    encoder: Any
    taught: Any
    """The same encoder; where encoding costs something, it keeps what it has encoded."""

    @classmethod
    def of(cls, name: str, encoder: Any, folder: Path) -> Comparison:
        if encoder.kind not in ("dense", "sparse") or name == "given":
            raise InvalidSettings(
                f"encoder {name!r} cannot compare questions: beside a search, they are compared by one vector made of "
                f"the text, or by words. Choose a dense encoder such as wordllama, or bm25"
            )
        return cls(name, encoder, remember_taught(encoder, folder))

    def measure(self, texts: Sequence[str]) -> Measure:
        if self.encoder.kind == "sparse":
            return WordMeasure(self.encoder, texts)
        return VectorMeasure(self.encoder, texts, self.taught)

    def keep_nothing(self) -> None:
        """Write nothing of what is encoded from now on to the layer."""
        if isinstance(self.taught, Cached) and self.taught is not self.encoder:
            self.taught.keep_nothing()

    def forget(self, texts: Sequence[str]) -> None:
        """Erase what is kept of these texts."""
        if isinstance(self.taught, Cached):
            self.taught.forget(texts)

    def close(self) -> None:
        if isinstance(self.taught, Cached) and self.taught is not self.encoder:
            self.taught.close()


def make_likeness(
    comparisons: Sequence[Comparison], texts: Sequence[str], results: Sequence[Results] | None = None
) -> Likeness:
    """results: what the engine returned for the taught questions, if that is compared, too."""
    measures = {one.name: one.measure(texts) for one in comparisons}
    return Likeness(measures, texts, None if results is None else ResultMeasure(results))
