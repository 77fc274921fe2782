"""The gate: what was learned counts as far as a question is about something taught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Opener

import evokey
from evokey.evolution.gating import fit
from evokey.search.gate import SIGNALS, Taught, open_for, probability
from evokey.types import Choice, Epoch

PLANTS = ["oak", "beech", "maple", "birch", "willow", "poplar", "cedar", "larch", "pine", "spruce", "elm", "ash"]
SHIPS = ["sloop", "ketch", "yawl", "brig", "schooner", "frigate", "dinghy", "canoe", "barge", "tanker", "ferry", "tug"]


@pytest.fixture
def taught(opened: Opener) -> evokey.Memory:
    """Trees were taught, each by two questions; nobody taught anything about ships."""
    memory = opened()
    memory.add([evokey.Document(one, f"The {one} is a tree with leaves and bark.") for one in PLANTS])
    memory.add([evokey.Document(one, f"The {one} is a vessel with a hull and a deck.") for one in SHIPS])
    for one in PLANTS:
        memory.feedback(f"which wood does the {one} give", relevant=[one])
        memory.feedback(f"how tall does a {one} grow in a garden", relevant=[one])
    memory.evolve()
    return memory


def current(memory: evokey.Memory) -> Epoch:
    return memory.ledger.epochs.get(memory.index.epoch)


def test_a_closed_gate_leaves_the_untaught_scores_to_the_last_bit(taught: evokey.Memory) -> None:
    view = taught.index.view()
    for one in view.retrievers:
        overlay = view.overlays.of[one.name]
        shut = (-30.0, *([0.0] * SIGNALS))
        overlay = replace(overlay, choice=replace(overlay.choice, gate_weights=shut, sharpness=4.0))
        question = one.question("a fast ferry", overlay.learned)
        (found,) = one.base.search([question], 10, without=overlay.all_documents)
        ranked = overlay.rank(question, found, 10, None)
        (plain,) = one.base.search([question], 10)
        assert ranked.numbers.tolist() == plain.ranking.numbers.tolist()
        assert ranked.scores == pytest.approx(plain.ranking.scores, abs=1e-6)


def test_a_question_that_was_taught_opens_the_gate_whatever_the_weights_say() -> None:
    choice = Choice(penalty=0.3, sharpness=4.0, gate_weights=(-30.0, *([0.0] * SIGNALS)))
    same, other = np.zeros(SIGNALS), np.zeros(SIGNALS)
    same[0], other[0] = 1.0, 0.5
    assert open_for(choice, same)[:2] == (1.0, 0.0)
    assert open_for(choice, other)[:2] == (0.0, 1.0)


def test_the_gate_learns_what_tells_related_questions_from_others() -> None:
    rng = np.random.default_rng(0)
    signals, labels = rng.normal(0, 1, (400, SIGNALS)), np.arange(400) % 2 == 0
    signals[:, 0] += 2.0 * labels
    guess = probability(fit(signals, labels), signals)
    assert guess[labels].mean() > 0.75
    assert guess[~labels].mean() < 0.25
    assert (probability(fit(signals, np.ones(400, bool)), signals) > 0.99).all()


def test_a_signal_that_is_the_same_for_all_questions_has_no_say() -> None:
    """Beside an engine the best result always has the share 1; where it finds nothing, 0."""
    chance = np.random.default_rng(4)
    signals = chance.random((80, SIGNALS))
    signals[:, 3] = 1.0 + 1e-12 * chance.random(80)
    weights = fit(signals, signals[:, 0] > 0.5)
    assert weights[4] == 0.0
    assert max(map(abs, weights)) < 50


def test_hidden_texts_are_not_looked_at() -> None:
    known = Taught.of(np.array([0, 1, 2]), np.array([0, 0, 1]))
    likeness, base, best = np.array([0.9, 0.4, 0.6]), np.array([0.5, 0.3]), np.array([0.7, 0.5, 0.3])
    assert known.signals(likeness, 1.0, base, best)[0] == pytest.approx(0.9)
    assert known.signals(likeness, 1.0, base, best, [0])[0] == pytest.approx(0.6)
    assert not known.signals(likeness, 1.0, base, best, [0, 1, 2]).any()


def test_compiled_and_plain_rankings_agree_with_a_gate_half_open(taught: evokey.Memory) -> None:
    from evokey.scoring import compiled

    if not compiled.load():
        pytest.skip("numba is not installed")
    view = taught.index.view()
    (one,) = [retriever for retriever in view.retrievers if retriever.kind == "sparse"]
    half = (0.0, *([0.0] * SIGNALS))
    choice = Choice(spread=0.5, step=1.0, penalty=0.1, sharpness=1.0, gate_weights=half)
    overlay = taught.policy.overlay(one, taught.composer.log(taught.ledger.lessons.last), choice)
    for text in ("wood of the beech", "a garden with a maple and a ferry", "deck of the brig"):
        question = one.question(text, overlay.learned)
        (found,) = one.base.search([question], 10, without=overlay.all_documents)
        fast = overlay.rank(question, found, 10, None)
        slow = overlay.rank(question, found, 10, np.arange(1, 100))
        assert fast.numbers.tolist() == slow.numbers.tolist()
        assert fast.scores.tolist() == slow.scores.tolist()


def test_explain_says_how_probable_it_is_and_agrees_with_the_search(taught: evokey.Memory) -> None:
    if not any(one.gate_weights for one in current(taught).choice.values()):
        pytest.fail("nothing was learned behind a gate")
    found = taught.explain("oak", "which wood does the oak give")
    assert all(view.probability is None or 0 <= view.probability <= 1 for view in found.views)
    assert any(view.share == 1.0 for view in found.views)  # it was taught in these words


def test_an_epoch_keeps_its_gate_when_the_memory_is_opened_again(taught: evokey.Memory, tmp_path: Path) -> None:
    before = {text: [(hit.id, hit.score) for hit in taught.search(text)] for text in ("tall oak", "brig", "wood")}
    taught.close()
    with evokey.open(tmp_path / "kb") as again:
        assert {text: [(hit.id, hit.score) for hit in again.search(text)] for text in before} == before
