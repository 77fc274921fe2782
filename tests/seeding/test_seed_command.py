"""evokey seed: the cost first, then what was kept and why the rest was not; errors that say what to type."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import evokey
from evokey.cli.app import app
from evokey.memory import Memory

sys.path.append(str(Path(__file__).parent))
from test_seeding import DOCUMENTS


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "1000"})


@pytest.fixture
def museum(tmp_path: Path) -> Path:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(DOCUMENTS)
    return tmp_path / "kb"


def test_the_cost_is_told_first_then_what_was_kept_and_how_to_erase_it(museum: Path) -> None:
    told = run("seed", "--at", museum, "--llm", "writer:Museum", "--limit", 5)
    assert told.exit_code == 0
    assert told.stderr.startswith("5 passages, at most 5 calls of writer/1, about ")
    assert "kept 5 questions (5 of them already found first), for 5 passages" in told.stdout
    assert "evokey forget --actor synthetic" in told.stdout


def test_json_is_one_value_and_a_dry_run_calls_nobody(museum: Path) -> None:
    told = run("seed", "--at", museum, "--llm", "writer:Museum", "--dry-run", "--json")
    value: dict[str, Any] = json.loads(told.stdout)
    assert (told.stderr, value["dry_run"], value["kept"], value["estimate"]["passages"]) == ("", True, 0, 12)


def test_without_a_model_the_command_says_which_to_name(museum: Path) -> None:
    told = run("seed", "--at", museum)
    assert told.exit_code == 2
    assert "evokey seed --llm" in told.stderr


def test_an_interrupt_says_what_is_kept_and_that_the_command_continues(
    museum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = Memory._follow

    def interrupt(self: Memory) -> None:
        follow(self)
        if len(self.ledger.lessons) >= 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Memory, "_follow", interrupt)
        told = run("seed", "--at", museum, "--llm", "writer:Museum")
    assert (told.exit_code, told.stderr.splitlines()[-1]) == (
        130,
        "interrupted: what is done is kept (at least 4 passages); the same command continues",
    )
    assert json.loads(run("seed", "--at", museum, "--llm", "writer:Museum", "--json").stdout)["asked"] == 4
