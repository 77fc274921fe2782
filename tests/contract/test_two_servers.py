"""A memory with its ledger in PostgreSQL and its dense keys in Milvus, both real servers: all of the story, seen by a
second process, too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Opener, ranking
from milvus_server import MilvusProcess
from postgres_server import Server
from pymilvus import MilvusClient

import evokey

QUERIES = ("my colleague broke everything yesterday", "record changes", "a clean tree", "who wrote this line")
OTHER = """
import json, sys
import evokey
with evokey.open(sys.argv[1], name=sys.argv[2]) as memory:
    for line in sys.stdin:
        hits = [[hit.id, hit.score] for hit in memory.search(**json.loads(line))]
        print(json.dumps([memory.epoch, hits]), flush=True)
"""


class Other:
    """Another process that has the same memory open."""

    def __init__(self, url: str, name: str) -> None:
        command = [sys.executable, "-c", OTHER, url, name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def search(self, query: str, **asked: Any) -> tuple[int, list[tuple[str, float]]]:
        """The epoch that it is at, and what it finds."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"query": query, **asked}) + "\n")
        self._process.stdin.flush()
        epoch, hits = json.loads(self._process.stdout.readline())
        return epoch, [(id, score) for id, score in hits]

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    with MilvusProcess(tmp_path_factory.mktemp("milvus")) as process:
        yield process


def found(memory: evokey.Memory, **asked: Any) -> list[list[tuple[str, float]]]:
    return [ranking(memory, query, **asked) for query in QUERIES]


@pytest.mark.parametrize("shelve_from", [0, 1], ids=["overlays in the process", "overlays on shelves"])
def test_the_whole_story_with_the_ledger_in_postgresql_and_the_keys_in_milvus(
    server: Server, engine: MilvusProcess, opened: Opener, commands: list[evokey.Document], shelve_from: int
) -> None:
    name = server.fresh_name()
    store = {"name": "milvus", "uri": engine.uri, "collection": name, "shelve_from": shelve_from}
    own = opened("own")

    def both() -> tuple[evokey.Memory, evokey.Memory]:
        return memory, own

    with evokey.open(server.url, name=name, store=store) as memory:
        other = Other(server.url, name)
        assert [type(one.store).__name__ for one in memory.index.originals] == ["SparseStore", "MilvusStore"]
        for one in both():
            one.add(commands)
            one.add([evokey.Document("git-tag", "Give a name to a state of the history.", "git tag", {"tool": "tag"})])
            one.delete(["git-clone"])
        untaught = found(own)
        assert found(memory) == untaught and other.search(QUERIES[1]) == (0, untaught[1])
        for one in both():
            one.feedback(QUERIES[0], relevant=["git-revert"], actor="ada")
            assert one.evolve().published
            one.feedback(QUERIES[3], relevant=["git-blame"], irrelevant=["git-log"], actor="bob")
            assert one.evolve().published
        taught = found(own)
        assert found(memory) == taught != untaught and found(memory, epoch=1) == found(own, epoch=1)
        assert [other.search(query) for query in QUERIES] == [(2, hits) for hits in taught]
        asked = {"where": {"tool": "git"}, "k": 3}
        assert found(memory, **asked) == found(own, **asked)
        assert other.search(QUERIES[0], **asked)[1] == ranking(own, QUERIES[0], **asked)
        for one in both():
            one.rollback(1)
        assert found(memory) == found(own) and other.search(QUERIES[3]) == (3, found(own)[3])
        memory.rollback(2)
        assert found(memory) == taught and other.search(QUERIES[0]) == (4, taught[0])
    with evokey.open(server.url, name=name) as memory:
        assert found(memory) == taught and memory.stats().documents_without_keys == 0
        assert memory.forget(actor="ada").erased and memory.forget(actor="bob").erased
        assert found(memory) == untaught and other.search(QUERIES[0])[1] == untaught[0]
        assert memory.lessons() == []
    other.close()
    with evokey.open(server.url, name=name) as memory:
        assert found(memory) == untaught and len(memory) == len(commands)
    client = MilvusClient(engine.uri)
    assert [one for one in client.list_collections() if one.startswith(name)] == [f"{name}_wordllama_v1"]
    client.close()
