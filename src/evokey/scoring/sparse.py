"""Sparse rows: term counts. Weights follow from the counts and the living documents.

Documents come and go without a rebuild: the number of documents, their average length and a term's document
frequency come with the question, as they are counted now. Terms are taken in alphabetical order, so a score is the same
sum in the same order whatever the history of the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.once import cached_property
from evokey.scoring import compiled
from evokey.scoring.block import Arrays, Block, Found, Moved
from evokey.scoring.inverted import Inverted, Weighting
from evokey.scoring.postings import Postings
from evokey.scoring.soundness import check_lists, check_places, check_values
from evokey.types import Numbers, Ranking, Scores

UNKNOWING, KNOWING = 0.25, 0.75
"""Shares of a question's words at which a sparse ranking is not trusted at all, and trusted fully."""

FLOOR = 0.0
LARGEST = np.iinfo(np.int32).max


@dataclass(frozen=True)
class SparseQuestion:
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    encoder: Weighting
    average: float
    """Average length of the living documents."""
    counts: tuple[float, ...]
    idf: tuple[float, ...]
    """Of each term; 0 for one that nothing here holds."""
    unheard: float
    """The idf of a term that no document holds."""
    absent: frozenset[str] = frozenset()
    """Terms that no document holds."""
    asked: None = None
    """Always None: taught texts, too, are compared with the question as a lens has changed it."""

    @cached_property
    def vector(self) -> Scores:
        """The weights, as an array."""
        return np.array(self.weights, np.float64)

    @cached_property
    def self_similarity(self) -> float:
        counts = np.array(self.counts, np.float64)
        pivots = self.encoder.pivots(np.array([counts.sum()]), self.average)
        as_key = counts if pivots is None else counts / (counts + pivots)
        return float((counts * self.idf * as_key).sum())

    @cached_property
    def trust(self) -> float:
        """From 0, when the documents know a quarter of the question's words (by weight), to 1 at three quarters."""
        counts, idf = np.array(self.counts, np.float64), np.array(self.idf)
        mass = float((counts * np.where(idf > 0, idf, self.unheard)).sum())
        known = float((counts * idf).sum()) / mass if mass else 0.0
        return min(1.0, max(0.0, (known - UNKNOWING) / (KNOWING - UNKNOWING)))

    def weigh_unheard(self) -> SparseQuestion:
        """The same question, where a word that nothing here holds counts too: by what a taught text may have of it,
        whether any has."""
        if all(self.idf):
            return self
        new = [0.0 if idf else count * self.unheard for count, idf in zip(self.counts, self.idf, strict=True)]
        weights = tuple([weight + more for weight, more in zip(self.weights, new, strict=True)])
        return replace(self, weights=weights, idf=tuple([idf or self.unheard for idf in self.idf]))

    def distance(self, other: SparseQuestion) -> float:
        """1 − cosine, for the same words."""
        lengths = float(np.linalg.norm(self.vector) * np.linalg.norm(other.vector))
        return max(0.0, 1 - float(self.vector @ other.vector) / lengths) if lengths else 0.0

    def by_word(self) -> list[tuple[str, float, SparseQuestion]]:
        asked = zip(self.terms, self.weights, strict=True)
        return [(term, weight, replace(self, terms=(term,), weights=(weight,))) for term, weight in asked]


class SparseBlock(Block[SparseQuestion]):
    floor = FLOOR

    def __init__(self, terms: Sequence[str], counts: sparse.csr_array, inverted: Arrays | None = None) -> None:
        self.terms, self.counts = terms, counts
        self._written = inverted
        self._postings: Postings | None = None
        self._listed: tuple[float, Any, tuple[Any, ...] | None] = (-1.0, None, None)

    @classmethod
    def of(cls, bags: Sequence[Mapping[str, float]]) -> Self:
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

    @cached_property
    def inverted(self) -> Inverted:
        if self._written is not None:
            return Inverted.from_arrays(self._written, self.lengths)
        columns = self.counts.tocsc()
        return Inverted.of(columns.indptr, columns.indices, columns.data, self.lengths)

    def likeness(self, question: SparseQuestion) -> Scores:
        if self._postings is None:
            self._postings = Postings([self], question.encoder, question.average)
        kept = self._postings = self._postings.at(question.average)
        return kept.summed(kept.held(question.terms, question.weights))

    @staticmethod
    def localise(likeness: NDArray[Any], own: Any, locality: float) -> NDArray[Any]:
        """What a text covers of the question's weight beyond the share θ."""
        return np.asarray(np.maximum(likeness - np.asarray(locality, likeness.dtype) * own, 0))

    def rank_moved(self, question: SparseQuestion, found: Found, moved: Moved, k: int) -> Ranking | None:
        """Where it is compiled: the same to the last bit."""
        joined, base = compiled.joined(), found.base
        if joined is None or base is None or k > compiled.DEEP or min(question.weights, default=0.0) < 0:
            return None
        lists = self._lists(question, moved.evidence)
        if lists is None:
            return None
        numbers, scores, size = np.empty(k, np.int64), np.empty(k), len(found.ranking)
        numbers[:size], scores[:size] = found.ranking.numbers, found.ranking.scores
        place = self.place.get
        places = np.array([place(term, -1) for term in question.terms], np.int64)
        less = np.inf if moved.penalty is None else moved.penalty * question.self_similarity
        apart = moved.locality * question.self_similarity
        asked = places, question.vector, moved.documents, base, moved.step, apart, moved.norms, less, moved.share
        size = joined(*lists, *asked, numbers, scores, size, int(moved.several))
        return Ranking(numbers[:size], scores[:size])

    def _lists(self, question: SparseQuestion, evidence: sparse.csr_array) -> tuple[Any, ...] | None:
        """What the compiled loop takes of these rows and of the evidence; None where it does not fit. What is asked
        again and again is found once."""
        average, held, lists = self._listed
        if average != question.average or held is not evidence:
            inverted = self.inverted
            shares = inverted.shares(question.encoder, question.average)
            by_text = evidence.tocsc()
            columns = [one.astype(np.int64, copy=False) for one in (by_text.indptr, by_text.indices)]
            whole = (inverted.starts, inverted.rows, inverted.codes, shares, len(self), *columns, by_text.data)
            summed_alike = evidence.dtype == np.float64 and evidence.has_sorted_indices
            lists = whole if shares is not None and summed_alike else None
            self._listed = question.average, evidence, lists
        return lists

    def table(self, questions: Sequence[SparseQuestion]) -> NDArray[np.float32]:
        """As one product of sparse matrices: its sums run in another order than those of `likeness`."""
        if not questions or not len(self):
            return np.zeros((len(questions), len(self)), np.float32)
        columns, weights, starts = list[int](), list[float](), [0]
        for question in questions:
            known = self._find_terms(question)
            columns += known[0]
            weights += known[1]
            starts.append(len(columns))
        asked = (np.array(weights, np.float64), np.array(columns, np.int64), np.array(starts, np.int64))
        matrix = sparse.csr_array(asked, shape=(len(questions), len(self.terms)))
        return np.asarray((matrix @ self.weigh(questions[0]).T).toarray(), np.float32)

    def scores_of_each(self, questions: Sequence[SparseQuestion]) -> list[Scores]:
        """The same sums, without an inverted index: for rows that are asked a few questions, at one time."""
        if not questions:
            return []
        weighed, counts = self._weigh_counts(questions[0]), self.counts
        owners, asked = np.repeat(np.arange(len(self)), np.diff(counts.indptr)), np.zeros(len(self.terms))
        found = []
        for question in questions:
            columns, weights = self._find_terms(question)
            asked[columns] = weights
            sums = np.bincount(owners, weighed * asked[counts.indices], len(self))
            found.append(np.asarray(sums, np.float64))
            asked[columns] = 0.0
        return found

    def _find_terms(self, question: SparseQuestion) -> tuple[list[int], list[float]]:
        """The columns of a question's terms that are here, and what these weigh in it."""
        asked, place = zip(question.terms, question.weights, strict=True), self.place
        known = [(place[term], weight) for term, weight in asked if term in place]
        return [column for column, _ in known], [weight for _, weight in known]

    def weigh(self, question: SparseQuestion) -> sparse.csr_array:
        """The rows as they weigh beside documents of an average length."""
        weighed = self._weigh_counts(question)
        return sparse.csr_array((weighed, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    def _weigh_counts(self, question: SparseQuestion) -> Scores:
        counts = self.counts.data.astype(np.float64)
        pivots = question.encoder.pivots(self.lengths, question.average)
        if pivots is not None:
            counts /= counts + np.repeat(pivots, np.diff(self.counts.indptr))
        return counts

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
        moved = [_rename(block, np.array([place[term] for term in block.terms], np.int32)) for block in blocks]
        lengths = np.concatenate([np.diff(block.counts.indptr) for block in blocks])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        starts = starts.astype(np.int32) if starts[-1] <= LARGEST else starts  # half of what a posting takes
        data, columns = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        matrix = (data, columns, starts)
        return cls(terms, sparse.csr_array(matrix, shape=(len(starts) - 1, len(terms))))

    @classmethod
    def empty(cls) -> Self:
        return cls.of([])

    def arrays(self) -> Arrays:
        spelled = np.frombuffer("\n".join(self.terms).encode(), np.uint8)
        forward = {"starts": self.counts.indptr, "columns": self.counts.indices, "counts": self.counts.data}
        return {"terms": spelled, **_prefix("forward", forward), **_prefix("inverted", self.inverted.arrays())}

    @classmethod
    def check(cls, arrays: Arrays, rows: int) -> None:
        terms = int(np.count_nonzero(arrays["terms"] == ord("\n"))) + (len(arrays["terms"]) > 0)
        columns = arrays["forward_columns"]
        check_lists(arrays["forward_starts"], rows, len(columns))
        check_places(columns, len(columns), terms)
        check_values(arrays["forward_counts"], len(columns), np.float32)
        Inverted.check(_invert(arrays), terms, rows)

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        spelled = arrays["terms"].tobytes().decode()
        terms = spelled.split("\n") if spelled else []
        forward = [arrays[f"forward_{key}"] for key in ("counts", "columns", "starts")]
        counts = sparse.csr_array(tuple(forward), shape=(len(forward[2]) - 1, len(terms)))
        return cls(terms, counts, _invert(arrays))


def _rename(block: SparseBlock, names: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    return block.counts.data, names[block.counts.indices]


def _invert(arrays: Arrays) -> Arrays:
    return {key.removeprefix("inverted_"): one for key, one in arrays.items() if key.startswith("inverted_")}


def _prefix(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}_{key}": array for key, array in arrays.items()}
