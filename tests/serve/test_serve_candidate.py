"""The candidate over HTTP: a dry run's proposal is compared with the published epoch before it is published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve.served import BASE, calling, fill, serving, wait_for
from starlette.testclient import TestClient

from evokey.client import Client
from evokey.errors import InvalidInput
from evokey.serve.options import Options

QUERY = "which shell"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with calling(Options(at=fill(tmp_path / "kb"), auth=False, shadow="candidate")) as found:
        teach(found)
        yield found


def teach(client: TestClient) -> None:
    assert client.post(f"{BASE}/feedback", json={"query": QUERY, "relevant": ["search.md"]}).status_code == 201


def stage(client: TestClient) -> dict[str, Any]:
    job = wait_for(client, client.post(f"{BASE}/evolve", json={"dry_run": True}).json())
    answer = client.post(f"{BASE}/candidate", json={"job": job["id"]})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["candidate"]
    return found


def search(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = client.post(f"{BASE}/search", json={"query": QUERY, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_clicks_compare_a_candidate_and_it_is_then_published(client: TestClient) -> None:
    told = stage(client)
    assert (told["number"], told["after"]) == (-1, 0) and client.get(f"{BASE}/candidate").json()["candidate"] == told
    assert search(client)["hits"][0]["id"] == "install.md"
    assert search(client, epoch="candidate")["hits"][0]["id"] == "search.md"
    mixed = search(client, compare="candidate")
    assert {hit["epoch"] for hit in mixed["hits"]} == {0, -1}
    click = {"query_id": mixed["query_id"], "document": "search.md"}
    assert client.post(f"{BASE}/clicks", json=click).status_code == 200
    found = client.get(f"{BASE}/comparisons").json()["comparisons"]
    assert [(one["epoch"], one["other"], one["mode"], one["losses"]) for one in found if one["mode"] != "shadow"] == [
        (0, -1, "interleaved", 1)
    ]
    report = client.post(f"{BASE}/candidate/publish").json()["report"]
    assert report["published"] and search(client)["hits"][0]["id"] == "search.md"
    assert client.get(f"{BASE}/candidate").json() == {"candidate": None}
    assert "publish candidate" in [one["action"] for one in client.get("/v1/audit").json()["acts"]]


def test_a_candidate_answers_in_the_shadow_and_is_only_recorded(client: TestClient) -> None:
    search(client)  # there is none yet: nothing is recorded beside it
    stage(client)
    shown = search(client)
    assert [hit["id"] for hit in shown["hits"]] == ["install.md"]
    (told,) = client.get(f"{BASE}/comparisons").json()["comparisons"]
    assert (told["epoch"], told["other"], told["mode"], told["impressions"]) == (0, -1, "shadow", 1)


def test_without_a_candidate_nothing_is_compared_published_or_dropped_by_mistake(client: TestClient) -> None:
    answer = client.post(f"{BASE}/search", json={"query": QUERY, "compare": "candidate"})
    assert answer.status_code == 422 and "there is no candidate" in answer.json()["message"]
    assert client.post(f"{BASE}/candidate/publish").status_code == 409
    assert client.post(f"{BASE}/candidate", json={"job": "0" * 32}).status_code == 409
    assert client.delete(f"{BASE}/candidate").status_code == 200


def test_forgetting_drops_the_candidate(client: TestClient) -> None:
    stage(client)
    assert client.post(f"{BASE}/forget", json={"query": QUERY}).json()["forgotten"]["lessons"] == 1
    assert client.get(f"{BASE}/candidate").json() == {"candidate": None}


def test_the_client_stages_compares_and_publishes(tmp_path: Path) -> None:
    with serving(Options(at=fill(tmp_path / "kb"), auth=False)) as url, Client(url) as client:
        client.feedback(QUERY, relevant=["search.md"])
        assert client.stage() == -1
        assert client.search(QUERY, epoch="candidate")[0].id == "search.md"
        client.drop_candidate()
        with pytest.raises(InvalidInput, match="there is no candidate"):
            client.search(QUERY, compare="candidate")
        client.stage()
        assert client.publish_candidate().epoch == 1
        assert client.search(QUERY)[0].id == "search.md"
