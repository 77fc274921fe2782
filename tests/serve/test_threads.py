"""Searches are answered whatever else the service waits for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from served import BASE, calling, fill
from starlette.testclient import TestClient

import evokey
from evokey.encoders import wordllama
from evokey.memory import Memory
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options
from evokey.serve.service import Service
from evokey.serve.threads import only_computes

MANY = 60
"""More than there are threads for requests that wait."""


def wait_until(what: Any) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def teach(client: TestClient, number: int) -> int:
    body = {"query": f"question {number}", "relevant": ["install.md"]}
    return client.post(f"{BASE}/feedback", json=body).status_code


@pytest.mark.parametrize("auth", [True, False])
def test_a_search_is_answered_while_feedback_waits_for_evolve(tmp_path: Path, auth: bool) -> None:
    folder = fill(tmp_path / "kb")
    key = KeyRing(folder).create(Key("web", frozenset({"teach"}), rate=1e6))
    with calling(Options(at=folder, auth=auth)) as client, ThreadPoolExecutor(MANY) as threads:
        client.headers["Authorization"] = f"Bearer {key}"
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        memory = service.collections.get("default")
        assert isinstance(memory, Memory)
        with memory._publish():
            waiting = [threads.submit(teach, client, number) for number in range(MANY)]
            wait_until(lambda: service.metrics.running._value.get() >= MANY)
            service.keys._found.clear()  # as a second later: the key is looked up anew
            hits = client.post(f"{BASE}/search", json={"query": "pip install"}).json()["hits"]
            assert hits[0]["id"] == "install.md"
            assert not any(one.done() for one in waiting)
        assert [one.result(60) for one in waiting] == [201] * MANY
        assert client.get(f"{BASE}/stats").json()["lessons"] == MANY


def test_searches_that_only_compute_are_told_from_those_that_ask_other_machines(tmp_path: Path) -> None:
    class Remote:
        kind, cost, identity = "dense", "money", "remote"

        def documents(self, texts: Any) -> Any:
            raise NotImplementedError

        queries = documents

    with evokey.open(tmp_path / "a", encoder="bm25") as memory:
        assert only_computes(memory)
        memory.searcher.reranker = Remote()  # type: ignore[assignment]
        assert not only_computes(memory)
    with evokey.open(tmp_path / "b", encoder=["bm25", Remote()]) as memory:  # type: ignore[list-item]
        assert not only_computes(memory)


def test_a_key_that_was_looked_up_is_known_for_a_second(tmp_path: Path) -> None:
    clock = [1_000.0]
    ring = KeyRing(tmp_path, now=lambda: clock[0])
    key = ring.create(Key("web"))
    assert not ring.knows(key)
    assert ring.find(key) is not None and ring.knows(key)
    clock[0] += 1.5
    assert not ring.knows(key)
    ring.find(key)
    ring.revoke("web")
    assert not ring.knows(key)


def test_of_threads_that_search_first_one_loads_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(**how: Any) -> str:
        loaded.append("once")
        time.sleep(0.2)
        return "model"

    monkeypatch.setattr(wordllama.wordllama.WordLlama, "load", load)
    wordllama._load.cache_clear()
    try:
        begin = threading.Barrier(4)
        with ThreadPoolExecutor(4) as threads:
            models = [threads.submit(lambda: (begin.wait(30), wordllama._model())[1]) for _ in range(4)]
        assert [one.result() for one in models] == ["model"] * 4
        assert loaded == ["once"]
    finally:
        wordllama._load.cache_clear()


def test_the_service_and_its_learner_use_one_thread_of_blas() -> None:
    program = (
        "import os, gc, numpy, scipy.linalg, threadpoolctl\n"
        "from evokey.serve.run import avoid_pauses\n"
        "avoid_pauses()\n"
        "blas = {one['num_threads'] for one in threadpoolctl.threadpool_info() if one['user_api'] == 'blas'}\n"
        "print(blas <= {1}, os.environ['OPENBLAS_NUM_THREADS'], gc.get_freeze_count() > 10_000)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True", "1", "True"]
