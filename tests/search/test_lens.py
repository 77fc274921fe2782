"""The lens: questions learn too, nearness to what was taught decides how much, and nothing of it outlives forget."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Always, Dataset, Opener
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evokey
from evokey.evolution import crossfit
from evokey.evolution.attribution import attribute
from evokey.evolution.folds import sample_numbers
from evokey.evolution.lens_training import CAUTIOUS, OPEN, DenseLensTrainer
from evokey.evolution.pools import make
from evokey.evolution.traffic import find_unrelated, judge_by_untaught
from evokey.evolution.trial import Trial
from evokey.scoring.dense import DenseQuestion
from evokey.search import lens
from evokey.types import Choice

PLAIN = (2.0, 0.25, 0.0)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp((a.astype(float) @ b.T.astype(float) - 1) / lens.WIDTH)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(4, 40), st.integers(12, 60), st.integers(0, 30))
def test_the_closed_form_is_kernel_ridge_regression_without_the_fold_left_out(
    seed: int, size: int, taught: int, anchors: int
) -> None:
    chance = np.random.default_rng(seed)
    x, y, b = (unit(chance.normal(size=(n, size))) for n in (taught, taught, anchors))
    folds, centres = chance.integers(0, 3, taught), np.arange(0, taught, 2)
    assume((folds[centres] != 1).sum() >= 2)
    names = [str(at) for at in centres]
    made: Any = lens.Ways(x, y, folds, centres, b.reshape(-1, size)).lenses(names, [PLAIN], without=1)[PLAIN]
    rest, kept = folds != 1, centres[folds[centres] != 1]
    assert made.names == tuple(str(at) for at in kept)
    seen, held, spots = kernel(x[rest], x[kept]), kernel(b.reshape(-1, size), x[kept]), kernel(x[kept], x[kept])
    left = seen.T @ seen + held.T @ held + 2.0 * spots
    assert left @ made.pulls == pytest.approx(seen.T @ (y[rest].astype(float) - x[rest]), abs=1e-3)


def test_a_question_far_from_all_that_was_taught_passes_unchanged() -> None:
    chance = np.random.default_rng(0)
    x = unit(np.eye(8)[[0, 0, 1, 1, 2, 2] * 4] + 0.1 * chance.normal(size=(24, 8)))
    everyone, none = np.arange(24), np.zeros((0, 8), np.float32)
    ways = lens.Ways(x, np.roll(x, 1, axis=1), everyone % 3, everyone, none)
    made: Any = ways.lenses([str(n) for n in range(24)], [(0.1, 0.0, 0.0)])[0.1, 0.0, 0.0]
    far, near = DenseQuestion(unit(np.eye(8)[7])), DenseQuestion(unit(np.eye(8)[0]))
    assert made.turn(far) is far
    turned = made.turn(near)
    assert turned.asked is near and np.linalg.norm(turned.vector) == pytest.approx(1, abs=1e-5)
    assert turned.vector @ np.eye(8)[1] > near.vector @ np.eye(8)[1]


def test_a_gate_is_open_for_what_was_taught_in_two_wordings_that_lie_in_one_place() -> None:
    """Rounding has no say in it: a vector is never quite as near to itself as the next one is."""
    chance = np.random.default_rng(0)
    x = np.repeat(unit(chance.normal(size=(12, 64))), 2, axis=0)
    everyone, none = np.arange(24), np.zeros((0, 64), np.float32)
    ways = lens.Ways(x, np.roll(x, 2, axis=0), everyone % 3, everyone, none)
    for turn in ((0.1, gate, 0.0) for gate in (OPEN, *CAUTIOUS)):
        made: Any = ways.lenses([str(n) for n in range(24)], [turn])[turn]
        wide = replace(made, closed=-2.0, open=-1.0)
        for vector in x:
            turned, open_wide = (one.turn(DenseQuestion(vector)).vector for one in (made, wide))
            assert turned == pytest.approx(open_wide, abs=1e-4)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(0, 40), st.sampled_from([0.3, 1.0]))
def test_directions_in_which_documents_differ_most_count_less(
    seed: int, size: int, anchors: int, mildness: float
) -> None:
    chance = np.random.default_rng(seed)
    x, spread = unit(chance.normal(size=(12, size))), np.r_[5.0, np.ones(size - 1)]
    keys = unit(chance.normal(size=(anchors, size)) * spread)
    everyone = np.arange(12)
    lens_id = (2.0, 0.0, mildness)
    made: Any = lens.Ways(x, x, everyone % 3, everyone, keys).lenses(["q"] * 12, [lens_id])[lens_id]
    if anchors < 2:
        assert made.metric == pytest.approx(np.eye(size), abs=1e-5)
        return
    covariance = np.cov(keys.astype(float).T, bias=True)
    whole = np.linalg.inv(covariance * size / np.trace(covariance) + mildness * np.eye(size))
    assert made.metric == pytest.approx(whole * size / np.trace(whole), abs=1e-4)
    if anchors > 20:
        assert made.metric[0, 0] < np.diag(made.metric)[1:].min()


def test_anchors_are_the_same_for_the_same_numbers() -> None:
    numbers = np.arange(5_000)
    assert (sample_numbers(numbers, 100) == sample_numbers(np.random.default_rng(1).permutation(numbers), 100)).all()
    assert len(set(sample_numbers(numbers, 100).tolist())) == 100
    assert abs(sample_numbers(numbers, 500).mean() - 2_500) < 300


def test_the_newest_anchor_does_not_depend_on_what_was_deleted_when(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path
) -> None:
    memory = opened(encoder="wordllama")
    memory.add(commands)
    memory.feedback("which commit broke it", relevant=["git-bisect"])
    memory.delete([commands[-1].id])
    found = [_trainer(memory).last_anchor]
    memory.close()
    shutil.rmtree(tmp_path / "kb" / "keys")
    assert [*found, _trainer(opened()).last_anchor] == [len(commands) - 1] * 2


def _trainer(memory: evokey.Memory) -> DenseLensTrainer:
    retriever = memory.index.retrievers[0]
    return DenseLensTrainer(retriever, attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught))


def taught(memory: evokey.Memory, data: Dataset, count: int, actor: str = "a") -> list[str]:
    memory.add(data.documents)
    queries = sorted(data.judged)[:count]
    for query in queries:
        memory.feedback(query, relevant=data.judged[query], actor=actor)
    return queries


def found(memory: evokey.Memory, queries: list[str], **options: Any) -> list[Any]:
    return [[(hit.id, hit.score) for hit in memory.search(query, **options)] for query in queries]


def release(memory: evokey.Memory) -> None:
    """Take up what a rollback has put on hold."""
    memory.release(lesson.number for lesson in memory.lessons(held=True))


@pytest.mark.parametrize(("encoder", "whitening"), [("wordllama", 0.0), ("wordllama", 1.0), ("bm25", 0.0)])
def test_a_lens_travels_through_time_is_explained_and_forgotten(
    opened: Opener, dataset: Any, encoder: str, whitening: float, always: Always
) -> None:
    data: Dataset = dataset("cranfield")
    asked = sorted(data.judged)[100:130]
    always(Choice(0.0, 1.0, 0.0, 0.2, lens_parameter=0.3, whitening=whitening, last_anchor=700))
    memory, twin = (opened(name, encoder=encoder, now=lambda: 0.0) for name in "ab")
    taught(memory, data, 40)
    plain = found(memory, asked)
    memory.evolve()
    through = found(memory, asked)
    assert through != plain and found(memory, asked, epoch=0) == plain
    memory.index.state = replace(memory.index.state, composed={})
    assert found(memory, asked) == through
    hit = memory.search(asked[0])[0]
    view = memory.explain(hit.id, asked[0]).views[0]
    assert view.after == pytest.approx(hit.score, rel=1e-5)
    turned = [memory.explain(memory.search(query)[0].id, query).views[0] for query in asked]
    assert any(one.query_moved > 0 and one.query_moved_by for one in turned)
    memory.rollback(0)
    assert found(memory, asked) == plain
    release(memory)
    memory.evolve()
    memory.feedback("what says nobody else", relevant=[data.documents[5].id], actor="wrong")
    memory.evolve()
    memory.forget(actor="wrong")
    assert found(memory, asked) == through
    taught(twin, data, 40)
    twin.evolve()
    assert found(twin, asked) == through
    memory.close()
    assert found(opened("a"), asked) == through


@pytest.mark.parametrize("encoder", ["wordllama", "bm25"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happened_a_reader_a_reopened_and_a_forgetful_memory_see_the_same_lens(
    opened: Opener, dataset: Any, seed: int, encoder: str, always: Always
) -> None:
    data: Dataset = dataset("cranfield")
    always(Choice(0.0, 0.5, 0.0, 0.2, lens_parameter=0.3, whitening=0.3, last_anchor=150))
    chance, asked = random.Random(seed), sorted(data.judged)[150:160]
    documents = data.documents[:200]
    lessons = [
        {"query": query, "relevant": {id: grade}}
        for query, grades in sorted(data.judged.items())[:120]
        for id, grade in grades.items()
        if id in {document.id for document in documents}
    ]
    memory, twin = (opened(name, encoder=encoder, now=lambda: 0.0, traffic=0) for name in "ab")
    reader = opened("a")
    for one in (memory, twin):
        one.add(documents)
    gone = chance.sample([document.id for document in documents], 12)
    for at in range(6):
        for lesson in lessons[8 * at : 8 * at + 8]:
            memory.feedback(**lesson)
            twin.feedback(**lesson)
        memory.feedback(f"nobody else asks {at}", relevant=[documents[at].id], actor="wrong")
        memory.evolve()
        if chance.random() < 0.5:
            for one in (memory, twin):
                one.delete(gone[2 * at : 2 * at + 2])
        if chance.random() < 0.3:
            memory.rollback(chance.randrange(at + 1))
            assert found(reader, asked) == found(memory, asked)
            release(memory)
            memory.evolve()
        assert found(reader, asked) == found(memory, asked)
    memory.forget(actor="wrong")
    twin.evolve()
    assert found(memory, asked) == found(twin, asked) != found(twin, asked, epoch=0)
    memory.close()
    assert found(opened("a"), asked) == found(twin, asked)


def test_a_gate_is_cautious_unless_the_traffic_asks_about_what_was_taught(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("cranfield")
    memory = opened(encoder="wordllama")
    queries = taught(memory, data, 100)
    retriever = memory.index.retrievers[0]
    attribution = attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught)
    trainer = DenseLensTrainer(retriever, attribution)
    same, other = sorted(data.judged)[100:180], sorted(dataset("scifact").judged)[:80]
    gates = {related: {one[1] for one in trainer.settings(traffic_related=related)} for related in (True, False)}
    assert gates == {True: {OPEN, *CAUTIOUS}, False: {*CAUTIOUS}}
    assert find_unrelated(retriever, attribution, same) == []
    assert len(find_unrelated(retriever, attribution, other)) > 40
    wide, wary = (0.1, OPEN, 0.0), (0.1, max(CAUTIOUS), 0.0)
    lenses: Any = trainer.train([wide, wary])
    passed = [lenses[wary].turn(one) is one for one in (retriever.lesson(query, {}) for query in other)]
    assert sum(passed) > 60
    assert all(lenses[wide].turn(retriever.lesson(query, {})).asked for query in queries)


def test_a_lens_that_lowers_ndcg_on_unrelated_queries_is_rejected(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("cranfield")
    memory = opened(encoder="wordllama")
    taught(memory, data, 100)
    retriever, others = memory.index.retrievers[0], sorted(data.judged)[100:140]
    attribution = attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught)
    turns = [(0.01, OPEN, 0.0), (1e6, OPEN, 0.0)]
    lenses = DenseLensTrainer(retriever, attribution, last_anchor=0).train(turns)
    pools = {query: make(retriever, query, memory.index.position).ranking for query in others}
    trial = Trial(retriever, attribution, judge_by_untaught(others, pools), pools, lenses)
    choices = [Choice(lens_parameter=lens, gate_quantile=gate) for lens, gate, _ in turns]
    kept = [float(trial.outcomes([one])[one].mean()) for one in choices]
    assert kept[0] < 1 - crossfit.LENS_LOSS < kept[1]


def test_a_lens_lifts_questions_about_documents_that_nobody_taught(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("pubmedqa_l")
    queries = sorted(data.judged)
    results = {}
    for name, lensed in (("with", "dense"), ("without", "none")):
        memory = opened(name, encoder="wordllama", policy={"name": "guarded", "lens": lensed})
        memory.add(data.documents)
        for query in queries[:300]:
            memory.feedback(query, relevant=data.judged[query])
        memory.evolve()
        right = [data.judged[query] for query in queries[300:500]]
        hits = [memory.search(query, k=1) for query in queries[300:500]]
        results[name] = sum(hit[0].id in one for hit, one in zip(hits, right, strict=True))
    assert results["with"] > results["without"]


def test_a_lens_whose_choices_a_protected_query_forbids_is_left_out(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("cranfield")
    memory = opened(encoder="wordllama", policy="guarded")
    queries = taught(memory, data, 60)
    for query in sorted(data.judged)[60:90]:
        memory.protect(query, [hit.id for hit in memory.search(query)])
    report = memory.evolve()
    assert report.taught is not None and report.taught.queries == len(queries)
    for query in sorted(data.judged)[60:90]:
        before = {hit.id for hit in memory.search(query, epoch=0)}
        assert {hit.id for hit in memory.search(query)} == before
