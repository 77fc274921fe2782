"""No document that may reach the top ten is left out, whatever is looked at first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evokey.evolution.candidates import CandidateFilter, Candidates, Scatter
from evokey.evolution.ndcg import TableNdcg, sort_keys, top_columns
from evokey.evolution.tables import best_columns, nonzero, tenth_best
from evokey.evolution.taught_keys import TaughtKeys, select_best
from evokey.search.overlay import Touched
from evokey.types import Choice

seeds = st.integers(0, 10_000)
PENALTIES = (None, 0.3, 0.1, 0.0)
STEPS = (0.0, 1.0, 4.0)


def table(chance: np.random.Generator, *shape: int) -> np.ndarray:
    """Scores with many ties."""
    return chance.integers(0, 40, shape).astype(np.float32) / 40


@pytest.mark.parametrize("width", [3, 40, 700])
def test_the_best_columns_are_the_best_of_a_row_and_the_bound_is_never_above_the_tenth_best(width: int) -> None:
    chance = np.random.default_rng(width)
    scores = chance.permuted(np.tile(np.linspace(0, 1, width, dtype=np.float32), (20, 1)), axis=1)
    for count in (1, 5, 12):
        assert np.array_equal(best_columns(scores, count), top_columns(scores, count))
    exact = np.sort(scores, axis=1)[:, -10] if width >= 10 else np.full(20, -np.inf)
    assert (tenth_best(scores) <= exact).all()
    assert (tenth_best(scores) >= np.sort(scores, axis=1)[:, -30:][:, 0]).all() or width < 30


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_the_ndcg_of_the_better_of_two_tables_is_that_of_their_maximum(seed: int) -> None:
    chance = np.random.default_rng(seed)
    gains = chance.integers(0, 3, (6, 15)).astype(np.float32)
    ndcg = TableNdcg(gains, np.ones(6))
    tables, others = table(chance, 3, 6, 15), table(chance, 2, 6, 15)
    tables[chance.random(tables.shape) < 0.3] = -np.inf
    for one, found in zip(tables, ndcg.of_better(sort_keys(tables), sort_keys(others)), strict=True):
        assert np.array_equal(found, [ndcg(np.maximum(one, other)) for other in (one, *others)])


class Field:
    """Queries against documents that learned from texts: the scores of all documents, and the candidates."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        queries, self.documents, texts = 5, int(chance.choice([8, 30, 400])), int(chance.choice([4, 90, 700]))
        weights = sparse.random_array(
            (self.documents, texts), density=chance.choice([0.003, 0.05]), rng=chance, format="csr"
        )
        self.keys = TaughtKeys.of(weights, Touched.of(np.arange(self.documents), np.ones(self.documents, np.int64)))
        self.totals, self.others = table(chance, queries, texts), table(chance, queries, 12)
        self.others = -np.sort(-self.others, axis=1)[:, : int(chance.choice([0, 3, 10]))]
        far = np.float32(chance.choice([1.0, 0.3]))  # keys may be far from all questions
        self.moved = {(0.0, 0.0, 0.0, 0.0, step, 0.0): far * table(chance, queries, self.documents) for step in STEPS}
        self.base = self.moved[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        self.relevant = np.where(chance.random(self.base.shape) < chance.choice([0.02, 0.5]), 1.0, 0.0).astype(
            np.float32
        )
        self.floor = float(chance.choice([-np.inf, 0.2]))

    def candidates(self, *, everyone: bool) -> Candidates:
        lowest = float(np.nextafter(np.float32(self.floor), np.float32(np.inf)))
        found = CandidateFilter(self.relevant, self.others, lowest)
        for scores in self.moved.values():
            found.add(scores)
        least, moving = found.finish(self.base), found.selected.copy()
        self.keys.select(found.selected, self.totals, self.relevant, least)
        few = found.selected & (moving | select_best(found.selected, self.relevant, self.totals, [self.keys]))
        selected = np.ones(self.base.shape, bool) if everyone else few
        self.size = selected.sum()
        queries, columns = nonzero(selected)
        scatter = Scatter.of(queries, len(selected))
        moved = {move: scatter(scores[queries, columns]) for move, scores in self.moved.items()}
        taught = {0.0: scatter(self.keys.scores(self.totals, queries, columns))}
        own, ones = scatter(self.relevant[queries, columns], 0), np.ones((len(selected), 1), np.float32)
        gains = np.zeros_like(self.others)
        return Candidates(
            moved, taught, scatter(self.base[queries, columns]), own, self.others, gains, ones, self.floor
        )


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_few_candidates_give_the_same_outcomes_as_all_documents(seed: int) -> None:
    field = Field(seed)
    choices = [Choice(step=step, penalty=penalty) for step in STEPS for penalty in PENALTIES]
    few, all_ = (
        field.candidates(everyone=everyone).outcomes(choices, np.ones(5), as_unrelated=True)
        for everyone in (False, True)
    )
    for found, expected in zip(few, all_, strict=True):
        for choice in choices:
            assert found[choice] == pytest.approx(expected[choice])


def test_few_documents_are_candidates() -> None:
    field = next(field for field in map(Field, range(100)) if field.documents == 400 and field.relevant.mean() < 0.1)
    field.candidates(everyone=False)
    assert field.size < field.relevant.size / 4
