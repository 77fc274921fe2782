"""What people see: no text of others commands the terminal, and no line that says nothing."""

from __future__ import annotations

import json
import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import evokey
from evokey.cli import loop, screen, travel
from evokey.cli.app import app
from evokey.types import Answer, DocumentChange, EpochDiff, QueryChange

ESCAPE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\x08\x7f\u202egpj.exe\r"
HARMFUL = set("\x1b\x07\x08\x7f\x9b\u202e\r")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """A memory whose documents, questions and actors all try to command the terminal."""
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": f"id{ESCAPE}", "title": f"title{ESCAPE}", "text": f"the cat {ESCAPE}"}])
        memory.feedback(f"feline {ESCAPE}", relevant=[f"id{ESCAPE}"], actor=f"ada{ESCAPE}", units=[f"unit{ESCAPE}"])
        memory.protect(f"protected {ESCAPE}", [f"id{ESCAPE}"])
        memory.evolve()
    return tmp_path / "kb"


@pytest.mark.parametrize(
    "command",
    [
        ("search", "cat"),
        ("explain", f"id{ESCAPE}", f"feline {ESCAPE}"),
        ("explain", f"none{ESCAPE}"),
        ("diff", "0"),
        ("epochs",),
        ("protect",),
        ("lessons",),
        ("stats",),
        ("stats", "--learned"),
        ("forget", "--actor", f"ada{ESCAPE}"),
        ("search", "cat", "--where", f"{ESCAPE}"),
        ("add", f"/nowhere{ESCAPE}"),
        ("expand", f"cat{ESCAPE}", "--with", f"none{ESCAPE}"),
    ],
    ids=lambda command: " ".join(command)[:20].encode("ascii", "ignore").decode(),
)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "machines"])
def test_no_text_commands_the_terminal(at: Path, command: tuple[str, ...], form: tuple[str, ...]) -> None:
    result = run(*command, *form, "--at", at)
    assert not isinstance(result.exception, Exception)
    assert HARMFUL & set(result.output) == set()
    assert result.output


def test_what_was_made_visible_for_machines_reads_back_as_it_was(at: Path) -> None:
    [hit] = json.loads(run("search", "cat", "--json", "--at", at).stdout)
    assert (hit["id"], hit["text"]) == (f"id{ESCAPE}", f"the cat {ESCAPE}")


def test_an_answer_that_streams_in_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer("q", "text", (), (), "model")

    def stream() -> Any:
        yield "one\x1b"
        yield "[31mtwo\x9b\n"
        return answer

    assert loop.stream_to_screen(stream()) == answer
    assert capsys.readouterr().out == "one␛[31mtwo\ufffd\n\n"


def test_warnings_command_no_terminal() -> None:
    into = StringIO()
    handler = logging.StreamHandler(into)
    handler.setFormatter(screen.VisibleFormatter())
    handler.handle(logging.makeLogRecord({"msg": "the service said %s", "args": ("\x1b[2J",)}))
    assert into.getvalue() == "the service said ␛[2J\n"


@pytest.mark.parametrize("text", ["naïve 猫 किताब مرحبا שלום\u200f 🦉", "two\nlines\tand a tab"])
def test_texts_of_all_scripts_are_shown_as_they_are(text: str) -> None:
    assert screen.visible(text) == text


def test_a_word_between_colons_is_no_picture(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": "a", "text": "the :cat: sleeps"}])
    assert ":cat:" in run("search", "sleeps", "--at", tmp_path / "kb").stdout


# ---- no line that says nothing


def test_stats_show_what_a_language_model_cost_only_where_there_was_one(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": "a", "text": "the cat"}])
    shown = run("stats", "--at", tmp_path / "kb").stdout
    assert [name in shown for name in ("documents", "lessons", "calls", "false hits", "tokens", "money")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert {"calls", "tokens", "money"} <= set(json.loads(run("stats", "--at", tmp_path / "kb", "--json").stdout))


def test_a_diff_shows_no_change_from_a_figure_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    documents = [
        DocumentChange("moved", 1, 2, {"bm25": 0.0, "dense": 0.001}, {"bm25": 0.5, "dense": 0.002}),
        DocumentChange("recalled", 0, 1, {"bm25": 0.0}, {"bm25": 0.0}),
        DocumentChange("hardly", 1, 1, {"bm25": 0.001}, {"bm25": 0.002}),
    ]
    queries = [
        QueryChange("better", ["a"], ["b"], 0.0, 1.0),
        QueryChange("other", ["a"], ["b"], 0.0, 0.0),
    ]
    travel._show_diff(EpochDiff(0, 1, documents, queries, 2))
    shown = capsys.readouterr().out
    assert "0.00 → 0.00" not in shown
    assert "bm25 0.00 → 0.50" in shown
    assert "recalled" in shown
    assert ("hardly" in shown, "1 document whose keys moved too little to be shown" in shown) == (False, True)
    assert ("other" in shown, "1 question with different results, neither better nor worse" in shown) == (False, True)
