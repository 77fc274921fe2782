"""What all kinds of rows share: likeness to a question, growing by what was taught, and being taken apart and joined.

A kind of keys (dense, sparse, late interaction) is a block of rows and a question that fits it. Each row is scored by
itself, so a score does not depend on how rows are laid out, or in which store they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import _sparsetools

from evokey.types import Numbers, Ranking, Scores, Vectors

Arrays = Mapping[str, NDArray[Any]]
NO_NUMBERS: Numbers = np.zeros(0, np.int64)
Asked = TypeVar("Asked", bound="Question")


class Question(Protocol):
    """A text as one kind of keys is asked."""

    @property
    def self_similarity(self) -> float:
        """How like it is to itself, as a key."""
        ...

    @property
    def trust(self) -> float:
        """From 0 to 1: how far a ranking by it is to be trusted."""
        ...

    @property
    def asked(self) -> Self | None:
        """The question as it was asked, where a lens has turned it."""
        ...

    def weigh_unheard(self) -> Self:
        """The same question, where a word that no key holds counts too."""
        ...

    def distance(self, other: Self) -> float:
        """How far a lens has turned it to the other."""
        ...

    def by_word(self) -> list[tuple[str, float, Self]]:
        """Each word, its weight, and the question of this word alone; nothing where keys have no words."""
        ...


class Keys(NamedTuple):
    """The base keys of some documents, as a store takes and gives them. The rows of a document are side by side."""

    covered: Numbers
    """The documents, those without a row included."""
    owners: Numbers
    """The document of each row."""
    block: Any

    @property
    def documents(self) -> Numbers:
        """The documents that have rows, in the order of these."""
        return self.owners[np.flatnonzero(np.diff(self.owners, prepend=-1))]

    @property
    def sizes(self) -> Numbers:
        """How many rows each of these has."""
        return np.diff(np.flatnonzero(np.diff(self.owners, prepend=-1, append=-1)))

    def take(self, kept: NDArray[np.bool_]) -> Keys:
        """The keys of some of the covered documents."""
        covered = self.covered[kept]
        rows = np.flatnonzero(np.isin(self.owners, covered))
        return Keys(covered, self.owners[rows], self.block.take(rows))


class Found(NamedTuple):
    """What a store finds with one question."""

    ranking: Ranking
    base: NDArray[Any] | None = None
    """The likeness of all rows of the documents that were left out, side by side in their order, where it is at hand;
    where each has one row, one that has gone is at −inf."""
    bound: float | None = None
    """Where only the best of these rows are known: those at −inf are no more like the question than this."""


class Moved(NamedTuple):
    """Rows of documents that were taught something."""

    documents: Numbers
    """The document of each row."""
    evidence: sparse.csr_array
    """By which texts their keys move; they are recalled by the same."""
    step: float
    locality: float
    """As in `Block.localise`; 0: keys are not local."""
    norms: Scores
    penalty: float | None
    """What a recalled document loses, as a share of the question's likeness to itself; None: none is recalled."""
    several: bool = False
    """Whether a document may have more than one row."""
    share: float = 1.0
    """How much of what they learned counts."""


class Block(ABC, Generic[Asked]):
    """Rows that can be scored against a question.

    How like a row is to a question may have several parts (one for each vector of the question, in late interaction):
    a score is their total.
    """

    floor = -np.inf
    """A row must score above this to be found at all."""
    parts = 1
    """How many parts a likeness may have, about."""
    unit = False
    """Whether a row is one vector of length 1, and is brought back to that length when it moves."""
    vectors: Vectors
    """Of rows that are vectors."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def dimension(self) -> int | None:
        """Of rows that are vectors; None where it does not matter, or there is no row."""
        return None

    @abstractmethod
    def likeness(self, question: Asked) -> NDArray[Any]:
        """Of all rows, each computed by itself: the same bits wherever the row lies."""

    @abstractmethod
    def table(self, questions: Sequence[Asked]) -> NDArray[np.float32]:
        """The likeness of all rows (second axis) to many questions (first axis)."""

    @staticmethod
    def total(likeness: NDArray[Any]) -> NDArray[Any]:
        """Likeness → scores."""
        return likeness

    def scores(self, question: Asked) -> Scores:
        """Of all rows."""
        return np.asarray(self.total(self.likeness(question)), np.float64)

    def scores_of_each(self, questions: Sequence[Asked]) -> list[Scores]:
        """The scores of all rows, for each question."""
        return [self.scores(question) for question in questions]

    @staticmethod
    def localise(likeness: NDArray[Any], own: Any, locality: float) -> NDArray[Any]:
        """What is left of the likeness of texts if they count only for questions that are really similar to them; own:
        how like each question is to itself."""
        raise NotImplementedError("these keys cannot be local")

    @staticmethod
    def pull(texts: NDArray[Any], evidence: sparse.csr_array) -> Any:
        """What the evidence of texts brings to each row, whatever the step: here q·V.

        Likeness of texts to one question, or to several (first axis); so are the rows of `grow`.
        """
        if texts.ndim == 1 and texts.dtype == evidence.dtype == np.float64:
            return product(evidence, texts)
        return np.ascontiguousarray((evidence @ texts.T).T)  # beside tables of the same layout

    @staticmethod
    def grow(base: NDArray[Any], pulled: Any, step: float, norms: Scores) -> NDArray[Any]:
        """Scores of rows grown by λ times what is pulled, k⁰ ⊕ λV: here ⊕ is addition, with the norm ν."""
        moved = np.asarray(step, base.dtype) * pulled.astype(base.dtype, copy=False)
        moved += base
        moved /= norms.astype(base.dtype, copy=False)
        return np.asarray(moved)

    def rank_moved(self, question: Asked, found: Found, moved: Moved, k: int) -> Ranking | None:
        """The k best of what a store has found and of the documents that it left out, which these texts have moved;
        None where this cannot be had in one go."""
        return None

    @abstractmethod
    def take(self, rows: Numbers) -> Self: ...

    @classmethod
    @abstractmethod
    def join(cls, blocks: Sequence[Self]) -> Self: ...

    @classmethod
    @abstractmethod
    def empty(cls) -> Self: ...

    @abstractmethod
    def arrays(self) -> Arrays: ...

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self: ...

    @classmethod
    @abstractmethod
    def check(cls, arrays: Arrays, rows: int) -> None:
        """Arrays of a file that may have been made by anybody: raise ValueError where reading these as so many rows
        would lead out of them."""

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the rows alone, not what was worked out from them."""
        return type(self).from_arrays, (self.arrays(),)


def product(matrix: sparse.csr_array, vector: Scores) -> Scores:
    """As `matrix @ vector`, without what that takes to find out what it was given: it is most of a small product."""
    found = np.zeros(matrix.shape[0])
    _sparsetools.csr_matvec(*matrix.shape, matrix.indptr, matrix.indices, matrix.data, vector, found)
    return found


def ordinals(sizes: Numbers) -> Numbers:
    """0, 1, 2 … for each of the sizes: [2, 3] → [0, 1, 0, 1, 2]."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
