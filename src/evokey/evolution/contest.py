"""The few documents that may reach the top ten of a query under some choice, and who wins under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.judge import DEPTH, Judge, Keys, keys
from evokey.overlay import Touched, greatest
from evokey.stores.embedded import ordinals
from evokey.types import Choice, Numbers, Scores

Table = NDArray[np.float32]
Move = tuple[float, float, float, float]
"""β, η, λ and γ."""
NEAREST = 32
"""Taught texts that are looked at first."""
STRIDE = 16


@dataclass(frozen=True, slots=True)
class Contest:
    """Scores of the contestants of each query (first axis); what is missing in a row is −inf."""

    moved: Mapping[Move, Table]
    recalled: Mapping[float, Table]
    """By η: the best recall row, without its handicap."""
    base: Table
    gains: Table
    others: Table
    """The ten best untouched documents."""
    other_gains: Table
    self_similarity: Table
    floor: float

    def outcomes(self, choices: Sequence[Choice], ideals: Scores, bystanders: bool) -> list[dict[Choice, Scores]]:
        """nDCG@10 of all queries, and of bystanders: their own documents have learned nothing."""
        judge = Judge(np.concatenate([self.gains, self.other_gains], axis=1), ideals)
        found: list[dict[Choice, Scores]] = [{} for _ in range(1 + bystanders)]
        alike: dict[tuple[float, ...], dict[Move, dict[float | None, Choice]]] = {}
        for move, group in groupby(choices, key=attrgetter("move")):
            by_handicap = {choice.handicap: choice for choice in group}
            key = (move[1], *(handicap for handicap in by_handicap if handicap is not None))
            alike.setdefault(key, {})[move] = by_handicap
        for (units, *handicaps), moves in alike.items():
            moved, rows = self._keys([self.moved[move] for move in moves]), self._keys(self._recalled(units, handicaps))
            for outcomes, tables, others in zip(found, moved, rows, strict=False):
                for by_handicap, scores in zip(moves.values(), judge.better(tables, others), strict=True):
                    judged = zip((None, *handicaps), scores, strict=True)
                    outcomes.update((by_handicap[one], part) for one, part in judged if one in by_handicap)
        return found

    def _recalled(self, units: float, handicaps: Sequence[float]) -> list[Table]:
        """What recall rows score, by their handicap."""
        return [self.recalled[units] - np.float32(one) * self.self_similarity for one in handicaps]

    def _keys(self, tables: Sequence[Table]) -> tuple[Keys, Keys]:
        """Of the contestants in these tables (first axis), and of the untouched documents beside them; and the same
        when right documents stay where they are."""
        width, others = self.base.shape[1], self.others
        table = np.empty((1 + len(tables), len(others), width + others.shape[1]), np.float32)
        for part, scores in zip(table, (self.base, *tables), strict=True):
            part[:, :width], part[:, width:] = scores, others
        found = keys(np.where(table > self.floor, table, -np.inf))
        stay = found.copy()
        np.copyto(stay[:, :, :width], found[0, :, :width], where=self.gains > 0)
        return found[1:], stay[1:]


@dataclass(frozen=True, slots=True)
class Deal:
    """Puts values of contestants, query by query, into a table."""

    queries: Numbers
    places: Numbers
    shape: tuple[int, int]

    @classmethod
    def of(cls, queries: Numbers, count: int) -> Deal:
        sizes = np.bincount(queries, minlength=count)
        return cls(queries, ordinals(sizes), (count, int(sizes.max(initial=0))))

    def __call__(self, values: NDArray[Any], missing: float = -np.inf) -> Table:
        table = np.full(self.shape, missing, np.float32)
        table[self.queries, self.places] = values
        return table


@dataclass(frozen=True, slots=True)
class Own:
    """The right documents of each query, among the columns of a table."""

    queries: Numbers
    columns: Numbers
    deal: Deal

    @classmethod
    def of(cls, right: Table) -> Own:
        queries, columns = np.nonzero(right)
        return cls(queries, columns, Deal.of(queries, len(right)))

    def ahead(self, table: Table, bar: Table) -> NDArray[np.bool_]:
        """Which of them are among the ten best of them, and reach the bar."""
        scores = table[self.queries, self.columns]
        bar = np.maximum(bar, _tenth(self.deal(scores)))
        return np.asarray(scores >= bar[self.queries])

    def bar(self, table: Table) -> Table:
        """What other documents must score at least to be among their ten best."""
        aside = table[self.queries, self.columns]
        table[self.queries, self.columns] = -np.inf
        found = _tenth(table)
        table[self.queries, self.columns] = aside
        return found


def _tenth(table: Table) -> Table:
    """The tenth-best score of each row, or less; −inf where there are fewer. Of columns dealt into heaps, the
    tenth-best heap is not above the tenth-best column."""
    heaps = table.shape[1] // STRIDE
    best = table[:, : STRIDE * heaps].reshape(len(table), STRIDE, heaps).max(axis=1) if heaps > DEPTH else table
    width = best.shape[1]
    if width < DEPTH:
        return np.full(len(table), -np.inf, np.float32)
    return np.asarray(np.partition(best, width - DEPTH, axis=1)[:, width - DEPTH])


@dataclass(frozen=True, slots=True)
class Recall:
    """Which taught texts recall which documents."""

    starts: Numbers
    texts: Numbers
    """The texts of each document, from its start to the next."""
    owners: Sequence[int]
    firsts: Sequence[int]
    """The documents of each text, in order, from its first to the next."""

    @classmethod
    def of(cls, weights: sparse.csr_array, touched: Touched) -> Recall:
        starts = weights.indptr[touched.starts].astype(np.int64)
        owners = np.repeat(np.arange(len(touched.documents)), np.diff(starts))
        order = np.argsort(weights.indices, kind="stable")
        firsts = np.searchsorted(weights.indices[order], np.arange(weights.shape[1] + 1))
        return cls(starts, weights.indices.astype(np.int64), owners[order].tolist(), firsts.tolist())

    def scores(self, totals: Table, queries: Numbers, documents: Numbers) -> Table:
        """The best text of a document for a query, for each of these pairs; −inf where it has none."""
        sizes = self.starts[documents + 1] - self.starts[documents]
        best, some = np.full(len(queries), -np.inf, np.float32), np.flatnonzero(sizes)
        if len(some):
            sizes = sizes[some]
            texts = self.texts[np.repeat(self.starts[documents[some]], sizes) + ordinals(sizes)]
            ends = np.cumsum(sizes)
            best[some] = np.maximum.reduceat(totals[np.repeat(queries[some], sizes), texts], ends - sizes)
        return best

    def everyone(self, totals: Table) -> Table:
        """The same, of all documents for all queries."""
        return greatest(totals[:, self.texts], self.starts)

    def keep(self, kept: NDArray[np.bool_], totals: Table, right: Table, floor: float) -> None:
        """Mark the ten documents that are best recalled for each query, its right ones aside, and those of the right
        ones that are recalled no worse: no more than ten for each text."""
        nearest = np.argpartition(-totals, NEAREST, axis=1)[:, :NEAREST] if totals.shape[1] > NEAREST else None
        for query, (marks, said) in enumerate(zip(kept, totals, strict=True)):
            wanted = set(np.flatnonzero(right[query]).tolist())
            for near in (None if nearest is None else nearest[query], np.arange(len(said))):
                if near is not None and self._keep(marks, said, near, wanted, floor):
                    break

    def _keep(self, marks: NDArray[np.bool_], said: Table, near: Numbers, right: set[int], floor: float) -> bool:
        """Look at these texts, nearest first; tells whether they were enough."""
        found, last = set[int](), np.inf
        order = near[np.argsort(-said[near], kind="stable")]
        for text, score in zip(order.tolist(), said[order].tolist(), strict=True):
            if score <= floor:
                return True
            if len(found) >= DEPTH and score < last:
                return True
            owners = self.owners[self.firsts[text] : self.firsts[text + 1]]
            others = [owner for owner in owners if owner not in right][:DEPTH]
            marks[others] = True
            marks[[owner for owner in owners if owner in right][:DEPTH]] = True
            found.update(others)
            last = score
        return False
