"""Learned sparse keys in Milvus: a file of milvus-lite. The server that runs here is too old, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Opener, ranking
from milvus_server import MilvusProcess

import evokey
from evokey.errors import InvalidSettings
from evokey.protocols import Bag, Cost
from evokey.scoring.sparse import SparseQuestion
from evokey.stores import milvus_sparse

QUERIES = ("my colleague broke everything yesterday", "record changes", "a clean tree", "who wrote this line")


class Learned:
    """As a learned encoder would: every word of a text and its beginning, each with a weight of its own."""

    kind: ClassVar[str] = "sparse"
    cost: ClassVar[Cost] = "nothing"
    identity = "learned/weights"

    def documents(self, texts: Sequence[str]) -> list[Bag]:
        return [{part: 0.2 + len(part) / 7 for part in _parts(text)} for text in texts]

    queries = documents

    def pivots(self, lengths: Any, average: float) -> None:
        return None

    def idf(self, documents: int, frequency: int) -> float:
        return 1.0


def _parts(text: str) -> set[str]:
    words = {word.strip(".,").lower() for word in text.split()}
    return (words | {f"{word[:4]}…" for word in words}) - {"", "…"}


@pytest.fixture
def lite(tmp_path: Path) -> dict[str, Any]:
    return {"name": "milvus-sparse", "uri": str(tmp_path / "keys.db"), "consistency": "Strong"}


def found(memory: evokey.Memory, **asked: Any) -> list[list[tuple[str, float]]]:
    return [ranking(memory, query, **asked) for query in QUERIES]


@pytest.mark.parametrize("numbers", [milvus_sparse.TERMS, 5], ids=["terms have numbers", "several share one"])
def test_a_learned_sparse_memory_learns_and_forgets_as_with_keys_of_its_own(
    opened: Opener,
    commands: list[evokey.Document],
    lite: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    numbers: int,
) -> None:
    monkeypatch.setattr(milvus_sparse, "TERMS", numbers)
    there, own = opened("there", encoder=Learned(), store=lite), opened("own", encoder=Learned())
    assert [type(one.store).__name__ for one in there.index.originals] == ["MilvusSparse"]
    for memory in (there, own):
        memory.add(commands)
        memory.add([evokey.Document("blank", ""), evokey.Document("git-tag", "Name a state.", "", {"tool": "tag"})])
        memory.delete(["git-clone"])
    untaught = found(own)
    assert found(there) == untaught and [len(hits) for hits in untaught] != [0] * 4
    assert found(there, where={"tool": "git"}, k=2) == found(own, where={"tool": "git"}, k=2)
    for memory in (there, own):
        memory.feedback(QUERIES[0], relevant=["git-revert"], actor="ada")
        memory.feedback(QUERIES[3], relevant=["git-blame"], irrelevant=["git-log"], actor="bob")
        assert memory.evolve().published
    taught = found(own)
    assert found(there) == taught != untaught
    there.close()
    again = opened("there", encoder=Learned())
    assert found(again) == taught and again.stats().documents_without_keys == 0
    again.forget(actor="ada")
    again.forget(actor="bob")
    assert found(again) == untaught


def test_beside_dense_keys_each_goes_to_its_own_collection(
    opened: Opener, commands: list[evokey.Document], lite: dict[str, Any]
) -> None:
    own = opened("own", encoder=[Learned(), "wordllama"])
    there = opened("there", encoder=[Learned(), "wordllama"], store=lite)
    assert [type(one.store).__name__ for one in there.index.originals] == ["MilvusSparse", "FlatStore"]
    for memory in (own, there):
        memory.add(commands)
    assert found(there) == found(own)


def test_bm25_stays_in_the_process_because_its_weights_follow_the_collection(
    opened: Opener, lite: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSettings, match=r"follows the whole collection.*store 'sparse'"):
        opened("kb", encoder="bm25", store=lite)


def test_a_question_of_which_nothing_weighs_finds_nothing(
    opened: Opener, commands: list[evokey.Document], lite: dict[str, Any]
) -> None:
    memory = opened("kb", encoder=Learned(), store=lite)
    assert memory.search("record") == []
    memory.add(commands)
    snapshot: Any = memory.index.retrievers[0].base
    nothing = SparseQuestion((), (), Learned(), 0.0, (), (), 1.0)
    assert len(snapshot.search([nothing], 3)[0].ranking) == 0
    assert memory.search("zzz qqq") == [] and snapshot.counts.frequencies(["record", "qqq"]) == [1, 0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    with MilvusProcess(tmp_path_factory.mktemp("milvus")) as process:
        yield process


def test_a_server_without_sparse_vectors_is_refused_with_the_way_out(opened: Opener, server: MilvusProcess) -> None:
    store = {"name": "milvus-sparse", "uri": server.uri}
    with pytest.raises(InvalidSettings, match=r"2\.3\.5.*came with 2\.4.*Upgrade it.*store 'sparse'"):
        opened("kb", encoder=Learned(), store=store)
