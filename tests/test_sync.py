"""A folder that is added again is brought up to date: only what changed is read, and nothing stored is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import evokey
from evokey import ingest
from evokey.cli import adding
from evokey.cli.app import app
from evokey.types import Document

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "1000"})


def write(path: Path, content: str | bytes = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def at(tmp_path: Path) -> Path:
    run("init", "--at", tmp_path / "kb", "--encoder", "bm25")
    return tmp_path / "kb"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name in ("a.md", "b.txt", "sub/c.py", "sub/d.html"):
        write(tmp_path / "docs" / name, f"words of {name}")
    return tmp_path / "docs"


def add(at: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    result = run("add", *arguments, "--at", at, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def ids(at: Path) -> set[str]:
    with evokey.open(at) as memory:
        return {hit.id for hit in memory.search("words", k=100)}


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    whole = adding.read_documents

    def read(file: ingest.File, child: ingest.ChildReader) -> Any:
        names.append(file.path.name)
        return whole(file, child)

    monkeypatch.setattr(adding, "read_documents", read)
    return names


def test_unchanged_files_are_not_read_again_and_changed_ones_are(at: Path, docs: Path, files_read: list[str]) -> None:
    assert add(at, docs)["added"] == 4
    files_read.clear()
    found = add(at, docs)
    assert (found["added"], found["unchanged"], files_read) == (0, 4, [])
    write(docs / "b.txt", "other words")
    os.utime(docs / "a.md", (1, 1))
    found = add(at, docs)
    assert (found["added"], found["unchanged"], files_read) == (1, 3, ["b.txt"])
    files_read.clear()
    assert (add(at, docs)["unchanged"], files_read) == (4, [])
    assert run("add", docs, "--at", at).stdout == "added 0 documents; 4 unchanged; the memory holds 4\n"


def test_files_of_another_version_of_the_readers_are_read_again(
    at: Path, docs: Path, files_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(at, docs)
    files_read.clear()
    monkeypatch.setattr("evokey.ingest.files.READER", 99)
    add(at, docs)
    assert len(files_read) == 4


def test_a_document_that_was_deleted_or_replaced_by_hand_comes_back(at: Path, docs: Path) -> None:
    add(at, docs)
    with evokey.open(at) as memory:
        memory.delete(["docs/a.md"])
        memory.add([Document("docs/b.txt", "something else")])
    assert add(at, docs, "--replace")["added"] == 2
    assert ids(at) == {"docs/a.md", "docs/b.txt", "docs/sub/c.py", "docs/sub/d.html"}


def test_documents_of_files_that_are_gone_are_removed_only_when_asked(at: Path, docs: Path, tmp_path: Path) -> None:
    add(at, docs)
    add(at, write(tmp_path / "elsewhere" / "e.md"))
    (docs / "a.md").unlink()
    (tmp_path / "elsewhere" / "e.md").unlink()
    found = add(at, docs)
    assert (found["removed"], found["gone"]) == (0, [str(docs / "a.md")])
    assert "gone " in (told := run("add", docs, "--at", at).stdout) and "remove the documents with --prune" in told
    assert "docs/a.md" in ids(at)
    found = add(at, docs, "--prune")
    assert (found["removed"], found["gone"], found["documents"]) == (1, [], 4)
    assert ids(at) == {"docs/b.txt", "docs/sub/c.py", "docs/sub/d.html", "e.md"}


def test_what_gitignore_leaves_out_is_left_out_and_counted(at: Path, docs: Path) -> None:
    write(docs / ".gitignore", "*.txt\nbuild/\n!keep.txt\n")
    write(docs / "sub" / ".gitignore", "d.html\n")
    write(docs / "build" / "x.md")
    write(docs / "keep.txt")
    found = add(at, docs)
    assert ids(at) == {"docs/a.md", "docs/sub/c.py", "docs/keep.txt"}
    left = {Path(one["path"]).name for one in found["skipped"] if one["reason"] == "left out by .gitignore"}
    assert left == {"b.txt", "build", "d.html"}
    assert add(at, docs, "--no-gitignore")["documents"] == 6


def test_the_gitignore_of_the_repository_around_a_folder_counts(at: Path, docs: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".gitignore", "/docs/a.md\n*.html\n")
    add(at, docs)
    assert ids(at) == {"docs/b.txt", "docs/sub/c.py"}


def test_include_and_exclude_choose_files(at: Path, docs: Path) -> None:
    add(at, docs, "--include", "*.md", "--include", "sub/**", "--exclude", "*.html")
    assert ids(at) == {"docs/a.md", "docs/sub/c.py"}


def test_a_broken_file_is_named_at_the_end_and_the_rest_goes_in(at: Path, docs: Path) -> None:
    write(docs / "bad.pdf", "no pdf")
    write(docs / "bad.jsonl", '{"id": "x", "text": 5}')
    found = add(at, docs, code=FAILED)
    assert found["added"] == 4
    assert [Path(one["path"]).name for one in found["failed"]] == ["bad.jsonl", "bad.pdf"]
    assert all(one["path"] in one["reason"] for one in found["failed"])
    told = run("add", docs, "--at", at)
    assert (
        told.exit_code == FAILED and "not added 2 files:\n" in told.stdout and "bad.pdf cannot be read" in told.stdout
    )


def test_strict_adds_nothing_if_a_file_is_broken(at: Path, docs: Path) -> None:
    write(docs / "bad.pdf", "no pdf")
    result = run("add", docs, "--strict", "--at", at)
    assert result.exit_code == WRONG_USE and "bad.pdf cannot be read as pdf" in result.stderr
    assert ids(at) == set()
    (docs / "bad.pdf").unlink()
    assert add(at, docs, "--strict")["added"] == 4


def test_an_interrupted_add_keeps_what_it_stored_and_goes_on_from_there(
    at: Path, docs: Path, files_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "BATCH", 1)
    whole = adding.read_documents

    def interrupt(file: ingest.File, child: ingest.ChildReader) -> Any:
        if file.path.name == "c.py":
            raise KeyboardInterrupt
        return whole(file, child)

    with monkeypatch.context() as patched:
        patched.setattr(adding, "read_documents", interrupt)
        stopped = run("add", docs, "--at", at)
    assert stopped.exit_code == INTERRUPTED and "2 documents stored" in stopped.stderr
    files_read.clear()
    assert (add(at, docs)["added"], files_read) == (2, ["c.py", "d.html"])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_add_is_resumed(at: Path, tmp_path: Path, files_read: list[str]) -> None:
    for number in range(400):
        write(tmp_path / "many" / f"{number:03}.py", f"words = {number}\n" * 50)
    code = "import sys; from evokey.cli import adding, app; adding.BATCH = 5; app.app(['add', *sys.argv[1:]])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "many"), "--at", str(at)], stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with evokey.open(at) as memory:
            if len(memory) >= 20:
                break
        time.sleep(0.05)
    process.kill()
    process.wait()
    with evokey.open(at) as memory:
        stored = len(memory)
    files_read.clear()
    found = add(at, tmp_path / "many")
    assert stored >= 20 and (found["added"], found["documents"]) == (400 - stored, 400)
    assert len(files_read) == 400 - stored


def test_a_lesson_survives_when_its_file_is_edited_and_synchronised(at: Path, tmp_path: Path) -> None:
    text = "The boiler is in the cellar. It is filled in March and in October. Press the button when the lamp is red."
    page = write(tmp_path / "docs" / "heating.md", text)
    write(tmp_path / "docs" / "other.md", "Apples are on the shelf.")
    add(at, tmp_path / "docs")
    run("feedback", "radiator is cold", "-r", "docs/heating.md", "--at", at)
    run("evolve", "--at", at)
    write(page, text.replace("March", "April"))
    add(at, tmp_path / "docs")
    with evokey.open(at) as memory:
        assert [hit.id for hit in memory.search("cold radiator")] == ["docs/heating.md"]
        assert memory.stats().carried_over == 1
