"""A proposal is searched beside the published epoch before it is published itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Opener, ranking

import evokey
from evokey.errors import InvalidInput

PAGES = [
    {"id": "commit", "text": "make a commit"},
    {"id": "revert", "text": "reverse earlier changes"},
    {"id": "log", "text": "show the history"},
]
QUERY = "undo a commit"


def taught(opened: Opener) -> evokey.Memory:
    memory = opened(encoder="bm25")
    memory.add(PAGES)
    memory.feedback(QUERY, relevant=["revert"], actor="ada")
    return memory


def test_a_candidate_is_searched_and_interleaved_and_nobody_else_sees_it(opened: Opener) -> None:
    memory = taught(opened)
    candidate = memory.stage(memory.propose())
    assert candidate is not None and candidate == memory.candidate
    assert (candidate.number, candidate.after, candidate.lessons) == (-1, 0, 1)
    assert memory.epoch == 0 and memory.search(QUERY)[0].id == "commit"
    assert memory.search(QUERY, epoch=candidate.number)[0].id == "revert"
    mixed = memory.search(QUERY, compare=candidate.number)
    assert {hit.epoch for hit in mixed[:2]} == {0, -1}
    assert len(memory.epochs()) == 1


def test_a_candidate_is_published_as_it_was_compared(opened: Opener) -> None:
    memory = taught(opened)
    candidate = memory.stage(memory.propose())
    assert candidate is not None
    before = ranking(memory, QUERY, epoch=candidate.number)
    memory.feedback("show the past", relevant=["log"])  # came later
    memory.add([{"id": "new", "text": "a new page"}])
    report = memory.publish_candidate()
    assert report is not None and report.published and report.epoch == 1
    assert [id for id, _ in ranking(memory, QUERY)] == [id for id, _ in before]
    assert memory.stats().pending == 1 and memory.candidate is None
    assert memory.publish_candidate() is None


def test_a_candidate_follows_documents_that_come_and_go(opened: Opener) -> None:
    memory = taught(opened)
    candidate = memory.stage(memory.propose())
    assert candidate is not None
    memory.add([{"id": "other", "text": "undo a commit here"}])
    memory.delete(["log"])
    assert {hit.id for hit in memory.search(QUERY, epoch=candidate.number)} == {"commit", "revert", "other"}


def test_a_candidate_goes_with_what_is_forgotten_and_when_an_epoch_is_published(opened: Opener, tmp_path: Path) -> None:
    memory = taught(opened)
    first = memory.stage(memory.propose())
    assert first is not None
    memory.forget(actor="ada")
    assert memory.candidate is None
    with pytest.raises(InvalidInput, match="there is no epoch -1"):
        memory.search(QUERY, epoch=first.number)
    memory.feedback(QUERY, relevant=["log"])
    assert memory.stage(memory.propose()) is not None
    memory.evolve()
    assert memory.candidate is None


def test_a_proposal_that_no_longer_holds_is_not_staged(opened: Opener) -> None:
    memory = taught(opened)
    draft = memory.propose()
    memory.hold([1])
    assert memory.stage(draft) is None and memory.candidate is None


def test_what_was_shown_of_one_candidate_is_not_taken_for_another(opened: Opener) -> None:
    memory = taught(opened)
    first = memory.stage(memory.propose())
    assert first is not None
    memory.show(QUERY, memory.search(QUERY), epoch=first.number)
    memory.drop_candidate()
    second = memory.stage(memory.propose())
    assert second is not None and second.number == first.number - 1
