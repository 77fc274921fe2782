"""Feedback on a passage: its keys learn, its document with a share, and it lives and dies with its lesson."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener

import evokey
from evokey.errors import InvalidInput, UnknownDocument, UnknownPassage
from evokey.types import Answer, Citation, Document, Ruling

FILLER = "Some words that fill the page and that nobody ever asks for, said again. " * 40
GUIDE = Document(
    "guide.md",
    f"# Guide\n\n## Install\n\n{FILLER}\n\n## Remove\n\n{FILLER}\n\n## Repair\n\nUse the wrench. {FILLER}\n",
    "Guide",
)
OTHERS = [Document(f"other-{n}", f"A note about stones, rivers and the number {n}.") for n in range(30)]
CHUNKS = {"name": "chunks", "tokens": 100, "overlap": 0}


@pytest.fixture
def memory(opened: Opener) -> evokey.Memory:
    made = opened(encoder=["bm25", "wordllama"], keys=CHUNKS)
    made.add([GUIDE, *OTHERS])
    return made


def teach(memory: evokey.Memory, name: str = "guide.md#repair", **more: Any) -> None:
    memory.feedback("gizmo zork broke down", relevant=[name], **more)
    memory.evolve()


def passage(memory: evokey.Memory, query: str = "gizmo zork broke down") -> str:
    return next(hit.passage.where for hit in memory.search(query) if hit.id == "guide.md")


@pytest.mark.parametrize("section", ["remove", "repair"])
def test_what_is_taught_about_a_passage_is_found_in_that_passage(memory: evokey.Memory, section: str) -> None:
    teach(memory, f"guide.md#{section}")
    assert memory.search("gizmo zork broke down")[0].id == "guide.md"
    assert passage(memory).lower().startswith(section)
    told = memory.explain("guide.md", "gizmo zork broke down")
    assert told.passage is not None and told.passage.where == passage(memory)
    assert told.passage_reason.startswith("lessons name passages of this document")


def test_its_rows_are_credited_and_the_best_row_of_the_document_with_a_share(memory: evokey.Memory) -> None:
    teach(memory)
    overlay = memory.index.view().overlays.of["bm25"]
    number = memory.ledger.documents.numbers(["guide.md"])["guide.md"]
    rows = overlay.touched.rows(number)
    credited = [len(row) for row in overlay.evidence[rows.start : rows.stop].tolil().rows]
    starts = [row.start for row in memory.index.retrievers[0].rows(GUIDE)]
    inside = [at for at, start in enumerate(starts) if start is not None and start >= GUIDE.text.index("## Repair")]
    assert len(inside) > 1 and [at for at, count in enumerate(credited) if count and at in inside] == inside[:8]
    assert (
        credited[0] == 1 and sum(credited) == len(inside[:8]) + 1
    )  # no word of the query is in the text: the first row


def test_lessons_say_which_passage_they_are_about_and_can_be_exported(memory: evokey.Memory, opened: Opener) -> None:
    teach(memory, actor="ann")
    (lesson,) = memory.lessons()
    assert lesson.to_dict()["relevant"] == {"guide.md#repair": 1.0}
    (section,) = lesson.verdicts[0].passages
    assert GUIDE.text[section.start : section.end].startswith("## Repair")
    again = opened("again", encoder=["bm25", "wordllama"], keys=CHUNKS)
    again.add([GUIDE, *OTHERS])
    said = json.loads(json.dumps(lesson.to_dict()))
    again.feedback(**{name: said[name] for name in ("query", "relevant", "irrelevant", "units", "actor")})
    again.evolve()
    assert again.lessons()[0].verdicts == lesson.verdicts
    assert [(hit.id, hit.score) for hit in again.search("zork")] == [
        (hit.id, hit.score) for hit in memory.search("zork")
    ]


def test_an_exact_id_of_a_document_goes_before_a_passage(memory: evokey.Memory) -> None:
    memory.add([Document("guide.md#repair", "Another document with such a name.")])
    teach(memory)
    assert memory.search("gizmo zork broke down")[0].id == "guide.md#repair"
    assert memory.lessons()[0].verdicts[0].passages == ()


def test_an_unknown_passage_is_told_the_nearest_names_and_nothing_is_recorded(memory: evokey.Memory) -> None:
    with pytest.raises(UnknownPassage, match=r"has no passage .reparation.; .*guide\.md#repair"):
        memory.feedback("q", relevant=["guide.md#reparation"])
    with pytest.raises(UnknownDocument, match=r"nowhere\.md#repair"):
        memory.feedback("q", relevant=["nowhere.md#repair"])
    with pytest.raises(InvalidInput, match="right and as wrong; a lesson has one verdict"):
        memory.feedback("q", relevant=["guide.md#repair"], irrelevant=["guide.md#remove"])
    assert memory.lessons() == []


def test_several_passages_of_a_document_are_one_verdict(memory: evokey.Memory) -> None:
    lesson = memory.feedback("q", relevant={"guide.md#repair": 1, "guide.md#remove": 2})
    (verdict,) = lesson.verdicts
    assert verdict.grade == 2 and [one.where for one in verdict.passages] == ["remove", "repair"]


def test_forgetting_leaves_a_memory_that_never_heard_of_it(opened: Opener, tmp_path: Path) -> None:
    memories = [opened(name, encoder="bm25", keys=CHUNKS) for name in ("one", "two")]
    for one in memories:
        one.add([GUIDE, *OTHERS])
        one.feedback("wrench", relevant=["guide.md#remove"], actor="bob")
    memories[0].feedback("gizmo zork broke down", relevant=["guide.md#repair"], actor="ann")
    for one in memories:
        one.evolve()
    memories[0].forget(actor="ann")
    for query in ("wrench", "gizmo zork broke down", "said again"):
        first, second = ([(hit.id, hit.score, hit.passage) for hit in one.search(query)] for one in memories)
        assert first == second
    assert memories[0].ledger.lessons.passages(99) == memories[1].ledger.lessons.passages(99)


def test_it_survives_rollback_backup_and_the_next_opening(memory: evokey.Memory, tmp_path: Path) -> None:
    teach(memory)
    before = [(hit.id, hit.score, hit.passage) for hit in memory.search("gizmo zork broke down")]
    memory.feedback("river", relevant=["guide.md#install"])
    memory.evolve()
    memory.rollback(1)
    assert [(hit.id, hit.score, hit.passage) for hit in memory.search("gizmo zork broke down")] == before
    memory.backup(tmp_path / "copy")
    memory.close()
    for place in ("kb", "copy"):
        with evokey.open(tmp_path / place) as again:
            assert [(hit.id, hit.score, hit.passage) for hit in again.search("gizmo zork broke down")] == before


def test_a_lesson_of_an_earlier_text_names_no_part_of_the_new_one(memory: evokey.Memory) -> None:
    teach(memory)
    edited = Document("guide.md", GUIDE.text.replace("Use the wrench", "Use a wrench"), "Guide")
    memory.add([edited])
    assert memory.ledger.lessons.passages(99) == {}
    assert memory.search("gizmo zork broke down")[0].id == "guide.md"


def test_a_document_of_one_row_learns_as_a_whole(opened: Opener) -> None:
    memory = opened(encoder="bm25", keys="full")
    memory.add([GUIDE, *OTHERS])
    teach(memory)
    assert memory.search("gizmo zork broke down")[0].id == "guide.md"


def test_what_a_verified_answer_cites_is_credited_by_passage(memory: evokey.Memory) -> None:
    hit = next(hit for hit in memory.search("wrench") if hit.id == "guide.md")
    thought = memory.think("wrench", (), {"guide.md": 1.0})
    answer = Answer("wrench", "It is [1].", ("guide.md",), (hit,), "m", sources=(Citation("guide.md", hit.passage),))
    report = memory.remember(replace(thought, answer=answer, ruling=Ruling(True, 1.0, {"guide.md": 1.0})))
    assert report.lesson is not None
    (section,) = report.lesson.verdicts[0].passages
    assert (section.start, section.end) == (hit.passage.start, hit.passage.end)
    assert report.to_dict()["credited"] == {f"guide.md#{hit.passage.anchor}": 1.0}
