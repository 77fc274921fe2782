"""What a step of contrastive training compares: questions, texts, and which texts count as wrong for a question.

A text that is known to be right for a question is never wrong for it, whether another question of the batch or mining
brought it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CUTOFF = 10
DISCOUNT = 1 / np.log2(np.arange(2, CUTOFF + 2))
Positives = Sequence[Sequence[int]]
"""By question, the numbers of the texts that are right."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions in rows, texts in columns. A question may take several rows; a text has one column."""

    questions: Ints
    texts: Ints
    wanted: Ints
    """By row, the column of the right text."""
    masked: NDArray[np.bool_]
    """Rows × columns: other texts that are right for the question."""
    weights: NDArray[np.float32]
    """By row."""


@dataclass(frozen=True, slots=True)
class Known:
    """By question, the texts that are right, and what each of them counts."""

    positives: Positives
    weights: Sequence[Sequence[float]]

    def count_pairs(self, most: int) -> int:
        return sum(min(len(right), most) for right in self.positives)

    def draw_pairs(self, most: int, rng: np.random.Generator) -> Ints:
        """(question, place among its right texts), at most so many of a question, shuffled."""
        pairs = [
            (question, place)
            for question, right in enumerate(self.positives)
            for place in rng.permutation(len(right))[:most]
        ]
        return np.array(rng.permutation(pairs), np.int64).reshape(-1, 2)

    def remove(self, found: Ints) -> list[Ints]:
        """By question, what was found (best first) without what is known to be right."""
        return [row[~np.isin(row, right)] for row, right in zip(found, self.positives, strict=True)]

    def make_batch(self, pairs: Ints, mined: Ints) -> Batch:
        right = np.array([self.positives[question][place] for question, place in pairs], np.int64)
        texts = np.unique(np.concatenate([right, mined]))
        wanted = np.searchsorted(texts, right)
        masked = np.stack([np.isin(texts, self.positives[question]) for question in pairs[:, 0]])
        masked[np.arange(len(pairs)), wanted] = False
        weights = np.array([self.weights[question][place] for question, place in pairs], np.float32)
        return Batch(pairs[:, 0], texts, wanted, masked, weights)


@dataclass(frozen=True, slots=True)
class Mined:
    """By question, texts that the encoder ranks high and nobody called right; so many are drawn for each pair."""

    texts: Sequence[Ints]
    count: int

    def draw(self, questions: Ints, rng: np.random.Generator) -> Ints:
        drawn = [rng.permutation(self.texts[question])[: self.count] for question in questions] if self.count else []
        return np.concatenate([np.empty(0, np.int64), *drawn])


def make_batches(known: Known, mined: Mined, most: int, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """All batches of an epoch. most: pairs of one question; size: pairs of a batch."""
    pairs = known.draw_pairs(most, rng)
    for start in range(0, len(pairs), size):
        part = pairs[start : start + size]
        yield known.make_batch(part, mined.draw(part[:, 0], rng))


def mean_ndcg(found: Ints, positives: Positives) -> float:
    """nDCG@10 of rankings, each the numbers of texts, best first."""
    scores = []
    for row, right in zip(found[:, :CUTOFF], positives, strict=True):
        gained = float(DISCOUNT[: len(row)][np.isin(row, right)].sum())
        scores.append(gained / float(DISCOUNT[: len(right)].sum()))
    return float(np.mean(scores))
