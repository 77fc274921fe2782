"""A linear map of query vectors, trained from lessons: what is often tried before an encoder is fine-tuned.

It starts as the identity. A step compares each question with all documents; documents that are known to be right for it
are never wrong for it. The map of the epoch with the best held-out nDCG@10 is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evokey.tuning.batches import CUTOFF, Ints, Positives, mean_ndcg
from evokey.types import Vectors

FIRST_MOMENT, SECOND_MOMENT, SMALL = 0.9, 0.999, 1e-8
"""Of Adam."""


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    epochs: int = 30
    patience: int = 5
    """Epochs without a better score after which training stops."""
    batch_size: int = 256
    learning_rate: float = 1e-3
    decay: float = 0.0
    """How strongly the map is pulled back to the identity."""
    temperature: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions with their vectors, and the documents that are right for them."""

    vectors: Vectors
    positives: Positives


@dataclass(frozen=True, slots=True)
class Adapter:
    matrix: Vectors
    scores: tuple[float, ...]
    """Held-out nDCG@10, beginning with the identity."""
    epoch: int
    """The epoch whose map was kept; 0: the identity."""

    def apply(self, vectors: Vectors) -> Vectors:
        return normalise(vectors @ self.matrix)


def train(data: Asked, held_out: Asked, keys: Vectors, options: AdapterOptions) -> Adapter:
    """keys: unit vectors of all documents."""
    rng = np.random.default_rng(options.seed)
    matrix = np.eye(keys.shape[1], dtype=np.float32)
    best, scores, kept = 0, [measure(matrix, held_out, keys)], matrix
    adam = Adam(np.zeros_like(matrix), np.zeros_like(matrix))
    for epoch in range(1, options.epochs + 1):
        if epoch - best > options.patience:
            break
        for part in np.array_split(rng.permutation(len(data.vectors)), -(-len(data.vectors) // options.batch_size)):
            matrix = matrix - options.learning_rate * adam.step(gradient(matrix, data, part, keys, options))
        scores.append(measure(matrix, held_out, keys))
        if scores[-1] > scores[best]:
            best, kept = epoch, matrix
    return Adapter(kept, tuple(scores), best)


@dataclass
class Adam:
    mean: Vectors
    square: Vectors
    steps: int = 0

    def step(self, gradient: Vectors) -> Vectors:
        self.steps += 1
        self.mean = FIRST_MOMENT * self.mean + (1 - FIRST_MOMENT) * gradient
        self.square = SECOND_MOMENT * self.square + (1 - SECOND_MOMENT) * gradient**2
        mean, square = self.mean / (1 - FIRST_MOMENT**self.steps), self.square / (1 - SECOND_MOMENT**self.steps)
        return np.asarray(mean / (np.sqrt(square) + SMALL), np.float32)


def gradient(matrix: Vectors, data: Asked, part: Ints, keys: Vectors, options: AdapterOptions) -> Vectors:
    """Of the mean cross-entropy of each right document among it and all that are not right."""
    asked = data.vectors[part]
    mapped = asked @ matrix
    lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
    pointing = mapped / np.maximum(lengths, SMALL)
    by_score = score_gradient(pointing @ keys.T / options.temperature, [data.positives[place] for place in part])
    by_pointing = by_score @ keys / options.temperature
    along = np.vecdot(by_pointing, pointing)[:, None] * pointing
    by_mapped = (by_pointing - along) / np.maximum(lengths, SMALL)
    pull = options.decay * (matrix - np.eye(len(matrix), dtype=np.float32))
    return np.asarray(asked.T @ by_mapped / len(part) + pull, np.float32)


def score_gradient(scores: Vectors, positives: Sequence[Sequence[int]]) -> Vectors:
    """Each row: of −log softmax of a right document among it and those not known to be right, mean of the right."""
    mass = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes: Vectors = np.empty_like(mass)
    for row, right in enumerate(positives):
        places = np.asarray(right, np.int64)
        own = mass[row, places]
        mass[row, places] = 0.0
        totals = own + mass[row].sum()
        slopes[row] = mass[row] * np.mean(1 / np.maximum(totals, SMALL))
        slopes[row, places] = (own / np.maximum(totals, SMALL) - 1) / len(places)
    return slopes


def measure(matrix: Vectors, asked: Asked, keys: Vectors) -> float:
    """nDCG@10."""
    scores = normalise(asked.vectors @ matrix) @ keys.T
    size = min(CUTOFF, len(keys))
    top = np.argpartition(-scores, size - 1, axis=1)[:, :size]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return mean_ndcg(np.take_along_axis(top, order, axis=1), asked.positives)


def normalise(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SMALL), np.float32)
