"""What an epoch has learned for one retriever: the rows of the touched documents, scored beside the store's own search.

A touched document is found by the best of its rows:

    its base keys, moved      q·(k⁰ᵢ ⊕ λ Σₑ αᵢₑ e)       e: taught texts; ⊕ adds (dense keys: back to length 1); α < 0
                                                          for queries that it was wrong for, if these have a say
    its recall rows           max over its taught texts of q·e  −  δ · (self-similarity of q)

Both need only q·e for the taught texts, so an overlay keeps these texts once, as a block, and who was taught what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.search.lens import Lens
from evokey.stores.embedded import NO_NUMBERS, Block, Scan
from evokey.stores.flat import DenseBlock
from evokey.types import Choice, Numbers, Ranking, Scores


@dataclass(frozen=True, slots=True)
class Touched:
    """The touched documents (sorted) and all their rows: side by side, in the order of the documents."""

    documents: Numbers
    starts: Numbers
    """The first row of each document, and the end."""

    @classmethod
    def of(cls, documents: Numbers, sizes: Numbers) -> Touched:
        return cls(documents, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @property
    def owners(self) -> Numbers:
        """The document of each row."""
        return np.repeat(self.documents, np.diff(self.starts))

    @property
    def ordinals(self) -> Numbers:
        """Which of its document's rows each is."""
        return np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def several(self) -> bool:
        return len(self.documents) < int(self.starts[-1])

    def best(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Scores of rows (last axis) → of documents."""
        return np.maximum.reduceat(scores, self.starts[:-1], axis=-1) if self.several else scores

    def place(self, number: int) -> int | None:
        found = int(np.searchsorted(self.documents, number))
        return found if found < len(self.documents) and self.documents[found] == number else None

    def rows(self, number: int) -> slice:
        """The rows of one document."""
        place = self.place(number)
        return slice(0, 0) if place is None else slice(*self.starts[place : place + 2].tolist())


def greatest(values: NDArray[Any], starts: NDArray[Any]) -> NDArray[Any]:
    """The greatest of the values (last axis) from each start to the next; −inf where there is none."""
    some = np.flatnonzero(np.diff(starts))
    if len(some) == len(starts) - 1:
        return np.maximum.reduceat(values, starts[:-1], axis=-1) if len(some) else values[..., :0]
    found = np.full((*values.shape[:-1], len(starts) - 1), -np.inf, values.dtype)
    if len(some):
        found[..., some] = np.maximum.reduceat(values, starts[some], axis=-1)
    return found


@dataclass(frozen=True, slots=True)
class Overlay:
    touched: Touched
    names: tuple[str, ...]
    """The taught texts, as they were said."""
    texts: Block[Any] | None
    evidence: sparse.csr_array
    """α: rows × texts. Its pattern says which texts are a document's recall rows; one that was only wrong has none."""
    norms: Scores
    choice: Choice
    learned: Mapping[str, int]
    """Every taught word: how many documents were taught with it. It counts where no living document has the word."""
    lens: Lens | None = None
    against: sparse.csr_array | None = None
    """λα, less γ times what speaks against documents: where wrong ones are pushed away."""
    restricted: Overlay | None = None
    """What restricted documents have learned, each from its own lessons: no document of the public part is in it."""
    skipped: Numbers | None = None
    """The documents of both parts, where there are two."""

    def beside(self, restricted: Overlay | None) -> Overlay:
        """This public part, and beside it what restricted documents have learned."""
        if restricted is None:
            return self
        return replace(self, restricted=restricted, skipped=np.union1d(self.documents, restricted.documents))

    @property
    def parts(self) -> tuple[Overlay, ...]:
        """The public part, and what restricted documents have learned."""
        return (self,) if self.restricted is None else (self, self.restricted)

    def part(self, number: int) -> Overlay:
        """The part that may have touched this document."""
        own = self.restricted
        return self if own is None or own.touched.place(number) is None else own

    @property
    def all_documents(self) -> Numbers:
        """The touched documents of both parts."""
        return self.documents if self.skipped is None else self.skipped

    @property
    def pull(self) -> sparse.csr_array:
        """By which texts keys move."""
        return self.evidence if self.against is None else self.against

    @property
    def step(self) -> float:
        """How many times as far."""
        return self.choice.step if self.against is None else 1.0

    def turned(self, question: Any) -> Any:
        """The question through the lens."""
        return question if self.lens is None else self.lens.turned(question)

    @property
    def documents(self) -> Numbers:
        return self.touched.documents

    def joined(self, scan: Scan, question: Any, k: int) -> Ranking | None:
        """The k best documents, touched or not, where that can be had in one go."""
        penalty = self.choice.penalty
        if self.texts is None or self.touched.several or question.asked is not None:
            return None
        if penalty is not None and self.against is not None:  # other texts recall a document than move its key
            return None
        moved = self.documents, self.pull, self.step, self.norms, penalty
        return self.texts.joined(scan, question, *moved, k)

    def scores(self, scan: Scan, question: Any) -> Scores:
        """Scores of the touched documents."""
        touched = self.touched
        if self.texts is None or not (self.step or self.choice.penalty is not None):
            return scan.of(touched.documents)
        likeness = np.asarray(self.texts.likeness(question), np.float64) if self.step else np.zeros(0)
        best = scan.of(touched.documents)
        if self.step:
            plain = likeness.ndim == 1 and not touched.several  # a document's score is its row's likeness
            base = best if plain else scan.likeness(touched.owners, touched.ordinals)
            pulled = self.texts.pulled(likeness, self.pull)
            best = touched.best(self.texts.grown(base, pulled, self.step, self.norms))
        if self.choice.penalty is not None:
            asked = question.asked or question  # what was taught is found again as it was said
            same = self.step and asked is question
            totals = self.texts.total(likeness if same else np.asarray(self.texts.likeness(asked), np.float64))
            recalled = greatest(totals[self.evidence.indices], self.evidence.indptr[touched.starts])
            best = np.maximum(best, recalled - self.choice.penalty * question.self_similarity)
        return np.asarray(best, np.float64)

    def taught(self, number: int) -> tuple[Numbers, Scores]:
        """Which texts a document was taught, and their α: those of all its rows."""
        rows = self.touched.rows(number)
        span = slice(self.evidence.indptr[rows.start], self.evidence.indptr[rows.stop])
        return self.evidence.indices[span].astype(np.int64), self.evidence.data[span]

    def moved(self, number: int, base: Block[Any]) -> float:
        """How far a document's keys have moved, the farthest: 1 − cosine (dense), or the mass of learned weight."""
        rows = self.touched.rows(number)
        if self.texts is None or not self.step or rows.start == rows.stop:
            return 0.0
        pull = self.step * self.pull[rows.start : rows.stop]
        if not isinstance(base, DenseBlock) or not isinstance(self.texts, DenseBlock):
            return float(abs(pull).sum(axis=1).max())
        keys = base.vectors.astype(np.float64)
        moved = keys + pull @ self.texts.vectors.astype(np.float64)
        lengths = np.maximum(np.linalg.norm(moved, axis=1), 1e-12)
        return float((1 - np.vecdot(keys, moved) / lengths).max())


UNTAUGHT = Overlay(Touched.of(NO_NUMBERS, NO_NUMBERS), (), None, sparse.csr_array((0, 0)), np.zeros(0), Choice(), {})
