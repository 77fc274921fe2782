"""The Milvus server is killed in the middle of what a memory does, and started again: the memory is whole.

Each start takes half a minute or more, so these run by `make milvus-kills`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener, ranking
from milvus_server import MilvusProcess
from test_shared import DOCUMENTS, LESSONS, Doing

import evokey
from evokey.errors import StoreFailed
from evokey.inspect import migrate as migrate_
from evokey.inspect.migrate import migrate
from evokey.stores.milvus import MilvusStore
from evokey.stores.milvus_shelf import MilvusShelf

pytestmark = pytest.mark.skipif("EVOKEY_MILVUS_KILLS" not in os.environ, reason="takes minutes: make milvus-kills")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[MilvusProcess]:
    """A server of its own: it is killed. One that was killed again and again may not come back in time."""
    with MilvusProcess(tmp_path / "milvus") as process:
        yield process


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evokey.stores.milvus_collection.SECONDS", 3.0)


@pytest.fixture
def twin(tmp_path: Path) -> Iterator[evokey.Memory]:
    """A memory that nothing happens to."""
    with evokey.open(tmp_path / "twin", encoder="wordllama") as memory:
        memory.add(DOCUMENTS)
        memory.feedback_many(LESSONS)
        yield memory


def kill_at(
    engine: MilvusProcess, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, call: int
) -> threading.Event:
    """Kill the server when a method is called for so many times; it goes on to ask the server."""
    asked, killed, before = [0], threading.Event(), getattr(owner, method)

    def count(self: Any, *given: Any, **named: Any) -> Any:
        asked[0] += 1
        if asked[0] == call:
            engine.kill()
            killed.set()
        return before(self, *given, **named)

    monkeypatch.setattr(owner, method, count)
    return killed


def whole(memory: evokey.Memory, twin: evokey.Memory) -> None:
    """It says what a memory says that nothing has happened to."""
    assert len(memory) == len(DOCUMENTS) and memory.stats().documents_without_keys == 0
    for lesson in LESSONS:
        assert ranking(memory, lesson["query"]) == ranking(twin, lesson["query"])


def try_again(work: Callable[[], Any]) -> Any:
    """A server that has just started loads what it holds."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return work()
        except StoreFailed:
            if time.monotonic() > deadline:
                raise


@pytest.mark.parametrize("after", [0.05, 0.4])
def test_the_server_is_killed_in_the_middle_of_an_upsert(
    engine: MilvusProcess, opened: Opener, twin: evokey.Memory, after: float
) -> None:
    store = {"name": "milvus", "uri": engine.uri}
    memory = opened("kb", encoder="wordllama", store=store)
    memory.add(DOCUMENTS[:50])
    doing = Doing(lambda: [memory.add(DOCUMENTS[at : at + 10]) for at in range(50, 300, 10)])
    time.sleep(after)
    engine.kill()
    with pytest.raises(StoreFailed, match="written when it answers again"):
        doing.wait()
    engine.start()
    assert try_again(lambda: memory.add(DOCUMENTS)) == len(DOCUMENTS)
    whole(memory, twin)
    memory.close()
    whole(opened("kb"), twin)


@pytest.mark.parametrize(
    ("owner", "method", "call"),
    [(MilvusStore, "fetch", 1), (MilvusStore, "search", 3), (MilvusShelf, "write", 1)],
    ids=["it fetches keys", "it searches", "the shelf is filled"],
)
def test_the_server_is_killed_in_the_middle_of_an_evolve(
    engine: MilvusProcess,
    opened: Opener,
    twin: evokey.Memory,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    call: int,
) -> None:
    memory = opened("kb", encoder="wordllama", store={"name": "milvus", "uri": engine.uri, "shelve_from": 1})
    memory.add(DOCUMENTS)
    memory.feedback_many(LESSONS[:-1])
    assert memory.evolve().published
    memory.feedback(**LESSONS[-1])
    memory.ledger.pools.clear()  # as after an import: evolve takes them again
    twin.evolve()
    with monkeypatch.context() as patched:
        killed = kill_at(engine, patched, owner, method, call)
        try:
            memory.evolve()
        except StoreFailed:
            assert memory.epoch in (1, 2)
        else:  # published before it went: what was learned stays in the process
            assert memory.epoch == 2
        assert killed.is_set()
    engine.start()
    try_again(memory.evolve)
    assert [one.kind for one in memory.epochs()] == ["untaught", "evolve", "evolve"]
    assert memory.epochs()[-1].choice == twin.epochs()[-1].choice
    assert len(memory.lessons()) == len(LESSONS)
    whole(memory, twin)
    memory.close()
    whole(opened("kb"), twin)


@pytest.mark.parametrize("call", [1, 3, 6])
def test_the_server_is_killed_in_the_middle_of_a_migration(
    engine: MilvusProcess, twin: evokey.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    twin.evolve()
    twin.close()
    monkeypatch.setattr(migrate_, "PIECE", 50)
    store = {"name": "milvus", "uri": engine.uri, "collection": f"moved_{call}"}
    with monkeypatch.context() as patched:
        killed = kill_at(engine, patched, MilvusStore, "write", call)
        with pytest.raises(StoreFailed):
            migrate(tmp_path / "twin", tmp_path / "there", store)
        assert killed.is_set() and not (tmp_path / "there").exists()
    engine.start()
    done = try_again(lambda: migrate(tmp_path / "twin", tmp_path / "there", store))
    assert done.documents == len(DOCUMENTS) and done.lessons == len(LESSONS) and done.overlap >= 0.99
    with evokey.open(tmp_path / "there") as memory, evokey.open(tmp_path / "twin") as source:
        whole(memory, source)
        assert memory.lessons() == source.lessons() and memory.epochs() == source.epochs()
