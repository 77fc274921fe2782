"""Nobody who may reach the top ten is left out, whatever is looked at first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evokey.evolution.contest import Contest, Deal, Qualifying
from evokey.evolution.judge import Judge, best, keys
from evokey.evolution.recall import Recall, ahead
from evokey.evolution.tables import marks, nearest, tenth
from evokey.search.overlay import Touched
from evokey.types import Choice

seeds = st.integers(0, 10_000)
PENALTIES = (None, 0.3, 0.1, 0.0)
STEPS = (0.0, 1.0, 4.0)


def table(chance: np.random.Generator, *shape: int) -> np.ndarray:
    """Scores with many ties."""
    return chance.integers(0, 40, shape).astype(np.float32) / 40


@pytest.mark.parametrize("width", [3, 40, 700])
def test_the_nearest_are_the_best_of_a_row_and_the_tenth_is_never_above_the_tenth(width: int) -> None:
    chance = np.random.default_rng(width)
    scores = chance.permuted(np.tile(np.linspace(0, 1, width, dtype=np.float32), (20, 1)), axis=1)
    for count in (1, 5, 12):
        assert np.array_equal(nearest(scores, count), best(scores, count))
    exact = np.sort(scores, axis=1)[:, -10] if width >= 10 else np.full(20, -np.inf)
    assert (tenth(scores) <= exact).all()
    assert (tenth(scores) >= np.sort(scores, axis=1)[:, -30:][:, 0]).all() or width < 30


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_the_better_of_two_tables_is_judged_as_their_maximum(seed: int) -> None:
    chance = np.random.default_rng(seed)
    gains = chance.integers(0, 3, (6, 15)).astype(np.float32)
    judge = Judge(gains, np.ones(6))
    tables, others = table(chance, 3, 6, 15), table(chance, 2, 6, 15)
    tables[chance.random(tables.shape) < 0.3] = -np.inf
    for one, found in zip(tables, judge.better(keys(tables), keys(others)), strict=True):
        assert np.array_equal(found, [judge(np.maximum(one, other)) for other in (one, *others)])


class Field:
    """Queries against documents that learned from texts: everybody's scores, and the contest of a few."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        queries, self.documents, texts = 5, int(chance.choice([8, 30, 400])), int(chance.choice([4, 90, 700]))
        weights = sparse.random_array(
            (self.documents, texts), density=chance.choice([0.003, 0.05]), rng=chance, format="csr"
        )
        self.recall = Recall.of(weights, Touched.of(np.arange(self.documents), np.ones(self.documents, np.int64)))
        self.totals, self.others = table(chance, queries, texts), table(chance, queries, 12)
        self.others = -np.sort(-self.others, axis=1)[:, : int(chance.choice([0, 3, 10]))]
        far = np.float32(chance.choice([1.0, 0.3]))  # keys may be far from all questions
        self.moved = {(0.0, 0.0, step, 0.0): far * table(chance, queries, self.documents) for step in STEPS}
        self.base = self.moved[0.0, 0.0, 0.0, 0.0]
        self.right = np.where(chance.random(self.base.shape) < chance.choice([0.02, 0.5]), 1.0, 0.0).astype(np.float32)
        self.floor = float(chance.choice([-np.inf, 0.2]))

    def contest(self, *, everyone: bool) -> Contest:
        lowest = float(np.nextafter(np.float32(self.floor), np.float32(np.inf)))
        qualifying = Qualifying(self.right, self.others, lowest)
        for scores in self.moved.values():
            qualifying.see(scores)
        least, moving = qualifying.end(self.base), qualifying.kept.copy()
        self.recall.keep(qualifying.kept, self.totals, self.right, least)
        few = qualifying.kept & (moving | ahead(qualifying.kept, self.right, self.totals, [self.recall]))
        kept = np.ones(self.base.shape, bool) if everyone else few
        self.size = kept.sum()
        queries, columns = marks(kept)
        deal = Deal.of(queries, len(kept))
        moved = {move: deal(scores[queries, columns]) for move, scores in self.moved.items()}
        recalled = {0.0: deal(self.recall.scores(self.totals, queries, columns))}
        own, ones = deal(self.right[queries, columns], 0), np.ones((len(kept), 1), np.float32)
        gains = np.zeros_like(self.others)
        return Contest(moved, recalled, deal(self.base[queries, columns]), own, self.others, gains, ones, self.floor)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_contest_of_a_few_ends_as_one_of_all(seed: int) -> None:
    field = Field(seed)
    choices = [Choice(step=step, penalty=penalty) for step in STEPS for penalty in PENALTIES]
    few, all_ = (
        field.contest(everyone=everyone).outcomes(choices, np.ones(5), bystanders=True) for everyone in (False, True)
    )
    for found, expected in zip(few, all_, strict=True):
        for choice in choices:
            assert found[choice] == pytest.approx(expected[choice])


def test_few_documents_are_in_a_contest() -> None:
    field = next(field for field in map(Field, range(100)) if field.documents == 400 and field.right.mean() < 0.1)
    field.contest(everyone=False)
    assert field.size < field.right.size / 4
