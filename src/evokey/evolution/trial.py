"""Some queries, asked of what others have taught: how well would each choice do? No search of the corpus, unless asked.

A query's untaught top documents are known (its pool); only touched documents can change their score; and before the
norm every score is linear in λ. So each choice is arithmetic on a small table. Documents that reach the top ten under
no choice are left out first, by bounds that hold for all choices at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np
from scipy import sparse

from evokey.evolution.attribution import Attribution, Evidence, Moments
from evokey.evolution.contest import Contest, Deal, Move, Qualifying
from evokey.evolution.evidence import Taught
from evokey.evolution.judge import DEPTH, Judge, ideal
from evokey.evolution.pools import DEPTH as POOL
from evokey.evolution.recall import Recall, ahead
from evokey.evolution.sheet import Sheet
from evokey.evolution.tables import Table, marks
from evokey.search.lens import Lens, Turn
from evokey.search.overlay import Touched
from evokey.search.retriever import Retriever
from evokey.stores.embedded import NO_NUMBERS
from evokey.types import Choice, Ranking, Scores

Way = tuple[float, float]
"""β and η."""
CELLS, KEPT = 300_000, 1_000_000
"""Size of the score tables (queries × touched documents) that are worked on at a time, and that are kept."""
CROWDED = 50
"""Documents of a query from which on it pays to tell those apart that are recalled equally well."""


class Trial:
    def __init__(
        self,
        retriever: Retriever,
        taught: Attribution,
        asked: Taught,
        pools: Mapping[str, Ranking],
        lenses: Mapping[Turn, Lens] | None = None,
        *,
        deep: bool = False,
    ) -> None:
        """deep: what comes from outside a query's pool is looked for, by a search of the corpus: a lens brings it, or
        touched documents fall behind it."""
        self._attribution, self._retriever, self._asked, self._pools = taught, retriever, asked, pools
        self._lenses: Mapping[Turn, Lens] = lenses or {}
        self._deep = deep
        self._learned = self._attribution.learned()
        self._weights: dict[Way, Evidence] = {}
        self._moments: dict[Way, Moments | None] = {}
        self._recall: dict[bool, Recall] = {}
        self._known: list[dict[Choice, Scores]] = [{}, {}]
        """Outcomes so far: of the queries, and of bystanders."""
        self._kept: dict[Turn | None, list[Sheet]] = {}
        self._seen: dict[str, dict[Turn, Ranking]] = {}
        self._deeper: dict[str, Ranking] = {}
        self._questions: dict[str, Any] = {}

    @property
    def asked(self) -> tuple[str, ...]:
        return self._asked.queries

    def unrelated(self) -> int:
        """How many of the asked queries have no right document among the touched ones."""
        touched = set(self._attribution.learners.tolist())
        return sum(not touched & set(self._asked.grades[query]) for query in self.asked)

    @property
    def has_units(self) -> bool:
        return self._attribution.has_units

    def outcomes(self, choices: Sequence[Choice]) -> dict[Choice, Scores]:
        """nDCG@10 of every asked query (in their order) under every choice."""
        return self._outcomes(choices, bystanders=False)[0]

    def outcomes_and_bystanders(self, choices: Sequence[Choice]) -> tuple[dict[Choice, Scores], dict[Choice, Scores]]:
        """The same, and beside it the outcomes of bystanders: the queries' own documents have learned nothing, and what
        is left is how far others push in."""
        asked, bystanders = self._outcomes(choices, bystanders=True)
        return asked, bystanders

    def rankings(self, choice: Choice, depth: int, *, bystanders: bool = False) -> list[tuple[Ranking, float]]:
        """The taught ranking of every asked query, and how far this retriever trusts it."""
        found = []
        for sheet in self._sheets(choice.lens_id):
            scores = self._scores(sheet, choice)
            if bystanders:
                scores = np.where(self._gains(sheet.asked) > 0, sheet.base, scores)
            for row, query in enumerate(sheet.asked):
                ranking = self._merged(self._pool(query, choice.lens_id), scores[row], sheet.floor, depth)
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

    def _pool(self, query: str, lens: Turn | None) -> Ranking:
        """A query's pool as the lens would order it. Unless asked to go deep, what lies deeper is not looked for."""
        pool = self._pools[query]
        if lens is None or lens not in self._lenses or not len(pool):
            return self._beyond(query) if self._deep and len(pool) >= POOL else pool
        if query not in self._seen:
            self._seen[query] = self._turned(query, pool)
        return self._seen[query].get(lens, pool)

    def _turned(self, query: str, pool: Ranking) -> dict[Turn, Ranking]:
        """A pool as each lens would order it: its rows are fetched once for all."""
        question = self._question(query)
        lenses: Mapping[Turn, Any] = self._lenses
        turned = {turn: lens.turned(question) for turn, lens in lenses.items()}
        turned = {turn: one for turn, one in turned.items() if one.asked is not None}
        if not turned:
            return {}
        if self._deep:
            return {turn: self._untouched_by(one) for turn, one in turned.items()}
        store = self._retriever.store
        touched = Touched.of(pool.numbers, store.rows.sizes(pool.numbers))
        found = {}
        for turn, scores in zip(turned, store.scores(pool.numbers, list(turned.values())), strict=True):
            best = touched.best(scores)
            order = np.lexsort((pool.numbers, -best))
            found[turn] = Ranking(pool.numbers[order], np.asarray(best[order], np.float64))
        return found

    def _beyond(self, query: str) -> Ranking:
        if query not in self._deeper:
            self._deeper[query] = self._untouched_by(self._question(query))
        return self._deeper[query]

    def _untouched_by(self, question: Any) -> Ranking:
        """The best untouched documents, from wherever: touched ones may all fall behind what lies beyond the pool."""
        return self._retriever.store.scan(question).top(POOL, self._attribution.documents, None)

    def _sheets(self, lens: Turn | None = None) -> Iterator[Sheet]:
        """Sheets of a bounded size; a few are kept, as they are asked for again and again."""
        if lens not in self._kept:
            attribution, queries = self._attribution, self.asked
            width = attribution.block.parts * max(len(attribution.base), len(attribution.block), 1)
            size = max(1, CELLS // width)
            sheets = (self._sheet_of(queries[at : at + size], lens) for at in range(0, len(queries), size))
            if len(queries) * width > KEPT:
                yield from sheets
                return
            self._kept[lens] = list(sheets)
        yield from self._kept[lens]

    def _sheet_of(self, asked: Sequence[str], lens: Turn | None) -> Sheet:
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
        if likeness.ndim == 2:  # text by text, as evidence is multiplied
            likeness = np.asfortranarray(likeness)
        return Sheet(asked, questions, touched, block, rows, likeness, spoken, base, block.floor)

    def _pulled(self, sheet: Sheet, way: Way) -> Any:
        """What one (β, η) pulls. Tables are of single precision, and so is this."""
        weights, total = self._evidence(way)
        if way not in self._moments:
            self._moments[way] = self._attribution.moments(*way, total)
        return sheet.block.pulled(sheet.likeness, weights)

    def _evidence(self, way: Way) -> Evidence:
        if way not in self._weights:
            found, total = self._attribution.evidence(*way)
            parts = found.data.astype(np.float32), found.indices, found.indptr
            self._weights[way] = Evidence(sparse.csr_array(parts, found.shape), total)
        return self._weights[way]

    def _pushed(self, sheet: Sheet) -> Any:
        """What speaks against documents that were wrong; nothing if none was."""
        push = self._attribution.push
        return 0.0 if push is None else sheet.block.pulled(sheet.likeness, push.weights.astype(np.float32))

    def _moved(self, sheet: Sheet, choices: Iterable[Choice]) -> Iterator[tuple[Move, Table]]:
        """Scores with moved keys, for every (β, η, λ, γ) among the choices."""
        moves = sorted({choice.move for choice in choices})
        pushed: Any = self._pushed(sheet) if any(demotion for *_, demotion in moves) else None
        for way, group in groupby(moves, key=lambda one: one[:2]):
            wanted = [one[2:] for one in group]
            pulled: Any = self._pulled(sheet, way) if any(map(any, wanted)) else None
            for step, demotion in wanted:
                norms = self._attribution.norms(step, self._moments.get(way), demotion)
                if demotion:
                    table = sheet.moved(np.float32(step) * pulled - np.float32(demotion) * pushed, 1.0, norms)
                else:
                    table = sheet.moved(pulled, step, norms) if step else sheet.base
                yield (*way, step, demotion), table

    def _recalling(self, units: float) -> Recall:
        """Which texts recall which documents; with the units, if these have a say."""
        key = units > 0
        if key not in self._recall:
            self._recall[key] = Recall.of(self._evidence((0.0, float(key))).weights, self._attribution.touched)
        return self._recall[key]

    def _scores(self, sheet: Sheet, choice: Choice) -> Table:
        if not sheet.base.shape[1]:
            return sheet.base
        ((_, scores),) = self._moved(sheet, [choice])
        if choice.penalty is None:
            return scores
        recalled = self._recalling(choice.unit_weight).everyone(sheet.block.total(sheet.spoken))
        return np.maximum(scores, recalled - np.float32(choice.penalty) * sheet.self_similarity)

    def _outcomes(self, choices: Sequence[Choice], *, bystanders: bool) -> list[dict[Choice, Scores]]:
        kinds = self._known[: 1 + bystanders]
        missing = [choice for choice in choices if any(choice not in known for known in kinds)]
        for lens in dict.fromkeys(choice.lens_id for choice in missing):
            group = [choice for choice in missing if choice.lens_id == lens]
            for known, part in zip(kinds, self._judged(group, lens, bystanders), strict=True):
                known.update(part)
        return [{choice: known[choice] for choice in choices} for known in kinds]

    def _judged(self, choices: Sequence[Choice], lens: Turn | None, bystanders: bool) -> list[dict[Choice, Scores]]:
        """Outcomes of choices that share a lens."""
        found: list[dict[Choice, list[Scores]]] = [
            {choice: [np.zeros(0)] for choice in choices} for _ in range(1 + bystanders)
        ]
        for sheet in self._sheets(lens):
            ideals = np.array([ideal(self._asked.grades[query]) for query in sheet.asked])
            others, gains = self._untouched(sheet, lens)
            if not sheet.base.shape[1]:
                flat = Judge(gains, ideals)(others)
                for outcomes, choice in product(found, choices):
                    outcomes[choice].append(flat)
                continue
            contest = self._contest(sheet, choices, others, gains)
            for outcomes, part in zip(found, contest.outcomes(choices, ideals, bystanders), strict=True):
                for choice, scores in part.items():
                    outcomes[choice].append(scores)
        return [{choice: np.concatenate(parts) for choice, parts in outcomes.items()} for outcomes in found]

    def _contest(self, sheet: Sheet, choices: Sequence[Choice], others: Table, gains: Table) -> Contest:
        """The documents that may reach the top ten under some choice.

        A document is among the ten best by the better of two scores only if it is so by one of them: by a moved key, or
        by a recall row.
        """
        right, moved = self._gains(sheet.asked), {}
        qualifying = Qualifying(right, others, sheet.least)
        for move, moved[move] in self._moved(sheet, choices):
            qualifying.see(moved[move])
        least, kept = qualifying.end(sheet.base), qualifying.kept
        totals, moving = sheet.block.total(sheet.spoken), kept.copy()
        recalling = {
            choice.unit_weight: self._recalling(choice.unit_weight) for choice in choices if choice.penalty is not None
        }
        ways = list({units > 0: recall for units, recall in recalling.items()}.values())
        for recall in ways:
            recall.keep(kept, totals, right, least)
        if ways and np.count_nonzero(kept) > CROWDED * len(kept):
            kept &= moving | ahead(kept, right, totals, ways)
        queries, columns = marks(kept)
        deal, at = Deal.of(queries, len(kept)), queries * kept.shape[1] + columns
        return Contest(
            {move: deal(table.take(at)) for move, table in moved.items()},
            {units: deal(recall.scores(totals, queries, columns)) for units, recall in recalling.items()},
            deal(sheet.base.take(at)),
            deal(right.take(at), 0),
            others,
            gains,
            sheet.self_similarity,
            sheet.floor,
        )

    def _untouched(self, sheet: Sheet, lens: Turn | None) -> tuple[Table, Table]:
        """The ten best untouched documents of each pool, or fewer: scores and gains. No choice but the lens changes
        them."""
        pools = [self._pool(query, lens) for query in sheet.asked]
        numbers = np.concatenate([NO_NUMBERS, *(pool.numbers for pool in pools)])
        queries = np.repeat(np.arange(len(pools)), [len(pool) for pool in pools])
        at = np.flatnonzero(~np.isin(numbers, self._attribution.documents))
        at = at[Deal.of(queries[at], len(pools)).places < DEPTH]
        scores = np.concatenate([np.zeros(0), *(pool.scores for pool in pools)])[at]
        grades = [self._asked.grades[query] for query in sheet.asked]
        found = zip(queries[at].tolist(), numbers[at].tolist(), strict=True)
        gains = np.array([grades[query].get(number, 0.0) for query, number in found], np.float32)
        deal = Deal.of(queries[at], len(pools))
        return deal(scores), deal(gains, 0)

    def _gains(self, asked: Sequence[str]) -> Table:
        """Grades of the touched documents."""
        documents, grades = self._attribution.documents, [self._asked.grades[query] for query in asked]
        gains = np.zeros((len(asked), len(documents)), np.float32)
        numbers = np.array([number for some in grades for number in some], np.int64)
        values = np.array([grade for some in grades for grade in some.values()], np.float32)
        queries = np.repeat(np.arange(len(asked)), [len(some) for some in grades])
        here = np.flatnonzero(np.isin(numbers, documents))
        gains[queries[here], np.searchsorted(documents, numbers[here])] = values[here]
        return gains
