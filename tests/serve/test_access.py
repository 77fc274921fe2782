"""Who may do what: every route, with every kind of key; and what no key, log or error tells."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from serve.served import BASE, DOCUMENTS, calling, fill
from starlette.testclient import TestClient

import evokey
from evokey.errors import InvalidSettings
from evokey.serve.keys import Key, KeyRing
from evokey.serve.logs import JSONFormatter
from evokey.serve.options import Options

OPEN = {("get", "/health"), ("get", "/ready")}
"""What needs no key."""
TEACHING = {"feedback", "feedback/batch", "ratings", "learn", "documents", "reviews/1"}
READING = {"search", "ask", "explain", "clicks"}


class World:
    """A service with two collections, and a key of each kind."""

    def __init__(self, root: Path) -> None:
        for name in ("default", "other"):
            fill(root / name)
        ring = KeyRing(root)
        make = Key("k", frozenset({"read"}))
        self.keys = {
            "reader": ring.create(replace(make, name="reader")),
            "teacher": ring.create(replace(make, name="teacher", scopes=frozenset({"teach"}))),
            "speaker": ring.create(replace(make, name="speaker", scopes=frozenset({"teach-as"}), actor="web")),
            "admin": ring.create(replace(make, name="admin", scopes=frozenset({"admin"}))),
            "expired": ring.create(replace(make, name="expired", scopes=frozenset({"admin"}), expires=1.0)),
            "elsewhere": ring.create(
                replace(make, name="elsewhere", scopes=frozenset({"admin"}), collections=("other",))
            ),
            "filtered": ring.create(replace(make, name="filtered", scopes=frozenset({"teach"}), where={"lang": "en"})),
            "slow": ring.create(replace(make, name="slow", rate=1.0)),
        }
        self.ring = ring

    def headers(self, kind: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[kind]}"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="module")
def world(root: Path) -> World:
    return World(root)


@pytest.fixture(scope="module")
def client(world: World, root: Path) -> Iterator[TestClient]:
    with calling(Options(root=root)) as found:
        yield found


def routes(client: TestClient) -> list[tuple[str, str, Any]]:
    """Every route of the description, with a body that it takes."""
    described = client.get("/openapi.json").json()
    found = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            body = None
            if "requestBody" in operation:
                name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                body = described["components"]["schemas"][name]["examples"][0]
            full = path.replace("{collection}", "default").replace("{id}", "1").replace("{name}", "nobody")
            query = "?id=install.md" if full.endswith("/document") else "?a=0&b=0" if full.endswith("/diff") else ""
            found.append((method, full + query, body))
    return found


def call(client: TestClient, route: tuple[str, str, Any], headers: dict[str, str]) -> int:
    method, path, body = route
    more = {} if body is None else {"json": body}
    return client.request(method, path, headers=headers, **more).status_code


@pytest.mark.parametrize(
    "header",
    [{}, {"Authorization": "Bearer evk_reader_wrong"}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "},
     {"Authorization": "Bearer evk_../../x_y"}],
    ids=["none", "wrong", "basic", "empty", "odd"],
)  # fmt: skip
def test_without_a_right_key_every_route_answers_401(client: TestClient, header: dict[str, str]) -> None:
    asked = [route for route in routes(client) if route[:2] not in OPEN]
    assert len(asked) >= 30
    assert {route[:2]: code for route in asked if (code := call(client, route, header)) != 401} == {}


def test_an_expired_key_is_none(client: TestClient, world: World) -> None:
    asked = [route for route in routes(client) if route[:2] not in OPEN]
    headers = world.headers("expired")
    assert {route[:2]: code for route in asked if (code := call(client, route, headers)) != 401} == {}


def test_a_key_of_another_collection_is_refused_and_hears_nothing_of_it(client: TestClient, world: World) -> None:
    asked = [route for route in routes(client) if route[1].startswith(BASE)]
    headers = world.headers("elsewhere")
    assert {route[:2]: code for route in asked if (code := call(client, route, headers)) != 403} == {}
    assert client.get("/v1/collections", headers=headers).json()["collections"] == ["other"]
    assert client.get("/v1/collections/nowhere/stats", headers=headers).status_code == 403


def test_a_key_that_reads_changes_nothing(client: TestClient, world: World) -> None:
    asked = [route for route in routes(client) if route[0] != "get"]
    allowed = {f"{BASE}/{name}" for name in READING}
    headers = world.headers("reader")
    refused = {route[1].partition("?")[0] for route in asked if call(client, route, headers) == 403}
    assert refused == {route[1].partition("?")[0] for route in asked} - allowed


def test_a_key_that_teaches_neither_evolves_nor_forgets(client: TestClient, world: World) -> None:
    asked = [route for route in routes(client) if route[0] != "get"]
    allowed = {f"{BASE}/{name}" for name in READING | TEACHING}
    headers = world.headers("teacher")
    refused = {route[1].partition("?")[0] for route in asked if call(client, route, headers) == 403}
    assert refused == {route[1].partition("?")[0] for route in asked} - allowed


def test_only_an_administrator_sees_metrics_keys_and_the_audit_log(client: TestClient, world: World) -> None:
    for path in ("/metrics", "/v1/keys", "/v1/audit"):
        codes = [
            client.get(path, headers=world.headers(kind)).status_code for kind in ("teacher", "elsewhere", "admin")
        ]
        assert codes == [403, 403, 200]


def test_feedback_is_attributed_to_the_key_or_to_a_user_of_it(client: TestClient, world: World) -> None:
    said = {"query": "attributed", "relevant": ["install.md"]}
    one = client.post(f"{BASE}/feedback", json=said, headers=world.headers("teacher")).json()
    two = client.post(f"{BASE}/feedback", json={**said, "user": "ada"}, headers=world.headers("speaker")).json()
    assert [told["lessons"][0]["actor"] for told in (one, two)] == ["teacher", "web/ada"]
    assert (
        client.post(f"{BASE}/feedback", json={**said, "user": "ada"}, headers=world.headers("teacher")).status_code
        == 403
    )


def test_a_key_with_a_filter_sees_and_names_nothing_outside_it(client: TestClient, world: World) -> None:
    headers = world.headers("filtered")
    found = client.post(f"{BASE}/search", json={"query": "what everybody earns", "k": 10}, headers=headers).json()
    assert "secret.md" not in [hit["id"] for hit in found["hits"]]
    wider = {"query": "what everybody earns", "where": {"lang": "de"}}
    assert client.post(f"{BASE}/search", json=wider, headers=headers).json()["hits"] == []
    assert client.get(f"{BASE}/document?id=secret.md", headers=headers).status_code == 404
    listed = client.get(f"{BASE}/documents", headers=headers).json()["documents"]
    assert {one["id"] for one in listed} == {str(one["id"]) for one in DOCUMENTS} - {"secret.md"}
    told = client.post(f"{BASE}/feedback", json={"query": "x", "relevant": ["secret.md"]}, headers=headers)
    assert told.status_code == 404
    assert client.post(f"{BASE}/explain", json={"document": "secret.md"}, headers=headers).status_code == 404
    for path in ("lessons", "epochs", "insight", "export", "reviews", "protected", "gaps", "comparisons", "jobs"):
        assert client.get(f"{BASE}/{path}", headers=headers).status_code == 403, path
    assert client.post(f"{BASE}/documents", json={"documents": DOCUMENTS}, headers=headers).status_code == 403


def test_too_many_requests_of_a_key_are_refused_until_later(client: TestClient, world: World) -> None:
    codes = [client.get("/v1/whoami", headers=world.headers("slow")).status_code for _ in range(4)]
    assert codes[:2] == [200, 200] and codes[-1] == 429
    last = client.get("/v1/whoami", headers=world.headers("slow"))
    assert int(last.headers["Retry-After"]) >= 1


def test_a_user_and_a_key_with_all_its_users_have_a_limit_of_lessons(client: TestClient, world: World) -> None:
    daily = client.app.state.service.daily  # type: ignore[attr-defined]
    headers, said = world.headers("speaker"), {"query": "many", "relevant": ["install.md"]}
    daily.user, daily.key = 2, 3
    try:
        codes = [
            client.post(f"{BASE}/feedback", json={**said, "user": user}, headers=headers).status_code
            for user in ("mallory", "mallory", "mallory", "molly", "minny")
        ]
    finally:
        daily.user, daily.key = 1_000, 100_000
    assert codes == [201, 201, 429, 201, 429] or codes == [201, 201, 429, 429, 429]  # another test spoke for this key


# ---- keys


def test_keys_are_hashed_at_rest_rotated_and_revoked(tmp_path: Path) -> None:
    clock = [1_000.0]
    ring = KeyRing(tmp_path, now=lambda: clock[0])
    first = ring.create(Key("web"))
    second = ring.rotate("web", grace=60)
    assert ring.find(first) is not None and ring.find(second) is not None
    clock[0] += 61
    assert ring.find(first) is None and ring.find(second) is not None
    ring.revoke("web")
    assert ring.find(second) is None
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(secret.split("_", 2)[2].encode() in data for secret in (first, second))
    assert (tmp_path / "service.sqlite").stat().st_mode & 0o077 == 0


def test_keys_are_made_and_revoked_over_http_and_the_audit_log_says_so(client: TestClient, world: World) -> None:
    headers = world.headers("admin")
    made = client.post("/v1/keys", json={"name": "fresh", "scopes": ["read"]}, headers=headers)
    fresh = {"Authorization": f"Bearer {made.json()['key']}"}
    assert made.status_code == 201 and client.get("/v1/whoami", headers=fresh).json()["name"] == "fresh"
    assert client.delete("/v1/keys/fresh", headers=headers).status_code == 200
    assert client.get("/v1/whoami", headers=fresh).status_code == 401
    acts = client.get("/v1/audit", headers=headers).json()["acts"]
    assert [(act["key"], act["action"]) for act in acts[:2]] == [("admin", "revoke key"), ("admin", "create key")]
    assert "hash" not in client.get("/v1/keys", headers=headers).text


def test_after_a_forget_no_file_of_the_service_names_the_person(client: TestClient, world: World, root: Path) -> None:
    said = {"query": "named", "relevant": ["install.md"], "user": "evelyn"}
    client.post(f"{BASE}/feedback", json=said, headers=world.headers("speaker"))
    client.post(f"{BASE}/forget", json={"actor": "web/evelyn"}, headers=world.headers("admin"))
    assert [path for path in root.rglob("*") if path.is_file() and b"evelyn" in path.read_bytes()] == []


def test_no_auth_is_for_this_machine_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="--no-auth lets everybody"):
        Options(at=tmp_path, host="0.0.0.0", auth=False)


# ---- pages of other sites


@pytest.fixture(scope="module")
def open_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with calling(Options(at=fill(tmp_path_factory.mktemp("open") / "kb"), auth=False)) as found:
        yield found


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "http://evil.example", "Content-Type": "application/json"}, 403),
        ({"Origin": "null", "Content-Type": "application/json"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}, 403),
        ({"Host": "evil.example", "Content-Type": "application/json"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        ({"Origin": "http://127.0.0.1", "Content-Type": "application/json"}, 200),
    ],
)
def test_a_page_of_another_site_cannot_act(open_client: TestClient, headers: dict[str, str], code: int) -> None:
    answer = open_client.post(f"{BASE}/forget", content=b'{"actor": "x", "preview": true}', headers=headers)
    assert answer.status_code == code, answer.text


def test_every_answer_carries_a_strict_policy(open_client: TestClient) -> None:
    for path in ("/", "/health", "/nowhere", f"{BASE}/stats"):
        policy = open_client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert open_client.get(path).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["..", "../kb", "%2e%2e", "%2e%2e%2fkb", "..%5ckb", "a/../b", "/etc", "KB", ".", "x" * 80, "%00", "kb%00"]
)
def test_names_lead_nowhere_else(client: TestClient, world: World, name: str, root: Path) -> None:
    before = sorted(path.name for path in root.iterdir())
    answer = client.get(f"/v1/collections/{name}/stats", headers=world.headers("admin"))
    assert answer.status_code in (404, 422)
    made = client.post("/v1/collections", json={"name": name}, headers=world.headers("admin"))
    assert made.status_code == 422 and sorted(path.name for path in root.iterdir()) == before
    if name not in ("..", "."):  # which a client takes out of a path before it asks
        assert client.get(f"/console/{name}").status_code == 404


# ---- what is told


def test_logs_tell_neither_keys_nor_texts(client: TestClient, world: World, caplog: pytest.LogCaptureFixture) -> None:
    key = world.keys["admin"]
    with caplog.at_level(logging.DEBUG, logger="evokey"):
        client.post(f"{BASE}/search", json={"query": "zebracorn question"}, headers=world.headers("admin"))
        client.get(f"{BASE}/document?id=zebracorn", headers=world.headers("admin"))
        client.post(
            f"{BASE}/search",
            content=b"{zebracorn",
            headers={**world.headers("admin"), "Content-Type": "application/json"},
        )
    lines = [JSONFormatter().format(record) for record in caplog.records]
    assert any('"route": "/v1/collections/{collection}/search"' in line and '"key": "admin"' in line for line in lines)
    assert not any(re.search("zebracorn|question|Bearer", line) or key in line for line in lines)


def test_errors_tell_no_path_of_the_machine(client: TestClient, world: World, root: Path) -> None:
    answers = [
        client.post(f"{BASE}/ask", json={"query": "x"}, headers=world.headers("admin")),
        client.post("/v1/collections", json={"name": "default"}, headers=world.headers("admin")),
        client.get("/v1/collections/nowhere/stats", headers=world.headers("admin")),
    ]
    assert all(str(root) not in answer.text and "Traceback" not in answer.text for answer in answers)


def test_an_error_inside_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: Any, **more: Any) -> None:
        raise RuntimeError("zebracorn")

    monkeypatch.setattr(evokey.Memory, "search", fail)
    with calling(Options(at=fill(tmp_path / "kb"), auth=False)) as client:
        answer = client.post(f"{BASE}/search", json={"query": "x"})
    assert answer.status_code == 500
    assert answer.json() == {"error": "Failed", "message": "the service failed; its log says more"}
