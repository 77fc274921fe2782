"""The paper's own rule, for reproduction and comparison: a replay of the log in order, with recorded batch marks.

A query teaches if it was verified on what it retrieved together with its units (the gate: V_r + V_g ≥ 1). In `learn` a
verifier says so; in `feedback` enough of the right documents must be among those retrieved. It is decided when a lesson
is recorded, with the keys of that time: one that fails is recorded with nothing retrieved. For every verified query q,
retrieved document i and unit e (the query itself where there is no expansion):

    Δ = sim(f(q), k ⊕ f(e)) − sim(f(q), k), kept if positive; w = softmax of Δ over the query's units
    s += Σ w·Δ over the queries of a batch; u: a document's units by s, the lowest beyond the capacity are dropped
    k ← k⁰ ⊕ f(the x best of u)              or, accumulating, k ← k ⊕ f(…)

⊕ is addition; dense keys are brought back to unit length. Keys evolve when evolve is called; online also whenever
batches are saturated. Every retrieved document is credited, right or not: that is the rule, and why the guarded policy
exists.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
    gate: float = 0.5
    """The share of the right documents that must be among those retrieved; 0: every lesson teaches."""
    accumulate: bool = False
    online: bool = False
    """Keys evolve whenever a batch is saturated, and not only when evolve is called."""
    normalise: bool = True
    """Whether dense keys are brought back to unit length; if not, similarity is a plain inner product."""

    def __post_init__(self) -> None:
        for name in ("x", "capacity", "batch", "patience", "retrieved"):
            if getattr(self, name) < 1:
                raise InvalidSettings(f"policy paper: {name} must be 1 or more, not {getattr(self, name)}")
        if not 0 <= self.margin < 1:
            raise InvalidSettings(f"policy paper: margin must be from 0 to below 1, not {self.margin}")
        if not 0 <= self.gate <= 1:
            raise InvalidSettings(f"policy paper: gate is a share, from 0 to 1, not {self.gate}")

    def propose(self, data: TrainingData) -> Proposal:
        """There is no guard: whatever was verified is learned."""
        choice = {one.name: REPLAYED for one in data.retrievers}
        weights = dict(zip(data.fusion.names, data.fusion.untaught, strict=True))
        return Proposal(choice, weights, None, None, changes=bool(data.lessons.queries))

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        return self.replay(retriever, log.successes, log.marks, choice)

    def replay(
        self, retriever: Retriever, successes: Sequence[Success], marks: Sequence[int], choice: Choice
    ) -> Overlay:
        if not successes:
            return UNTAUGHT
        replay = Replay(self, retriever, successes)
        replay.run(marks)
        return replay.overlay(choice)

    def saturates(self, retrievers: Sequence[Retriever], log: Log, new: int) -> int | None:
        """Online: the first lesson since the last epoch with which batches are saturated. It is looked for only if the
        last so many lessons completed a batch."""
        last = max(log.marks, default=0)
        count = sum(one.number > last for one in log.successes)
        if not self.online or count < self.batch or count // self.batch == (count - new) // self.batch:
            return None
        replays = [Replay(self, one, log.successes) for one in retrievers]
        found = [number for one in replays for number in one.run(log.marks) if number > last]
        return min(found, default=None)


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

    @property
    def _unit(self) -> bool:
        """Whether keys are brought back to unit length."""
        return self.base.unit and self.rule.normalise

    def _credited(self, one: Success) -> tuple[int, ...]:
        return one.retrieved[: self.rule.retrieved]

    def run(self, marks: Sequence[int]) -> list[int]:
        """Take the lessons batch by batch; evolve at every mark and at the end, and online at saturation too. Returns
        the lessons with which batches were saturated."""
        found = []
        for batch, marked in batches(self.successes, self.rule.batch, marks):
            self._batch(batch)
            full = len(batch) == self.rule.batch
            saturated = self.rule.online and full and self.saturation.saturated
            found += [batch[-1].number] if saturated else []
            if marked or saturated:
                self._evolve()
        return found

    def _batch(self, batch: Sequence[Success]) -> None:
        """Attribute one batch, then drop what is beyond the capacity; remember the largest gain."""
        largest, changed = 0.0, set[int]()
        for one in batch:
            units = [self._column(text) for text in units_of(one)]
            question = self.retriever.lesson(one.query, {})
            likeness = np.asarray(self.block.likeness(question), np.float64)
            for number in self._credited(one):
                rows = self.touched.rows(number)
                if rows.start < rows.stop:
                    row = rows.start + int(np.argmax(self.base.take(np.arange(rows.start, rows.stop)).scores(question)))
                    largest = max(largest, self._attribute(row, question, units, likeness))
                    changed.add(row)
        for row in changed:
            self.scores[row] = dict(best(self.scores[row], self.rule.capacity))
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
        return float(gains.max())

    def _gains(self, row: int, question: Any, units: Sequence[int], likeness: Scores) -> Scores:
        """Δ of each unit: sim(q, k ⊕ e) − sim(q, k), with the key as it is now."""
        if likeness.ndim > 1:
            return self._appended_gains(row, question, units, likeness)
        if not self._unit:
            return likeness[units]  # an inner product does not ask which key it is added to
        vector, key = question.vector.astype(np.float64), self._sum(row)
        grown = np.concatenate([key[None], key + self.block.vectors[list(units)]])
        cosines = grown @ vector / np.maximum(np.linalg.norm(grown, axis=1), 1e-12)
        return np.asarray(cosines[1:] - cosines[0])

    def _appended_gains(self, row: int, question: Any, units: Sequence[int], likeness: Scores) -> Scores:
        """Where ⊕ appends: what each unit's vectors add to the best match of each vector of the question."""
        key = np.asarray(self.base.take(np.array([row])).likeness(question), np.float64)[0]
        for column in self.added[row]:
            key = np.maximum(key, bring(likeness[column]))
        return np.asarray(np.maximum(key, bring(likeness[units])).sum(axis=1) - key.sum())

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
        self.saturation = self.saturation.restart()

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
        if not self._unit:
            return np.ones(len(rows))
        return np.array([max(float(np.linalg.norm(self._sum(row))), 1e-12) for row in rows.tolist()])


def batches(successes: Sequence[Success], size: int, marks: Sequence[int]) -> Iterator[tuple[Sequence[Success], bool]]:
    """Lessons in parts of so many, none across a mark; and whether a part is the last before a mark, or of all."""
    edges = [*sorted({bisect_right(successes, mark, key=lambda one: one.number) for mark in marks}), len(successes)]
    for start, end in pairwise([0, *edges]):
        for place in range(start, end, size):
            yield successes[place : min(place + size, end)], place + size >= end


def units_of(one: Success) -> tuple[str, ...]:
    """The units of a verified query; without an expansion, the query itself."""
    return one.units or (one.query,)


def softmax(gains: Scores) -> Scores:
    powers = np.exp(gains - gains.max())
    return np.asarray(powers / powers.sum())


def best(scores: Mapping[int, float], count: int) -> list[tuple[int, float]]:
    """The units of largest score; of equals the first in alphabetical order."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:count]
