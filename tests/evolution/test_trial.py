"""The cross-fit's arithmetic must say what real searches would find."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from conftest import Dataset, Opener

import evokey
from evokey.evolution import pools
from evokey.evolution.attribution import attribute
from evokey.evolution.choosing import choose, expect_traffic
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
    kept = pools.update(retriever, lessons.queries, memory.ledger.pools, memory.index.position, memory.index.live)
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


class Option(NamedTuple):
    """A choice that goes by its name."""

    name: str
    only_taught_keys: bool = False
    effective_penalty: float = 0.0


NOTHING = Option("nothing")


def outcomes(**of: np.ndarray) -> dict[Option, np.ndarray]:
    return {Option(name, only_taught_keys=name == "recalling"): scores for name, scores in of.items()}


def test_a_choice_that_costs_held_out_queries_is_never_made() -> None:
    base = spread(0.5)
    held_out = outcomes(nothing=base, harmful=base - 0.01, good=base + 0.02)
    taught = outcomes(nothing=base, harmful=base + 0.5, good=base + 0.3)
    assert choose(held_out, held_out, taught, NOTHING).name == "good"
    two = {key: held_out[key] for key in held_out if key.name != "good"}
    assert choose(two, two, taught, NOTHING) == NOTHING


def test_of_equally_harmless_choices_the_faithful_one_is_made() -> None:
    base = spread(0.5)
    held_out = outcomes(nothing=base, forgetful=base + 0.03, faithful=base + 0.01)
    taught = outcomes(nothing=base, forgetful=base + 0.05, faithful=base + 0.45)
    assert choose(held_out, held_out, taught, NOTHING).name == "faithful"


def test_what_was_taught_is_found_again_though_every_choice_looks_like_cost() -> None:
    base = spread(0.5)
    held_out = outcomes(nothing=base, recalling=base - 0.002, moving=base - 0.01)
    taught = outcomes(nothing=base, recalling=base + 0.45, moving=base + 0.5)
    assert choose(held_out, held_out, taught, NOTHING).name == "recalling"


def test_unrelated_questions_are_simulated_where_no_held_out_query_is_unrelated() -> None:
    base, pushy = spread(0.5), Option("pushy")
    held_out = outcomes(nothing=base, pushy=base + 0.1)
    as_unrelated = outcomes(nothing=base, pushy=base - 0.2)
    covered = expect_traffic(held_out, as_unrelated, NOTHING, unrelated=0.0, untouched=0.0)
    assert covered == held_out
    open_field = expect_traffic(held_out, as_unrelated, NOTHING, unrelated=0.0, untouched=1.0)
    assert open_field[NOTHING] == pytest.approx(base)
    assert open_field[pushy] == pytest.approx(base + 0.5 * 0.1 - 0.5 * 2 * 0.2)


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
