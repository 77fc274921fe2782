"""What the machine has found, or its making has, each in the fewest steps that show it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import chance
import pytest
from conftest import Opener, ranking

from evokey import Document
from evokey.errors import InvalidInput
from evokey.evolution.policy import Proposal
from evokey.registry import COMPONENTS, Component
from evokey.types import Choice


class Moved(chance.Chance):
    """Always moves keys, units included."""

    def propose(self, *lessons: Any) -> Proposal:
        proposal = super().propose(*lessons)
        return replace(proposal, choice={name: Choice(0.0, 1.0, 2.0, None) for name in proposal.choice})


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of that policy."""
    monkeypatch.setattr(chance, "Moved", Moved, raising=False)
    monkeypatch.setitem(COMPONENTS["policy"], "moved", Component("chance:Moved"))
    return "moved"


@pytest.mark.parametrize("text", ["\n", "\t", "\u00a0"])
def test_a_text_of_any_white_space_is_counted_as_empty(opened: Opener, text: str) -> None:
    memory = opened(encoder="bm25")
    memory.add([Document("void", text)])
    assert memory.stats().empty_documents == 1


def test_forgetting_after_a_rollback_to_the_untaught_index_reaches_the_older_epochs(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([Document("a", "apple"), Document("b", "river")])
    memory.feedback("zebra", ["a"], actor="ada")
    memory.evolve()
    memory.rollback(0)
    assert [hit.id for hit in memory.search("zebra", epoch=1)] == ["a"]
    memory.forget(actor="ada")
    assert memory.search("zebra", epoch=1) == []
    assert memory.epochs()[1].redacted


def test_shares_of_units_follow_the_documents_that_are_there_now(opened: Opener, moving: str) -> None:
    """BM25's weights say how units share a credit, and they follow every document."""
    memory = opened(encoder="bm25", policy=moving)
    memory.add([Document("a", "apple river"), Document("b", "stone")])
    memory.feedback("zebra", ["a"], units=["apple", "river"])
    memory.evolve()
    memory.search("apple")
    memory.add([Document("c", "river light"), Document("d", "stone")])
    assert ranking(memory, "apple") == ranking(opened(), "apple")


def test_an_epoch_all_of_whose_documents_have_no_vector_can_be_searched(opened: Opener, moving: str) -> None:
    memory = opened(encoder="wordllama", policy=moving)
    memory.add([Document("void", ""), Document("full", "stone")])
    memory.feedback("zebra", ["void"])
    memory.evolve()
    assert [hit.id for hit in memory.search("stone")] == ["full"]


def test_a_hybrid_reports_the_quality_that_the_untaught_index_has(opened: Opener) -> None:
    """Words that only teaching brings must not make the untaught BM25 more trusted than it is."""
    memory = opened()
    memory.add([Document("a", "garden light"), Document("b", "river river"), Document("c", "river")])
    memory.feedback("zebra river light", ["b"])
    assert memory.search("zebra river light")[0].id == "b"
    report = memory.evolve(dry_run=True)
    assert report.taught is not None
    assert report.taught.before == pytest.approx(1.0)


def test_a_protected_query_whose_right_document_is_gone_stops_no_evolve(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([Document("a", "apple"), Document("b", "river")])
    memory.feedback("zebra", ["b"])
    memory.protect("apple", {"a": 1.0, "b": 0.0})
    memory.delete(["a"])
    assert memory.evolve().published
    assert memory.diff(0, 1).queries_compared


def test_the_smallest_grade_is_refused_or_does_no_harm(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([Document("a", "apple"), Document("b", "river")])
    with suppress(InvalidInput):
        memory.feedback("zebra", {"a": 5e-324})
    memory.evolve()
    assert [hit.id for hit in memory.search("apple")] == ["a"]


def test_evolving_after_a_forget_says_there_is_nothing_new(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([Document("a", "apple"), Document("b", "river")])
    memory.feedback("zebra", ["a"])
    memory.feedback("quark", ["b"], actor="ada")
    memory.evolve()
    memory.forget(actor="ada")
    assert not memory.evolve().published
