"""Some queries, scored on what others taught: how good would each choice be for them? Mostly without a search.

The untaught top documents of a query are known (its pool); only touched documents can change their score; and before
normalisation every score is linear in λ. So each choice is arithmetic on a small table. Documents that reach the top
ten under no choice are left out first, by bounds that hold for all choices at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.evolution.attribution import Attribution, Credit, Moments, RowWeights
from evokey.evolution.base_scores import BaseScores
from evokey.evolution.candidates import CandidateFilter, Candidates, Move, Scatter
from evokey.evolution.judgements import Judgements
from evokey.evolution.ndcg import CUTOFF, TableNdcg, ideal_dcg
from evokey.evolution.openings import EVERYWHERE_OPEN, CrossFitted, Gate, Openings
from evokey.evolution.tables import Table, nonzero
from evokey.evolution.taught_keys import TaughtKeys, select_best
from evokey.evolution.trial_pools import CollectionSample, TrialPools
from evokey.scoring.block import NO_NUMBERS
from evokey.search.gate import SIGNALS, leading, openings, probability
from evokey.search.lens import Lens, LensId
from evokey.search.retriever import Retriever
from evokey.search.rewording import Rewording
from evokey.types import Choice, Ranking, Scores

BATCH_CELLS, STORED_CELLS = 300_000, 1_000_000
"""Size of the score tables (queries × touched documents) that are computed at a time, and that are stored."""
MANY_CANDIDATES = 50
"""Candidates per query above which it pays to compare them by their taught keys."""


class Trial:
    def __init__(
        self,
        retriever: Retriever,
        attribution: Attribution,
        queries: Judgements,
        pools: Mapping[str, Ranking],
        lenses: Mapping[LensId, Lens] | None = None,
        *,
        sample: CollectionSample | None = None,
        deep: bool = False,
        reworded: Mapping[str, Rewording] | None = None,
    ) -> None:
        """sample: what stands for documents outside a query's pool, which a lens or other words may bring. deep:
        search the corpus for them: touched documents may fall behind them, too. reworded: for each of the queries, if
        it asks a taught one in other words, how."""
        self._attribution, self._retriever, self.judgements = attribution, retriever, queries
        self._lenses: Mapping[LensId, Lens] = lenses or {}
        self._reworded = reworded or {}
        touched = attribution.documents
        asked = (retriever, {query: queries.grades.get(query, {}) for query in queries.queries}, self.question)
        untouched = None if sample is None else sample.leave_out(touched)
        without = touched if deep else None
        self._pools = TrialPools(*asked, pools, self._reworded, self._lenses, untouched, without)
        self.gates: dict[LensId | None, Gate | CrossFitted] = {}
        """By lens: the coefficients of the gate, or the probabilities of the queries."""
        self._signals: dict[tuple[LensId | None, bool], Scores] = {}
        self._taught_words = attribution.count_words()
        self._weights: dict[Credit, RowWeights] = {}
        self._moments: dict[Credit, Moments | None] = {}
        self._taught_keys: dict[bool, TaughtKeys] = {}
        self._known: list[dict[Choice, Scores]] = [{}, {}]
        """Outcomes so far: of the queries, and of the queries as if they were unrelated."""
        self._stored: dict[LensId | None, list[BaseScores]] = {}
        self._questions: dict[str, Any] = {}

    @property
    def queries(self) -> tuple[str, ...]:
        return self.judgements.queries

    @cached_property
    def related(self) -> NDArray[np.bool_]:
        """Which of the queries have a relevant document among those that learned."""
        learners = set(self._attribution.learners.tolist())
        return np.array([not learners.isdisjoint(self.judgements.grades[query]) for query in self.queries], bool)

    @property
    def has_units(self) -> bool:
        return self._attribution.has_units

    def outcomes(self, choices: Sequence[Choice]) -> dict[Choice, Scores]:
        """nDCG@10 of every query (in their order) under every choice."""
        return self._outcomes(choices, as_unrelated=False)[0]

    def outcomes_with_unrelated(self, choices: Sequence[Choice]) -> tuple[dict[Choice, Scores], dict[Choice, Scores]]:
        """The same; and the outcomes of simulated unrelated queries: the queries' own documents learned nothing, so
        what changes is only how far other documents rise above them."""
        queries, unrelated = self._outcomes(choices, as_unrelated=True)
        return queries, unrelated

    def rankings(self, choice: Choice, depth: int, *, as_unrelated: bool = False) -> list[tuple[Ranking, float]]:
        """The taught ranking of every query, and the trust of this retriever in it."""
        found = []
        for base in self._batches(choice.lens_id):
            scores = self._scores(base, choice, as_unrelated=as_unrelated)
            if as_unrelated:
                scores = np.where(self._relevant(base.queries) > 0, base.documents, scores)
            for row, query in enumerate(base.queries):
                ranking = self._merge(self._pools.get(query, choice.lens_id), scores[row], base.floor, depth)
                question = self._ask(query, {}) if choice.nothing else self.question(query)
                found.append((ranking, question.trust))
        return found

    def _merge(self, pool: Ranking, scores: Table, floor: float, depth: int) -> Ranking:
        """The untouched documents of the pool and the touched documents in one ranking."""
        touched = self._attribution.documents
        untouched = ~np.isin(pool.numbers, touched)
        found = scores > floor
        numbers = np.concatenate([pool.numbers[untouched], touched[found]])
        merged = np.concatenate([pool.scores[untouched], scores[found].astype(np.float64)])
        order = np.lexsort((numbers, -merged))[:depth]
        return Ranking(numbers[order], merged[order])

    def question(self, query: str) -> Any:
        """A query as it is asked."""
        if query not in self._questions:
            self._questions[query] = self._ask(query, self._taught_words)
        return self._questions[query]

    def _ask(self, query: str, words: Mapping[str, int]) -> Any:
        """A query as a question."""
        changed = self._reworded.get(query)
        return self._retriever.lesson(query, words) if changed is None else self._retriever.reword(changed, words)

    def _batches(self, lens: LensId | None = None) -> Iterator[BaseScores]:
        """Base scores of all queries, in tables of a bounded size. They are stored if they are small: they are needed
        again and again."""
        if lens not in self._stored:
            attribution, queries = self._attribution, self.queries
            width = attribution.block.parts * max(len(attribution.base), len(attribution.block), 1)
            size = max(1, BATCH_CELLS // width)
            batches = (self._base_scores(queries[at : at + size], lens) for at in range(0, len(queries), size))
            if len(queries) * width > STORED_CELLS:
                yield from batches
                return
            self._stored[lens] = list(batches)
        yield from self._stored[lens]

    def _base_scores(self, queries: Sequence[str], setting: LensId | None) -> BaseScores:
        attribution, touched = self._attribution, self._attribution.touched
        lens = setting if setting in self._lenses else None
        questions = [self.question(query) if lens is None else self._pools.turn(lens)[query] for query in queries]
        block = type(attribution.base)
        if not len(attribution.documents):
            empty = np.zeros((len(queries), 0), np.float32)
            return BaseScores(queries, questions, touched, block, empty, empty, empty, empty, -np.inf)
        rows, texts = attribution.base.table(questions), attribution.block.table(questions)
        changed = any(one.asked is not None for one in questions)
        plain_texts = attribution.block.table([one.asked or one for one in questions]) if changed else texts
        documents = np.asarray(touched.best(block.total(rows)), np.float32)
        if texts.ndim == 2:  # column by column, as the weights are multiplied
            texts = np.asfortranarray(texts)
        return BaseScores(queries, questions, touched, block, rows, texts, plain_texts, documents, block.floor)

    def _pull(self, base: BaseScores, texts: Table, credit: Credit) -> Any:
        """The pull of the taught texts for one (β, η). Tables have single precision, and so has this."""
        weights, totals = self._row_weights(credit)
        if credit not in self._moments:
            self._moments[credit] = self._attribution.moments(credit, totals)
        return base.block.pull(texts, weights)

    def _row_weights(self, credit: Credit) -> RowWeights:
        if credit not in self._weights:
            weights, totals = self._attribution.row_weights(credit)
            parts = weights.data.astype(np.float32), weights.indices, weights.indptr
            self._weights[credit] = RowWeights(sparse.csr_array(parts, weights.shape), totals)
        return self._weights[credit]

    def _demotion_pull(self, base: BaseScores, texts: Table) -> Any:
        """By how much documents that were wrong are demoted; nothing if none was wrong."""
        wrong = self._attribution.wrong_rows
        return 0.0 if wrong is None else base.block.pull(texts, wrong.weights.astype(np.float32))

    def _move_keys(self, base: BaseScores, choices: Iterable[Choice]) -> Iterator[tuple[Move, Table]]:
        """Scores with moved keys, for every way to move them among the choices."""
        moves = sorted({choice.move for choice in choices})
        for (*credited, locality), group in groupby(moves, key=lambda one: one[:4]):
            credit = credited[0], credited[1], credited[2]
            steps, texts = [one[4:] for one in group], base.localise(locality)
            pull: Any = self._pull(base, texts, credit) if any(map(any, steps)) else None
            against: Any = self._demotion_pull(base, texts) if any(demotion for _, demotion in steps) else None
            for step, demotion in steps:
                norms = self._attribution.norms(step, None if locality else self._moments.get(credit), demotion)
                if demotion:
                    table = base.move(np.float32(step) * pull - np.float32(demotion) * against, 1.0, norms)
                else:
                    table = base.move(pull, step, norms) if step else base.documents
                yield (*credit, locality, step, demotion), table

    def _keys_with(self, units: float) -> TaughtKeys:
        """The taught texts that are keys of each document; with units, if these have weight."""
        key = units > 0
        if key not in self._taught_keys:
            weights = self._row_weights((0.0, float(key), 0.0)).weights
            self._taught_keys[key] = TaughtKeys.of(weights, self._attribution.touched)
        return self._taught_keys[key]

    def _scores(self, base: BaseScores, choice: Choice, *, as_unrelated: bool) -> Table:
        if not base.documents.shape[1]:
            return base.documents
        ((_, scores),) = self._move_keys(base, [choice])
        opening = self._open(base, choice, as_unrelated=as_unrelated)
        if choice.penalty is not None:
            keys = self._keys_with(choice.unit_weight).all_scores(base.block.total(base.plain_texts))
            scores = np.maximum(scores, keys - np.float32(choice.penalty) * opening.penalties * base.self_similarity)
        return opening.apply(base.documents, scores)

    def signals(self, lens: LensId | None, *, as_unrelated: bool = False) -> Scores:
        """What the gate sees of each query; as_unrelated: if nobody had taught anything about its own documents."""
        if (lens, as_unrelated) not in self._signals:
            parts = [self._signals_of(base, lens, as_unrelated) for base in self._batches(lens)]
            self._signals[lens, as_unrelated] = np.concatenate([np.zeros((0, SIGNALS)), *parts])
        return self._signals[lens, as_unrelated]

    def _signals_of(self, base: BaseScores, lens: LensId | None, as_unrelated: bool) -> Scores:
        totals, taught = base.block.total(base.plain_texts), self._attribution.taught_texts
        if not base.documents.shape[1]:
            return np.zeros((len(base.queries), SIGNALS))
        found = []
        for row, query in enumerate(base.queries):
            pool, asked = self._pools.get(query, lens), base.questions[row]
            untouched = pool.scores[~np.isin(pool.numbers, self._attribution.documents)]
            best = leading(untouched, base.documents[row].astype(np.float64), base.floor)
            own = (asked.asked or asked).self_similarity
            hidden = self._own_texts(query) if as_unrelated else ()
            found.append(taught.signals(totals[row], own, base.documents[row], best, hidden))
        return np.array(found)

    def _own_texts(self, query: str) -> list[int]:
        """The taught texts about a query's own documents, as places among all."""
        documents = self._attribution.documents
        numbers = np.array(list(self.judgements.grades[query]), np.int64)
        places = np.flatnonzero(np.isin(documents, numbers)).tolist()
        return sorted({text for place in places for text in self._texts_of.get(place, ())})

    @cached_property
    def _texts_of(self) -> Mapping[int, Sequence[int]]:
        """Document → taught texts about it, both as places."""
        found: dict[int, list[int]] = {}
        for place, documents in enumerate(self._attribution.taught_texts.documents):
            for document in documents:
                found.setdefault(document, []).append(place)
        return found

    def _open(self, base: BaseScores, choice: Choice, *, as_unrelated: bool = False) -> Openings:
        """How far the gate is open for each query."""
        # A gate that is not sharp goes by the nearest taught query alone: of a dense query as it was asked.
        lens = choice.lens_id if choice.sharpness or self._retriever.kind == "sparse" else None
        if lens not in self.gates:
            return EVERYWHERE_OPEN
        start = self.queries.index(base.queries[0])
        here, gate = slice(start, start + len(base.queries)), self.gates[lens]
        signals = self.signals(lens, as_unrelated=as_unrelated)[here]
        known = gate[as_unrelated][here] if isinstance(gate, CrossFitted) else probability(gate, signals)
        shares, penalties = openings(choice, signals, known)
        columns = (one.astype(np.float32)[:, None] for one in (shares, penalties))
        return Openings(*columns)

    def _outcomes(self, choices: Sequence[Choice], *, as_unrelated: bool) -> list[dict[Choice, Scores]]:
        kinds = self._known[: 1 + as_unrelated]
        missing = [choice for choice in choices if any(choice not in known for known in kinds)]
        for lens, sharpness in dict.fromkeys((choice.lens_id, choice.sharpness) for choice in missing):
            group = [one for one in missing if (one.lens_id, one.sharpness) == (lens, sharpness)]
            for known, part in zip(kinds, self._compute(group, lens, as_unrelated), strict=True):
                known.update(part)
        return [{choice: known[choice] for choice in choices} for known in kinds]

    def _compute(
        self, choices: Sequence[Choice], lens: LensId | None, as_unrelated: bool
    ) -> list[dict[Choice, Scores]]:
        """Outcomes of choices that share a lens and how sharp their gate is."""
        found: list[dict[Choice, list[Scores]]] = [
            {choice: [np.zeros(0)] for choice in choices} for _ in range(1 + as_unrelated)
        ]
        for base in self._batches(lens):
            ideals = np.array([ideal_dcg(self.judgements.grades[query]) for query in base.queries])
            others, gains = self._best_untouched(base, lens)
            if not base.documents.shape[1]:
                untaught = TableNdcg(gains, ideals)(others)
                for outcomes, choice in product(found, choices):
                    outcomes[choice].append(untaught)
                continue
            for outcomes, part in zip(found, self._outcomes_of(base, choices, others, gains, ideals), strict=False):
                for choice, scores in part.items():
                    outcomes[choice].append(scores)
        return [{choice: np.concatenate(parts) for choice, parts in outcomes.items()} for outcomes in found]

    def _outcomes_of(
        self, base: BaseScores, choices: Sequence[Choice], others: Table, gains: Table, ideals: Scores
    ) -> Iterator[dict[Choice, Scores]]:
        """Of some queries; and, if asked for more, of these as if they were unrelated."""
        opening = self._open(base, choices[0])
        candidates = self._candidates(base, choices, (others, gains), opening)
        if not choices[0].sharpness:
            yield from candidates.outcomes(choices, ideals, as_unrelated=True)
            return
        yield candidates.outcomes(choices, ideals, as_unrelated=False)[0]
        opening = self._open(base, choices[0], as_unrelated=True)
        yield self._candidates(base, choices, (others, gains), opening).outcomes(choices, ideals, as_unrelated=True)[1]

    def _candidates(
        self, base: BaseScores, choices: Sequence[Choice], untouched: tuple[Table, Table], opening: Openings
    ) -> Candidates:
        """The documents that may reach the top ten under some choice.

        A document is among the ten best by the better of two scores only if it is so by one of them: by its moved key,
        or by a taught question kept as a key.
        """
        relevant, moved, (others, gains) = self._relevant(base.queries), {}, untouched
        by_moves = CandidateFilter(relevant, others, base.least)
        for move, table in self._move_keys(base, choices):
            moved[move] = opening.apply(base.documents, table)
            by_moves.add(moved[move])
        totals = base.block.total(base.plain_texts)
        keys = {
            choice.unit_weight: self._keys_with(choice.unit_weight) for choice in choices if choice.penalty is not None
        }
        variants = list({units > 0: one for units, one in keys.items()}.values())
        if opening.partial:
            for one in variants:
                by_moves.add(opening.apply(base.documents, one.all_scores(totals)))
        least, selected = by_moves.finish(base.documents), by_moves.selected.copy()
        if not opening.partial:
            for one in variants:
                one.select(selected, totals, relevant, least)
            if variants and np.count_nonzero(selected) > MANY_CANDIDATES * len(selected):
                selected &= by_moves.selected | select_best(selected, relevant, totals, variants)
        queries, columns = nonzero(selected)
        scatter, at = Scatter.of(queries, len(selected)), queries * selected.shape[1] + columns
        untaught = scatter(base.documents.take(at))
        taught_keys = {units: scatter(one.scores(totals, queries, columns)) for units, one in keys.items()}
        return Candidates(
            {move: scatter(table.take(at)) for move, table in moved.items()},
            {units: opening.apply(untaught, table) for units, table in taught_keys.items()},
            untaught,
            scatter(relevant.take(at), 0),
            others,
            gains,
            opening.shares * opening.penalties * base.self_similarity,
            base.floor,
        )

    def _best_untouched(self, base: BaseScores, lens: LensId | None) -> tuple[Table, Table]:
        """The ten best untouched documents of each pool, or fewer: scores and gains. Of a choice, only its lens changes
        them."""
        pools = [self._pools.get(query, lens) for query in base.queries]
        numbers = np.concatenate([NO_NUMBERS, *(pool.numbers for pool in pools)])
        queries = np.repeat(np.arange(len(pools)), [len(pool) for pool in pools])
        at = np.flatnonzero(~np.isin(numbers, self._attribution.documents))
        at = at[Scatter.of(queries[at], len(pools)).places < CUTOFF]
        scores = np.concatenate([np.zeros(0), *(pool.scores for pool in pools)])[at]
        grades = [self.judgements.grades[query] for query in base.queries]
        found = zip(queries[at].tolist(), numbers[at].tolist(), strict=True)
        gains = np.array([grades[query].get(number, 0.0) for query, number in found], np.float32)
        scatter = Scatter.of(queries[at], len(pools))
        return scatter(scores), scatter(gains, 0)

    def _relevant(self, queries: Sequence[str]) -> Table:
        """Grades of the touched documents."""
        documents, grades = self._attribution.documents, [self.judgements.grades[query] for query in queries]
        gains = np.zeros((len(queries), len(documents)), np.float32)
        numbers = np.array([number for some in grades for number in some], np.int64)
        values = np.array([grade for some in grades for grade in some.values()], np.float32)
        rows = np.repeat(np.arange(len(queries)), [len(some) for some in grades])
        here = np.flatnonzero(np.isin(numbers, documents))
        gains[rows[here], np.searchsorted(documents, numbers[here])] = values[here]
        return gains
