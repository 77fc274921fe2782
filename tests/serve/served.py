"""A service to test: in this process, or on a port of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

import evokey
from evokey.serve.app import build
from evokey.serve.options import Options
from evokey.serve.run import Prompt

DOCUMENTS = [
    {"id": "install.md", "title": "Install", "text": "Run pip install evokey in a shell.", "metadata": {"lang": "en"}},
    {"id": "search.md", "title": "Search", "text": "Call search with a question.", "metadata": {"lang": "en"}},
    {"id": "forget.md", "title": "Forget", "text": "Erase what somebody taught.", "metadata": {"lang": "en"}},
    {"id": "secret.md", "title": "Salaries", "text": "What everybody earns here.", "metadata": {"lang": "de"}},
]
BASE = "/v1/collections/default"


def fill(folder: Path, **settings: Any) -> Path:
    with evokey.open(folder, **{"encoder": "bm25", **settings}) as memory:
        memory.add(DOCUMENTS)
    return folder


@contextmanager
def calling(options: Options) -> Iterator[TestClient]:
    """Calls without a network."""
    app = build(options)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@contextmanager
def serving(options: Options) -> Iterator[str]:
    """A server on a free port; its address. It is stopped at the end, also after a failure."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(build(options), host="127.0.0.1", port=port, http=Prompt, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive() and time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


def wait_for(client: TestClient, job: dict[str, Any], base: str = BASE) -> dict[str, Any]:
    """A job when it is over."""
    deadline = time.monotonic() + 60
    while job["ended"] is None:
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
        job = client.get(f"{base}/jobs/{job['id']}").json()
    return job
