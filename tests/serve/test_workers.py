"""Several workers on one memory in PostgreSQL: whoever is asked, they say the same."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_server import Server
from serve.served import BASE, DOCUMENTS, fill
from serve.test_limits import wait_until_up

import evokey
from evokey.errors import InvalidSettings
from evokey.serve.app import build
from evokey.serve.options import Options
from evokey.serve.service import Service


def test_several_workers_need_a_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="several workers need a memory in a database"):
        Options(at=tmp_path, workers=2)


def test_a_candidate_and_the_daily_counts_are_those_of_one_worker(tmp_path: Path) -> None:
    with evokey.open(fill(tmp_path / "kb")) as memory:
        memory.feedback("get the thing onto my laptop", relevant=["install.md"])
    one, other = (build(Options(at=tmp_path / "kb", auth=False)).state.service for _ in range(2))
    try:
        stage(one)
        assert candidate(one) is not None and candidate(other) is None
        one.daily.user = other.daily.user = 2
        assert [worker.daily.take("web", "ada", 2) for worker in (one, other, one, other)] == [True, True, False, False]
    finally:
        one.stop()
        other.stop()


def candidate(worker: Service) -> object:
    memory = worker.collections.get("default")
    assert isinstance(memory, evokey.Memory)
    return memory.candidate


def stage(worker: Service) -> None:
    """What a dry run of this worker proposes."""
    memory = worker.collections.get("default")
    assert isinstance(memory, evokey.Memory)
    job, deadline = worker.jobs.start("default", memory, dry_run=True), time.monotonic() + 60
    while worker.jobs.running("default"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    draft = worker.jobs.take_draft("default", job.id)
    assert draft is not None and memory.stage(draft) is not None


def test_workers_share_documents_lessons_epochs_and_jobs(tmp_path: Path) -> None:
    with Server.start() as server:
        with evokey.open(server.url, name="kb", encoder="bm25") as memory:
            memory.add(DOCUMENTS)
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        where = ["--at", server.url, "--name", "kb", "--files", str(tmp_path), "--port", str(port)]
        command = [sys.executable, "-m", "evokey", "serve", *where, "--no-auth", "--workers", "2"]
        source, url = str(Path(evokey.__file__).parents[1]), f"http://127.0.0.1:{port}"
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": source})
            try:
                wait_until_up(url, process)
                use(url)
                process.send_signal(signal.SIGTERM)
                process.wait(30)
            finally:
                process.kill()
                process.wait()
        with evokey.open(server.url, name="kb") as memory:
            assert len(memory.lessons()) == 20 and memory.epoch == 1 and len(memory.shown()) >= 20


def use(url: str) -> None:
    """Each request by a new connection, so that any worker may take it."""
    for number in range(20):
        said = {"query": f"get thing {number} onto my laptop", "relevant": ["install.md"]}
        assert post(f"{url}{BASE}/feedback", said)["lessons"]
        shown = post(f"{url}{BASE}/search", {"query": "pip install"})
        assert shown["hits"][0]["id"] == "install.md"
    job = post(f"{url}{BASE}/evolve", {})
    deadline = time.monotonic() + 60
    while job["ended"] is None and time.monotonic() < deadline:
        time.sleep(0.1)
        job = httpx.get(f"{url}{BASE}/jobs/{job['id']}").json()
    assert job["report"]["published"], job
    for _ in range(10):
        assert httpx.get(f"{url}{BASE}/stats").json()["epoch"] == 1
        assert post(f"{url}{BASE}/search", {"query": "get thing 3 onto my laptop"})["hits"][0]["id"] == "install.md"


def post(url: str, body: dict[str, Any]) -> Any:
    answer = httpx.post(url, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()
