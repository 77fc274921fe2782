"""Simulated people who click: what their clicks teach, and that chance teaches nothing; benchmarks/clicks.py, small."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import evokey
from evokey.demo import run
from evokey.verifiers.clicks import PositionBias, Showing, over_expected

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "clicks.py"


def test_clicks_reach_most_of_the_gain_of_judgements_and_random_clicks_teach_nothing(
    pages: list[evokey.Document], questions: list[run.Question]
) -> None:
    spec = importlib.util.spec_from_file_location("benchmark_clicks", SCRIPT)
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = clicks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(clicks)
    clicks.ROUNDS, clicks.DRAWS = 2, 2
    judged = {one.text: dict.fromkeys(one.relevant, 1.0) for one in questions if "wordings" in one.group}
    right = {id for grades in judged.values() for id in grades}
    found = clicks.measure(
        [one for place, one in enumerate(pages) if one.id in right or place % 8 == 0], judged, "bm25"
    )
    assert found["clicks"]["right"] >= 0.95 * found["clicks"]["verdicts"] > 0
    assert found["clicks"]["taught_share_of_shown"] >= 0.6 and found["clicks"]["held_out_share_of_shown"] >= 0.6
    assert found["explored"]["right"] > found["clicks"]["right"]
    assert (found["random"]["verdicts"], found["random"]["published"]) == (0, False)


def test_what_stands_first_needs_more_clicks_than_what_stands_below() -> None:
    others = ["a", "a", "a", "a", "a", "a", "b", "b", "", ""] * 20
    log = [Showing("others", ("a", "b", "c"), frozenset(one)) for one in others]
    log += [Showing("mine", ("x", "y", "z"), frozenset("x" if n < 24 else "z")) for n in range(40)]
    named = over_expected(log)
    assert ("mine", "z") in named and ("mine", "x") not in named
    assert over_expected(log, bias=PositionBias(1.0)).keys() >= {("mine", "z")}
    assert over_expected([]) == over_expected([Showing("q", ("a",), frozenset())]) == {}
