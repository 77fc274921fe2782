"""A static encoder trained from lessons: a text is the sum of its tokens' vectors, and these are what is trained.

Contrastive: a question should be nearer to its right text than to the right texts of other questions in the batch, and
to texts that the index finds for it and nobody named. Texts that are known to be right for a question are no negatives
of it. Adam moves the vectors of the tokens in a batch alone; a token's weight (the length of its vector) has a step of
its own. Training begins at the table of the package and stops when questions that it does not see find no better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.ndcg import CUTOFF, TableNdcg, ideal_dcg
from evokey.tuning.pairs import TrainingSet
from evokey.types import Numbers, Scores, Vectors

Count = Callable[[Sequence[str]], sparse.csr_array]
"""How often each text has each token."""
Progress = Callable[[float], None]
SMALL = 1e-9


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """The same for every collection: nothing here was chosen by the one that is tuned."""

    rate: float = 0.01
    """Of the vectors, as a part of the size of their numbers."""
    weight_rate: float = 0.02
    """Of the logarithms of the tokens' weights."""
    temperature: float = 0.05
    batch: int = 64
    negatives: int = 16
    """Of a question, in a batch, beside the texts of the others."""
    rounds: int = 30
    """Times that each question is seen, at most."""
    patience: int = 4
    """Rounds without a better result after which training stops."""
    seed: int = 0


class Batch(NamedTuple):
    questions: sparse.csr_array
    """Counts of the tokens that the batch has."""
    texts: sparse.csr_array
    right: Numbers
    """By question, the place of its right text."""
    masked: NDArray[np.bool_]
    """Questions × texts: right as well, and so no negatives."""
    weights: Scores


class TunedTable(NamedTuple):
    """The vectors that differ from those of the package."""

    tokens: Numbers
    vectors: Vectors
    before: float
    """nDCG@10 of the questions that say when to stop, among the texts of the training data."""
    after: float
    rounds: int


def contrast(table: Vectors, batch: Batch, temperature: float) -> tuple[float, Vectors]:
    """The loss of a batch, and its gradient with respect to the table."""
    questions, question_lengths = _units(batch.questions @ table)
    texts, text_lengths = _units(batch.texts @ table)
    logits = questions @ texts.T / temperature
    logits[batch.masked] = -np.inf
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(questions))
    weights = (batch.weights / len(rows)).astype(table.dtype)
    loss = -float((weights * np.log(np.maximum(shares[rows, batch.right], SMALL))).sum())
    shares[rows, batch.right] -= 1
    pull = shares * weights[:, None] / temperature
    to_questions = _through_norm(pull @ texts, questions, question_lengths)
    to_texts = _through_norm(pull.T @ questions, texts, text_lengths)
    return loss, np.asarray(batch.questions.T @ to_questions) + np.asarray(batch.texts.T @ to_texts)


def _units(sums: Vectors) -> tuple[Vectors, Vectors]:
    """Vectors of unit length, and the lengths before."""
    sums = np.asarray(sums)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), SMALL)
    return sums / lengths, lengths


def _through_norm(gradient: Vectors, units: Vectors, lengths: Vectors) -> Vectors:
    """The gradient with respect to vectors, given the one with respect to these at unit length."""
    return np.asarray((gradient - units * np.vecdot(gradient, units)[:, None]) / lengths)


@dataclass
class Adam:
    """Moments of one array; only the rows of a step are touched."""

    shape: tuple[int, ...]
    rate: float
    _mean: Vectors = field(init=False)
    _square: Vectors = field(init=False)
    _steps: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self._mean, self._square = np.zeros(self.shape, np.float32), np.zeros(self.shape, np.float32)
        self._steps = np.zeros(self.shape[0], np.int64)

    def step(self, rows: Numbers, gradient: Vectors) -> Vectors:
        """What is to be added to these rows."""
        self._steps[rows] += 1
        steps = self._steps[rows].reshape(-1, *[1] * (gradient.ndim - 1))
        mean = self._mean[rows] = 0.9 * self._mean[rows] + 0.1 * gradient
        square = self._square[rows] = 0.999 * self._square[rows] + 0.001 * gradient**2
        size = np.sqrt(square / (1 - 0.999**steps)) + 1e-8
        return np.asarray(-self.rate * (mean / (1 - 0.9**steps)) / size, np.float32)


class Table:
    """The vectors of the tokens that occur, and their weights, in training."""

    def __init__(self, vectors: Vectors, options: StaticOptions) -> None:
        self._vectors, self._logs = vectors.copy(), np.zeros(len(vectors), np.float32)
        size = float(np.sqrt(np.mean(vectors**2)))
        self._moves = Adam(vectors.shape, options.rate * size)
        self._weighs = Adam(self._logs.shape, options.weight_rate)

    def of(self, tokens: Numbers) -> Vectors:
        """The weighted vectors of some."""
        return np.asarray(np.exp(self._logs[tokens])[:, None] * self._vectors[tokens])

    @property
    def all(self) -> Vectors:
        return self.of(np.arange(len(self._logs)))

    def step(self, tokens: Numbers, gradient: Vectors) -> None:
        """gradient: with respect to the weighted vectors of these tokens."""
        weights = np.exp(self._logs[tokens])
        on_logs = np.vecdot(gradient, self._vectors[tokens]) * weights
        self._vectors[tokens] += self._moves.step(tokens, gradient * weights[:, None])
        self._logs[tokens] += self._weighs.step(tokens, on_logs)


class Batches:
    """Deals out the questions of the training data."""

    def __init__(self, data: TrainingSet, questions: sparse.csr_array, texts: sparse.csr_array, size: StaticOptions):
        self._data, self._questions, self._texts, self._size = data, questions, texts, size
        self._chance = np.random.default_rng(size.seed)
        self._right = [frozenset(right) for right in data.positives]

    def __len__(self) -> int:
        return -(-len(self._data) // self._size.batch)

    def deal(self) -> list[Numbers]:
        """Each question once, in a new order."""
        return np.array_split(self._chance.permutation(len(self._data)), len(self))

    def make(self, asked: Numbers) -> tuple[Numbers, Batch]:
        """The tokens of a batch, and the batch."""
        chosen = [self._choose(int(question)) for question in asked]
        texts = np.unique(np.concatenate([one for one, _ in chosen]))
        place = {int(text): at for at, text in enumerate(texts)}
        right = np.array([place[int(one)] for _, one in chosen], np.int64)
        masked = np.zeros((len(asked), len(texts)), bool)
        for row, question in enumerate(asked):
            masked[row, [place[text] for text in self._right[question] if text in place]] = True
        masked[np.arange(len(asked)), right] = False
        weights = np.array([min(1.0, sum(self._data.weights[question])) for question in asked])
        (questions, documents), tokens = _squeeze(self._questions[asked], self._texts[texts])
        return tokens, Batch(questions, documents, right, masked, weights)

    def _choose(self, question: int) -> tuple[Numbers, int]:
        """One of the right texts of a question with some negatives, and the right one."""
        weights, negatives = np.array(self._data.weights[question]), np.array(self._data.negatives[question], np.int64)
        right = int(self._chance.choice(self._data.positives[question], p=weights / weights.sum()))
        some = self._chance.permutation(negatives)[: self._size.negatives]
        return np.append(some, right), right


def _squeeze(*counts: sparse.csr_array) -> tuple[list[sparse.csr_array], Numbers]:
    """The same counts with the columns that occur alone, and these columns."""
    tokens = np.unique(np.concatenate([one.indices for one in counts]))
    found = [
        sparse.csr_array((one.data, np.searchsorted(tokens, one.indices), one.indptr), (one.shape[0], len(tokens)))
        for one in counts
    ]
    return found, tokens


def train(
    vectors: Vectors,
    count: Count,
    data: TrainingSet,
    validation: TrainingSet,
    options: StaticOptions | None = None,
    progress: Progress = lambda share: None,
) -> TunedTable:
    """The table after training; where no round was better, no token differs. validation: other questions on the same
    texts, which say when to stop."""
    options = options or StaticOptions()
    counts, tokens = _squeeze(*(count(texts) for texts in (data.queries, validation.queries, data.texts)))
    asked, held_out, texts = counts
    table, batches = Table(vectors[tokens], options), Batches(data, asked, texts, options)
    measure = Measure(validation, held_out, texts)
    before = best = measure(table.all)
    kept, since, rounds = vectors[tokens], 0, 0
    for done in range(options.rounds):
        for place, some in enumerate(batches.deal()):
            columns, batch = batches.make(some)
            table.step(columns, contrast(table.of(columns), batch, options.temperature)[1])
            progress(min(1.0, (done + place / len(batches)) / options.rounds))
        now, since = measure(table.all), since + 1
        if now > best + SMALL:
            best, kept, since, rounds = now, table.all, 0, done + 1
        if since >= options.patience:
            break
    progress(1.0)
    changed = np.flatnonzero((kept != vectors[tokens]).any(axis=1))
    return TunedTable(tokens[changed], kept[changed], before, best, rounds)


class Measure:
    """nDCG@10 of questions among the texts of the training data."""

    def __init__(self, asked: TrainingSet, questions: sparse.csr_array, texts: sparse.csr_array) -> None:
        self._questions, self._texts = questions, texts
        gains = np.zeros((len(asked), max(texts.shape[0], CUTOFF)), np.float32)
        for row, (right, weights) in enumerate(zip(asked.positives, asked.weights, strict=True)):
            gains[row, list(right)] = weights
        ideals = np.array([ideal_dcg(dict(enumerate(weights))) for weights in asked.weights])
        self._ndcg = TableNdcg(gains, ideals)

    def __call__(self, table: Vectors) -> float:
        questions, texts = _units(self._questions @ table)[0], _units(self._texts @ table)[0]
        scores = np.full((len(questions), max(len(texts), CUTOFF)), -np.inf, np.float32)
        scores[:, : len(texts)] = questions @ texts.T
        return float(self._ndcg(scores).mean()) if len(scores) else 0.0
