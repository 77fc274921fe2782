"""Some queries, asked of what others have taught: how well would each choice do? No search of the corpus.

A query's untaught top documents are known (its pool); only touched documents can change their score; and before the
norm every score is linear in λ. So each choice is arithmetic on a small table. Documents that reach the top ten under
no choice are left out first, by bounds that hold for all choices at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.attribution import Attribution, Moments
from evokey.evolution.evidence import Taught
from evokey.evolution.judge import DEPTH, Judge, ideal
from evokey.lens import Lens
from evokey.overlay import Touched
from evokey.retriever import Retriever
from evokey.stores.embedded import Block
from evokey.types import Choice, Numbers, Ranking, Scores

Table = NDArray[np.float32]
CELLS = 4_000_000
"""Size of the score tables worked on at a time (queries × touched documents)."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Some asked queries (first axis) against all touched documents, before any choice."""

    asked: Sequence[str]
    questions: Sequence[Any]
    touched: Touched
    block: type[Block[Any]]
    rows: Table
    """Likeness of the touched documents' rows."""
    likeness: Table
    """Of the taught texts."""
    spoken: Table
    """The same, to the queries as they were asked: without a lens."""
    base: Table
    """Untaught scores of the documents."""
    floor: float

    def moved(self, weights: sparse.csr_array, step: float, norms: Scores) -> Table:
        """Scores with keys moved by one (β, λ, η): the evidence for each row, and the norm of the moved key."""
        if not step:
            return self.base
        grown = self.block.grown(self.rows, self.likeness, weights, step, norms)
        return np.asarray(self.touched.best(grown), np.float32)

    def recalled(self, weights: sparse.csr_array, handicap: float) -> Table:
        """The best recall row of each document."""
        totals = self.block.total(self.spoken)
        best = np.maximum.reduceat(totals[:, weights.indices], weights.indptr[self.touched.starts[:-1]], axis=1)
        return np.asarray(best - np.float32(handicap) * self.self_similarity[:, None], np.float32)

    @property
    def self_similarity(self) -> Table:
        return np.array([question.self_similarity for question in self.questions], np.float32)


class Trial:
    def __init__(
        self,
        retriever: Retriever,
        taught: Attribution,
        asked: Taught,
        pools: Mapping[str, Ranking],
        lenses: Mapping[float, Lens] | None = None,
    ) -> None:
        self._attribution, self._retriever, self._asked, self._pools = taught, retriever, asked, pools
        self._lenses: Mapping[float, Lens] = lenses or {}
        self._learned = self._attribution.learned()
        self._weights: dict[tuple[float, float], sparse.csr_array] = {}
        self._moments: dict[tuple[float, float], Moments | None] = {}
        self._kept: dict[float | None, Sheet] = {}
        self._seen: dict[str, dict[float, Ranking]] = {}
        self._questions: dict[str, Any] = {}

    @property
    def asked(self) -> tuple[str, ...]:
        return self._asked.queries

    def strangers(self) -> int:
        """How many of the asked queries have no right document among the touched ones."""
        touched = set(self._attribution.documents.tolist())
        return sum(not touched & set(self._asked.grades[query]) for query in self.asked)

    @property
    def has_units(self) -> bool:
        return self._attribution.has_units

    def outcomes(self, choices: Sequence[Choice]) -> dict[Choice, Scores]:
        """nDCG@10 of every asked query (in their order) under every choice."""
        return self._outcomes(choices, (False,))[0]

    def outcomes_and_bystanders(self, choices: Sequence[Choice]) -> tuple[dict[Choice, Scores], dict[Choice, Scores]]:
        """The same, and beside it the outcomes of bystanders: the queries' own documents have learned nothing, and what
        is left is how far others push in."""
        asked, bystanders = self._outcomes(choices, (False, True))
        return asked, bystanders

    def rankings(self, choice: Choice, depth: int, *, bystanders: bool = False) -> list[tuple[Ranking, float]]:
        """The taught ranking of every asked query, and how far this retriever trusts it."""
        found = []
        for sheet in self._sheets(choice.lens):
            scores = self._scores(sheet, choice)
            if bystanders:
                scores = np.where(self._gains(sheet.asked) > 0, sheet.base, scores)
            for row, query in enumerate(sheet.asked):
                ranking = self._merged(self._pool(query, choice.lens), scores[row], sheet.floor, depth)
                question = self._retriever.lesson(query, {}) if choice.nothing else sheet.questions[row]
                found.append((ranking, question.trust))
        return found

    def _merged(self, pool: Ranking, scores: Table, floor: float, depth: int) -> Ranking:
        """Untouched documents of the pool and the touched ones together."""
        touched = self._attribution.documents
        untouched = ~np.isin(pool.numbers, touched)
        seen = scores > floor
        numbers = np.concatenate([pool.numbers[untouched], touched[seen]])
        merged = np.concatenate([pool.scores[untouched], scores[seen].astype(np.float64)])
        order = np.lexsort((numbers, -merged))[:depth]
        return Ranking(numbers[order], merged[order])

    def _question(self, query: str) -> Any:
        if query not in self._questions:
            self._questions[query] = self._retriever.lesson(query, self._learned)
        return self._questions[query]

    def _pool(self, query: str, lens: float | None) -> Ranking:
        """A query's pool as the lens would order it. What lies deeper than the pool is not looked for."""
        pool = self._pools[query]
        if lens is None or lens not in self._lenses or not len(pool):
            return pool
        if query not in self._seen:
            self._seen[query] = self._turned(query, pool)
        return self._seen[query].get(lens, pool)

    def _turned(self, query: str, pool: Ranking) -> dict[float, Ranking]:
        """A pool as each lens would order it: its rows are fetched once for all."""
        question = self._question(query)
        lenses: Mapping[float, Any] = self._lenses
        turned = {strength: lens.turned(question) for strength, lens in lenses.items()}
        turned = {strength: one for strength, one in turned.items() if one.asked is not None}
        if not turned:
            return {}
        store = self._retriever.store
        touched = Touched.of(pool.numbers, store.rows.sizes(pool.numbers))
        found = {}
        for strength, scores in zip(turned, store.scores(pool.numbers, list(turned.values())), strict=True):
            best = touched.best(scores)
            order = np.lexsort((pool.numbers, -best))
            found[strength] = Ranking(pool.numbers[order], np.asarray(best[order], np.float64))
        return found

    def _sheets(self, lens: float | None = None) -> Iterator[Sheet]:
        """Sheets of a bounded size; a single one is kept, as it is asked for again and again."""
        attribution, queries = self._attribution, self.asked
        size = max(1, CELLS // (attribution.block.parts * max(len(attribution.base), len(attribution.pairs.rows), 1)))
        if lens not in self._kept and 0 < len(queries) <= size:
            self._kept[lens] = self._sheet_of(queries, lens)
        if lens in self._kept:
            yield self._kept[lens]
            return
        for start in range(0, len(queries), size):
            yield self._sheet_of(queries[start : start + size], lens)

    def _sheet_of(self, asked: Sequence[str], lens: float | None) -> Sheet:
        attribution, touched = self._attribution, self._attribution.touched
        plain = [self._question(query) for query in asked]
        turning: Any = None if lens is None else self._lenses.get(lens)
        questions = plain if turning is None else [turning.turned(question) for question in plain]
        block = type(attribution.base)
        if not len(attribution.documents):
            empty = np.zeros((len(asked), 0), np.float32)
            return Sheet(asked, questions, touched, block, empty, empty, empty, empty, -np.inf)
        rows, likeness = attribution.base.table(questions), attribution.block.table(questions)
        spoken = likeness if turning is None else attribution.block.table(plain)
        base = np.asarray(touched.best(block.total(rows)), np.float32)
        return Sheet(asked, questions, touched, block, rows, likeness, spoken, base, block.floor)

    def _weights_of(self, choice: Choice) -> sparse.csr_array:
        key = (choice.spread, choice.units)
        if key not in self._weights:
            self._weights[key] = self._attribution.weights(*key)
        return self._weights[key]

    def _moved(self, sheet: Sheet, choice: Choice) -> Table:
        weights, key = self._weights_of(choice), (choice.spread, choice.units)
        if choice.step and key not in self._moments:
            self._moments[key] = self._attribution.moments(weights)
        norms = self._attribution.norms(weights, choice.step, self._moments.get(key))
        return sheet.moved(weights, choice.step, norms)

    def _scores(self, sheet: Sheet, choice: Choice) -> Table:
        if not sheet.base.shape[1]:
            return sheet.base
        scores = self._moved(sheet, choice)
        if choice.handicap is None:
            return scores
        return np.maximum(scores, sheet.recalled(self._weights_of(choice), choice.handicap))

    def _outcomes(self, choices: Sequence[Choice], as_bystanders: Sequence[bool]) -> list[dict[Choice, Scores]]:
        found: list[dict[Choice, Scores]] = [{} for _ in as_bystanders]
        for lens in dict.fromkeys(choice.lens for choice in choices):
            group = [choice for choice in choices if choice.lens == lens]
            for outcomes, part in zip(found, self._group_outcomes(group, lens, as_bystanders), strict=True):
                outcomes.update(part)
        return [{choice: outcomes[choice] for choice in choices} for outcomes in found]

    def _group_outcomes(
        self, choices: Sequence[Choice], lens: float | None, as_bystanders: Sequence[bool]
    ) -> list[dict[Choice, Scores]]:
        """Of choices that share a lens."""
        found: list[dict[Choice, list[Scores]]] = [{choice: [np.zeros(0)] for choice in choices} for _ in as_bystanders]
        for sheet in self._sheets(lens):
            ideals = np.array([ideal(self._asked.grades[query]) for query in sheet.asked])
            others, other_gains = self._untouched(sheet, lens)
            if not sheet.base.shape[1]:
                flat = Judge(other_gains, ideals)(others)
                for outcomes, choice in product(found, choices):
                    outcomes[choice].append(flat)
                continue
            tables = self._pruned(sheet, choices, others)
            own_gains = np.take_along_axis(self._gains(sheet.asked), tables.columns, 1)
            judge = Judge(np.concatenate([own_gains, other_gains], axis=1), ideals)
            unmoved = np.take_along_axis(sheet.base, tables.columns, 1)
            for choice in choices:
                moved = tables.scores(choice)
                for outcomes, bystanders in zip(found, as_bystanders, strict=True):
                    scores = np.where(own_gains > 0, unmoved, moved) if bystanders else moved
                    scores = np.where(scores > sheet.floor, scores, -np.inf)
                    outcomes[choice].append(judge(np.concatenate([scores, others], axis=1)))
        return [{choice: np.concatenate(parts) for choice, parts in outcomes.items()} for outcomes in found]

    def _untouched(self, sheet: Sheet, lens: float | None) -> tuple[Table, Table]:
        """The ten best untouched documents of each pool: scores and gains. No choice but the lens changes them."""
        scores = np.full((len(sheet.asked), DEPTH), -np.inf, np.float32)
        gains = np.zeros((len(sheet.asked), DEPTH), np.float32)
        for row, query in enumerate(sheet.asked):
            pool, grades = self._pool(query, lens), self._asked.grades[query]
            kept = np.flatnonzero(~np.isin(pool.numbers, self._attribution.documents))[:DEPTH]
            scores[row, : len(kept)] = pool.scores[kept]
            gains[row, : len(kept)] = [grades.get(int(number), 0.0) for number in pool.numbers[kept]]
        return scores, gains

    def _gains(self, asked: Sequence[str]) -> Table:
        """Grades of the touched documents."""
        documents = self._attribution.documents
        gains = np.zeros((len(asked), len(documents)), np.float32)
        if not len(documents):
            return gains
        for row, query in enumerate(asked):
            grades = self._asked.grades[query]
            numbers = np.array(list(grades), np.int64)
            place = np.minimum(np.searchsorted(documents, numbers), len(documents) - 1)
            here = documents[place] == numbers
            gains[row, place[here]] = np.array(list(grades.values()))[here]
        return gains

    def _pruned(self, sheet: Sheet, choices: Sequence[Choice], others: Table) -> _Pruned:
        """Keep the documents that may reach the top ten: whose best score passes the tenth-best of the worst ones."""
        moves = {(choice.spread, choice.units, choice.step): choice for choice in choices}
        moved = {key: self._moved(sheet, choice) for key, choice in moves.items()}
        low = np.minimum.reduce(list(moved.values()))
        high = np.maximum.reduce(list(moved.values()))
        recalled: dict[float, Table] = {}
        rows_used = [choice.handicap for choice in choices if choice.handicap is not None]
        for units in sorted({choice.units for choice in choices}) if rows_used else []:
            recalled[units] = sheet.recalled(self._weights_of(Choice(units=units)), 0.0)
            lenient = recalled[units] - np.float32(min(rows_used)) * sheet.self_similarity[:, None]
            high = np.maximum(high, lenient)
        everything = np.concatenate([low, others], axis=1)
        tenth = np.partition(everything, everything.shape[1] - DEPTH, axis=1)[:, everything.shape[1] - DEPTH]
        width = int((high >= tenth[:, None]).sum(axis=1).max(initial=1))
        width = min(max(width, 1), high.shape[1])
        columns = np.argpartition(-high, width - 1, axis=1)[:, :width]
        columns.sort(axis=1)
        kept_moved = {key: np.take_along_axis(table, columns, 1) for key, table in moved.items()}
        kept_rows = {units: np.take_along_axis(table, columns, 1) for units, table in recalled.items()}
        return _Pruned(columns, kept_moved, kept_rows, sheet.self_similarity[:, None])


@dataclass(frozen=True, slots=True)
class _Pruned:
    columns: Numbers
    moved: Mapping[tuple[float, float, float], Table]
    recalled: Mapping[float, Table]
    self_similarity: Table

    def scores(self, choice: Choice) -> Table:
        moved = self.moved[choice.spread, choice.units, choice.step]
        if choice.handicap is None:
            return moved
        return np.maximum(moved, self.recalled[choice.units] - np.float32(choice.handicap) * self.self_similarity)
