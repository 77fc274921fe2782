"""What a layer reads in an engine's results: who comes first, what comes always, which questions are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evokey.layer.engine import DEPTH
from evokey.layer.fitting import mixes
from evokey.layer.likeness import Likeness, ResultMeasure, Results
from evokey.layer.scoring import ALL_SIGNALS, Common, compare_results
from evokey.search.gate import SIGNALS
from evokey.types import Ranking, Scores


def make_pool(*numbers: int) -> Ranking:
    """The first has a share of 1, and the last (almost) none."""
    scores = np.linspace(1.0, 0.0, len(numbers)) if len(numbers) > 1 else np.ones(1)
    return Ranking(np.array(numbers, np.int64), scores)


def test_what_comes_first_for_every_question_is_as_common_as_can_be_and_what_never_came_is_not() -> None:
    common = Common.of([make_pool(7, 3, 1), make_pool(7, 2, 1)], DEPTH)
    always, sometimes, never = common.weigh(np.array([7, 3, 5]))
    assert always == pytest.approx(math.log1p(200))
    assert sometimes == pytest.approx(math.log1p(200 * 0.25), rel=1e-5)
    assert never == 0


def test_how_common_documents_are_does_not_depend_on_their_numbers() -> None:
    named = Common.of([make_pool(7, 3, 1), make_pool(7, 2, 1)], DEPTH)
    renamed = Common.of([make_pool(1, 9, 4), make_pool(1, 8, 4)], DEPTH)
    assert named.weigh(np.array([7, 3, 1])).tolist() == renamed.weigh(np.array([1, 9, 4])).tolist()


def test_without_results_nothing_is_common() -> None:
    assert Common.of([], DEPTH).weigh(np.array([1, 2])).tolist() == [0, 0]


def test_the_gate_sees_how_far_taught_documents_are_ahead_of_the_others() -> None:
    shares = np.array([1.0, 0.8, 0.5, 0.1])
    ours = compare_results(shares, np.array([True, False, True, False]))
    assert ours == pytest.approx([0.2, 1.0, 2 / 3, 0.5])
    theirs = compare_results(shares, np.array([False, False, True, False]))
    assert theirs == pytest.approx([-0.5, 0.0, 1 / 3, 0.25])
    assert len(ours) == ALL_SIGNALS - SIGNALS
    assert compare_results(np.zeros(0), np.zeros(0, bool)).tolist() == [0, 0, 0, 0]


def make_results(**shares: float) -> Results:
    return Results(list(shares), np.array(list(shares.values())))


def test_questions_are_alike_if_the_engine_returns_the_same_documents_for_them() -> None:
    measure = ResultMeasure([make_results(a=1.0, b=0.5), make_results(c=1.0)])
    same, other, unknown = measure.table(
        [make_results(a=1.0, b=0.5), make_results(c=1.0, a=0.1), make_results(d=1.0, e=0.5)]
    )
    assert same == pytest.approx([1.0, 0.0])
    assert other[1] > 0.99 and 0 < other[0] < 0.02
    assert unknown.tolist() == [0, 0]


class Fixed:
    """A measure that finds every question half as like to every taught one."""

    def table(self, questions: list[str]) -> Scores:
        return np.full((len(questions), 2), 0.5)


def test_results_join_the_encoders_and_a_question_asked_again_is_the_same_by_all() -> None:
    likeness = Likeness({"fixed": Fixed()}, ["one", "two"], ResultMeasure([make_results(a=1.0), make_results(b=1.0)]))
    asked = ["new", "two"]
    found = likeness.with_results(asked, likeness.tables(asked), [make_results(a=1.0), make_results(a=1.0)])
    assert found.tolist() == [[[0.5, 0.5], [0.5, 1.0]], [[1.0, 0.0], [1.0, 1.0]]]
    unasked = likeness.with_results(asked, likeness.tables(asked), None)
    assert unasked[1].tolist() == [[0.5, 0.5], [0.5, 1.0]]


def test_what_was_learned_before_results_were_compared_counts_as_it_did() -> None:
    """An older epoch names no weight of the engine's results: then it is the first of these."""
    assert mixes(2)[0] == (0.5, 0.5, 0.0)
    assert len(set(mixes(2))) == len(mixes(2)) == 7
