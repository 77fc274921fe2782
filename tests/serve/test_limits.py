"""Requests that are too large, too slow or broken off, over real sockets; and a service that is stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from serve.served import BASE, calling, fill, serving

import evokey
from evokey.serve import run
from evokey.serve.limits import BUCKETS, Pace
from evokey.serve.options import Limits, Options

SMALL = Limits(body=2_000, documents=10_000, reading=0.5, answering=2.0)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    folder = fill(tmp_path_factory.mktemp("limits") / "kb")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "HEAD_SECONDS", 0.5)
        with serving(Options(at=folder, auth=False, limits=SMALL)) as url:
            yield "127.0.0.1", int(url.rpartition(":")[2])


@contextmanager
def connection(address: tuple[str, int]) -> Iterator[socket.socket]:
    with closing(socket.create_connection(address, timeout=10)) as one:
        yield one


def head(length: int) -> bytes:
    return (
        f"POST {BASE}/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def status(one: socket.socket) -> int:
    return int(one.recv(4096).split()[1])


def healthy(address: tuple[str, int]) -> bool:
    return httpx.get(f"http://127.0.0.1:{address[1]}/health").status_code == 200


def test_a_body_that_says_it_is_too_large_is_refused_unread(address: tuple[str, int]) -> None:
    with connection(address) as one:
        one.sendall(head(10_000_000))
        assert status(one) == 413


def test_a_body_that_grows_too_large_is_refused(address: tuple[str, int]) -> None:
    with connection(address) as one:
        one.sendall(head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        for _ in range(4):
            one.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        assert status(one) == 413
    assert healthy(address)


def test_a_body_that_drips_is_refused(address: tuple[str, int]) -> None:
    with connection(address) as one:
        one.sendall(head(100))
        for _ in range(4):
            one.sendall(b" ")
            time.sleep(0.2)
        assert status(one) == 408


def test_a_body_that_breaks_off_harms_nobody(address: tuple[str, int]) -> None:
    for how in (socket.SHUT_WR, socket.SHUT_RDWR):
        with connection(address) as one:
            one.sendall(head(100) + b'{"query"')
            one.shutdown(how)
    assert healthy(address)


def test_a_connection_without_a_request_is_closed(address: tuple[str, int]) -> None:
    with connection(address) as one:
        one.sendall(b"GET /health HT")
        assert one.recv(100) == b""


def test_documents_may_be_larger_than_other_requests(address: tuple[str, int]) -> None:
    url = f"http://127.0.0.1:{address[1]}{BASE}"
    body = {"documents": [{"id": "long", "text": "x" * 5_000}]}
    assert httpx.post(f"{url}/documents", json=body).status_code == 201
    assert httpx.post(f"{url}/feedback", json={"query": "x" * 5_000, "relevant": ["long"]}).status_code == 413


def test_a_request_that_takes_too_long_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(evokey.Memory, "search", lambda *said, **more: ended.wait(20) and [])
    limits = Limits(answering=0.2)
    with calling(Options(at=fill(tmp_path / "kb"), auth=False, limits=limits)) as client:
        answer = client.post(f"{BASE}/search", json={"query": "x"})
        ended.set()
    assert (answer.status_code, answer.json()["error"]) == (503, "TookTooLong")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b'{"query": 1e999}', b'{"query": "\\ud800"}',
             b'{"query": "x", "k": 99999999999999999999999}', b'{"query": "x", "where": {"a": {"b": {"c": 1}}}}',
             b'{"query": "x", "vector": [NaN]}'],
    ids=range(10),
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused_and_explained(tmp_path: Path, body: bytes) -> None:
    with calling(Options(at=fill(tmp_path / "kb"), auth=False)) as client:
        answer = client.post(f"{BASE}/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422) and answer.json()["message"]


def test_a_pace_is_kept_and_forgotten() -> None:
    clock = [0.0]
    pace = Pace(now=lambda: clock[0])
    assert [pace.wait("a", 2.0) for _ in range(5)] == [0, 0, 0, 0, 0.5]
    clock[0] += 0.5
    assert pace.wait("a", 2.0) == 0 and pace.wait("b", 2.0) == 0
    for number in range(BUCKETS):
        pace.wait(str(number), 1.0)
    assert pace.wait("a", 2.0) == 0  # it was quiet longest


def test_a_service_that_is_stopped_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    folder = fill(tmp_path / "kb")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    source = str(Path(evokey.__file__).parents[1])
    command = [sys.executable, "-m", "evokey", "serve", "--at", str(folder), "--port", str(port), "--no-auth"]
    url, taught, shown = f"http://127.0.0.1:{port}", list[int](), list[str]()
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": source})
        try:
            wait_until_up(url, process)
            threads = [threading.Thread(target=teach, args=(url, name, taught, shown)) for name in "abcd"]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + 60
            while len(taught) <= 10 and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM)
            for thread in threads:
                thread.join(10)
        finally:
            process.kill()
            process.wait()
    assert len(taught) > 10
    with evokey.open(folder) as memory:
        assert {one.number for one in memory.lessons()} >= set(taught)
        assert {one.id for one in memory.shown()} >= set(shown)
    lines = (tmp_path / "log").read_text().splitlines()
    assert any(json.loads(line).get("status") == 201 for line in lines if line.startswith("{"))


def wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None and time.monotonic() < deadline
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)


def teach(url: str, name: str, taught: list[int], shown: list[str]) -> None:
    with httpx.Client(base_url=url) as client:
        for number in range(100_000):
            try:
                found = client.post(f"{BASE}/search", json={"query": f"{name} {number}"})
                told = client.post(f"{BASE}/feedback", json={"query": f"{name} {number}", "relevant": ["install.md"]})
            except httpx.HTTPError:
                return
            if told.status_code != 201:
                return
            shown.append(found.json()["query_id"])
            taught.append(told.json()["lessons"][0]["number"])
