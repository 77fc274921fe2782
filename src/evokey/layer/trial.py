"""Some questions, scored on what others taught under many plans. No engine is asked: its results are kept (pools)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF, TableNdcg, ideal_dcg
from evokey.evolution.openings import CrossFitted, Gate
from evokey.layer.scoring import (
    ALL_SIGNALS,
    Common,
    Parts,
    Plan,
    Scale,
    Weights,
    blend,
    combine,
    compare_results,
    even,
    gate,
    weigh,
)
from evokey.layer.teaching import Teaching
from evokey.search.gate import FIRST, openings, probability
from evokey.types import Numbers, Ranking, Scores


class Trial:
    def __init__(
        self,
        teaching: Teaching,
        tables: Scores,
        questions: Judgements,
        pools: Mapping[str, Ranking],
        depth: int,
    ) -> None:
        """tables: likeness of the questions to the taught ones, by every measure; pools: what the engine returned for
        each question, out of so many that it was asked for."""
        self._teaching, self._tables, self.judgements = teaching, tables, questions
        self.gate: Gate | CrossFitted | None = None
        self._others: dict[float, tuple[Scores, Scores]] = {}
        self._signals: dict[bool, Scores] = {}
        self._prepared: dict[tuple[Weights, float, float], Prepared] = {}
        self._known: dict[tuple[Plan, bool], Scores] = {}
        self._read_pools(pools, depth)

    @property
    def queries(self) -> tuple[str, ...]:
        return self.judgements.queries

    def _read_pools(self, pools: Mapping[str, Ranking], depth: int) -> None:
        """The engine's shares of the touched documents, and of the others."""
        documents = self._teaching.documents
        shape = len(self.queries), len(documents)
        self.base, self.relevant = np.zeros(shape), np.zeros(shape)
        asked = [pools[text] for text in self._teaching.remaining if text in pools]
        common = Common.of(asked, depth)
        self.common = np.broadcast_to(common.weigh(documents), shape)
        self._rest: list[tuple[Scores, Scores, Scores]] = []
        self._found: list[tuple[Numbers, Scores]] = []
        for row, query in enumerate(self.queries):
            pool, grades = pools[query], self.judgements.grades[query]
            shares = Scale.of(pool.scores, depth).shares(pool.scores)
            places = np.searchsorted(documents, pool.numbers)
            touched = np.isin(pool.numbers, documents)
            self.base[row, places[touched]] = shares[touched]
            others = pool.numbers[~touched]
            gains = np.array([grades.get(one, 0.0) for one in others.tolist()])
            self._rest.append((shares[~touched], common.weigh(others), gains))
            known = np.array([number for number in grades if number in self._place], np.int64)
            self.relevant[row, np.searchsorted(documents, known)] = [grades[one] for one in known.tolist()]
            self._found.append((pool.numbers, shares))

    def find_others(self, discount: float) -> tuple[Scores, Scores]:
        """The ten best results that are not touched, for each question: their scores and grades."""
        if discount not in self._others:
            scores, gains = np.full((len(self.queries), CUTOFF), -np.inf), np.zeros((len(self.queries), CUTOFF))
            for row, (shares, common, grades) in enumerate(self._rest):
                found = shares - discount * common
                best = np.argsort(-found, kind="stable")[:CUTOFF]
                scores[row, : len(best)], gains[row, : len(best)] = found[best], grades[best]
            self._others[discount] = scores, gains
        return self._others[discount]

    @cached_property
    def _place(self) -> Mapping[int, int]:
        return {number: at for at, number in enumerate(self._teaching.documents.tolist())}

    @cached_property
    def ideals(self) -> Scores:
        return np.array([ideal_dcg(self.judgements.grades[query]) for query in self.queries])

    @cached_property
    def related(self) -> NDArray[np.bool_]:
        """Which of the questions have a relevant document among those that learned."""
        learned = np.isin(self._teaching.documents, self._teaching.learners)
        return np.asarray((self.relevant[:, learned] > 0).any(axis=1))

    def likeness(self, weights: Weights) -> Scores:
        return blend(self._tables, weights)

    @cached_property
    def _near(self) -> Scores:
        """The same as the gate sees it."""
        return self.likeness(even(len(self._tables) - 1))

    @property
    def nearest(self) -> Scores:
        """How like each question is to the nearest that was taught."""
        return np.asarray(self._near[:, self._teaching.known.texts].max(axis=1, initial=0.0))

    def outcomes(self, plans: Sequence[Plan], *, as_unrelated: bool = False) -> dict[Plan, Scores]:
        """nDCG@10 of every question under every plan; as_unrelated: as if its own documents had learned nothing."""
        for plan in plans:
            if (plan, as_unrelated) not in self._known:
                self._known[plan, as_unrelated] = self._score(plan, as_unrelated)
        return {plan: self._known[plan, as_unrelated] for plan in plans}

    def _score(self, plan: Plan, as_unrelated: bool) -> Scores:
        if not len(self.queries):
            return np.zeros(0)
        known, discount = self._prepare(plan), plan.choice.discount
        share, penalty = self._open(plan, as_unrelated)
        base = known.base - discount * known.common
        scores = gate(base, combine(base, known.parts, plan.choice, penalty), share)
        if as_unrelated:
            scores = np.where(known.relevant > 0, base, scores)
        found = known.there & ((scores > 0) | (known.base > 0))
        table = np.where(found, scores, -np.inf)
        others, _ = self.find_others(discount)
        return known.measure(discount)(np.concatenate([table, others], axis=1).astype(np.float32))

    def _open(self, plan: Plan, as_unrelated: bool) -> tuple[Scores, Scores]:
        """How far the gate is open for each question, and the share of the penalty that counts: both as columns."""
        signals, found = self.signals(as_unrelated=as_unrelated), self.gate
        if found is None or plan.choice.nothing:
            known = np.ones(len(signals))
        else:
            known = found[as_unrelated] if isinstance(found, CrossFitted) else probability(found, signals)
        share, penalty = openings(plan.choice, signals, known)
        return share[:, None], penalty[:, None]

    def signals(self, variant: None = None, /, *, as_unrelated: bool = False) -> Scores:
        """What the gate sees of each question."""
        if as_unrelated not in self._signals:
            found = [self._read_signals(row, as_unrelated) for row in range(len(self.queries))]
            self._signals[as_unrelated] = np.array(found).reshape(-1, ALL_SIGNALS)
        return self._signals[as_unrelated]

    def _read_signals(self, row: int, as_unrelated: bool) -> Scores:
        numbers, shares = self._found[row]
        known, hidden = self._teaching.known, self._own(row, as_unrelated)
        near = known.signals(self._near[row], 1.0, self.base[row], shares[:FIRST], hidden)
        taught = np.isin(numbers, self._teaching.learners)
        if as_unrelated:
            taught &= ~np.isin(numbers, list(self.judgements.grades[self.queries[row]]))
        return np.concatenate([near, compare_results(shares, taught)])

    def _own(self, row: int, as_unrelated: bool) -> list[int]:
        """The taught questions about a question's own documents, as places among all."""
        if not as_unrelated:
            return []
        own = set(np.flatnonzero(self.relevant[row]).tolist())
        return [at for at, documents in enumerate(self._teaching.known.documents) if not own.isdisjoint(documents)]

    def _prepare(self, plan: Plan) -> Prepared:
        key = plan.weights, plan.choice.kernel, plan.choice.spread
        if key not in self._prepared:
            parts = weigh(self._teaching, self.likeness(plan.weights), plan.choice)
            self._prepared[key] = self._select(parts)
        return self._prepared[key]

    def _select(self, parts: Parts) -> Prepared:
        """Only documents that may reach the top ten: the engine's results, and of the others the best by what was
        taught. Outside of the results all have (almost) the same base: the best ten by pull and recall are enough."""
        chosen = (self.base > 0) | (self.relevant > 0)
        for table in (parts.pull, parts.recall):
            if table.shape[1] > CUTOFF:
                best = np.argpartition(-np.where(self.base > 0, -np.inf, table), CUTOFF, axis=1)[:, :CUTOFF]
                np.put_along_axis(chosen, best, True, axis=1)
            else:
                chosen[:] = True
        width = int(chosen.sum(axis=1).max(initial=0))
        columns = np.argsort(~chosen, axis=1, kind="stable")[:, :width]
        return Prepared(self, columns, np.take_along_axis(chosen, columns, axis=1), parts)


class Prepared:
    """Tables of the documents that matter, for one way to weigh likeness."""

    def __init__(self, trial: Trial, columns: Numbers, there: NDArray[np.bool_], parts: Parts) -> None:
        def take(table: Any) -> Any:
            return np.take_along_axis(table, columns, axis=1)

        self._trial, self.there, self.base, self.relevant = trial, there, take(trial.base), take(trial.relevant)
        self.common = take(trial.common)
        push = take(parts.push) if parts.push.shape == parts.pull.shape else parts.push
        self.parts = Parts(take(parts.pull), push, take(parts.recall))
        self._measures: dict[float, TableNdcg] = {}

    def measure(self, discount: float) -> TableNdcg:
        """nDCG@10 of tables of these documents and the best others."""
        if discount not in self._measures:
            _, gains = self._trial.find_others(discount)
            table = np.concatenate([np.where(self.there, self.relevant, 0.0), gains], axis=1)
            self._measures[discount] = TableNdcg(table.astype(np.float32), self._trial.ideals)
        return self._measures[discount]
