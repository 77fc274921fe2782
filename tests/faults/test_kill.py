"""A share of the kills that `make faults` makes in full, spread evenly over all scenarios."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scenarios import CLOSE, SCENARIOS, SECRET, Stage

KILL = Path(__file__).with_name("kill.py")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SKIPPED ON WINDOWS: there is no fork and no SIGKILL")


def run(*arguments: str) -> str:
    """In a process of its own: it forks, and forks want no threads beside them."""
    done = subprocess.run([sys.executable, KILL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_a_killed_writer_leaves_what_it_acknowledged_and_nothing_half_done() -> None:
    kills, _, failures = run("--kills", "60").partition(" kills, ")
    assert (int(kills) >= 50, failures) == (True, "0 failures")


def test_a_memory_may_be_killed_anywhere_in_its_making() -> None:
    assert run("--scenario", "make", "--scenario", "upgrade", "--kills", "60").endswith("0 failures")


def test_the_scenarios_reach_what_they_are_there_for(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "kb", "bm25")
    for step in SCENARIOS["forget-crossfit"].steps[:4]:
        stage.take(step)
    report = stage.memory.evolve(dry_run=True)
    assert report.held_out is not None
    assert stage.memory.stats().epoch == 1
    before = [hit.id for hit in stage.memory.search(f"{SECRET} stonepile")]
    stage.take(SCENARIOS["forget-crossfit"].steps[4])
    assert stage.memory.stats().epoch == 2
    assert [hit.id for hit in stage.memory.search(f"{SECRET} stonepile")] != before
    stage.take(CLOSE)


def test_every_writing_verb_is_killed_somewhere() -> None:
    verbs = {verb for scenario in SCENARIOS.values() for verb, _ in scenario.steps}
    writing = {
        "add",
        "delete",
        "feedback",
        "feedback_many",
        "evolve",
        "forget",
        "protect",
        "rollback",
        "close",
        "hold",
        "release",
    }
    assert verbs == {*writing, "open", "lose_keys", "make_old"}
