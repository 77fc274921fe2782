"""The few documents that may reach the top ten of a query under some choice, and the nDCG@10 of each choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.ndcg import CUTOFF, SortKeys, TableNdcg, descending, sort_keys
from evokey.evolution.tables import Mask, Table, tenth_best
from evokey.scoring.block import ordinals
from evokey.types import Choice, Numbers, Scores

Move = tuple[float, float, float, float, float, float]
"""β, η, how soon lessons lose weight, how locally, λ and γ."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Scores of the candidate documents of each query (first axis); places that are not used hold −inf."""

    moved: Mapping[Move, Table]
    taught_keys: Mapping[float, Table]
    """By η: the score of a document's best taught text, without its penalty."""
    base: Table
    gains: Table
    others: Table
    """The ten best untouched documents, or fewer."""
    other_gains: Table
    self_similarity: Table
    floor: float

    def outcomes(self, choices: Sequence[Choice], ideals: Scores, as_unrelated: bool) -> list[dict[Choice, Scores]]:
        """nDCG@10 of all queries under each choice. With as_unrelated, a second time: as if the queries were unrelated
        to the lessons, that is, as if their own documents had learned nothing."""
        ndcg = TableNdcg(np.concatenate([self.gains, self.other_gains], axis=1), ideals)
        found: list[dict[Choice, Scores]] = [{} for _ in range(1 + as_unrelated)]
        for (units, *penalties), moves in _group(choices).items():
            moved = self._sort_keys([self.moved[move] for move in moves])
            kept = self._sort_keys([self._penalise(units, one) for one in penalties])
            for outcomes, tables, others in zip(found, moved, kept, strict=False):
                for by_penalty, scores in zip(moves.values(), ndcg.of_better(tables, others), strict=True):
                    scored = zip((None, *penalties), scores, strict=True)
                    outcomes.update((by_penalty[one], part) for one, part in scored if one in by_penalty)
        return found

    def _penalise(self, units: float, penalty: float) -> Table:
        """What taught questions kept as keys score."""
        return self.taught_keys[units] - np.float32(penalty) * self.self_similarity

    def _sort_keys(self, tables: Sequence[Table]) -> tuple[SortKeys, SortKeys]:
        """Of the candidates in these tables (first axis) and the untouched documents; and the same when relevant
        documents keep their base scores."""
        width, others = self.base.shape[1], self.others
        table = np.empty((1 + len(tables), len(others), width + others.shape[1]), np.float32)
        for part, scores in zip(table, (self.base, *tables), strict=True):
            part[:, :width], part[:, width:] = scores, others
        keys = sort_keys(np.where(table > self.floor, table, -np.inf))
        unrelated = keys.copy()
        np.copyto(unrelated[:, :, :width], keys[0, :, :width], where=self.gains > 0)
        return keys[1:], unrelated[1:]


def _group(choices: Sequence[Choice]) -> dict[tuple[float, ...], dict[Move, dict[float | None, Choice]]]:
    """Choices that share η and the penalties of taught keys: move → penalty → choice."""
    groups: dict[tuple[float, ...], dict[Move, dict[float | None, Choice]]] = {}
    for move, same_move in groupby(choices, key=attrgetter("move")):
        by_penalty = {choice.penalty: choice for choice in same_move}
        key = (move[1], *(penalty for penalty in by_penalty if penalty is not None))
        groups.setdefault(key, {})[move] = by_penalty
    return groups


@dataclass(frozen=True, slots=True)
class Scatter:
    """Puts values of candidates, query by query, into a table."""

    queries: Numbers
    places: Numbers
    shape: tuple[int, int]

    @classmethod
    def of(cls, queries: Numbers, count: int) -> Scatter:
        sizes = np.bincount(queries, minlength=count)
        return cls(queries, ordinals(sizes), (count, int(sizes.max(initial=0))))

    def __call__(self, values: NDArray[Any], missing: float = -np.inf) -> Table:
        table = np.full(self.shape, missing, np.float32)
        table[self.queries, self.places] = values
        return table


class CandidateFilter:
    """Finds the documents that may be among the ten best of a query, by any of the tables that are added.

    Relevant documents and others are treated separately, because the relevant ones keep their base scores when their
    query is scored as unrelated.
    """

    def __init__(self, relevant: Table, others: Table, least: float) -> None:
        """others: the scores of untouched documents; least: what a document must score to be found."""
        self.selected: Mask = np.zeros(relevant.shape, bool)
        self._at = np.flatnonzero(relevant)
        self._queries = self._at // max(relevant.shape[1], 1)
        self._least = np.maximum(tenth_best(others), np.float32(least))
        self._relevant: list[Table] = []
        self._bars: list[Table] = []

    def add(self, table: Table) -> None:
        relevant = table.take(self._at)
        np.put(table, self._at, -np.inf)
        bar = np.maximum(tenth_best(table), self._least)
        self.selected |= table >= bar[:, None]
        np.put(table, self._at, relevant)
        self._relevant.append(relevant)
        self._bars.append(bar)

    def finish(self, base: Table) -> Table:
        """Select relevant documents too, with their moved scores and with their base scores: those that reach the bar
        and are among the ten best relevant ones. Returns the lowest bar of each query."""
        lowest: Table = np.min(self._bars, axis=0)
        scores, bars = np.stack([*self._relevant, base.take(self._at)]), np.stack([*self._bars, lowest])
        reaching = scores >= bars[:, self._queries]
        some = np.flatnonzero(reaching.any(axis=0))
        queries = self._queries[some]
        ranks = (queries << 32) + descending(scores[:, some])
        first, end = (np.searchsorted(queries, queries, side=side) for side in ("left", "right"))
        last = np.sort(ranks, axis=1)[:, np.minimum(first + CUTOFF, end) - 1]
        np.put(self.selected, self._at[some], (reaching[:, some] & (ranks <= last)).any(axis=0))
        return lowest
