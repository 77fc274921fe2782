"""Clicks corrected for position: unbiased where nothing is clipped, bounded where it is."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokey.errors import InvalidInput
from evokey.verifiers.clicks import PositionBias, Showing, estimate, grades

LIST = ("a", "b", "c", "d")


def test_a_click_further_down_weighs_more_up_to_the_clip() -> None:
    assert grades(LIST, {"a", "c"}) == {"a": 1.0, "c": 3.0}
    assert grades(LIST, {"d"}, clip=2) == {"d": 2.0}
    assert grades(LIST, {"d"}, bias=PositionBias(0.5)) == {"d": 2.0}
    assert grades(LIST, {"d"}, bias=PositionBias(0.0)) == {"d": 1.0}
    assert grades(LIST, {"d"}, bias=PositionBias(seen=(1.0, 0.25))) == {"d": 4.0}
    assert grades(LIST, {"elsewhere"}) == grades(LIST, ()) == grades((), {"a"}) == {}


def test_what_was_passed_over_on_the_way_to_a_click_may_count_against_it() -> None:
    assert grades(LIST, {"c"}, skipped=0.2) == {"c": 3.0, "a": -0.2, "b": -0.2}
    assert grades(LIST, (), skipped=0.2) == {}


def test_a_document_shown_twice_counts_where_it_stood_first() -> None:
    assert grades(("a", "b", "b"), {"b"}) == {"b": 2.0}


@given(
    st.lists(st.text(max_size=3), unique=True, max_size=30),
    st.sets(st.integers(0, 29)),
    st.floats(0, 5),
    st.floats(1, 100),
    st.floats(0, 1),
)
def test_grades_are_bounded(shown: list[str], places: set[int], eta: float, clip: float, skipped: float) -> None:
    clicked = {shown[place] for place in places if place < len(shown)}
    found = grades(shown, clicked, bias=PositionBias(eta), clip=clip, skipped=skipped)
    assert set(found) <= set(shown)
    assert all(1 <= found[id] <= clip for id in clicked)
    assert all(found[id] == -skipped for id in set(found) - clicked)


RELEVANCE = {"a": 0.9, "b": 0.6, "c": 0.4, "d": 0.2, "e": 0.0}


def simulated(showings: int, eta: float, seed: int, shuffled: float = 1.0) -> list[Showing]:
    """People look at a rank with 1/rank^η and click what they find relevant."""
    chance, log = random.Random(seed), []
    for _ in range(showings):
        shown = list(RELEVANCE)
        if chance.random() < shuffled:
            chance.shuffle(shown)
        clicked = {id for rank, id in enumerate(shown, 1) if chance.random() < rank**-eta * RELEVANCE[id]}
        log.append(Showing("q", tuple(shown), frozenset(clicked)))
    return log


@pytest.mark.parametrize("eta", [0.5, 1.0, 1.5])
def test_unclipped_the_mean_grade_is_the_relevance_wherever_documents_stood(eta: float) -> None:
    fixed = simulated(20_000, eta, seed=1, shuffled=0.0)
    told = [grades(one.shown, one.clicked, bias=PositionBias(eta), clip=None) for one in fixed]
    for rank, (id, relevance) in enumerate(RELEVANCE.items(), 1):
        mean = sum(one.get(id, 0.0) for one in told) / len(told)
        error = math.sqrt(relevance * rank**eta / len(told))
        assert abs(mean - relevance) <= 4 * error
    naive = sum("d" in one.clicked for one in fixed) / len(fixed)
    assert naive < 0.6 * RELEVANCE["d"]


def test_clipped_the_mean_grade_is_too_low_and_never_too_high() -> None:
    fixed = simulated(20_000, 1.0, seed=2, shuffled=0.0)
    told = [grades(one.shown, one.clicked, clip=2.0) for one in fixed]
    mean = sum(one.get("d", 0.0) for one in told) / len(told)
    assert mean == pytest.approx(RELEVANCE["d"] / 2, rel=0.15)


@pytest.mark.parametrize("eta", [0.5, 1.0])
def test_the_bias_is_estimated_from_a_log_in_which_documents_change_places(eta: float) -> None:
    found = estimate(simulated(20_000, eta, seed=3, shuffled=0.5))
    assert found.at(1) == 1.0
    for rank in range(2, 6):
        assert found.at(rank) == pytest.approx(rank**-eta, rel=0.15)
    assert found.at(50) == found.at(5)


def test_a_log_that_cannot_tell_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidInput, match=r"shown for one query at two ranks.*swap neighbours at random"):
        estimate(simulated(50, 1.0, seed=4, shuffled=0.0))
    silent = [Showing("q", order, frozenset()) for order in (("a", "b"), ("b", "a"))]
    with pytest.raises(InvalidInput, match="no click"):
        estimate(silent)


def test_options_that_make_no_sense_are_refused() -> None:
    for options, message in (
        ({"clip": 0.5}, "clip is at least 1"),
        ({"clip": math.nan}, "clip is at least 1"),
        ({"skipped": -1.0}, "skipped is 0 or above"),
    ):
        with pytest.raises(InvalidInput, match=message):
            grades(LIST, {"a"}, **options)
    for bad in ({"eta": -1.0}, {"eta": math.inf}, {"seen": (0.0,)}, {"seen": (1.0, 1.5)}):
        with pytest.raises(InvalidInput):
            PositionBias(**bad)  # type: ignore[arg-type]
