"""Forgetting is complete: whatever keeps a query or an answer erases it, now or as soon as it can be done."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from expanders.scripted import Scripted

import evokey
from evokey.erasure import Erasure
from evokey.forgetting import forget, places
from evokey.forgetting.places import TaughtTexts
from evokey.ledger.forgets import Forgets
from evokey.ledger.sqlite.database import SQLite
from evokey.llm import cached, recorded
from evokey.registry import COMPONENTS, Component
from evokey.types import Message
from evokey.verifiers.human import Human

SECRET = "how do I hide my zebracorn"
OTHER = "where is the river"


@pytest.fixture
def taught(opened: Opener) -> evokey.Memory:
    memory = opened("kb", encoder="bm25")
    memory.add([{"id": "a", "text": "apple tree"}, {"id": "b", "text": "river bank"}])
    memory.feedback(SECRET, relevant=["a"], actor="evelyn")
    memory.feedback(OTHER, relevant=["b"], actor="sam")
    memory.evolve()
    return memory


def holds(folder: Path, text: str) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes())


# ---- what it waits for, and who finishes it


def test_forget_says_how_many_lessons_and_that_all_is_erased(taught: evokey.Memory, tmp_path: Path) -> None:
    assert holds(tmp_path / "kb", "zebracorn")
    assert taught.forget(actor="evelyn") == evokey.Forgotten(1, True, None)
    assert holds(tmp_path / "kb", "zebracorn") == holds(tmp_path / "kb", "evelyn") == []


@pytest.mark.parametrize("next_writer", ["the same", "another"])
def test_while_a_reader_holds_the_log_forget_is_pending_and_the_next_writer_finishes_it(
    taught: evokey.Memory, tmp_path: Path, opened: Opener, next_writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "PATIENCE", 0.0)
    monkeypatch.setattr(forget, "PAUSE", 0.0)
    with closing(sqlite3.connect(tmp_path / "kb" / "ledger.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM lessons").fetchone()
        done = taught.forget(query=SECRET)
        assert (done.lessons, done.erased) == (1, False)
        assert done.pending is not None and "reading the ledger" in done.pending
        assert taught.stats().erasing == done.pending
        assert "a" not in [hit.id for hit in taught.search("how to hide")]  # without effect at once
        taught.feedback("apple", relevant=["a"])  # tries again, in vain
        assert holds(tmp_path / "kb", "zebracorn")
    if next_writer == "another":
        taught.close()
        taught = opened("kb")
    else:
        taught.feedback("river", relevant=["b"])
    assert taught.stats().erasing is None
    assert holds(tmp_path / "kb", "zebracorn") == []


@pytest.mark.parametrize("step", ["forget", "clean", "empty_log"])
def test_a_forget_that_is_interrupted_at_any_step_is_finished_at_the_next_open(
    taught: evokey.Memory, tmp_path: Path, opened: Opener, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    owner = {
        "forget": TaughtTexts,
        "clean": Forgets,
        "empty_log": SQLite,
    }[step]
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            taught.forget(actor="evelyn")
    taught.close()
    again = opened("kb")
    assert [one.actor for one in again.lessons()] == ["sam"]
    assert again.stats().erasing is None
    assert holds(tmp_path / "kb", "zebracorn") == []


def test_a_file_in_use_leaves_the_forget_pending_and_names_the_file(
    taught: evokey.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evokey.verifiers import human

    monkeypatch.setattr(human, "PATIENCE", 0.0)
    monkeypatch.setattr(forget, "PAUSE", 0.0)
    taught.learn(SECRET)  # nobody can tell: it waits for a person
    with closing(sqlite3.connect(tmp_path / "kb" / "human.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = taught.forget(query=SECRET)
        assert not done.erased and "locked" in str(done.pending)
        other.execute("ROLLBACK")
    taught.protect(OTHER, ["b"])
    assert taught.stats().erasing is None
    assert holds(tmp_path / "kb", "zebracorn") == []


# ---- what must not come back


def test_what_another_process_had_searched_before_does_not_come_back_with_its_traffic(
    taught: evokey.Memory, tmp_path: Path, opened: Opener
) -> None:
    other = opened("kb")
    other.search(SECRET)
    taught.search("apple bank")
    taught.forget(query=SECRET)
    taught.close()
    other.feedback("tree", relevant=["a"])
    assert SECRET not in other.traffic() and "apple bank" in other.traffic()
    other.search("tree bank")
    other.evolve()
    assert "tree bank" in other.traffic()
    assert holds(tmp_path / "kb", "zebracorn") == []


def test_a_forgotten_answer_of_a_person_verifies_nothing_any_more(taught: evokey.Memory, tmp_path: Path) -> None:
    question = "what grows on a tree with a zebracorn"
    queue = tmp_path / "kb" / "human.sqlite"
    taught.learn(question)
    taught.learn(OTHER)
    for one in Human(queue).pending():
        Human(queue).answer(one.id, True, {one.documents[0].id: 1}, actor="evelyn" if "grows" in one.query else "sam")
    assert taught.learn(question, actor="sam").lesson is not None
    taught.forget(actor="evelyn")  # she answered it, whoever asked
    assert taught.learn(question).lesson is None
    taught.forget(query=question)
    assert Human(queue).pending() == [] and taught.learn(OTHER).lesson is not None
    assert holds(tmp_path / "kb", "zebracorn") == []


def test_what_was_thought_about_before_a_forget_is_not_remembered_after_it(
    taught: evokey.Memory, tmp_path: Path
) -> None:
    thought = taught.think(SECRET, relevant={"a": 1.0})
    taught.forget(query=SECRET)
    report = taught.remember(thought)
    assert report.lesson is None and "forgotten in the meantime" in report.reason
    assert taught.learn(OTHER, relevant=["b"]).lesson is not None
    taught.close()
    assert holds(tmp_path / "kb", "zebracorn") == []


def test_forgetting_one_of_two_who_asked_the_same_leaves_the_other_ones_lesson(taught: evokey.Memory) -> None:
    taught.feedback(SECRET, relevant=["a"], actor="sam")
    taught.search(SECRET)
    taught.evolve()
    assert taught.forget(query=SECRET, actor="evelyn") == evokey.Forgotten(1, True, None)
    assert [(one.query, one.actor) for one in taught.lessons()] == [(OTHER, "sam"), (SECRET, "sam")]
    assert SECRET in taught.traffic()


# ---- answers of language models


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setitem(COMPONENTS["llm"], "scripted", Component("expanders.scripted:Scripted"))
    return "scripted"


def ask(llm: Any, text: str) -> str:
    return str(llm.complete([Message("user", text)]).text)


def test_kept_answers_to_a_forgotten_query_are_erased_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    llm = cached.Cached(Scripted("one", "two", f"you asked: {SECRET.upper()}", "four"), file)
    asked = [f"Question: <{SECRET}>\nAnswer:", f"Question: {OTHER}", "again", f"{SECRET}s are others"]
    said = [ask(llm, text) for text in asked]
    cached.forget(file, Erasure((SECRET,)))
    assert [row[0] for row in sqlite3.connect(file).execute("SELECT text FROM answers ORDER BY text")] == [
        "four",
        "two",
    ]
    assert b"one" not in file.read_bytes() and said[1] == ask(llm, asked[1])


def test_answers_kept_by_an_older_version_go_as_nobody_knows_what_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(file)) as old:
        old.execute("CREATE TABLE answers (name TEXT PRIMARY KEY, text TEXT, model TEXT, finished INTEGER)")
        old.execute("INSERT INTO answers VALUES ('x', 'old answer', 'm', 1)")
        old.commit()
    llm = cached.Cached(Scripted("new answer"), file)
    assert ask(llm, OTHER) == "new answer"
    cached.forget(file, Erasure((SECRET,)))
    assert b"old answer" not in file.read_bytes() and b"new answer" in file.read_bytes()


def test_a_recording_loses_a_forgotten_query_also_for_those_who_have_it_open(tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    llm = recorded.Recorded(file, llm=Scripted("one", "two", "three"), mode="record")
    assert [ask(llm, SECRET), ask(llm, OTHER)] == ["one", "two"]
    with file.open("ab") as broken:
        broken.write(json.dumps({"text": SECRET}).encode()[:-3])
    recorded.forget(file, Erasure((SECRET,)))
    assert SECRET.encode() not in file.read_bytes() and file.read_bytes().count(b"\n") == 1
    assert [ask(llm, OTHER), ask(llm, SECRET)] == ["two", "three"]


def test_parts_inside_parts_are_on_the_list_and_foreign_recordings_are_not(tmp_path: Path) -> None:
    from evokey.settings import settings_of

    inner = {"name": "cached", "at": str(tmp_path / "in.sqlite"), "llm": {"name": "recorded", "at": "/else/r.jsonl"}}
    settings = settings_of(
        encoder="bm25",
        llm={"name": "budgeted", "at": str(tmp_path / "tally"), "llm": inner},
        verifier={"name": "judge", "llm": {"name": "recorded", "at": "/else/w.jsonl", "mode": "record", "llm": "x"}},
    )
    found = places.places(settings, tmp_path, [])
    files = {one.path for one in found if isinstance(one, places.KeptFile)}
    assert files == {tmp_path / "human.sqlite", tmp_path / "in.sqlite", Path("/else/w.jsonl")}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Where is,  the RIVER?", True),
        ("<query>where is the ‹river›</query>", True),
        ("where is the riverbank", False),
        ("nowhere is the river", False),
    ],
)
def test_a_query_is_quoted_word_by_word(text: str, quoted: bool) -> None:
    assert Erasure((OTHER,)).quoted_in([text]) == quoted
    assert Erasure(("☃",)).quoted_in(["a ☃ here"])
    assert Erasure(("word " * 100,)).quoted_in(["so: " + "word " * 60])
