"""Who was taught what: pairs of a document and a question, and what they weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.judgements import Judgements
from evokey.evolution.voices import Pair
from evokey.search.gate import Taught
from evokey.types import Numbers, Scores


@dataclass(frozen=True)
class Pairs:
    """Sorted by document; both sides as places."""

    documents: Numbers
    texts: Numbers
    grades: Scores
    credited: Numbers
    """How many documents the question of each pair names."""

    def where(self, some: NDArray[np.bool_]) -> Pairs:
        return Pairs(self.documents[some], self.texts[some], self.grades[some], self.credited[some])


@dataclass(frozen=True)
class Teaching:
    documents: Numbers
    """The touched documents (numbers), sorted."""
    texts: tuple[str, ...]
    """The taught questions, in alphabetical order."""
    right: Pairs
    wrong: Pairs

    @classmethod
    def of(cls, lessons: Judgements) -> Teaching:
        texts = lessons.judged
        judged = [*lessons.grades.values(), *lessons.wrong.values()]
        documents = np.array(sorted(set[int]().union(*judged)), np.int64)
        right = _pairs(lessons.grades, texts, documents, lessons.evidence)
        return cls(documents, texts, right, _pairs(lessons.wrong, texts, documents, lessons.evidence))

    def leave_out(self, texts: NDArray[np.bool_]) -> Teaching:
        """Without what some questions taught (a mask); documents and texts keep their places."""
        right, wrong = (one.where(~texts[one.texts]) for one in (self.right, self.wrong))
        return replace(self, right=right, wrong=wrong)

    @property
    def remaining(self) -> list[str]:
        """The questions that some document was right or wrong for, in alphabetical order."""
        places = np.unique(np.concatenate([self.right.texts, self.wrong.texts]))
        return [self.texts[at] for at in places.tolist()]

    @property
    def learners(self) -> Numbers:
        """The documents (numbers) that were right for some question."""
        return self.documents[np.unique(self.right.documents)]

    @cached_property
    def known(self) -> Taught:
        """What the gate compares a question with."""
        return Taught.of(self.right.texts, self.right.documents)

    @cached_property
    def starts(self) -> Numbers:
        """Where the pairs of each document begin among the right ones, and the end."""
        return np.searchsorted(self.right.documents, np.arange(len(self.documents) + 1))

    def pull(self, spread: float) -> sparse.csr_array:
        """Documents × texts: how much each text counts for a document. A document of one lesson has half of what many
        lessons give."""
        if spread not in self._pulls:
            weights = self.right.grades * self.right.credited.astype(np.float64) ** -spread
            self._pulls[spread] = self._shrink(self.right, weights)
        return self._pulls[spread]

    @cached_property
    def _pulls(self) -> dict[float, sparse.csr_array]:
        return {}

    @cached_property
    def push(self) -> sparse.csr_array:
        """The same for questions that a document was wrong for."""
        return self._shrink(self.wrong, self.wrong.grades)

    def _shrink(self, pairs: Pairs, weights: Scores) -> sparse.csr_array:
        shape = len(self.documents), len(self.texts)
        mass = np.bincount(pairs.documents, weights, minlength=shape[0])
        usual = float(np.median(mass[mass > 0])) if len(weights) else 1.0
        shares = weights / (mass[pairs.documents] + usual)
        return sparse.csr_array((shares, (pairs.documents, pairs.texts)), shape)


def _pairs(
    said: Mapping[str, Mapping[int, float]], texts: tuple[str, ...], documents: Numbers, evidence: Mapping[Pair, float]
) -> Pairs:
    """evidence: the weight of a verdict, if it is less than 1."""
    place = {text: at for at, text in enumerate(texts)}
    found = [
        (number, place[query], grade * evidence.get((query, number), 1.0), len(grades))
        for query, grades in said.items()
        for number, grade in grades.items()
    ]
    table = np.array(sorted(found), np.float64).reshape(-1, 4)  # numbers of documents are far below 2⁵³
    numbers, columns, credited = (table[:, at].astype(np.int64) for at in (0, 1, 3))
    return Pairs(np.searchsorted(documents, numbers), columns, table[:, 2], credited)
