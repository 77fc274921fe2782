"""Answers over HTTP, whole and streamed, from a chat service on this machine; and spans, if asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from llm.wire_chat import ChatServer, either, events, openai, openai_events, raw, sent
from llm.wire_chat import serving as chatting
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serve.served import BASE, calling, fill, serving
from starlette.testclient import TestClient

from evokey.client import Client
from evokey.errors import LLMFailed
from evokey.serve.options import Options

SAID = "Run pip install evokey in a shell [1]."


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with chatting() as server:
        server.play(either(sent(openai(SAID)), events(openai_events(["Run pip install ", "evokey in a shell [1]."]))))
        yield server


@pytest.fixture
def folder(tmp_path: Path, chat: ChatServer) -> Path:
    llm = {"name": "openai", "model": "small", "base_url": chat.address, "retries": 0}
    return fill(tmp_path / "kb", llm=llm, generator="cited")


def test_an_answer_cites_and_an_upvote_credits_what_it_cites(folder: Path) -> None:
    with calling(Options(at=folder, auth=False)) as client:
        told = client.post(f"{BASE}/ask", json={"query": "how do I install it"}).json()
        assert (told["text"], told["citations"]) == (SAID, ["install.md"])
        rated = client.post(f"{BASE}/ratings", json={"query_id": told["query_id"], "vote": "up"}).json()
        assert rated["rating"]["cited"] == ["install.md"] and rated["rating"]["lesson"] == 1


def test_a_downvoted_answer_is_shown_to_people(folder: Path) -> None:
    with calling(Options(at=folder, auth=False)) as client:
        told = client.post(f"{BASE}/ask", json={"query": "how do I install it"}).json()
        client.post(f"{BASE}/ratings", json={"query_id": told["query_id"], "vote": "down", "reason": "bad answer"})
        (question,) = client.get(f"{BASE}/reviews").json()["questions"]
        assert question["answer"] == SAID


def stream(client: TestClient) -> list[tuple[str, dict[str, str]]]:
    answer = client.post(f"{BASE}/ask", json={"query": "how do I install it", "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    parts = [one.split("\n") for one in answer.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def test_a_stream_sends_pieces_and_then_the_answer(folder: Path) -> None:
    with calling(Options(at=folder, auth=False)) as client:
        *pieces, (last, answer) = stream(client)
        assert {name for name, _ in pieces} == {"piece"} and last == "answer"
        assert "".join(piece["text"] for _, piece in pieces) == answer["text"] == SAID
        assert client.post(f"{BASE}/ratings", json={"query_id": answer["query_id"], "vote": "up"}).status_code == 200


def test_a_model_that_fails_within_a_stream_ends_it_with_an_error(folder: Path, chat: ChatServer) -> None:
    chat.play(raw(b"no", 500))
    with calling(Options(at=folder, auth=False)) as client:
        ((name, told),) = stream(client)
        assert (name, told["error"], told["status"]) == ("error", "LLMFailed", 502)
        assert client.post(f"{BASE}/ask", json={"query": "how do I install it"}).status_code == 502


def test_the_client_asks_and_streams(folder: Path, chat: ChatServer) -> None:
    with serving(Options(at=folder, auth=False)) as url, Client(url) as client:
        assert client.ask("how do I install it").sources[0].document == "install.md"
        pieces = client.ask_stream("how do I install it")
        said = next(pieces)
        with pytest.raises(StopIteration) as end:
            while True:
                said += next(pieces)
        assert said == end.value.value.text and end.value.value.query_id is not None
        chat.play(raw(b"no", 500))
        with pytest.raises(LLMFailed):
            next(client.ask_stream("how do I install it"))


def test_spans_follow_the_conventions_for_retrieval_and_are_off_unless_asked_for(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    for tracing in (False, True):
        with calling(Options(at=fill(tmp_path / f"kb{tracing}"), auth=False, tracing=tracing)) as client:
            client.post(f"{BASE}/search", json={"query": "pip install", "k": 1})
    (span,) = [one for one in exporter.get_finished_spans() if one.name.startswith("retrieval")]
    told = dict(span.attributes or {})
    assert (span.name, told["gen_ai.operation.name"]) == ("retrieval default", "retrieval")
    assert told["gen_ai.retrieval.query.text"] == "pip install"
    assert [one["id"] for one in json.loads(str(told["gen_ai.retrieval.documents"]))] == ["install.md"]
