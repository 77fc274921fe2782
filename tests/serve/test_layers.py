"""A layer beside a search as a collection: named by the owner's file, searched, taught and forgotten over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve.served import BASE, calling, wait_for
from serve.test_access import call, routes
from starlette.testclient import TestClient

from evokey.errors import InvalidSettings
from evokey.serve.collections import Collections
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options

ENGINE = """
PAGES = {
    "git-commit": ("make a commit", "en"),
    "git-log": ("show the history of commits", "en"),
    "git-revert": ("reverse earlier changes", "en"),
    "git-secret": ("internal handbook of commits", "de"),
}
broken = False


def search(query, k, where=None):
    if broken:
        raise ConnectionError("password=hunter2")
    words = set(query.lower().split())
    found = [(id, float(len(words & set(text.split())))) for id, (text, lang) in PAGES.items() if sees(where, lang)]
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])[:k]


def allowed(ids, where=None):
    return [{"id": id, "text": PAGES[id][0]} for id in ids if id in PAGES and sees(where, PAGES[id][1])]


def sees(where, lang):
    return where is None or where.matches({"lang": lang})


def unfiltered(query, k):
    return search(query, k)
"""
QUERY = "how do I undo a commit"


@pytest.fixture
def engine(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of its own for each test."""
    name = f"engine_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def options(tmp_path: Path, engine: str, **more: Any) -> Options:
    file = tmp_path / "layers.toml"
    file.write_text(f'[default]\nsearch = "{engine}:search"\nallowed = "{engine}:allowed"\nencoder = ["bm25"]\n')
    return Options(**{"root": tmp_path / "root", "layers": file, "auth": False, **more})


@pytest.fixture
def client(tmp_path: Path, engine: str) -> Iterator[TestClient]:
    with calling(options(tmp_path, engine)) as found:
        yield found


def found(client: TestClient, query: str = QUERY, **more: Any) -> list[str]:
    said = {key: value for key, value in more.items() if key != "headers"}
    answer = client.post(f"{BASE}/search", json={"query": query, **said}, headers=more.get("headers"))
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["hits"]]


def teach(client: TestClient, **more: Any) -> None:
    said = {"query": QUERY, "relevant": ["git-revert"], **more}
    assert client.post(f"{BASE}/feedback", json=said).status_code == 201
    assert wait_for(client, client.post(f"{BASE}/evolve", json={}).json())["report"]["published"]


def test_a_search_that_is_not_ours_learns_and_forgets_over_http(client: TestClient, tmp_path: Path) -> None:
    assert client.get("/v1/collections").json() == {"collections": ["default"], "layers": ["default"]}
    assert found(client)[0] == "git-commit"
    teach(client, user="mallory-the-teacher")
    assert found(client)[0] == "git-revert" and found(client, epoch=0)[0] == "git-commit"
    told = client.post(f"{BASE}/explain", json={"document": "git-revert", "query": QUERY}).json()
    assert (told["rank_after"], told["lesson_count"]) == (1, 1)
    assert client.get(f"{BASE}/diff?a=0&b=1").json()["documents"][0]["document"] == "git-revert"
    assert client.get(f"{BASE}/document?id=git-revert").json()["text"] == "reverse earlier changes"
    assert client.get(f"{BASE}/stats").json()["lessons"] == 1
    forgotten = client.post(f"{BASE}/forget", json={"actor": "mallory-the-teacher"}).json()["forgotten"]
    assert forgotten["lessons"] == 1 and found(client)[0] == "git-commit"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "root" / "default").rglob("*") if path.is_file())
    assert b"mallory" not in stored


def test_votes_on_a_layer_teach_open_reviews_and_can_be_withdrawn(client: TestClient) -> None:
    shown = client.post(f"{BASE}/search", json={"query": "earlier changes", "k": 3}).json()
    vote = {"query_id": shown["query_id"], "vote": "up", "cited": ["git-revert"]}
    assert client.post(f"{BASE}/ratings", json=vote).json()["rating"]["lesson"] == 1
    assert client.post(f"{BASE}/ratings", json={**vote, "vote": "none", "cited": None}).status_code == 200
    assert client.get(f"{BASE}/lessons?held=true").json()["lessons"][0]["number"] == 1
    down = {"query_id": shown["query_id"], "vote": "down", "reason": "not in the documents"}
    assert client.post(f"{BASE}/ratings", json=down).json()["rating"]["review"]
    waiting = client.get(f"{BASE}/reviews").json()["questions"]
    assert [one["text"] for one in waiting[0]["documents"]] == [""]  # this search returns no texts
    assert client.get(f"{BASE}/gaps").json()["gaps"][0]["query"] == "earlier changes"
    answer = {"right": ["git-revert"], "wrong": []}
    assert client.post(f"{BASE}/reviews/{waiting[0]['id']}", json=answer).status_code == 200
    assert len(client.get(f"{BASE}/lessons").json()["lessons"]) == 2


def test_two_epochs_of_a_layer_are_interleaved_and_clicks_decide(client: TestClient) -> None:
    teach(client)
    shown = client.post(f"{BASE}/search", json={"query": QUERY, "compare": 0}).json()
    assert {hit["epoch"] for hit in shown["hits"]} >= {0, 1}
    click = {"query_id": shown["query_id"], "document": "git-revert"}
    assert client.post(f"{BASE}/clicks", json=click).status_code == 200
    (told,) = client.get(f"{BASE}/comparisons").json()["comparisons"]
    assert (told["epoch"], told["other"], told["wins"]) == (1, 0, 1)


def test_a_key_with_a_filter_sees_and_teaches_what_the_search_allows(tmp_path: Path, engine: str) -> None:
    (tmp_path / "root").mkdir()
    ring = KeyRing(tmp_path / "root")
    keys = {
        "admin": ring.create(Key("admin", frozenset({"admin"}))),
        "filtered": ring.create(Key("filtered", frozenset({"teach"}), where={"lang": "en"})),
    }
    headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    with calling(options(tmp_path, engine, auth=True)) as client:
        said = {"query": QUERY, "relevant": ["git-secret"]}
        assert client.post(f"{BASE}/feedback", json=said, headers=headers["filtered"]).status_code == 404
        assert client.post(f"{BASE}/feedback", json=said, headers=headers["admin"]).status_code == 201
        job = client.post(f"{BASE}/evolve", json={}, headers=headers["admin"]).json()
        while job["ended"] is None:
            job = client.get(f"{BASE}/jobs/{job['id']}", headers=headers["admin"]).json()
        assert found(client, headers=headers["admin"])[0] == "git-secret"
        assert "git-secret" not in found(client, headers=headers["filtered"])
        assert found(client, "handbook of commits", headers=headers["filtered"]) == ["git-log"]
        assert client.get(f"{BASE}/document?id=git-secret", headers=headers["filtered"]).status_code == 404
        assert client.get(f"{BASE}/stats", headers=headers["filtered"]).json()["lessons"] == 0
        told = client.post(f"{BASE}/explain", json={"document": "git-secret"}, headers=headers["filtered"])
        assert told.status_code == 409 and "commit" not in told.text


def test_a_search_without_filters_serves_nobody_who_has_one(tmp_path: Path, engine: str) -> None:
    chosen = options(tmp_path, engine)
    (tmp_path / "layers.toml").write_text(f'[default]\nsearch = "{engine}:unfiltered"\nencoder = ["bm25"]\n')
    with calling(chosen) as client:
        assert found(client)[0] == "git-commit"
        refused = client.post(f"{BASE}/search", json={"query": QUERY, "where": {"lang": "en"}})
        assert refused.status_code == 409 and "takes no filter" in refused.json()["message"]


def test_what_needs_documents_is_refused_with_the_reason(client: TestClient) -> None:
    calls = [
        ("documents", {"documents": [{"id": "a", "text": "b"}]}), ("ask", {"query": "a"}), ("learn", {"query": "a"}),
        ("ask", {"query": "a", "stream": True}),
    ]  # fmt: skip
    for path, body in calls:
        answer = client.post(f"{BASE}/{path}", json=body)
        assert answer.status_code == 409 and "has no documents of its own" in answer.json()["message"], path
    assert client.get(f"{BASE}/documents").status_code == 409
    assert client.post(f"{BASE}/search", json={"query": "a", "fold": True}).status_code == 422


def test_every_route_answers_for_a_layer_too(client: TestClient) -> None:
    codes = {route[:2]: call(client, route, {}) for route in routes(client)}
    assert {route: code for route, code in codes.items() if code >= 500} == {}


def test_no_request_names_a_search(client: TestClient, engine: str) -> None:
    for body in ({"name": "mine", "search": f"{engine}:search"}, {"name": "mine", "encoder": ["os:system"]}):
        assert client.post("/v1/collections", json=body).status_code == 422
    assert client.post("/v1/collections", json={"name": "default"}).status_code == 422


def test_a_search_that_fails_is_said_without_its_words_and_no_lesson_is_lost(client: TestClient, engine: str) -> None:
    module = __import__(engine)
    module.broken = True
    answer = client.post(f"{BASE}/search", json={"query": QUERY})
    assert answer.status_code == 502 and "hunter2" not in answer.text
    assert client.post(f"{BASE}/feedback", json={"query": QUERY, "relevant": ["git-revert"]}).status_code == 201
    job = wait_for(client, client.post(f"{BASE}/evolve", json={}).json())
    assert job["state"] == "failed"
    module.broken = False
    assert wait_for(client, client.post(f"{BASE}/evolve", json={}).json())["report"]["published"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("[default]\nallowed = 'os:path'", "needs search"),
        ("[default]\nsearch = 'no_such_module:search'", "cannot be imported"),
        ("[default]\nsearch = 'os:sep'", "is no function"),
        ("[Bad Name]\nsearch = 'os:getcwd'", "TOML"),
        ("['../up']\nsearch = 'os:getcwd'", "name of no collection"),
        ("default = 1", "needs search"),
    ],
)
def test_a_file_that_names_no_search_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "layers.toml"
    file.write_text(text)
    with pytest.raises(InvalidSettings, match=said):
        Collections(Options(root=tmp_path / "root", layers=file)).get("default")
