"""A memory moves between a directory and a database, or between stores: nothing is lost, and the source stays."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking
from postgres_server import Server
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import InvalidInput, MigrationFailed, NotAMemory
from evokey.inspect.migrate import migrate
from evokey.ledger import copying
from evokey.postgres.address import Address

QUERIES = ("my colleague broke everything yesterday", "who wrote this line", "a clean tree", "record changes")


@pytest.fixture
def source(opened: Opener, tmp_path: Path, commands: list[evokey.Document]) -> Path:
    """A directory with everything that a memory may hold."""
    memory = opened("old")
    memory.add(commands)
    memory.add(
        [evokey.Document("note", "Ünïcode, 'quotes' and {braces}", "", {"year": 2024, "tags": ["x", 1.5, True]})]
    )
    memory.search("what was searched")
    memory.feedback(QUERIES[0], relevant=["git-revert"], units=["undo what others did"], actor="ada")
    memory.feedback(QUERIES[1], relevant={"git-blame": 2.0}, irrelevant=["git-log"], actor="bob")
    assert memory.evolve().published
    memory.feedback(QUERIES[2], relevant=["git-stash"])
    memory.evolve()
    memory.protect("copy a repository", relevant=["git-clone"])
    memory.delete(["git-merge"])
    memory.hold([memory.lessons()[-1].number])
    memory.forget(actor="bob")
    memory.close()
    return tmp_path / "old"


def told(memory: evokey.Memory) -> Any:
    """All that a memory says of itself."""
    epochs = [one.number for one in memory.epochs()]
    found = {(query, epoch): ranking(memory, query, epoch=epoch) for query in QUERIES for epoch in epochs}
    filters: list[Any] = [{"year": {"gte": 2024}}, {"tags": [1.5]}, {"tags": "x"}]
    filtered = [ranking(memory, "tree", where=where) for where in filters]
    return found, filtered, memory.lessons(), memory.epochs(), memory.protected_queries(), memory.traffic(), len(memory)


def bytes_of(folder: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.npy")))).hexdigest()


def test_a_memory_moves_into_a_database_and_back(server: Server, source: Path, tmp_path: Path) -> None:
    address = Address(server.url, server.fresh_name())
    with evokey.open(source) as memory:
        wanted = told(memory)
    keys, checksum = bytes_of(source), hashlib.sha256((source / "ledger.sqlite").read_bytes()).hexdigest()
    done = migrate(source, address)
    assert (done.documents, done.overlap, done.equal_scores) == (8, 1.0, True)
    assert (bytes_of(source), hashlib.sha256((source / "ledger.sqlite").read_bytes()).hexdigest()) == (keys, checksum)
    with evokey.open(address) as shared:
        assert [one.store and one.store["name"] for one in shared.settings.retrievers] == ["sparse", "pgvector"]
        assert told(shared) == wanted
    migrate(address, tmp_path / "new")
    with evokey.open(tmp_path / "new") as again:
        assert [one.store and one.store["name"] for one in again.settings.retrievers] == ["sparse", "flat"]
        assert told(again) == wanted
        again.add([evokey.Document("late", "added after the move")])
        lesson = again.feedback("after the move", relevant=["late"])
    with evokey.open(source) as memory:
        assert lesson.number > max(one.number for one in memory.lessons())


def test_numbers_of_forgotten_lessons_are_not_given_again(server: Server, opened: Opener, tmp_path: Path) -> None:
    with opened("old") as memory:
        memory.add([evokey.Document("a", "owls")])
        memory.feedback("one", relevant=["a"])
        memory.feedback("two", relevant=["a"], actor="ada")
        memory.forget(actor="ada")
    for place in (Address(server.url, server.fresh_name()), tmp_path / "new"):
        migrate(tmp_path / "old", place)
        with evokey.open(place) as copy:
            assert copy.feedback("three", relevant=["a"]).number == 3
            copy.add([evokey.Document("b", "mice")])
            assert copy.search("mice", 1)[0].id == "b"


@pytest.mark.parametrize("table", ["documents", "lessons", "epochs"])
def test_an_interrupted_migration_goes_on_where_it_was(
    server: Server, source: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    address, copied = Address(server.url, server.fresh_name()), list[str]()
    monkeypatch.setattr(copying, "PIECE", 1)
    copy_piece = copying._copy_piece

    def interrupt(old: Any, new: Any, which: str, rows: Any) -> None:
        if which == table and copied.count(table):
            raise KeyboardInterrupt
        copied.append(which)
        copy_piece(old, new, which, rows)

    monkeypatch.setattr(copying, "_copy_piece", interrupt)
    with pytest.raises(KeyboardInterrupt):
        migrate(source, address)
    with pytest.raises(NotAMemory):
        evokey.memory.open_shared(address, make=False)
    monkeypatch.setattr(copying, "_copy_piece", copy_piece)
    assert migrate(source, address).equal_scores
    with evokey.open(address) as shared, evokey.open(source) as memory:
        assert told(shared) == told(memory)


def test_a_source_that_changed_meanwhile_is_found_out(
    server: Server, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address(server.url, server.fresh_name())
    with monkeypatch.context() as patched:
        patched.setattr(copying, "checksums", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            migrate(source, address)
    with evokey.open(source) as memory:
        memory.delete(["git-log"])
    with pytest.raises(MigrationFailed, match=r"differs from the source in documents, facts.*--restart"):
        migrate(source, address)
    assert migrate(source, address, restart=True).documents == 7


def test_what_is_there_is_not_overwritten(server: Server, source: Path, opened: Opener, shared: Opener) -> None:
    with pytest.raises(InvalidInput, match="exists already"):
        migrate(source, source)
    there = shared("there").place
    with pytest.raises(InvalidInput, match="exists already"):
        migrate(source, there)
    with pytest.raises(NotAMemory):
        migrate(source.with_name("nowhere"), source.with_name("new"))


def test_keys_move_to_another_store(server: Server, source: Path, tmp_path: Path) -> None:
    store = {"name": "pgvector", "uri": server.url, "keys": server.fresh_name()}
    migrate(source, tmp_path / "new", store)
    with evokey.open(tmp_path / "new") as new, evokey.open(source) as old:
        assert told(new) == told(old)
    with pytest.raises(InvalidInput, match="belong to the source"):
        migrate(tmp_path / "new", tmp_path / "newer")
    migrate(tmp_path / "new", tmp_path / "newer", "flat")


def test_keys_move_to_graphs_and_back(source: Path, tmp_path: Path) -> None:
    with evokey.open(source) as old:
        wanted = told(old)[:5]
    migrate(source, tmp_path / "new", {"name": "ann", "build_at": 2})
    with evokey.open(tmp_path / "new") as new:
        assert new.stats().recall == {"wordllama": 1.0}, "a graph was built before the copy took its name"
        assert told(new)[:5] == wanted
    migrate(tmp_path / "new", tmp_path / "newer", "flat")
    with evokey.open(tmp_path / "newer") as newer:
        assert told(newer)[:5] == wanted


def test_keys_move_to_milvus_and_on_to_a_database_and_back(server: Server, source: Path, tmp_path: Path) -> None:
    with evokey.open(source) as old:
        wanted = told(old)[:5]
    store = {"name": "milvus", "uri": str(tmp_path / "keys.db"), "collection": "kb", "consistency": "Strong"}
    migrate(source, tmp_path / "new", store)
    with evokey.open(tmp_path / "new") as new:
        assert told(new)[:5] == wanted
    with pytest.raises(InvalidInput, match="belong to the source"):
        migrate(tmp_path / "new", tmp_path / "newer")
    address = Address(server.url, server.fresh_name())
    migrate(tmp_path / "new", address, "pgvector")
    migrate(address, tmp_path / "newer", {**store, "collection": "kb2"})
    with evokey.open(tmp_path / "newer") as newer:
        assert told(newer)[:5] == wanted


def test_vectors_that_were_handed_in_move_too(server: Server, opened: Opener, tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(5, 8))
    with opened("old", encoder="given") as memory:
        memory.add([evokey.Document(f"d{at}", f"text {at}") for at in range(5)], vectors=vectors)
        memory.feedback("q", relevant=["d3"], vector=vectors[0])
        memory.evolve()
        wanted = ranking(memory, "q", vector=vectors[0])
    address = Address(server.url, server.fresh_name())
    assert migrate(tmp_path / "old", address).equal_scores
    with evokey.open(address) as shared:
        assert ranking(shared, "q", vector=vectors[0]) == wanted


def test_the_command_says_what_it_copied_and_checked(server: Server, source: Path) -> None:
    name = server.fresh_name()
    said = CliRunner().invoke(app, ["migrate", str(source), server.url, "--to-name", name])
    assert said.exit_code == 0, said.output
    assert re.search(r"checked: \d+ tables have equal checksums; \d+ questions find 100.0%", said.output)
    found = CliRunner().invoke(app, ["search", "record changes", "--at", server.url, "--name", name])
    assert "git-revert" in found.output
