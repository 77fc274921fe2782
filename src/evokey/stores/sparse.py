"""Sparse keys in an inverted index: how the living rows are counted, and how the best of them are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from evokey.once import cached_property
from evokey.scoring import compiled
from evokey.scoring.block import NO_NUMBERS
from evokey.scoring.postings import Counted, Held, Postings
from evokey.scoring.sparse import FLOOR, SparseBlock, SparseQuestion
from evokey.stores.embedded import EmbeddedStore
from evokey.stores.rows import Rows, Scan
from evokey.types import Numbers, Ranking, Scores

ABOVE = float(np.nextafter(FLOOR, np.inf))
"""The lowest score at which a row is found."""
STRIDE = 16
LARGE = 10_000
"""Rows from which on a compiled scan is worth having."""
TERMS = 200_000
"""Terms that are kept found."""


class Term(NamedTuple):
    """How many rows hold a term."""

    frequency: int
    places: bytes
    """Its place in each segment, or −1: whole numbers of 64 bits, ready to be joined with those of other terms."""


@dataclass(frozen=True, slots=True)
class Barred:
    """The rows that a scan must not find: those of some documents, and the dead."""

    asked: Numbers
    rows: Numbers
    """In order, each counted within its segment."""
    ends: Sequence[int]
    """Where those of each segment start, and the end."""
    at: Numbers
    """Which of the documents have a row; where documents may have several, all or none."""
    where: Numbers | None
    """Where theirs are among all barred rows; None if these are just they, one for one."""
    several: bool

    def scores(self, kept: Scores) -> Scores | None:
        """Scores of the barred rows → of the rows of the documents. −inf for a document that has no row; None for all
        of them where documents may have several."""
        if self.where is None:
            return kept
        if self.several:
            return kept[self.where] if len(self.at) == len(self.asked) else None
        scores = np.full(len(self.asked), -np.inf)
        scores[self.at] = kept[self.where]
        return scores


class Terms(dict[str, Term]):
    """Every term that was asked for, found once, up to so many."""

    def __init__(self, blocks: Sequence[Counted], postings: Postings | None) -> None:
        """postings: where some rows are dead, and must not be counted."""
        super().__init__()
        self._find = [block.place.get for block in blocks]
        self._starts = [block.inverted.starts.data for block in blocks]
        self._spelled = Struct(f"{len(blocks)}q").pack
        self._postings = postings

    def __missing__(self, term: str) -> Term:
        places = [find(term, -1) for find in self._find]
        if self._postings is not None:
            frequency = len(self._postings.of(term).rows)
        else:
            frequency = 0
            for starts, at in zip(self._starts, places, strict=True):
                if at >= 0:
                    frequency += starts[at + 1] - starts[at]
        if len(self) >= TERMS:
            self.clear()
        found = self[term] = Term(frequency, self._spelled(*places))
        return found


class SparseRows(Rows[SparseBlock]):
    """One state, and how its living rows are counted."""

    block = SparseBlock

    @property
    def counts(self) -> SparseRows:
        return self

    @cached_property
    def rows(self) -> int:
        return len(self.owners) - len(self.dead_rows)

    @cached_property
    def average(self) -> float:
        length = sum(float(segment.block.lengths.sum()) for segment in self.segments)
        for segment, _, inside in self.by_segment(self.dead_rows):
            length -= float(segment.block.lengths[inside].sum())
        return length / max(self.rows, 1)

    @cached_property
    def postings(self) -> Postings:
        return Postings([segment.block for segment in self.segments], self.encoder, self.average, self.dead_rows)

    @cached_property
    def terms(self) -> Terms:
        return Terms([segment.block for segment in self.segments], self.postings if len(self.dead_rows) else None)

    def frequencies(self, terms: Iterable[str]) -> list[int]:
        known = self.terms
        return [known[term].frequency for term in terms]

    def scan(self, question: SparseQuestion) -> Scan:
        best = compiled.best() if len(self.owners) >= LARGE and question.average == self.average else None
        if best is None or self.compiled is None or min(question.weights, default=0.0) < 0:
            return self.plain_scan(question)
        return CompiledScan(self, question, best)

    def plain_scan(self, question: SparseQuestion) -> Scan:
        """By numpy alone."""
        if not self.several:
            return SparseScan(self, question)
        postings = self.postings.at(question.average)
        return Scan(self, postings.summed(postings.held(question.terms, question.weights)))

    @cached_property
    def _last(self) -> dict[str, Any]:
        """What is asked again and again is found once."""
        return {}

    def present(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Which of some documents have a row, and all their rows."""
        asked, at, rows = self._last.get("present", (None, NO_NUMBERS, NO_NUMBERS))
        if asked is not numbers:
            found = self.places(numbers)
            at = np.flatnonzero(found >= 0)
            rows = self._rows(found[at])
            self._last["present"] = numbers, at, rows
        return at, rows

    def barred(self, numbers: Numbers) -> Barred:
        found: Barred | None = self._last.get("barred")
        if found is None or found.asked is not numbers:
            at, rows = self.present(numbers)
            all_rows = np.unique(np.concatenate([rows, self.dead_rows]))
            ends = np.searchsorted(all_rows, self.starts)
            inside = all_rows - np.repeat(self.starts[:-1], np.diff(ends))
            same = len(at) == len(numbers) and np.array_equal(all_rows, rows)
            where = None if same else np.searchsorted(all_rows, rows)
            found = Barred(numbers, inside, ends.tolist(), at, where, self.several)
            self._last["barred"] = found
        return found

    @cached_property
    def compiled(self) -> list[tuple[Any, ...]] | None:
        """What the compiled scan takes of each segment; None where it does not fit."""
        found = []
        for segment in self.segments:
            inverted = segment.block.inverted
            shares = inverted.shares(self.encoder, self.average)
            if shares is None:
                return None
            found.append((inverted.starts, inverted.rows, inverted.codes, shares, segment.owners))
        return found


class SparseScan(Scan):
    """Only rows that reach what k rows of one term do can be among the k best."""

    floor = FLOOR

    _rows: SparseRows

    def __init__(self, rows: SparseRows, question: SparseQuestion) -> None:
        self._rows, self._question = rows, question

    @cached_property
    def _postings(self) -> Postings:
        return self._rows.postings.at(self._question.average)

    @cached_property
    def _held(self) -> Held:
        return self._postings.held(self._question.terms, self._question.weights)

    @cached_property
    def _scores(self) -> Scores:
        """Dead rows are in no posting: they lie at the floor."""
        return self._postings.summed(self._held)

    def of(self, numbers: Numbers) -> Scores:
        at, rows = self._rows.present(numbers)
        found: Scores = self._scores[rows]
        if len(rows) == len(numbers):
            return found
        scores = np.full(len(numbers), -np.inf)
        scores[at] = found
        return scores

    def rows_of(self, numbers: Numbers) -> Scores:
        return self.of(numbers)

    def top(self, k: int, skip: Numbers, among: Numbers | None) -> Ranking:
        if among is not None:
            return super().top(k, skip, among)
        all_scores = self._scores
        skipped = self._rows.present(skip)[1] if len(skip) else skip
        kept = all_scores[skipped]
        all_scores[skipped] = -np.inf
        found = (all_scores >= self._reached(k)).nonzero()[0]
        owners, scores = self._rows.owners[found], all_scores[found]
        all_scores[skipped] = kept
        order = np.lexsort((owners, -scores))[:k]
        return Ranking(owners[order], scores[order])

    def _reached(self, k: int) -> float:
        """A score above the floor that k rows reach, if there are so many: by those of the weightiest term."""
        rows, most = NO_NUMBERS, 0.0
        for posting, weight in self._held:
            if weight * posting.top > most and len(posting.rows) >= k:
                rows, most = posting.rows, weight * posting.top
        if not len(rows):
            return ABOVE
        scores = self._scores[rows]
        width = len(scores) // STRIDE
        if width > 4 * k:  # k columns with a row that reaches something: k rows that do
            scores = np.maximum.reduce(scores[: STRIDE * width].reshape(STRIDE, width))
        scores.partition(len(scores) - k)
        return max(ABOVE, float(scores[len(scores) - k]))


class CompiledScan(Scan):
    """The same to the last bit, in one go: rows are scored a window at a time, and only the best are kept."""

    floor = FLOOR
    _skipped: tuple[Barred, Scores] | None = None
    _rows: SparseRows

    def __init__(self, rows: SparseRows, question: SparseQuestion, kernel: compiled.Kernel) -> None:
        self._rows, self._question, self._kernel = rows, question, kernel

    @cached_property
    def _plain(self) -> Scan:
        """For what is not asked often."""
        return self._rows.plain_scan(self._question)

    def of(self, numbers: Numbers) -> Scores:
        return self._plain.of(numbers)

    def rows_of(self, numbers: Numbers) -> Scores | None:
        if self._skipped is not None and self._skipped[0].asked is numbers:
            barred, kept = self._skipped
            return barred.scores(kept)
        return self._plain.rows_of(numbers)

    def top(self, k: int, skip: Numbers, among: Numbers | None) -> Ranking:
        if among is not None or k > compiled.DEEP:
            return self._plain.top(k, skip, among)
        numbers, scores, size = self.best(k, skip)
        return Ranking(numbers[:size], scores[:size])

    def best(self, k: int, skip: Numbers) -> tuple[Numbers, Scores, int]:
        """Room for k documents and their scores, the best that are not skipped in it, and how many these are."""
        barred, terms = self._rows.barred(skip), self._rows.terms
        places = np.frombuffer(b"".join([terms[term].places for term in self._question.terms]), np.int64)
        kept, numbers, scores, size = np.zeros(len(barred.rows)), np.empty(k, np.int64), np.empty(k), 0
        weights, several = self._question.vector, int(self._rows.several)
        for at, arrays in enumerate(self._rows.compiled or ()):
            out, end = barred.ends[at : at + 2]
            room = numbers, scores, size, several
            size = self._kernel(*arrays, places, at, weights, barred.rows, kept, out, end, *room)
        self._skipped = barred, kept
        return numbers, scores, size


class SparseStore(EmbeddedStore[SparseBlock]):
    kinds = frozenset({"sparse"})
    state = SparseRows
