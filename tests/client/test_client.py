"""The client against a real server: what Memory does, over HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serve.served import DOCUMENTS, fill, serving

import evokey
from evokey.client import Client
from evokey.errors import InvalidInput, InvalidVector, ServiceFailed, UnknownDocument, UnknownResult
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options

QUESTION = "get the thing onto my laptop"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("client") / "kb")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(Options(at=folder)) as address:
        yield address


@pytest.fixture
def client(url: str, folder: Path) -> Iterator[Client]:
    name = f"k{len(KeyRing(folder).all())}"
    key = KeyRing(folder).create(Key(name, frozenset({"admin", "teach-as"}), actor="web"))
    with Client(url, key, user="ada") as found:
        yield found


def test_it_has_the_verbs_of_memory() -> None:
    verbs = {name for name, _ in inspect.getmembers(evokey.Memory, inspect.isfunction) if not name.startswith("_")}
    inside = {
        "adopt", "backup", "clicks", "expand", "files", "files_below", "find_shown", "keep_shown", "note_files",
        "preview", "propose", "ratings", "refit", "remember", "reviews", "save", "seed", "show", "shown", "sources",
        "start_thinker", "think", "traffic", "tune", "tuning_costs", "watch", "workers",
    }  # fmt: skip
    assert verbs - inside - set(dir(Client)) == set()


def test_search_gives_hits_with_documents_and_passages(client: Client) -> None:
    found = client.search("pip install", k=1)
    (hit,) = found
    assert (hit.id, hit.document.title, hit.passage.text) == ("install.md", "Install", str(DOCUMENTS[0]["text"]))
    assert found.query_id is not None and client.get("install.md").metadata == {"lang": "en"}
    assert client.search("pip install", where={"lang": "de"}) == []


def test_teaching_evolving_and_time_travel(client: Client) -> None:
    lesson = client.feedback(QUESTION, relevant={"install.md": 2})
    assert (lesson.actor, lesson.verdicts[0].grade) == ("web/ada", 2.0)
    assert [one.number for one in client.feedback_many([{"query": "else", "relevant": ["search.md"]}])]
    assert "dry run" in client.evolve(dry_run=True).reason
    report = client.evolve()
    assert report.published and report.taught is not None and report.taught.after > report.taught.before
    assert client.search(QUESTION)[0].id == "install.md"
    assert client.epochs()[-1].number == report.epoch == client.stats().epoch
    told = client.explain("install.md", QUESTION)
    assert told.lessons[0].verdicts[0].document == "install.md" and told.views[0].after > told.views[0].before
    assert client.diff(0, report.epoch).documents[0].document == "install.md"
    assert client.rollback(0).kind == "rollback"
    assert [one.held for one in client.lessons(document="install.md")] == [True]
    assert client.release([lesson.number]) == 1 and client.hold([lesson.number]) == 1
    assert client.forget(actor="web/ada").lessons == 2


def test_ratings(client: Client) -> None:
    query_id = client.search("question").query_id
    assert query_id is not None
    rating = client.rate(query_id, True, cited=["search.md"])
    assert rating is not None and rating.actor == "web/ada"
    client.click(query_id, "search.md")
    assert client.rate(query_id, None) is None and client.gaps() == []


def test_documents_come_and_go(client: Client) -> None:
    assert client.add([evokey.Document("new", "text", "title")]) == 1
    assert len(client) == 5 and client.documents(count=10)[-1][1].id == "new"
    assert [one["id"] for one in client.export()][-1] == "new"
    assert client.delete(["new"]) == 1
    client.protect("pip", ["install.md"])
    assert client.protected_queries() == {"pip": {"install.md": 1.0}}
    assert client.learn("pip", relevant=["install.md"])["query"] == "pip"


def test_vectors_of_the_caller_are_those_that_memory_takes(tmp_path: Path) -> None:
    directions = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)
    ids, asked = [f"d{number}" for number in range(10)], directions[10:]
    documents = [evokey.Document(id, f"text {id}") for id in ids]
    with evokey.open(tmp_path / "own", encoder="given") as memory:
        memory.add(documents, vectors=directions[:10])
        wanted = [(hit.id, hit.score) for hit in memory.search("q", vector=asked[0])]
    evokey.open(tmp_path / "served", encoder="given").close()
    with serving(Options(at=tmp_path / "served", auth=False)) as url, Client(url) as client:
        assert client.add(documents, vectors=directions[:10]) == 10
        assert [(hit.id, hit.score) for hit in client.search("q", vector=asked[0])] == wanted
        last = wanted[-1][0]
        client.feedback("q", relevant=[last], vector=asked[0])
        client.feedback_many([{"query": "r", "relevant": ["d3"], "vector": asked[1].tolist()}])
        assert client.evolve().published
        assert client.search("q", vector=asked[0])[0].id == last
        for vectors in (None, directions[:1], [[0.0] * 6] * 2, [[float("nan")] * 6] * 2, [[1.0], [1.0, 2.0]]):
            with pytest.raises(InvalidVector):
                client.add(documents[:2], vectors=vectors)
        with pytest.raises(InvalidVector, match="6"):
            client.feedback("q", relevant=["d1"], vector=[1.0, 2.0])


def test_errors_are_those_of_memory(client: Client, url: str) -> None:
    with pytest.raises(UnknownDocument, match="no document has the id 'nowhere'"):
        client.get("nowhere")
    with pytest.raises(UnknownResult):
        client.rate("0" * 32, True)
    with pytest.raises(InvalidInput):
        client.search("")
    with Client(url) as stranger, pytest.raises(ServiceFailed, match="show an API key"):
        stranger.stats()
    with Client("http://127.0.0.1:9") as nowhere, pytest.raises(ServiceFailed, match="is it running"):
        nowhere.stats()
