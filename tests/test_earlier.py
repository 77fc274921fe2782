"""A memory written by an earlier version opens, searches and learns the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from fixtures.earlier import story

import evokey
from evokey.types import Choice

EARLIER = Path(__file__).parent / "fixtures" / "earlier"
FOLDERS = {"first": EARLIER, "second": EARLIER / "second"}
EXPECTED = {one: json.loads((folder / "expected.json").read_text("utf-8")) for one, folder in FOLDERS.items()}
pytestmark = pytest.mark.parametrize(
    ("generation", "name"), [(one, name) for one, told in story.GENERATIONS.items() for name in told.memories]
)
CLOSE = 1e-5
"""How far apart the sums of two processors may be."""


@pytest.fixture
def earlier(tmp_path: Path, generation: str, name: str, opened: Opener) -> evokey.Memory:
    shutil.copytree(FOLDERS[generation] / name, tmp_path / "earlier")
    return opened("earlier")


@pytest.fixture
def fresh(tmp_path: Path, generation: str, name: str, opened: Opener) -> evokey.Memory:
    """A new memory with the settings of the earlier one, that is told the same."""
    (tmp_path / "fresh").mkdir()
    shutil.copy(FOLDERS[generation] / name / "evokey.toml", tmp_path / "fresh")
    memory = opened("fresh")
    story.GENERATIONS[generation].tell(memory)
    if name == "paper":
        _credit_as_before(tmp_path)
    return memory


def _credit_as_before(place: Path) -> None:
    """The paper's rule credits what was recorded with a lesson. It had no gate then, and searched with units joined to
    one text: lessons of that time go on to credit what they did."""
    with sqlite3.connect(place / "fresh" / "ledger.sqlite") as database:
        database.execute("ATTACH ? AS before", (str(EARLIER / "paper" / "ledger.sqlite"),))
        database.execute(
            "UPDATE lessons SET retrieved = (SELECT retrieved FROM before.lessons b WHERE b.number = lessons.number)"
        )


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for epoch, rankings in expected.items():
        for query, ranking in rankings.items():
            ids, scores = zip(*ranking, strict=True) if ranking else ((), ())
            hits = found[epoch][query]
            assert [id for id, _ in hits] == list(ids), (epoch, query)
            assert [score for _, score in hits] == pytest.approx(list(scores), abs=CLOSE), (epoch, query)


def assert_same_choice(found: Mapping[str, Choice], expected: Mapping[str, Choice]) -> None:
    assert {name: replace(one, gate_weights=()) for name, one in found.items()} == {
        name: replace(one, gate_weights=()) for name, one in expected.items()
    }
    for name, one in found.items():
        assert one.gate_weights == pytest.approx(expected[name].gate_weights, abs=CLOSE)


def test_it_finds_at_every_epoch_what_it_found_before(earlier: evokey.Memory, generation: str, name: str) -> None:
    assert_same(story.rankings(earlier), EXPECTED[generation][name]["rankings"])


def test_it_holds_what_it_held_before(earlier: evokey.Memory, generation: str, name: str) -> None:
    held = earlier.stats().to_dict()
    expected = EXPECTED[generation][name]["stats"]
    counts = ("documents", "empty_documents", "lessons", "set_aside", "pending", "epoch", "documents_touched")
    assert {count: held[count] for count in counts} == {count: expected[count] for count in counts}
    assert sorted(earlier.traffic()) == sorted(EXPECTED[generation][name]["traffic"])
    assert earlier.protected_queries() == {story.PROTECTED[0]: story.PROTECTED[1]}
    assert {id: earlier.get(id).text for id in story.DOCUMENTS if id != story.GONE} == {
        **{id: text for id, text in story.DOCUMENTS.items() if id != story.GONE},
        story.CHANGED[0]: story.CHANGED[1],
    }


def test_it_learns_what_a_new_memory_learns(earlier: evokey.Memory, fresh: evokey.Memory) -> None:
    """Whatever the guard chooses today, it chooses the same for both."""
    for memory in (earlier, fresh):
        memory.feedback(**story.LATER)
    reports = [memory.evolve() for memory in (earlier, fresh)]
    assert_same_choice(reports[0].choice, reports[1].choice)
    assert reports[0].weights == pytest.approx(reports[1].weights)
    current, new = (memory.stats().epoch for memory in (earlier, fresh))
    found, expected = (story.rankings(memory) for memory in (earlier, fresh))
    assert_same({"now": found[str(current)]}, {"now": expected[str(new)]})


def test_it_forgets_as_a_new_memory_does(earlier: evokey.Memory, fresh: evokey.Memory, generation: str) -> None:
    for memory in (earlier, fresh):
        memory.forget(actor="ada")
    assert [memory.stats().lessons for memory in (earlier, fresh)] == [story.GENERATIONS[generation].left] * 2
    current, new = (memory.stats().epoch for memory in (earlier, fresh))
    found, expected = (story.rankings(memory) for memory in (earlier, fresh))
    assert_same({"now": found[str(current)]}, {"now": expected[str(new)]})


def test_it_can_be_closed_and_opened_again(earlier: evokey.Memory, tmp_path: Path, generation: str, name: str) -> None:
    earlier.add([{"id": "new", "text": "descale the espresso machine with citric acid"}])
    earlier.close()
    with evokey.open(tmp_path / "earlier") as again:
        assert [hit.id for hit in again.search("citric acid", k=1)] == ["new"]
        assert len(again) == EXPECTED[generation][name]["stats"]["documents"] + 1
