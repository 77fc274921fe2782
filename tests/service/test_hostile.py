"""Services that drip, swell, lie or never end, over real sockets: a call stays inside its time and its size."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from wire import Clock, Reply, Wire

import evokey
from evokey.errors import LLMFailed, ServiceFailed
from evokey.http.client import Provider, Service
from evokey.llm.anthropic import Anthropic
from evokey.llm.openai import OpenAI
from evokey.search.rerankers.endpoint import Endpoint
from evokey.types import Document, Message

HANG = 10.0
"""Seconds after which a call counts as hanging; its own limits are far below."""
ASKED = [Message("user", "How are you?")]
Script = Callable[[socket.socket], None]


@contextmanager
def served(script: Script) -> Iterator[str]:
    """A server that reads no more than a request's head, then does what the script says."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(1 << 16)
                    script(connection)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass  # closing with a rest unread would break the connection
                except OSError:
                    pass  # the client has had enough

        def accept() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stopped.set()
        listener.shutdown(socket.SHUT_RDWR)


def service(address: str, **options: Any) -> Service:
    return Service(Provider("some", address), **{"timeout": 0.4, "retries": 0, "total": 0.8, **options})


def drip(connection: socket.socket, content: bytes, pause: float = 0.02) -> None:
    for byte in content:
        connection.sendall(bytes([byte]))
        time.sleep(pause)


def repeat(connection: socket.socket, content: bytes, pause: float = 0.0) -> None:
    while True:
        connection.sendall(content)
        time.sleep(pause)


def answer(content: bytes, *headers: str, status: int = 200) -> bytes:
    head = [f"HTTP/1.1 {status} Said", "content-type: application/json", *headers]
    return "\r\n".join([*head, f"content-length: {len(content)}", "", ""]).encode() + content


def bomb(megabytes: int) -> bytes:
    """Spaces, packed a thousand to one: JSON takes any number of them."""
    return gzip.compress(b" " * (megabytes << 20), 9)


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
SLOW: dict[str, Script] = {
    "never answers": lambda one: time.sleep(HANG),
    "drips the status line": lambda one: drip(one, b"HTTP/1.1 200 " + b"O" * 5000),
    "drips its headers": lambda one: drip(one, b"HTTP/1.1 200 OK\r\n" + b"x-more: y\r\n" * 500),
    "sends headers for ever": lambda one: (one.sendall(b"HTTP/1.1 200 OK\r\n"), repeat(one, b"a: b\r\n", 0.001))[1],
    "says continue for ever": lambda one: repeat(one, b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "drips its body": lambda one: drip(one, answer(b" " * 5000)),
    "drips chunks": lambda one: (one.sendall(CHUNKED), repeat(one, b"1\r\n \r\n", 0.02))[1],
    "promises more than it sends": lambda one: (one.sendall(answer(b"{}")[:-1]), time.sleep(HANG))[1],
    "drips an error": lambda one: drip(one, answer(b" " * 5000, status=500)),
    "drips a packed body": lambda one: drip(one, answer(bomb(8), "content-encoding: gzip")),
}
BROKEN: dict[str, Script] = {
    "closes at once": lambda one: None,
    "closes in its headers": lambda one: one.sendall(b"HTTP/1.1 200 OK\r\ncontent-"),
    "closes in its body": lambda one: one.sendall(answer(b'{"a": 1}')[:-3]),
    "speaks no HTTP": lambda one: one.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "sends more than it promised": lambda one: one.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ndata: {}"),
    "has two lengths": lambda one: one.sendall(answer(b"{}", "content-length: 5")),
    "has a length below zero": lambda one: one.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}"),
    "has a chunk of no length": lambda one: one.sendall(CHUNKED + b"zz\r\n{}\r\n"),
    "has a chunk beyond all bounds": lambda one: one.sendall(CHUNKED + b"f" * 40 + b"\r\n{}\r\n"),
    "packs what is not packed": lambda one: one.sendall(answer(b"{}", "content-encoding: gzip")),
    "packs half": lambda one: one.sendall(answer(gzip.compress(b"{}" * 999)[:-20], "content-encoding: gzip")),
    "packs in another way": lambda one: one.sendall(answer(b"{}", "content-encoding: br")),
    "packs twice": lambda one: one.sendall(answer(b"{}", "content-encoding: gzip, gzip")),
}


@pytest.mark.parametrize("how", [*SLOW, *BROKEN])
@pytest.mark.parametrize("streamed", [False, True], ids=["call", "stream"])
def test_a_call_ends_in_its_time_with_an_error_of_the_service(how: str, streamed: bool) -> None:
    begun = time.monotonic()
    with served((SLOW | BROKEN)[how]) as address, pytest.raises(ServiceFailed, match=r"^some \(http://127"):
        asked = service(address)
        list(asked.stream("x", {})) if streamed else asked.post("x", {})
    assert time.monotonic() - begun < HANG / 2


def test_a_service_that_takes_nothing_in_is_given_up() -> None:
    begun = time.monotonic()
    with served(lambda one: time.sleep(HANG)) as address, pytest.raises(ServiceFailed, match="did not answer"):
        service(address).post("x", {"text": "x" * (64 << 20)})
    assert time.monotonic() - begun < HANG / 2


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("streamed", [False, True], ids=["call", "stream"])
def test_a_packed_body_is_not_unpacked_beyond_its_limit(status: int, streamed: bool) -> None:
    packed = answer(bomb(256), "content-encoding: gzip", status=status)
    with served(lambda one: one.sendall(packed)) as address:
        asked = service(address, timeout=HANG, total=HANG, largest=1 << 20)
        tracemalloc.start()
        try:
            with pytest.raises(ServiceFailed, match=r"answered with more than 1\.0 MB"):
                list(asked.stream("x", {})) if streamed else asked.post("x", {})
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


def test_what_is_packed_and_small_is_read() -> None:
    content = json.dumps({"a": list(range(100_000))}).encode()
    with served(lambda one: one.sendall(answer(gzip.compress(content), "content-encoding: gzip"))) as address:
        assert service(address).post("x", {})["a"][-1] == 99_999


@pytest.mark.parametrize("event", [b'data: {"a": 1}\n\n', b": nothing\n\n", b"data: 1\n", b" "])
def test_a_stream_that_never_ends_is_ended_by_its_total_time_or_size(event: bytes) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        repeat(connection, event * 100, 0.001)

    begun = time.monotonic()
    with served(script) as address:
        for options in ({"total": 0.8}, {"total": HANG * 9, "largest": 1 << 18}):
            with pytest.raises(ServiceFailed, match=r"ended in the middle|more than 0\.2 MB"):
                list(service(address, **options).stream("x", {}))
    assert time.monotonic() - begun < HANG


def test_a_stream_may_last_longer_than_one_wait() -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(8):
            connection.sendall(b'data: {"a": 1}\n\n')
            time.sleep(0.1)

    with served(script) as address:
        assert len(list(service(address, total=HANG).stream("x", {}))) == 8


def test_retries_end_with_the_total_time_of_the_call() -> None:
    clock = Clock()
    with Wire() as wire:
        wire.first = [Reply(500)] * 9
        asked = service(wire.url, timeout=5, retries=8, total=5, now=clock.now, sleep=clock.sleep, chance=lambda: 1.0)
        with pytest.raises(ServiceFailed, match=r"total = 5 s\. \(tried 4 times\)$"):
            asked.post("x", {})
    assert clock.slept == [0.5, 1.0, 2.0]


def test_a_redirection_carries_nothing_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    with Wire() as here, Wire() as there:
        here.first = [Reply(307, headers={"location": f"{there.url}/x"})]
        with pytest.raises(ServiceFailed, match="Redirections are not followed"):
            Service(Provider("some", here.url, "SOME_KEY")).post("x", {})
        assert there.requests == []


def test_the_key_goes_to_no_other_port_and_to_no_plain_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    provider = Provider("some", "https://api.some.example/v1", "SOME_KEY")
    assert Service(provider, base_url="https://api.some.example:443/v2").at_home
    for elsewhere in ("http://api.some.example/v1", "https://api.some.example:444/v1", "https://some.example/v1"):
        assert not Service(provider, base_url=elsewhere).at_home


def test_a_service_that_failed_is_left_alone_for_a_while_and_then_asked_by_one_caller() -> None:
    clock = Clock()
    with Wire() as wire:
        asked = service(wire.url, timeout=5, total=50, rest=30, now=clock.now, sleep=clock.sleep)
        wire.first = [Reply(500), Reply(500), Reply(body={})]
        with pytest.raises(ServiceFailed, match="answered 500"):
            asked.post("x", {})
        for _ in range(3):
            with pytest.raises(ServiceFailed, match="is not called: it has just failed, and will be tried in 30 s"):
                asked.post("x", {})
        clock.time += 31
        with pytest.raises(ServiceFailed, match="answered 500"):
            asked.post("x", {})
        clock.time += 31
        assert asked.post("x", {}) == {}
        wire.first = [Reply(400), Reply(body={})]
        with pytest.raises(ServiceFailed, match="answered 400"):
            asked.post("x", {})
        assert asked.post("x", {}) == {}, "one bad request says nothing about the next"
        assert len(wire.requests) == 5


def test_a_dead_reranker_delays_one_search_and_not_every_one() -> None:
    with Wire() as wire:
        wire.first = [Reply(503)] * 50
        reranker = Endpoint(base_url=f"{wire.host}/v2", retries=0)
        for _ in range(10):
            with pytest.raises(ServiceFailed):
                reranker.scores("a", [Document("a", "b")])
        assert len(wire.requests) == 1


NONSENSE: dict[str, Any] = {
    "a count beyond all bounds": {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1}},
    "a count beyond what files hold": {"usage": {"prompt_tokens": 10**18, "completion_tokens": 1}},
    "a count of all tokens there are": {"usage": {"input_tokens": 1, "output_tokens": 10**12}},
    "half a character in its name": {"model": "m\ud800"},
    "a model that is a list": {"model": [1]},
    "a field nobody reads": {"x": ["\udfff"]},
    "half a character as a field": {"\ud800": 1},
    "depth": {"x": json.loads("[" * 300 + "]" * 300)},
    "error": {"error": json.loads('{"error":' * 300 + "1" + "}" * 300)},
}


def openai_reply(content: Any = "Fine.", reason: Any = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, "delta": {"content": content}, "finish_reason": reason}]}


def anthropic_reply(content: Any = "Fine.", reason: Any = "end_turn") -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], "stop_reason": reason}


CHATS = {
    "openai": (OpenAI, "/v1/chat/completions", openai_reply),
    "anthropic": (Anthropic, "/v1/messages", anthropic_reply),
}
ODD_ANSWERS: dict[str, Any] = {
    **{name: {} for name in NONSENSE},
    "half a character in its text": {"content": "Fine \ud83d"},
    "a text that is a number": {"content": 7},
    "a text that is a table": {"content": {"a": 1}},
    "a reason that is a list": {"reason": ["stop"]},
    "a reason that is a table": {"reason": {"a": 1}},
}


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("wrong", ODD_ANSWERS)
def test_nonsense_in_an_answer_is_a_failure_of_the_model(
    chat: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    made, path, reply = CHATS[chat]
    if wrong == "a count of all tokens there are" and chat == "openai":
        pytest.skip("fields of another service are not read")
    with Wire() as wire:
        wire.answers[path] = lambda _: reply(**ODD_ANSWERS[wrong]) | NONSENSE.get(wrong, {})
        llm = made("m", base_url=wire.url, key_env="SOME_KEY", retries=0)
        if chat == "anthropic" and wrong.endswith(("bounds", "hold")):
            wire.answers[path] = lambda _: reply() | {"usage": {"input_tokens": 10**18, "output_tokens": 1}}
        with pytest.raises(LLMFailed):
            llm.complete(ASKED)


@pytest.mark.parametrize("wrong", [name for name in ODD_ANSWERS if name != "a count of all tokens there are"])
def test_nonsense_in_a_stream_is_a_failure_of_the_model(wrong: str) -> None:
    event = openai_reply(**ODD_ANSWERS[wrong]) | NONSENSE.get(wrong, {})
    sent = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()
    with Wire() as wire:
        wire.first = [Reply(body=sent)]
        with pytest.raises(LLMFailed):
            list(OpenAI("m", base_url=wire.url, retries=0).stream(ASKED))


@pytest.mark.parametrize("number", ["9" * 5000, "1" + "0" * 400, "1e999", "NaN", "-Infinity", "true", '"1"', "null"])
def test_a_score_that_is_no_number_is_a_failure_of_the_reranker(number: str) -> None:
    with Wire() as wire:
        wire.first = [Reply(body=f'{{"results": [{{"index": 0, "relevance_score": {number}}}]}}'.encode())]
        with pytest.raises(ServiceFailed):
            Endpoint(base_url=f"{wire.host}/v2", retries=0).scores("a", [Document("a", "b")])


def test_searches_go_on_beside_a_dead_reranker_and_do_not_wait_for_it(tmp_path: Path) -> None:
    with Wire() as wire:
        wire.first = [Reply(503)] * 50
        reranker = {"name": "endpoint", "base_url": f"{wire.host}/v2", "retries": 0}
        with evokey.open(tmp_path / "memory", encoder="bm25", reranker=reranker) as memory:
            memory.add([Document("owl", "owls hunt at night")])
            assert [[hit.id for hit in memory.search("owls")] for _ in range(5)] == [["owl"]] * 5
        assert len(wire.requests) == 1
