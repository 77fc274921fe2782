"""Tests of significance against cases whose answer is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from evokey.bench import significance
from evokey.bench.significance import average, compare, holm, interval, p_value


@pytest.mark.parametrize(
    ("differences", "p"),
    [([1, 1, 1], 2 / 8), ([0.5] * 10, 2 / 1024), ([0, 0], 1), ([1, -1], 1), ([3, 1, -1, 0], 6 / 8), ([], 1)],
)
def test_few_queries_are_tested_exactly(differences: list[float], p: float) -> None:
    assert p_value(np.array(differences, float)) == pytest.approx(p)


def test_many_queries_are_tested_by_lot_close_to_the_exact_answer() -> None:
    differences = np.random.default_rng(5).normal(0.25, 1, size=16)
    signs = np.array(list(product((-1, 1), repeat=16)))
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12).mean()
    assert 0.02 < exact < 0.98
    assert p_value(differences) == pytest.approx(exact, abs=0.02)


def test_on_normal_differences_p_is_that_of_a_t_test() -> None:
    chance = np.random.default_rng(7)
    drawn = [chance.normal(0.2, 1, size=60) for _ in range(100)]
    found, expected = [p_value(one) for one in drawn], [stats.ttest_1samp(one, 0).pvalue for one in drawn]
    assert min(expected) < 0.01 and max(expected) > 0.9
    assert np.abs(np.array(found) - expected).max() < 0.03


def test_a_clear_difference_has_the_smallest_p_there_is() -> None:
    assert p_value(np.full(200, 0.1)) == 1 / (significance.ROUNDS + 1)


def test_holm_steps_down_and_keeps_names_in_order() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert list(found) == ["a", "b", "c", "d"]
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_wins_losses_ties_and_the_worst_harm_are_counted_over_shared_queries() -> None:
    one = {"a": 1.0, "b": 0.2, "c": 0.5, "d": 0.1, "only here": 1.0}
    other = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.2, "only there": 1.0}
    found = compare(one, other)
    assert (found.queries, found.wins, found.losses, found.ties) == (4, 1, 2, 1)
    assert (found.worst, found.worst_query) == (pytest.approx(-0.3), "b")
    assert found.difference == pytest.approx(0.025)


def test_where_nobody_loses_there_is_no_worst_query() -> None:
    found = compare({"a": 0.5, "b": 0.6}, {"a": 0.5, "b": 0.5})
    assert (found.worst, found.worst_query, found.losses) == (0.0, None, 0)
    assert compare({"a": 1.0}, {"b": 1.0}).queries == 0


def _seeds_of_equals(chance: np.random.Generator, queries: int = 60) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Two systems without a true difference, three seeds: each draws half of the queries, and a query that suits one
    system by chance suits it in every seed."""
    suits = {f"q{n}": float(chance.normal(0, 0.2)) for n in range(queries)}
    found = []
    for _ in range(3):
        drawn = chance.choice(list(suits), queries // 2, replace=False)
        one = {str(query): suits[query] + float(chance.normal(0, 0.05)) for query in drawn}
        found.append((one, dict.fromkeys(one, 0.0)))
    return found


def test_scores_are_averaged_over_seeds_before_anything_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing differs, p < .05 in one of twenty cases. The smallest p of three seeds finds a difference far more
    often, and so does a test that takes every pair of a query and a seed for a query of its own."""
    monkeypatch.setattr(significance, "ROUNDS", 1000)
    chance, rounds = np.random.default_rng(3), 300
    found = {"averaged": 0, "smallest": 0, "pairs": 0, "outside": 0}
    for _ in range(rounds):
        seeds = _seeds_of_equals(chance)
        one, other = (average(pair[side] for pair in seeds) for side in (0, 1))
        compared = compare(one, other)
        found["averaged"] += compared.p < 0.05
        found["outside"] += not compared.low <= 0 <= compared.high
        found["smallest"] += min(compare(*pair).p for pair in seeds) < 0.05
        found["pairs"] += p_value(np.array([value for pair in seeds for value in pair[0].values()])) < 0.05
    shares = {name: count / rounds for name, count in found.items()}
    assert shares["averaged"] < 0.09 and shares["outside"] < 0.1
    assert shares["smallest"] > 0.11
    assert shares["pairs"] > 0.11


def test_an_interval_holds_the_mean_and_is_that_of_a_t_test_on_normal_differences() -> None:
    differences = np.random.default_rng(9).normal(0.2, 1, size=200)
    low, high = interval(differences)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (low, high) == (pytest.approx(expected.low, abs=0.02), pytest.approx(expected.high, abs=0.02))
    assert interval(np.full(5, 0.25)) == (0.25, 0.25)


def test_a_query_is_averaged_over_the_seeds_that_tested_it() -> None:
    assert average([{"a": 0.0, "b": 1.0}, {"a": 1.0}]) == {"a": 0.5, "b": 1.0}
