"""Six processes search and teach one memory, and some are killed: a short version of `make shared-load`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from postgres_server import Server

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import shared


def test_no_error_no_torn_epoch_and_no_lost_lesson_while_processes_are_killed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOKEY_LOAD_DOCUMENTS", "200")
    monkeypatch.setattr(shared, "DOCUMENTS", 200)
    found = shared.measure(server.url, 12.0, 3.0)
    assert found["errors"] == []
    assert found["killed"] >= 2
    assert found["searches"]["compared with their epoch"] > 0 and found["searches"]["torn"] == 0
    assert found["lessons"]["acknowledged"] > 0
    assert (found["lessons"]["lost"], found["lessons"]["twice"]) == (0, 0)
