"""Keys in Milvus: a file of milvus-lite where that is enough, and a real server that is killed and comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking
from milvus_server import MilvusProcess
from pymilvus import MilvusClient

import evokey
from evokey.errors import InvalidSettings, NotAllowed, StoreFailed
from evokey.inspect import doctor
from evokey.stores import milvus
from evokey.stores.milvus_collection import Collection

QUERIES = ("my colleague broke everything yesterday", "record changes", "a clean tree", "who wrote this line")
COUNT, DIMENSIONS = 600, 16


def unit(seed: int, count: int) -> Any:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS, ASKED = unit(1, COUNT), unit(2, 12)
DOCUMENTS = [{"id": f"d{n}", "text": f"text {n}", "metadata": {"third": n % 3}} for n in range(COUNT)]


@pytest.fixture
def lite(tmp_path: Path) -> dict[str, Any]:
    return {"name": "milvus", "uri": str(tmp_path / "keys.db"), "consistency": "Strong"}


def found(memory: evokey.Memory, **asked: Any) -> list[list[tuple[str, float]]]:
    return [ranking(memory, "asked", vector=vector, **asked) for vector in ASKED]


def overlap(some: list[list[tuple[str, float]]], others: list[list[tuple[str, float]]]) -> float:
    return sum(len({*a} & {*b}) for a, b in zip(some, others, strict=True)) / sum(map(len, others))


def filled(opened: Opener, name: str, **settings: Any) -> evokey.Memory:
    memory = opened(name, encoder="given", **settings)
    memory.add(DOCUMENTS, vectors=VECTORS)
    return memory


def test_a_hybrid_learns_and_forgets_with_its_dense_keys_in_milvus(
    opened: Opener, commands: list[evokey.Document], lite: dict[str, Any], tmp_path: Path
) -> None:
    there, own = opened("there", store=lite), opened("own")
    assert [type(one.store).__name__ for one in there.index.originals] == ["SparseStore", "MilvusStore"]
    for memory in (there, own):
        memory.add(commands)
        memory.delete(["git-clone"])
    untaught = [ranking(there, query) for query in QUERIES]
    assert untaught == [ranking(own, query) for query in QUERIES]
    for memory in (there, own):
        memory.feedback(QUERIES[0], relevant=["git-revert"], actor="ada")
        assert memory.evolve().published
    assert [ranking(there, query) for query in QUERIES] == [ranking(own, query) for query in QUERIES] != untaught
    there.close()
    assert doctor.examine(tmp_path / "there") == []
    again = opened("there")
    again.forget(actor="ada")
    assert [ranking(again, query) for query in QUERIES] == untaught


@pytest.mark.parametrize("pushed", [10_000, 50])
def test_filters_find_the_same_whether_they_go_to_milvus_or_not(
    opened: Opener, lite: dict[str, Any], monkeypatch: pytest.MonkeyPatch, pushed: int
) -> None:
    monkeypatch.setattr(milvus, "PUSHED", pushed)
    there, own = filled(opened, "there", store=lite), filled(opened, "own")
    for where in ({"third": 1}, {"third": [0, 2]}):
        assert found(there, where=where) == found(own, where=where)
    some = {"field": "meta.third", "operator": "==", "value": 1}
    assert found(there, where=some) == found(own, where=some)


def test_many_documents_that_have_learned_are_left_out_of_what_milvus_finds(
    opened: Opener, lite: dict[str, Any]
) -> None:
    there, own = filled(opened, "there", store=lite), filled(opened, "own")
    lessons = [{"query": f"question {n}", "relevant": [f"d{n}"], "vector": VECTORS[(n + 7) % COUNT]} for n in range(60)]
    for memory in (there, own):
        memory.feedback_many(lessons)
        memory.evolve()
    assert there.stats().documents_touched == own.stats().documents_touched > 40
    assert overlap(found(there), found(own)) >= 0.99


def test_encoding_again_fills_a_new_collection_and_moves_the_alias(
    opened: Opener, commands: list[evokey.Document], lite: dict[str, Any], tmp_path: Path
) -> None:
    store = {**lite, "collection": "shared"}
    memory = opened("kb", encoder="wordllama", store=store)
    memory.add(commands)
    before = ranking(memory, QUERIES[1])
    memory.close()
    for version in (2, 3):
        assert doctor.rebuild(tmp_path / "kb") == len(commands)
        client = MilvusClient(lite["uri"])
        assert client.list_collections() == [f"shared_wordllama_v{version}"]
        assert client.describe_alias("shared_wordllama")["collection_name"] == f"shared_wordllama_v{version}"
        client.close()
    assert ranking(opened("kb"), QUERIES[1]) == before


def test_keys_of_another_encoder_or_another_memory_are_not_mixed(
    opened: Opener, lite: dict[str, Any], tmp_path: Path
) -> None:
    store = {**lite, "collection": "shared"}
    first = filled(opened, "first", store=store)
    first.close()
    other = opened("other", encoder="given", store=store)
    assert found(other) == [[] for _ in ASKED]
    assert len(other.index.originals[0].store.snapshot) == 0


def test_two_processes_that_write_the_first_keys_fill_one_collection(
    opened: Opener, lite: dict[str, Any], tmp_path: Path
) -> None:
    memory = opened("kb", encoder="given", store={**lite, "collection": "shared"})
    late = Collection(lite["uri"], "shared_given", "", "Strong")
    assert not late.exists()  # and then another process is first
    memory.add(DOCUMENTS, vectors=VECTORS)
    late.create(DIMENSIONS, anew=False)
    late.swap()
    assert late._versions() == ["shared_given_v1"] and len(late.numbers()) == COUNT
    late.client.drop_alias("shared_given")  # as one that was killed before it gave the name
    Collection(lite["uri"], "shared_given", "", "Strong").create(DIMENSIONS, anew=False)
    assert late._versions() == ["shared_given_v1"] and len(late.numbers()) == COUNT
    late.close()


def test_a_password_in_the_uri_is_refused_and_a_token_comes_from_the_environment(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidSettings, match="name the environment variable") as refused:
        opened("a", encoder="given", store={"name": "milvus", "uri": "http://ada:secret@host:19530"})
    assert "secret" not in str(refused.value)
    named = {"name": "milvus", "uri": "http://127.0.0.1:1", "token_env": "MILVUS_TOKEN_OF_THE_TEST"}
    with pytest.raises(InvalidSettings, match="MILVUS_TOKEN_OF_THE_TEST: it is not set"):
        opened("b", encoder="given", store=named)
    monkeypatch.setenv("MILVUS_TOKEN_OF_THE_TEST", "ada:secret")
    with pytest.raises(StoreFailed, match=r"Milvus at http://127.0.0.1:1 did not") as failed:
        opened("c", encoder="given", store=named)
    assert "secret" not in str(failed.value) and "evokey doctor --rebuild" in str(failed.value)


@pytest.mark.parametrize("options", [{"consistency": "Sometimes"}, {"collection": "a b"}])
def test_wrong_options_are_named(opened: Opener, lite: dict[str, Any], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="store 'milvus'"):
        opened("kb", encoder="given", store={**lite, **options})


def test_a_directory_that_somebody_hands_over_sends_no_key_to_a_host_that_nobody_allowed(
    opened: Opener, tmp_path: Path
) -> None:
    opened("kb", encoder="given").close()
    settings = tmp_path / "kb" / "evokey.toml"
    settings.write_text(settings.read_text().replace('"flat"', '{name = "milvus", uri = "http://elsewhere:19530"}'))
    with pytest.raises(NotAllowed, match="http://elsewhere:19530"):
        opened("kb")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    with MilvusProcess(tmp_path_factory.mktemp("milvus")) as process:
        yield process


def test_a_server_that_is_killed_in_the_middle_of_an_upsert_comes_back_and_the_memory_is_whole(
    opened: Opener, server: MilvusProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evokey.stores.milvus_collection.SECONDS", 3.0)
    store = {"name": "milvus", "uri": server.uri}
    own = filled(opened, "own")
    memory = opened("kb", encoder="given", store=store)
    memory.add(DOCUMENTS[:200], vectors=VECTORS[:200])
    assert overlap([ranking(memory, "asked", vector=VECTORS[0])], [ranking(own, "asked", vector=VECTORS[0])]) > 0
    for number, vector in enumerate(ASKED):
        memory.feedback(f"question {number}", relevant=[f"d{number}"], vector=vector)
    killer = threading.Timer(0.05, server.kill)
    killer.start()
    stored = 200
    with pytest.raises(StoreFailed, match=server.uri):
        for start in range(200, COUNT, 10):
            stored = start + 10
            memory.add(DOCUMENTS[start : start + 10], vectors=VECTORS[start : start + 10])
            time.sleep(0.02)
        raise AssertionError("the server was not killed in time")
    killer.join()
    assert len(memory) == stored  # what was said to fail is in the ledger: its keys come later
    for verb in (lambda: ranking(memory, "asked", vector=ASKED[0]), memory.evolve):
        with pytest.raises(StoreFailed, match="did not do what it was asked"):
            verb()
    server.start()
    for start in range(stored, COUNT, 100):
        memory.add(DOCUMENTS[start : start + 100], vectors=VECTORS[start : start + 100])
    assert not memory.index.without_keys and len(memory) == COUNT
    assert overlap(found(memory), found(own)) >= 0.99
    assert memory.stats().epoch == 0 and memory.evolve().published
    assert memory.search("asked", 1, vector=ASKED[3])[0].id == "d3"
    memory.close()
    assert overlap(found(opened("kb"), epoch=0), found(own)) >= 0.99


def test_a_learning_story_on_a_server_is_that_of_the_embedded_store(opened: Opener, server: MilvusProcess) -> None:
    own, there = filled(opened, "own"), filled(opened, "there", store={"name": "milvus", "uri": server.uri})
    untaught = found(there)
    assert overlap(untaught, found(own)) >= 0.99
    for memory in (own, there):
        for number, vector in enumerate(ASKED):
            memory.feedback(f"question {number}", relevant=[f"d{number * 7}"], actor="ada", vector=vector)
        assert memory.evolve().published
    assert overlap(found(there), found(own)) >= 0.99
    assert overlap(found(there, where={"third": 1}), found(own, where={"third": 1})) >= 0.99
    there.forget(actor="ada")
    assert overlap(found(there), untaught) >= 0.99
