"""The cross-fit's arithmetic must say what real searches would find."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from conftest import Dataset, Opener

import evokey
from evokey.evolution import pools
from evokey.evolution.attribution import attribute
from evokey.evolution.choosing import Populations
from evokey.evolution.folds import FOLDS, fold_of, sample
from evokey.evolution.ndcg import TableNdcg, ndcg, top_columns
from evokey.evolution.trial import Trial
from evokey.search.retriever import search
from evokey.types import Choice

CHOICES = [
    Choice(),
    Choice(penalty=0.2),
    Choice(0.5, 1.0),
    Choice(1.0, 4.0, 0.0, 0.1),
    Choice(0.0, 0.25, 1.0, 0.4),
    Choice(0.5, 2.0, 2.0, 0.0),
    Choice(0.5, 1.0, demotion=0.4),
    Choice(0.0, 4.0, 1.0, 0.2, demotion=2.0),
    Choice(penalty=0.1, demotion=0.2),
]


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_a_trial_finds_what_searches_with_that_choice_find(opened: Opener, dataset: object, encoder: str) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    memory = opened(encoder=encoder)
    memory.add(data.documents)
    for turn, (query, relevant) in enumerate(sorted(data.judged.items())[:80]):
        units = [f"flow of {query.split()[-1]}", data.documents[turn].title] if turn % 2 else None
        wrong = [hit.id for hit in memory.search(query, 5) if hit.id not in relevant]
        memory.feedback(query, relevant=relevant, irrelevant=wrong, units=units)
    memory.feedback("a question without an answer", irrelevant=[data.documents[7].id])
    lessons, retriever = memory.composer.log(memory.ledger.lessons.last).taught, memory.index.retrievers[0]
    kept = pools.CurrentPools(retriever, memory.ledger.pools, memory.index.position, memory.index.live)
    asked, teaching = lessons.only(lessons.queries[:20]), frozenset(lessons.queries[20:])
    attribution = attribute(retriever, lessons).only(teaching)
    outcomes = Trial(retriever, attribution, asked, kept).outcomes(CHOICES)
    for choice in CHOICES:
        overlay = attribution.overlay(choice)
        for place, query in enumerate(asked.queries):
            found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
            assert outcomes[choice][place] == pytest.approx(ndcg(found.numbers, asked.grades[query]), abs=1e-6)
    assert len({round(float(outcomes[choice].mean()), 6) for choice in CHOICES}) >= len(CHOICES) - 1


def test_the_gains_of_a_query_are_its_documents_grades() -> None:
    scores = np.array([[3.0, 2.0, 1.0, -np.inf]], np.float32)
    gains = np.array([[0.0, 2.0, 0.0, 1.0]], np.float32)
    expected = (2 / np.log2(3)) / (2 + 1 / np.log2(3))
    assert TableNdcg(gains, np.array([2 + 1 / np.log2(3)]))(scores)[0] == pytest.approx(expected)
    assert ndcg([7, 8, 9], {8: 2.0, 5: 1.0}) == pytest.approx(expected)


@pytest.mark.parametrize("right", [1, 3, 11])
def test_a_judge_agrees_with_ir_practice(right: int) -> None:
    chance = np.random.default_rng(right)
    scores = chance.integers(0, 30, (50, 40)).astype(np.float32)
    gains = np.zeros((50, 40), np.float32)
    for row in range(50):
        gains[row, chance.choice(40, right, replace=False)] = chance.integers(1, 4, right)
    judge = TableNdcg(gains, np.ones(50))
    distinct = scores + chance.permuted(np.tile(np.linspace(0, 0.9, 40, dtype=np.float32), (50, 1)), axis=1)
    ranked = [np.argsort(-row, kind="stable") for row in distinct]
    graded = [{column: float(gain) for column, gain in enumerate(row) if gain} for row in gains]
    ideals = np.array(
        [sum(g / np.log2(n + 2) for n, g in enumerate(sorted(one.values(), reverse=True)[:10])) for one in graded]
    )
    assert judge(distinct) / ideals == pytest.approx(
        [ndcg(order, one) for order, one in zip(ranked, graded, strict=True)]
    )


def test_the_best_of_a_table_are_those_of_a_stable_sort() -> None:
    chance = np.random.default_rng(0)
    scores = chance.normal(size=(3, 40, 30)).astype(np.float32).round(1)
    scores[chance.random(scores.shape) < 0.2] = -np.inf
    scores[0, 0, :4] = [0.0, -0.0, 0.0, 1.0]
    assert np.array_equal(top_columns(scores, 10), np.argsort(-scores, axis=-1, kind="stable")[..., :10])


def test_folds_follow_from_the_text_alone_and_are_about_equal() -> None:
    folds = [fold_of(f"question {number}") for number in range(3000)]
    assert folds == [fold_of(f"question {number}") for number in range(3000)]
    counts = [folds.count(index) for index in range(FOLDS)]
    assert min(counts) > 0.7 * max(counts)
    assert sample(["b", "a", "c"], 2) == sample(["c", "b", "a"], 2)


def spread(mean: float, size: int = 400) -> np.ndarray:
    return np.clip(np.random.default_rng(0).normal(mean, 0.1, size), 0, 1)


def populations(
    size: int = 400, related: float = 1.0, untouched: float = 0.0, **of: Mapping[str, float]
) -> Populations[str]:
    """Choices by name, and what each changes for held-out queries (related or not), in other words and as taught."""
    base = spread(0.5)
    known = np.arange(len(base)) < related * len(base)

    def scores(group: str) -> dict[str, np.ndarray]:
        return {name: base + gains.get(group, 0.0) for name, gains in of.items()}

    held_out = {
        name: base + np.where(known, gains.get("related", 0.0), gains.get("unrelated", 0.0))
        for name, gains in of.items()
    }
    rest = scores("simulated"), scores("reworded"), scores("taught")
    return Populations(held_out, known, *rest, "nothing", untouched)


def test_a_choice_that_costs_held_out_queries_is_never_made() -> None:
    harmful = {"related": -0.03, "taught": 0.5, "reworded": 0.5}
    good = {"related": 0.02, "taught": 0.3, "reworded": 0.4}
    assert populations(nothing={}, harmful=harmful, good=good).choose() == "good"
    assert populations(nothing={}, harmful=harmful).choose() == "nothing"


def test_of_harmless_choices_the_one_that_finds_again_what_was_taught_is_made() -> None:
    forgetful, faithful = {"related": 0.03, "taught": 0.05}, {"related": 0.01, "taught": 0.45}
    assert populations(nothing={}, forgetful=forgetful, faithful=faithful).choose() == "faithful"


def test_rewordings_speak_for_lessons_where_every_question_was_taught_once() -> None:
    helpful = {"unrelated": -0.002, "reworded": 0.3, "taught": 0.45}
    assert populations(related=0.0, nothing={}, helpful=helpful).choose() == "helpful"
    costly = {"unrelated": -0.2, "reworded": 0.3, "taught": 0.45}
    assert populations(related=0.0, nothing={}, costly=costly).choose() == "nothing"


def test_what_unrelated_questions_lose_counts_more_than_what_related_ones_gain() -> None:
    pushy, kind = {"related": 0.05, "unrelated": -0.04}, {"related": 0.02, "unrelated": 0.0}
    assert populations(related=0.5, nothing={}, pushy=pushy, kind=kind).choose() == "kind"


def test_unrelated_questions_are_simulated_where_no_held_out_query_is_unrelated() -> None:
    pushy = {"related": 0.1, "simulated": -0.2}
    assert populations(nothing={}, pushy=pushy).choose() == "pushy"  # every document was taught
    assert populations(untouched=1.0, nothing={}, pushy=pushy).choose() == "nothing"


def test_units_that_do_not_resemble_their_document_are_dropped(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": "a", "text": "granite is an igneous rock"}, {"id": "b", "text": "jazz and rock music"}])
    memory.feedback("hard stone", relevant=["a"], units=["igneous rock such as granite", "jazz music"])
    attribution = attribute(memory.index.retrievers[0], memory.composer.log(1).taught)
    used = {attribution.texts[column] for column in attribution.pairs.columns}
    assert used == {"hard stone", "igneous rock such as granite"}


def test_a_document_seen_once_moves_less_than_one_that_many_vouch_for(opened: Opener) -> None:
    memory = opened(encoder="wordllama")
    memory.add([evokey.Document(id, text) for id, text in [("a", "tea"), ("b", "coffee"), ("c", "cocoa")]])
    for number in range(9):
        memory.feedback(f"warm drink number {number}", relevant=["a"])
    memory.feedback("bitter drink", relevant=["b"])
    memory.feedback("sweet drink", relevant=["c"])
    weights = attribute(memory.index.retrievers[0], memory.composer.log(11).taught).weights(0.0, 0.0)
    total = np.asarray(weights.sum(axis=1)).ravel()
    assert total.tolist() == pytest.approx([9 / 10, 1 / 2, 1 / 2])
