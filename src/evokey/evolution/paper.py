"""The paper's own rule, for reproduction and comparison: a replay of the log in order, with recorded batch marks.

For every verified query q, retrieved document i and unit e (the query itself where there is no expansion):

    Δ = sim(f(q), k ⊕ f(e)) − sim(f(q), k), kept if positive; w = softmax of Δ over the query's units; s += w·Δ
    u: a document's units by s, the lowest leave when there are more than the capacity
    k ← k⁰ ⊕ f(the x best of u)              or, accumulating, k ← k ⊕ f(…)

⊕ is addition; dense keys are brought back to unit length. Batches follow each other until they are saturated; then the
keys evolve. Every retrieved document is credited, right or not: that is the rule, and why the guarded policy exists.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from evokey.errors import InvalidSettings
from evokey.evolution.policy import Log, Proposal, TrainingData
from evokey.evolution.saturation import Saturation
from evokey.ledger.lessons import Success
from evokey.scoring.block import Block, ordinals
from evokey.scoring.late import bring
from evokey.search.overlay import UNTAUGHT, Overlay, Touched
from evokey.search.retriever import Retriever
from evokey.types import Choice, Numbers, Scores

REPLAYED = Choice(step=1.0)


@dataclass(frozen=True, slots=True)
class Paper:
    depends_on_corpus: ClassVar[bool] = True
    uses_traffic: ClassVar[bool] = False
    credits_retrieved: ClassVar[bool] = True
    x: int = 5
    capacity: int = 32
    batch: int = 32
    patience: int = 3
    margin: float = 0.05
    retrieved: int = 10
    """How many documents of a verified query are credited."""
    accumulate: bool = False
    online: bool = False
    """Keys evolve whenever a batch is saturated, and not only when evolve is called."""

    def __post_init__(self) -> None:
        for name in ("x", "capacity", "batch", "patience", "retrieved"):
            if getattr(self, name) < 1:
                raise InvalidSettings(f"policy paper: {name} must be 1 or more, not {getattr(self, name)}")
        if not 0 <= self.margin < 1:
            raise InvalidSettings(f"policy paper: margin must be from 0 to below 1, not {self.margin}")

    def propose(self, data: TrainingData) -> Proposal:
        """There is no guard: whatever was verified is learned."""
        choice = {one.name: REPLAYED for one in data.retrievers}
        weights = dict(zip(data.fusion.names, data.fusion.untaught, strict=True))
        return Proposal(choice, weights, None, None, changes=bool(data.lessons.queries))

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        successes = [one for one in log.successes if one.retrieved]
        if not successes:
            return UNTAUGHT
        replay = Replay(self, retriever, successes)
        replay.run(log.marks)
        return replay.overlay(choice)


@dataclass(slots=True)
class Replay:
    """The state of a replay for one retriever: scores of units by document, and keys as evolved so far."""

    rule: Paper
    retriever: Retriever
    successes: Sequence[Success]
    saturation: Saturation = field(init=False)
    largest_gains: list[float] = field(default_factory=list)
    """Δ of each batch, for the curves."""
    evolved: int = 0
    touched: Touched = field(init=False)
    texts: tuple[str, ...] = field(init=False)
    scores: list[dict[int, float]] = field(init=False)
    """By row of the touched documents: text → s."""
    added: list[dict[int, float]] = field(init=False)
    """By row: text → how often it was added to the key."""
    base: Block[Any] = field(init=False)
    block: Block[Any] = field(init=False)

    def __post_init__(self) -> None:
        numbers = np.array(sorted({number for one in self.successes for number in self._credited(one)}), np.int64)
        keys = self.retriever.base.fetch(numbers)
        self.touched = Touched.of(keys.documents, keys.sizes)
        self.texts = tuple(sorted({text for one in self.successes for text in units_of(one)}))
        self.base, self.block = keys.block, self.retriever.texts(self.texts)
        self.scores = [{} for _ in range(len(self.base))]
        self.added = [{} for _ in range(len(self.base))]
        self.saturation = Saturation(self.rule.patience, self.rule.margin)

    def _credited(self, one: Success) -> tuple[int, ...]:
        return one.retrieved[: self.rule.retrieved]

    def run(self, marks: Sequence[int]) -> None:
        """Take the lessons batch by batch; evolve at every mark and at the end, and online at saturation too."""
        waiting: list[Success] = []
        for place, one in enumerate(self.successes):
            waiting.append(one)
            last = place + 1 == len(self.successes)
            marked = last or any(one.number <= mark < self.successes[place + 1].number for mark in marks)
            if len(waiting) >= self.rule.batch or marked:
                self._batch(waiting)
                waiting = []
            if marked or (self.rule.online and self.saturation.saturated):
                self._evolve()

    def _batch(self, batch: Sequence[Success]) -> None:
        """Attribute one batch; remember its largest gain."""
        largest = 0.0
        for one in batch:
            units = [self._column(text) for text in units_of(one)]
            question = self.retriever.lesson(one.query, {})
            likeness = np.asarray(self.block.likeness(question), np.float64)
            for number in self._credited(one):
                rows = self.touched.rows(number)
                if rows.start < rows.stop:
                    row = rows.start + int(np.argmax(self.base.take(np.arange(rows.start, rows.stop)).scores(question)))
                    largest = max(largest, self._attribute(row, question, units, likeness))
        self.largest_gains.append(largest)
        self.saturation = self.saturation.after(largest)

    def _column(self, text: str) -> int:
        return bisect_left(self.texts, text)

    def _attribute(self, row: int, question: Any, units: Sequence[int], likeness: Scores) -> float:
        """Add w·Δ of each unit to its score for one document; return the largest Δ."""
        gains = self._gains(row, question, units, likeness)
        kept = gains > 0
        if not kept.any():
            return 0.0
        shares = softmax(gains)
        scores = self.scores[row]
        for column, share, gain in zip(np.array(units)[kept], shares[kept], gains[kept], strict=True):
            scores[int(column)] = scores.get(int(column), 0.0) + float(share * gain)
        self.scores[row] = dict(best(scores, self.rule.capacity))
        return float(gains.max())

    def _gains(self, row: int, question: Any, units: Sequence[int], likeness: Scores) -> Scores:
        """Δ of each unit: sim(q, k ⊕ e) − sim(q, k), with the key as it is now."""
        if likeness.ndim > 1:
            return self._appended_gains(row, question, units, likeness)
        if not self.base.unit:
            return likeness[units]  # an inner product does not ask which key it is added to
        key = self._key(row)
        grown = key + self.block.vectors[list(units)]
        grown /= np.maximum(np.linalg.norm(grown, axis=1, keepdims=True), 1e-12)
        gains: Scores = grown @ question.vector.astype(np.float64) - float(key @ question.vector)
        return gains

    def _appended_gains(self, row: int, question: Any, units: Sequence[int], likeness: Scores) -> Scores:
        """Where ⊕ appends: what each unit's vectors add to the best match of each vector of the question."""
        key = np.asarray(self.base.take(np.array([row])).likeness(question), np.float64)[0]
        for column in self.added[row]:
            key = np.maximum(key, bring(likeness[column]))
        return np.asarray(np.maximum(key, bring(likeness[units])).sum(axis=1) - key.sum())

    def _key(self, row: int) -> Scores:
        """A dense key as evolved so far, of unit length."""
        key = self._sum(row)
        return np.asarray(key / max(float(np.linalg.norm(key)), 1e-12))

    def _sum(self, row: int) -> Scores:
        """k⁰ plus what was added, before it is brought back to unit length."""
        key = self.base.vectors[row].astype(np.float64)
        for column, times in self.added[row].items():
            key = key + times * self.block.vectors[column]
        return np.asarray(key)

    def _evolve(self) -> None:
        """k ← k⁰ ⊕ f(τ_x(u)), or accumulating k ← k ⊕ f(τ_x(u))."""
        for row, scores in enumerate(self.scores):
            chosen = dict.fromkeys((column for column, _ in best(scores, self.rule.x)), 1.0)
            if self.rule.accumulate:
                before = self.added[row]
                chosen = {c: before.get(c, 0.0) + chosen.get(c, 0.0) for c in sorted({*before, *chosen})}
            self.added[row] = chosen
        self.evolved += 1
        self.saturation = Saturation(self.rule.patience, self.rule.margin)

    def overlay(self, choice: Choice) -> Overlay:
        rows = [row for row, added in enumerate(self.added) if added]
        if not rows:
            return UNTAUGHT
        sizes = np.diff(self.touched.starts)
        places = np.unique(np.searchsorted(self.touched.starts, rows, side="right") - 1)
        kept = np.repeat(self.touched.starts[places], sizes[places]) + ordinals(sizes[places])
        entries = [(at, column, times) for at, row in enumerate(kept) for column, times in self.added[row].items()]
        at, columns, times = (np.array(part) for part in zip(*entries, strict=True))
        evidence = sparse.coo_array((times, (at, columns)), shape=(len(kept), len(self.texts))).tocsr()
        touched = Touched.of(self.touched.documents[places], sizes[places])
        return Overlay(touched, self.base.take(kept), self.texts, self.block, evidence, self._norms(kept), choice, {})

    def _norms(self, rows: Numbers) -> Scores:
        if not self.base.unit:
            return np.ones(len(rows))
        return np.array([max(float(np.linalg.norm(self._sum(row))), 1e-12) for row in rows.tolist()])


def units_of(one: Success) -> tuple[str, ...]:
    """The units of a verified query; without an expansion, the query itself."""
    return one.units or (one.query,)


def softmax(gains: Scores) -> Scores:
    powers = np.exp(gains - gains.max())
    return np.asarray(powers / powers.sum())


def best(scores: Mapping[int, float], count: int) -> list[tuple[int, float]]:
    """The units of largest score; of equals the first in alphabetical order."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:count]
