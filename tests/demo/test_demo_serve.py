"""`evokey demo --serve`: the console shows the memory that the demo taught, and a second call shows it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from serve.served import BASE
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

import evokey
from evokey.cli.app import app
from evokey.demo import run as demo
from evokey.serve import run as service

TAUGHT, OTHER, UNTOUCHED = demo.GROUPS
DOCUMENTS = {
    "itertools.zip_longest": "Make an iterator that aggregates elements from each of the iterables.",
    "os.path.join": "Join one or more path segments.",
    "random.choice": "Return a random element from a sequence.",
}
QUESTIONS = [
    demo.Question("pair what has unequal lengths", ("itertools.zip_longest",), TAUGHT),
    demo.Question("unequal lengths side by side", ("itertools.zip_longest",), OTHER),
    demo.Question("pick one by lot", ("random.choice",), UNTOUCHED),
]
Asked = dict[str, Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What was served: in the place of a server that runs until it is stopped, a few requests."""
    found: list[Asked] = []

    def ask(application: FastAPI, *, host: str, port: int, **how: Any) -> None:
        with TestClient(application, base_url=f"http://{host}") as client:
            stats = client.get(f"{BASE}/stats").json()
            hits = client.post(f"{BASE}/search", json={"query": QUESTIONS[0].text}).json()["hits"]
            console = client.get("/").text
        found.append({"host": host, "port": port, "stats": stats, "first": hits[0]["id"], "console": console})

    monkeypatch.setattr(service.uvicorn, "run", ask)
    monkeypatch.setattr(service.logs, "configure", lambda: None)
    monkeypatch.setattr(service, "avoid_pauses", lambda: None)
    return found


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A small demo; how often its documents were read."""
    times: list[int] = []

    def read_documents() -> Sequence[evokey.Document]:
        times.append(len(DOCUMENTS))
        return [evokey.Document(id, text, id) for id, text in DOCUMENTS.items()]

    monkeypatch.setattr(demo, "documents", read_documents)
    monkeypatch.setattr(demo, "questions", lambda: QUESTIONS)
    monkeypatch.setattr(demo, "plot", lambda outcome, path: None)
    return times


def call(out: Path, *options: str) -> Result:
    done = CliRunner().invoke(app, ["demo", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    return done


def test_the_memory_of_the_demo_is_served_on_this_machine_alone(tmp_path: Path, served: list[Asked]) -> None:
    said = call(tmp_path, "--serve", "--port", "8765").stdout
    (one,) = served
    assert (one["host"], one["port"]) == ("127.0.0.1", 8765) and "http://127.0.0.1:8765/#/search?" in said
    with evokey.open(tmp_path / "memory") as memory:
        stats = memory.stats()
        assert memory.lessons(actor=demo.TEACHER) and len(memory) == len(DOCUMENTS)
    assert {name: one["stats"][name] for name in ("documents", "lessons", "epoch")} == {
        "documents": len(DOCUMENTS), "lessons": 1, "epoch": stats.epoch,
    }  # fmt: skip
    assert one["first"] == "itertools.zip_longest" and "<title>evokey" in one["console"]


def test_a_second_call_serves_what_the_first_one_made(tmp_path: Path, served: list[Asked], read: list[int]) -> None:
    call(tmp_path)
    figures = json.loads((tmp_path / "results.json").read_text())
    assert served == [] and figures["lessons"] == 1
    call(tmp_path, "--serve")
    assert [one["stats"]["lessons"] for one in served] == [1] and read == [len(DOCUMENTS)]
