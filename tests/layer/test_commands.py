"""The command line on a layer: all but searching works without the search function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from layer.library import Library, teach
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.demo.run import Question


@pytest.fixture
def folder(tmp_path: Path, pages: list[evokey.Document], questions: list[Question]) -> Path:
    with evokey.beside(Library(pages).search, tmp_path / "kb") as layer:
        teach(layer, questions, 24)
    return tmp_path / "kb"


def run(folder: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--at", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refuse(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--at", str(folder), "--json"])
    assert done.exit_code != 0
    return done.output


def test_a_layer_evolves_is_looked_into_and_forgets(folder: Path, questions: list[Question], tmp_path: Path) -> None:
    assert run(folder, "stats")["lessons"] == 24
    assert run(folder, "evolve")["published"]
    assert [one["epoch"] for one in run(folder, "epochs")] == [0, 1]
    assert run(folder, "diff", "0", "1")["queries_compared"] == 24
    taught = run(folder, "lessons")[0]
    (document, *_) = taught["relevant"]
    assert run(folder, "explain", document)["lesson_count"] > 0
    assert run(folder, "feedback", "where is the file?", "-r", document)["lessons"] == [25]
    assert run(folder, "rollback", "0")["held"] == 25
    assert run(folder, "backup", str(tmp_path / "copy")) == {"backup": str(tmp_path / "copy")}
    assert run(folder, "forget", "--actor", "demo")["lessons"] == 24
    assert run(folder, "protect") == {}


def test_evolve_says_in_words_what_likeness_follows(folder: Path) -> None:
    done = CliRunner().invoke(app, ["evolve", "--at", str(folder)])
    assert done.exit_code == 0, done.output
    assert any(f"likeness by {name} " in done.output for name in ("bm25", "wordllama", "engine")), done.output


def test_what_needs_documents_or_the_search_function_says_so(folder: Path) -> None:
    assert "layer beside a search function" in refuse(folder, "search", "a path")
    assert "layer beside a search function" in refuse(folder, "stats", "--learned")
    assert "layer beside a search function" in refuse(folder, "stats", "--where", "lang=en")
    assert "layer beside a search function" in refuse(folder, "forget", "--traffic")
    assert "expansion units" in refuse(folder, "feedback", "a path", "-r", "os", "--unit", "a folder")
