"""The few documents that may reach the top ten of a query under some choice, and who wins under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.judge import DEPTH, Judge, Keys, descending, keys
from evokey.evolution.tables import Marks, Table, tenth
from evokey.stores.embedded import ordinals
from evokey.types import Choice, Numbers, Scores

Move = tuple[float, float, float, float]
"""β, η, λ and γ."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Scores of the contestants of each query (first axis); what is missing in a row is −inf."""

    moved: Mapping[Move, Table]
    recalled: Mapping[float, Table]
    """By η: the best recall row, without its penalty."""
    base: Table
    gains: Table
    others: Table
    """The ten best untouched documents, or fewer."""
    other_gains: Table
    self_similarity: Table
    floor: float

    def outcomes(self, choices: Sequence[Choice], ideals: Scores, bystanders: bool) -> list[dict[Choice, Scores]]:
        """nDCG@10 of all queries, and of bystanders: their own documents have learned nothing."""
        judge = Judge(np.concatenate([self.gains, self.other_gains], axis=1), ideals)
        found: list[dict[Choice, Scores]] = [{} for _ in range(1 + bystanders)]
        alike: dict[tuple[float, ...], dict[Move, dict[float | None, Choice]]] = {}
        for move, group in groupby(choices, key=attrgetter("move")):
            by_penalty = {choice.penalty: choice for choice in group}
            key = (move[1], *(penalty for penalty in by_penalty if penalty is not None))
            alike.setdefault(key, {})[move] = by_penalty
        for (units, *penalties), moves in alike.items():
            moved, rows = self._keys([self.moved[move] for move in moves]), self._keys(self._recalled(units, penalties))
            for outcomes, tables, others in zip(found, moved, rows, strict=False):
                for by_penalty, scores in zip(moves.values(), judge.better(tables, others), strict=True):
                    judged = zip((None, *penalties), scores, strict=True)
                    outcomes.update((by_penalty[one], part) for one, part in judged if one in by_penalty)
        return found

    def _recalled(self, units: float, penalties: Sequence[float]) -> list[Table]:
        """What recall rows score, by their penalty."""
        return [self.recalled[units] - np.float32(one) * self.self_similarity for one in penalties]

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


class Qualifying:
    """Who may be among the ten best of a query, by any of the tables that it sees.

    Right documents and others are looked at apart, as right ones stay behind when their query is a bystander.
    """

    def __init__(self, right: Table, others: Table, least: float) -> None:
        """others: the scores of untouched documents; least: what a document must score to be found."""
        self.kept: Marks = np.zeros(right.shape, bool)
        self._at = np.flatnonzero(right)
        self._queries = self._at // max(right.shape[1], 1)
        self._least = np.maximum(tenth(others), np.float32(least))
        self._own: list[Table] = []
        self._bars: list[Table] = []

    def see(self, table: Table) -> None:
        own = table.take(self._at)
        np.put(table, self._at, -np.inf)
        bar = np.maximum(tenth(table), self._least)
        self.kept |= table >= bar[:, None]
        np.put(table, self._at, own)
        self._own.append(own)
        self._bars.append(bar)

    def end(self, base: Table) -> Table:
        """Look at the right documents too, where they have moved and where they stay: those that reach the bar and are
        among the ten best of them. Returns the lowest bar of each query."""
        lowest: Table = np.min(self._bars, axis=0)
        own, bars = np.stack([*self._own, base.take(self._at)]), np.stack([*self._bars, lowest])
        ahead = own >= bars[:, self._queries]
        some = np.flatnonzero(ahead.any(axis=0))
        queries = self._queries[some]
        ranks = (queries << 32) + descending(own[:, some])
        first, end = (np.searchsorted(queries, queries, side=side) for side in ("left", "right"))
        last = np.sort(ranks, axis=1)[:, np.minimum(first + DEPTH, end) - 1]
        np.put(self.kept, self._at[some], (ahead[:, some] & (ranks <= last)).any(axis=0))
        return lowest
