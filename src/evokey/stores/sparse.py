"""Sparse rows: term counts in an inverted index. Weights follow from the counts and the living documents.

Documents come and go without a rebuild: the number of documents, their average length and a term's document
frequency are counted over what lives now. Terms are taken in alphabetical order, so a score is the same sum in the
same order whatever the history of the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.protocols import Bag, SparseEncoder
from evokey.stores.embedded import Block, EmbeddedStore, Rows, Scan
from evokey.stores.segments import Arrays
from evokey.types import Numbers, Scores

UNKNOWING, KNOWING = 0.25, 0.75
"""Shares of a question's words at which a sparse ranking is not trusted at all, and trusted fully."""


@dataclass(frozen=True, slots=True)
class SparseQuestion:
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    encoder: SparseEncoder
    average: float
    """Average length of the living documents."""
    self_similarity: float
    trust: float
    """From 0, when the documents know a quarter of the question's words (by weight), to 1 at three quarters."""

    def only(self, term: str, weight: float) -> SparseQuestion:
        """The same question, of one word alone."""
        return replace(self, terms=(term,), weights=(weight,))


class SparseBlock(Block[SparseQuestion]):
    floor = 0.0

    def __init__(self, terms: Sequence[str], counts: sparse.csr_array, inverted: Arrays | None = None) -> None:
        self.terms, self.counts = terms, counts
        self._inverted = inverted
        self._pivots: tuple[float, Scores | None] | None = None

    @classmethod
    def of(cls, bags: Sequence[Bag]) -> Self:
        terms = sorted(set().union(*bags)) if bags else []
        place = {term: index for index, term in enumerate(terms)}
        columns = [place[term] for bag in bags for term in sorted(bag)]
        counts = [bag[term] for bag in bags for term in sorted(bag)]
        starts = np.cumsum([0, *(len(bag) for bag in bags)], dtype=np.int32)
        matrix = (np.asarray(counts, np.float32), np.asarray(columns, np.int32), starts)
        return cls(terms, sparse.csr_array(matrix, shape=(len(bags), len(terms))))

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    @cached_property
    def lengths(self) -> Scores:
        return np.asarray(self.counts.sum(axis=1), np.float64).ravel()

    @cached_property
    def place(self) -> Mapping[str, int]:
        return {term: index for index, term in enumerate(self.terms)}

    @property
    def inverted(self) -> Arrays:
        """Postings by term: where they start, the rows, the counts."""
        if self._inverted is None:
            columns = self.counts.tocsc()
            self._inverted = {"starts": columns.indptr, "rows": columns.indices, "counts": columns.data}
        return self._inverted

    def frequency(self, term: str) -> int:
        at = self.place.get(term)
        return 0 if at is None else int(self.inverted["starts"][at + 1] - self.inverted["starts"][at])

    def scores(self, question: SparseQuestion) -> Scores:
        scores = np.zeros(len(self))
        starts, rows, counts = (self.inverted[key] for key in ("starts", "rows", "counts"))
        pivots = self._pivots_at(question)
        for term, weight in zip(question.terms, question.weights, strict=True):
            at = self.place.get(term)
            if at is None:
                continue
            span = slice(starts[at], starts[at + 1])
            found = np.asarray(counts[span], np.float64)
            if pivots is not None:
                found = found / (found + pivots[rows[span]])
            scores[rows[span]] += weight * found
        return scores

    def exact(self, question: SparseQuestion, rows: Numbers) -> Scores:
        return self.scores(question)[rows]

    def table(self, questions: Sequence[SparseQuestion]) -> NDArray[np.float32]:
        table = np.empty((len(questions), len(self)), np.float32)
        for row, question in enumerate(questions):
            table[row] = self.scores(question)
        return table

    def _pivots_at(self, question: SparseQuestion) -> Scores | None:
        kept = self._pivots
        if kept is None or kept[0] != question.average:
            kept = self._pivots = (question.average, question.encoder.pivots(self.lengths, question.average))
        return kept[1]

    def take(self, rows: Numbers) -> Self:
        taken = self.counts[rows]
        used, columns = np.unique(taken.indices, return_inverse=True)
        shape = (taken.shape[0], len(used))
        matrix = sparse.csr_array((taken.data, columns.astype(np.int32), taken.indptr), shape=shape)
        return type(self)([self.terms[index] for index in used], matrix)

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        if len(blocks) == 1:
            return blocks[0]
        terms = sorted(set().union(*(block.terms for block in blocks)))
        place = {term: index for index, term in enumerate(terms)}
        moved = [_renamed(block, np.array([place[term] for term in block.terms], np.int32)) for block in blocks]
        lengths = np.concatenate([np.diff(block.counts.indptr) for block in blocks])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        data, columns = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        matrix = (data, columns, starts)
        return cls(terms, sparse.csr_array(matrix, shape=(len(starts) - 1, len(terms))))

    @classmethod
    def empty(cls) -> Self:
        return cls.of([])

    def arrays(self) -> Arrays:
        spelled = np.frombuffer("\n".join(self.terms).encode(), np.uint8)
        forward = {"starts": self.counts.indptr, "columns": self.counts.indices, "counts": self.counts.data}
        return {"terms": spelled, **_prefixed("forward", forward), **_prefixed("inverted", self.inverted)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        spelled = arrays["terms"].tobytes().decode()
        terms = spelled.split("\n") if spelled else []
        forward = [arrays[f"forward_{key}"] for key in ("counts", "columns", "starts")]
        counts = sparse.csr_array(tuple(forward), shape=(len(forward[2]) - 1, len(terms)))
        return cls(terms, counts, {key: arrays[f"inverted_{key}"] for key in ("starts", "rows", "counts")})


class SparseStore(EmbeddedStore[SparseBlock]):
    block = SparseBlock

    def __init__(self, folder: Path | None, identity: str, encoder: SparseEncoder) -> None:
        super().__init__(folder, identity)
        self._encoder = encoder
        self._counted: tuple[Rows[SparseBlock], Collection] | None = None

    @property
    def collection(self) -> Collection:
        """The living documents, counted once for each state of the store."""
        rows, counted = self.rows, self._counted
        if counted is None or counted[0] is not rows:
            counted = self._counted = (rows, Collection(rows))
        return counted[1]

    def question(self, bag: Bag, learned: Mapping[str, int]) -> SparseQuestion:
        """Weigh a query's terms; `learned` gives the frequency of words that only teaching has brought."""
        collection, encoder = self.collection, self._encoder
        terms = tuple(sorted(bag))
        frequencies = [collection.frequency(term) or learned.get(term, 0) for term in terms]
        idf = np.array([encoder.idf(collection.documents, df) if df else 0.0 for df in frequencies])
        unheard = encoder.idf(collection.documents, 0)
        counts = np.array([bag[term] for term in terms], np.float64)
        weights = counts * idf
        pivots = encoder.pivots(np.array([counts.sum()]), collection.average)
        as_key = counts if pivots is None else counts / (counts + pivots)
        mass = float((counts * np.where(idf > 0, idf, unheard)).sum())
        known = float(weights.sum()) / mass if mass else 0.0
        return SparseQuestion(
            terms,
            tuple(weights.tolist()),
            encoder,
            collection.average,
            float((weights * as_key).sum()),
            trust=min(1.0, max(0.0, (known - UNKNOWING) / (KNOWING - UNKNOWING))),
        )

    def scan(self, question: SparseQuestion) -> Scan[SparseQuestion]:
        rows = self.rows
        scores = np.concatenate([np.zeros(0), *(part.block.scores(question) for part in rows.segments)])
        return Scan(rows, question, scores)


class Collection:
    """Counts over the living documents: how many, how long on average, and how many hold a term."""

    def __init__(self, rows: Rows[SparseBlock]) -> None:
        self._blocks = [segment.block for segment in rows.segments]
        self._dead: dict[int, NDArray[np.int64]] = {}
        """By block: for each term, how many of the rows that hold it are dead."""
        length = sum(float(block.lengths.sum()) for block in self._blocks)
        for segment, _, inside in rows.by_segment(rows.dead_rows):
            block = segment.block
            length -= float(block.lengths[inside].sum())
            self._dead[id(block)] = np.bincount(block.counts[inside].indices, minlength=len(block.terms))
        self.documents = len(rows)
        self.average = length / max(self.documents, 1)

    def frequency(self, term: str) -> int:
        return sum(self._living(block, term) for block in self._blocks)

    def _living(self, block: SparseBlock, term: str) -> int:
        dead = self._dead.get(id(block))
        return block.frequency(term) - (int(dead[block.place[term]]) if dead is not None and term in block.place else 0)


def _renamed(block: SparseBlock, names: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    return block.counts.data, names[block.counts.indices]


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}_{key}": array for key, array in arrays.items()}
