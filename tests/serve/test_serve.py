"""The routes of the service, each against a real memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve.served import BASE, DOCUMENTS, calling, fill, wait_for
from starlette.testclient import TestClient

import evokey
from evokey.serve.options import Options


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with calling(Options(at=fill(tmp_path / "kb"), auth=False)) as found:
        yield found


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"{BASE}/{path}", json=body)
    assert answer.status_code < 400, answer.text
    return answer.json()


def get(client: TestClient, path: str) -> Any:
    answer = client.get(f"{BASE}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_search_tells_passages_and_a_query_id(client: TestClient) -> None:
    found = post(client, "search", query="pip install", k=2)
    assert found["hits"][0]["id"] == "install.md" and len(found["query_id"]) == 32
    assert found["hits"][0]["passage"]["text"] == "Run pip install evokey in a shell."
    assert found["hits"][0]["text"] is None
    assert post(client, "search", query="pip install", text=True)["hits"][0]["text"]


def test_documents_are_added_browsed_read_and_deleted(client: TestClient) -> None:
    assert post(client, "documents", documents=[{"id": "a/b c", "text": "new"}]) == {"count": 1}
    first = get(client, "documents?count=3")
    rest = get(client, f"documents?count=3&after={first['next']}")
    assert [one["id"] for one in (*first["documents"], *rest["documents"])][-1] == "a/b c" and rest["next"] is None
    assert client.get(f"{BASE}/document", params={"id": "a/b c"}).json()["text"] == "new"
    assert client.delete(f"{BASE}/document", params={"id": "a/b c"}).json() == {"count": 1}
    assert client.get(f"{BASE}/document", params={"id": "a/b c"}).status_code == 404


def test_feedback_evolves_into_an_epoch_that_search_reads(client: TestClient) -> None:
    post(client, "feedback", query="get the thing onto my laptop", relevant=["install.md"], user="ada")
    job = wait_for(client, post(client, "evolve"))
    assert (job["state"], job["progress"], job["report"]["published"]) == ("done", 1.0, True)
    assert post(client, "search", query="get the thing onto my laptop")["hits"][0]["id"] == "install.md"
    assert [one["number"] for one in get(client, "epochs")["epochs"]] == [0, 1]
    assert get(client, "diff?a=0&b=1")["documents"][0]["document"] == "install.md"
    told = post(client, "explain", document="install.md", query="get the thing onto my laptop")
    assert told["lessons"][0]["actor"] == "ada" and told["rank_after"] == 1
    assert post(client, "rollback", epoch=0)["kind"] == "rollback"


def test_a_dry_run_tells_who_would_gain_and_publishes_nothing(client: TestClient) -> None:
    post(client, "feedback", query="get the thing onto my laptop", relevant=["install.md"])
    job = wait_for(client, post(client, "evolve", dry_run=True))
    assert job["report"]["reason"].startswith("dry run") and len(get(client, "epochs")["epochs"]) == 1
    (change,) = job["preview"]["queries"]
    assert (change["quality_before"], change["quality_after"]) == (0.0, 1.0)


def test_many_lessons_at_once_are_all_recorded_or_none(client: TestClient) -> None:
    lessons = [{"query": f"question {n}", "relevant": {"install.md": 2}} for n in range(3)]
    assert len(post(client, "feedback/batch", lessons=lessons)["lessons"]) == 3
    bad = client.post(f"{BASE}/feedback/batch", json={"lessons": [*lessons, {"query": "x", "relevant": ["nowhere"]}]})
    assert bad.status_code == 404 and get(client, "stats")["lessons"] == 3


def test_votes_lead_to_lessons_reviews_and_gaps(client: TestClient) -> None:
    query_id = post(client, "search", query="question")["query_id"]
    up = post(client, "ratings", query_id=query_id, vote="up", cited=["search.md"], user="ada")
    assert up["rating"]["lesson"] == 1
    post(client, "ratings", query_id=query_id, vote="down", reason="not in the documents", user="bob")
    (question,) = get(client, "reviews")["questions"]
    assert get(client, "gaps")["gaps"][0]["query"] == "question"
    post(client, f"reviews/{question['id']}", right=[], wrong=["search.md"], user="eve")
    assert get(client, "reviews") == {"questions": []}
    assert get(client, "lessons?actor=eve")["lessons"][0]["irrelevant"] == ["search.md"]
    assert post(client, "ratings", query_id=query_id, vote="none", user="bob") == {"rating": None}


def test_clicks_are_counted_for_the_epoch_that_brought_the_document(client: TestClient) -> None:
    post(client, "feedback", query="question", relevant=["install.md"])
    wait_for(client, post(client, "evolve"))
    found = post(client, "search", query="question", compare=0)
    assert {hit["epoch"] for hit in found["hits"]} == {0, 1}
    mine = next(hit["id"] for hit in found["hits"] if hit["epoch"] == 1)
    post(client, "clicks", query_id=found["query_id"], document=mine)
    (told,) = get(client, "comparisons")["comparisons"]
    assert (told["epoch"], told["other"], told["wins"], told["losses"], told["winner"]) == (1, 0, 1, 0, None)


def test_a_shadow_is_recorded_and_not_shown(tmp_path: Path) -> None:
    with calling(Options(at=fill(tmp_path / "kb"), auth=False, shadow=0)) as client:
        post(client, "feedback", query="laptop", relevant=["install.md"])
        wait_for(client, post(client, "evolve"))
        found = post(client, "search", query="laptop")
        assert [hit["epoch"] for hit in found["hits"]] == [None]
        post(client, "clicks", query_id=found["query_id"], document="install.md")
        (told,) = get(client, "comparisons")["comparisons"]
        assert (told["mode"], told["wins"]) == ("shadow", 1)


def test_forgetting_has_a_preview_and_then_forgets(client: TestClient) -> None:
    post(client, "feedback", query="laptop", relevant=["install.md"], user="ada")
    told = post(client, "forget", actor="ada", preview=True)
    assert told["preview"] == {"lessons": 1, "queries": ["laptop"], "documents": ["install.md"]}
    assert get(client, "stats")["lessons"] == 1
    assert post(client, "forget", actor="ada")["forgotten"]["lessons"] == 1
    assert get(client, "stats")["lessons"] == 0


def test_protected_queries_lessons_on_hold_and_export(client: TestClient) -> None:
    post(client, "protect", query="pip", relevant=["install.md"])
    assert get(client, "protected") == {"protected": {"pip": {"install.md": 1.0}}}
    post(client, "feedback", query="laptop", relevant=["install.md"])
    assert post(client, "lessons/hold", lessons=[1]) == {"count": 1}
    assert get(client, "lessons?held=true")["lessons"][0]["held"]
    assert post(client, "lessons/release", lessons=[1]) == {"count": 1}
    lines = client.get(f"{BASE}/export").text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one["id"] for one in DOCUMENTS]
    assert json.loads(client.get(f"{BASE}/export?what=lessons").text)["query"] == "laptop"


def test_insight_ranks_what_is_worth_teaching(client: TestClient) -> None:
    for _ in range(3):
        post(client, "search", query="question")
    asked = post(client, "search", query="shell")["query_id"]
    post(client, "ratings", query_id=asked, vote="up", cited=[])
    post(client, "search", query="xylophone")
    told = get(client, "insight")
    assert [(one["query"], one["times"]) for one in told["worth_teaching"]] == [("question", 3), ("shell", 1)]
    assert [one["query"] for one in told["without_hits"]] == ["xylophone"]


def test_without_history_nothing_is_kept_and_nothing_can_be_rated(tmp_path: Path) -> None:
    with calling(Options(at=fill(tmp_path / "kb"), auth=False, keep_shown=False)) as client:
        assert post(client, "search", query="question")["query_id"] is None
    with evokey.open(tmp_path / "kb") as memory:
        assert memory.shown() == []


def test_several_collections_are_made_and_kept_apart(tmp_path: Path) -> None:
    with calling(Options(root=tmp_path, auth=False)) as client:
        for name in ("one", "two"):
            assert client.post("/v1/collections", json={"name": name, "encoder": ["bm25"]}).status_code == 201
        client.post("/v1/collections/one/documents", json={"documents": DOCUMENTS})
        assert client.get("/v1/collections").json() == {"collections": ["one", "two"], "layers": []}
        counts = [client.get(f"/v1/collections/{name}/stats").json()["documents"] for name in ("one", "two")]
        assert counts == [4, 0]
        assert client.post("/v1/collections", json={"name": "one"}).status_code == 422


def test_health_ready_and_metrics(client: TestClient) -> None:
    assert client.get("/health").json() == client.get("/ready").json() == {"ok": True}
    post(client, "search", query="xylophone")
    told = client.get("/metrics").text
    assert 'evokey_searches_without_hits_total{collection="default"} 1.0' in told
    assert 'evokey_documents{collection="default"} 4.0' in told


def test_every_example_of_the_openapi_description_is_taken(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    post(client, "feedback", query="laptop", relevant=["install.md"])
    shown = post(client, "search", query="install")["query_id"]
    tried = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody")
            if body is None or path == "/v1/collections" or "{id}" in path:
                continue
            name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for example in described["components"]["schemas"][name]["examples"]:
                if "query_id" in example:
                    example["query_id"] = shown
                if "job" in example:
                    example["job"] = wait_for(client, post(client, "evolve", dry_run=True))["id"]
                answer = client.request(method, path.replace("{collection}", "default"), json=example)
                expected = (409,) if path.endswith("/ask") else (200, 201, 202)  # there is no language model
                assert answer.status_code in expected, (path, answer.text)
                tried.append(path)
    assert len(tried) >= 15
