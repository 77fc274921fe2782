"""No document is lost by adding another: ids come from a named root, and nothing is left out unsaid."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import evokey
from evokey import ingest
from evokey.cli.app import app
from evokey.errors import InvalidDocument

WRONG_USE = 2


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "1000"})


def value(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write(path: Path, content: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def at(tmp_path: Path) -> Path:
    run("init", "--at", tmp_path / "kb", "--encoder", "bm25")
    return tmp_path / "kb"


def add(at: Path, *arguments: object) -> Any:
    return value(run("add", *arguments, "--at", at, "--json"))


def refusal(at: Path, *arguments: object) -> str:
    """Why nothing was added."""
    before = held(at)
    result = run("add", *arguments, "--at", at)
    assert (result.exit_code, result.stdout) == (WRONG_USE, "")
    assert held(at) == before
    return result.stderr


def held(at: Path) -> dict[str, str]:
    """Text by id."""
    with evokey.open(at) as memory:
        return {hit.id: hit.document.text for hit in memory.search("words", k=100)}


# ---- ids come from a named root


def test_two_folders_with_files_of_the_same_name_give_two_documents(tmp_path: Path, at: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name / "README.md", f"words of {name}")
        add(at, tmp_path / name)
    assert held(at) == {"a/README.md": "words of a", "b/README.md": "words of b"}


def test_a_folder_that_is_added_again_replaces_its_own_documents(tmp_path: Path, at: Path) -> None:
    file = write(tmp_path / "a" / "README.md", "old words")
    add(at, tmp_path / "a")
    write(file, "new words")
    assert add(at, tmp_path / "a")["documents"] == 1
    assert held(at) == {"a/README.md": "new words"}


def test_the_folder_one_stands_in_is_called_by_its_name(
    tmp_path: Path, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a" / "sub" / "x.txt")
    monkeypatch.chdir(tmp_path / "a")
    add(at, ".")
    add(at, tmp_path / "a")
    add(at, "sub/../../a")
    assert list(held(at)) == ["a/sub/x.txt"]


def test_a_file_that_is_known_keeps_its_id_however_it_is_named(tmp_path: Path, at: Path) -> None:
    file = write(tmp_path / "a" / "sub" / "x.txt", "old words")
    add(at, tmp_path / "a")
    write(file, "new words")
    write(tmp_path / "a" / "sub" / "y.txt", "more words")
    add(at, file)
    add(at, tmp_path / "a" / "sub")
    assert held(at) == {"a/sub/x.txt": "new words", "sub/y.txt": "more words"}
    with evokey.open(at) as memory:
        assert memory.get("a/sub/x.txt").metadata["path"] == "a/sub/x.txt"


def test_the_same_id_from_another_path_is_an_error_that_names_both_and_the_way_out(tmp_path: Path, at: Path) -> None:
    first, second = (write(tmp_path / place / "docs" / "x.md", f"{place} words") for place in ("one", "two"))
    add(at, tmp_path / "one" / "docs")
    told = refusal(at, tmp_path / "two" / "docs")
    assert f"{second} would replace the document 'docs/x.md', which came from {first}" in told
    assert f"--root {tmp_path}; or, if the file has moved, replace it with --replace" in told
    add(at, tmp_path / "two" / "docs", "--root", tmp_path)
    assert held(at) == {"docs/x.md": "one words", "two/docs/x.md": "two words"}


def test_a_folder_that_has_moved_replaces_its_documents_when_asked(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "one" / "docs" / "x.md", "old words")
    add(at, tmp_path / "one" / "docs")
    (tmp_path / "one").rename(tmp_path / "two")
    write(tmp_path / "two" / "docs" / "x.md", "new words")
    assert "if the file has moved" in refusal(at, tmp_path / "two" / "docs")
    add(at, tmp_path / "two" / "docs", "--replace")
    add(at, tmp_path / "two" / "docs")
    assert held(at) == {"docs/x.md": "new words"}


def test_files_of_the_same_name_in_one_call_are_told_apart_by_a_root(tmp_path: Path, at: Path) -> None:
    files = [write(tmp_path / place / "x.md") for place in ("one", "two")]
    told = refusal(at, *files)
    assert f"{files[0]} and {files[1]} both give a document 'x.md'" in told
    assert f"--root {tmp_path}" in told
    add(at, *files, "--root", tmp_path)
    assert sorted(held(at)) == ["one/x.md", "two/x.md"]


def test_a_file_is_added_once_though_two_paths_hold_it(tmp_path: Path, at: Path) -> None:
    file = write(tmp_path / "a" / "x.md")
    assert add(at, tmp_path / "a", file)["added"] == 1
    assert list(held(at)) == ["a/x.md"]


def test_another_root_does_not_add_a_file_a_second_time(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "a" / "x.md")
    add(at, tmp_path / "a")
    told = refusal(at, tmp_path / "a", "--root", tmp_path / "a")
    assert "is in the memory as 'a/x.md', and --root would add it again as 'x.md'; without --root" in told


def test_a_root_that_holds_the_file_not_is_named(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "a" / "x.md")
    assert f"is not below the root {tmp_path / 'b'}" in refusal(at, tmp_path / "a", "--root", tmp_path / "b")


def test_a_file_does_not_take_the_place_of_a_document_handed_in_by_id(tmp_path: Path, at: Path) -> None:
    with evokey.open(at) as memory:
        memory.add([{"id": "x.md", "text": "my own words"}])
    file = write(tmp_path / "x.md")
    assert "would replace the document 'x.md', which did not come from this file" in refusal(at, file)
    add(at, file, "--replace")
    assert held(at) == {"x.md": "words"}


def test_documents_handed_in_by_id_replace_one_another_wherever_they_come_from(tmp_path: Path, at: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", json.dumps({"id": "x.md", "text": f"words of {name}"}))
        add(at, tmp_path / f"{name}.jsonl")
    assert held(at) == {"x.md": "words of b"}
    add(at, write(tmp_path / "x.md"), "--replace")
    add(at, tmp_path / "a.jsonl")
    with evokey.open(at) as memory:
        assert memory.sources(["x.md", "absent"]) == {"x.md": None}
        assert memory.files([str(tmp_path / "x.md")]) == {}


def test_a_deleted_document_leaves_no_source_behind(tmp_path: Path, at: Path) -> None:
    file = write(tmp_path / "x.md")
    add(at, file)
    with evokey.open(at) as memory:
        assert memory.sources(["x.md"]) == {"x.md": str(file)}
        memory.delete(["x.md"])
        assert memory.files([str(file)]) == {}


def test_an_id_that_two_files_of_one_folder_give_is_an_error(tmp_path: Path, at: Path) -> None:
    for name in ("p", "q"):
        write(tmp_path / "a" / f"{name}.jsonl", '{"id": "x", "text": "words"}')
    assert "q.jsonl both give a document 'x'; change one of the ids" in refusal(at, tmp_path / "a")


def test_a_document_that_comes_twice_in_a_file_is_counted(tmp_path: Path, at: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"id": "x", "text": "old words"}\n{"id": "x", "text": "new words"}\n')
    found = add(at, file)
    assert (found["added"], found["repeated"], found["documents"], found["skipped"]) == (1, 1, 1, [])
    assert held(at) == {"x": "new words"}
    assert "1 document came twice in a file: the later one counts" in run("add", file, "--at", at).stdout


# ---- memories made before


@pytest.fixture
def old(tmp_path: Path, at: Path) -> Path:
    """As the first version left it after `add docs`: ids without the folder's name, no source."""
    with evokey.open(at) as memory:
        memory.add([{"id": "sub/x.md", "text": "old words", "metadata": {"path": "sub/x.md"}}])
    write(tmp_path / "docs" / "sub" / "x.md", "new words")
    return at


def test_the_files_of_an_old_memory_do_not_come_in_twice_unsaid(tmp_path: Path, old: Path) -> None:
    told = refusal(old, tmp_path / "docs")
    assert f"--root {tmp_path / 'docs'} --replace" in told
    assert f"add it beside with: --root {tmp_path}" in told


def test_the_files_of_an_old_memory_are_replaced_under_their_old_ids(tmp_path: Path, old: Path) -> None:
    add(old, tmp_path / "docs", "--root", tmp_path / "docs", "--replace")
    assert held(old) == {"sub/x.md": "new words"}
    add(old, tmp_path / "docs")
    assert held(old) == {"sub/x.md": "new words"}


def test_other_files_are_added_beside_those_of_an_old_memory(tmp_path: Path, old: Path) -> None:
    add(old, tmp_path / "docs", "--root", tmp_path)
    assert held(old) == {"sub/x.md": "old words", "docs/sub/x.md": "new words"}


# ---- nothing is left out unsaid


def test_files_of_unknown_kind_are_counted_and_named(tmp_path: Path, at: Path) -> None:
    for name in ("x.md", "p.xyz", "sub/q.odt", "LICENSE", ".hidden.pdf", ".git/config"):
        write(tmp_path / "a" / name)
    names = [str(tmp_path / "a" / name) for name in ("LICENSE", "p.xyz", "sub/q.odt")]
    found = add(at, tmp_path / "a")
    assert found["skipped"] == [{"path": name, "reason": "of unknown kind"} for name in names]
    assert f"skipped 3 files of unknown kind: {', '.join(names)}\n" in run("add", tmp_path / "a", "--at", at).stdout


def test_of_many_files_that_are_left_out_the_first_are_named(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "a" / "x.md")
    for number in range(30):
        write(tmp_path / "a" / f"{number:02}.png")
    told = run("add", tmp_path / "a", "--at", at).stdout
    assert "skipped 30 files of unknown kind: " in told
    assert "04.png and 25 more" in told


def test_files_beside_a_beir_corpus_are_named(tmp_path: Path, at: Path) -> None:
    for name in ("queries.jsonl", "qrels/test.tsv", "notes.md"):
        write(tmp_path / "a" / name)
    write(tmp_path / "a" / "corpus.jsonl", '{"_id": "d", "text": "words"}')
    assert [Path(one["path"]).name for one in add(at, tmp_path / "a")["skipped"]] == ["notes.md"]


# ---- links, pipes, sockets, devices


def test_links_in_a_folder_are_not_followed_and_named(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "secret" / "key.txt", "secret words")
    write(tmp_path / "a" / "x.md")
    (tmp_path / "a" / "file.txt").symlink_to(tmp_path / "secret" / "key.txt")
    (tmp_path / "a" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "broken.txt").symlink_to(tmp_path / "nowhere")
    skipped = add(at, tmp_path / "a")["skipped"]
    assert [Path(one["path"]).name for one in skipped] == ["broken.txt", "file.txt", "folder", "loop"]
    assert {one["reason"] for one in skipped} == {"behind a link"}
    assert held(at) == {"a/x.md": "words"}


def test_a_link_that_is_named_is_followed_and_keeps_its_name(tmp_path: Path, at: Path) -> None:
    write(tmp_path / "release-1" / "x.md", "old words")
    write(tmp_path / "release-2" / "x.md", "new words")
    current = tmp_path / "current"
    for release in ("release-1", "release-2"):
        current.unlink(missing_ok=True)
        current.symlink_to(tmp_path / release)
        add(at, current)
    assert held(at) == {"current/x.md": "new words"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_sockets_never_block(tmp_path: Path, at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a" / "x.md")
    os.mkfifo(tmp_path / "a" / "pipe.md")
    monkeypatch.chdir(tmp_path / "a")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.md")
        skipped = add(at, tmp_path / "a")["skipped"]
        assert [Path(one["path"]).name for one in skipped] == ["pipe.md", "socket.md"]
        assert {one["reason"] for one in skipped} == {"of a special kind (pipe, socket or device)"}
        for name in ("pipe.md", "socket.md"):
            assert "is a pipe, socket, device or broken link, not a file" in refusal(at, tmp_path / "a" / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_beir_corpus_that_is_a_pipe_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.md")
    os.mkfifo(tmp_path / "a" / "corpus.jsonl")
    assert [file.id for file in ingest.listing(tmp_path / "a").files] == ["a/x.md"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("closed", ["sub", "sub/x.md"])
def test_what_cannot_be_read_is_an_error_not_a_silent_loss(tmp_path: Path, closed: str) -> None:
    write(tmp_path / "a" / "sub" / "x.md")
    (tmp_path / "a" / closed).chmod(0)
    with pytest.raises(InvalidDocument, match="cannot be read: Permission denied"):
        list(ingest.read(tmp_path / "a"))
    (tmp_path / "a" / closed).chmod(0o700)


# ---- cells, numbers, nesting


@pytest.mark.parametrize(
    ("cell", "meant"),
    [
        ("501", 501),
        ("-3", -3),
        ("0", 0),
        ("1.50", 1.5),
        ("1.5e-03", 0.0015),
        ("00501", "00501"),
        ("+49", "+49"),
        ("1_000", "1_000"),
        ("12e4", "12e4"),
        (" 5", " 5"),
        ("٣", "٣"),
        ("nan", "nan"),
        ("1e+999", "1e+999"),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), str(2**63)),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_a_cell_is_a_number_only_where_it_can_mean_nothing_else(tmp_path: Path, cell: str, meant: object) -> None:
    [document] = ingest.read(write(tmp_path / "a.csv", f"id,text,zip\nx,words,{cell}\n"))
    assert document.metadata == {"zip": meant}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.jsonl", '{"id": "x", "text": "w", "n": %s}' % ("9" * 5_000), "line 1 has a number of too many digits"),
        ("a.jsonl", '{"id": %s, "text": "w"}' % ("9" * 5_000), "line 1 has a number of too many digits"),
        (
            "a.jsonl",
            '{"id": "x", "text": "w", "n": %s}' % ("[" * 100_000),
            "line 1 has lists or objects more than 50 deep",
        ),
        ("a.jsonl", '{"id": "x", "text": "w", "n": %s}' % ("[" * 60 + "]" * 60), "more than 50 deep; use fewer levels"),
        ("a.jsonl", '{"id": [1], "text": "w"}', "line 1: id must be a string or a number, not list"),
        ("a.jsonl", '{"id": "x", "text": "\\ud800"}', r"a\.jsonl: document 'x': text is not valid Unicode"),
        ("a.csv", "id,text,text\nx,one,two\n", "the header names the column 'text' 2 times"),
        ("a.csv", f"id,text\nx,{'a' * 200_000}\n", "field larger than field limit.*write the table as JSONL"),
    ],
)
def test_files_that_no_document_can_be_made_of_are_named_with_the_way_out(
    tmp_path: Path, at: Path, name: str, content: str, complaint: str
) -> None:

    assert re.search(complaint, refusal(at, write(tmp_path / name, content)))


def test_a_heading_too_long_for_a_title_is_none(tmp_path: Path, at: Path) -> None:
    add(at, write(tmp_path / "guide.md", "# " + "words " * 10_000))
    with evokey.open(at) as memory:
        assert memory.get("guide.md").title == "guide"
