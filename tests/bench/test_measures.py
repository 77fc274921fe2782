"""Measures are those of ir-measures, for rankings as they are."""

from __future__ import annotations

import math
import random

import pytest

ir_measures = pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import measures  # noqa: E402
from evokey.bench.protocols import Question  # noqa: E402


def test_every_measure_is_what_ir_measures_says_of_the_same_run() -> None:
    chance = random.Random(3)
    documents = [f"d{n}" for n in range(200)]
    questions = [
        Question(f"q{n}", "", {id: chance.randrange(4) for id in chance.sample(documents, 12)} | {"d0": 1})
        for n in range(30)
    ]
    rankings = {one.id: chance.sample(documents, 150) for one in questions}
    found = measures.evaluate(questions, rankings)

    qrels = [ir_measures.Qrel(one.id, id, int(grade)) for one in questions for id, grade in one.grades.items()]
    run = [
        ir_measures.ScoredDoc(id, document, 1 / (place + 1))
        for id, ranking in rankings.items()
        for place, document in enumerate(ranking[:100])
    ]
    names = {"nDCG@1": "nDCG@1", "nDCG@5": "nDCG@5", "nDCG@10": "nDCG@10", "Recall@5": "R@5", "Recall@10": "R@10",
             "Recall@100": "R@100", "MRR": "RR"}  # fmt: skip
    assert set(names) == set(measures.MEASURES)
    asked = {ir_measures.parse_measure(theirs): ours for ours, theirs in names.items()}
    expected = list(ir_measures.iter_calc(list(asked), qrels, run))
    assert len(expected) == 30 * 7
    for one in expected:
        assert found[one.query_id][asked[one.measure]] == pytest.approx(one.value, abs=1e-12)
    means = ir_measures.calc_aggregate(list(asked), qrels, run)
    assert measures.mean(found, rankings) == pytest.approx({asked[measure]: mean for measure, mean in means.items()})


def test_known_numbers_come_out() -> None:
    question = Question("q", "", {"a": 2, "b": 1, "c": 0})
    found = measures.evaluate([question], {"q": ["c", "a", "x", "b"]})["q"]
    gained, ideal = 2 / math.log2(3) + 1 / math.log2(5), 2 + 1 / math.log2(3)
    assert found == pytest.approx(
        {"nDCG@1": 0, "nDCG@5": gained / ideal, "nDCG@10": gained / ideal, "Recall@5": 1, "Recall@10": 1,
         "Recall@100": 1, "MRR": 0.5}
    )  # fmt: skip


def test_excluded_documents_leave_the_ranking_and_those_behind_move_up() -> None:
    question = Question("q", "", {"right": 1}, frozenset({"x", "y"}))
    found = measures.evaluate([question], {"q": ["x", "y", "right"]})["q"]
    assert (found["nDCG@1"], found["MRR"]) == (1, 1)


def test_only_a_hundred_documents_are_judged_and_the_excluded_ones_do_not_count() -> None:
    ranking = ["out", *(f"w{n}" for n in range(99)), "right"]
    inside = Question("q", "", {"right": 1}, frozenset({"out"}))
    assert measures.evaluate([inside], {"q": ranking})["q"]["Recall@100"] == 1
    outside = Question("q", "", {"right": 1})
    assert measures.evaluate([outside], {"q": ranking})["q"]["Recall@100"] == 0


def test_who_finds_nothing_scores_nothing_and_counts() -> None:
    questions = [Question("q1", "", {"a": 1}), Question("q2", "", {"a": 1})]
    found = measures.evaluate(questions, {"q1": [], "q2": ["a"]})
    means = measures.mean(found, ["q1", "q2"])
    assert means is not None
    assert means["nDCG@10"] == 0.5
    assert measures.mean(found, []) is None


def test_grades_between_whole_numbers_keep_their_order() -> None:
    question = Question("q", "", {"a": 0.5, "b": 0.25})
    ahead, behind = (
        measures.evaluate([question], {"q": ranking})["q"]["nDCG@10"] for ranking in (["a", "b"], ["b", "a"])
    )
    assert ahead == 1
    assert behind == pytest.approx((0.25 + 0.5 / math.log2(3)) / (0.5 + 0.25 / math.log2(3)))
