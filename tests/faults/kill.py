"""Kill a memory at every write it makes, and look at what is left: `python tests/faults/kill.py`.

A child process lives through a scenario and kills itself (SIGKILL) at one boundary; before that, it noted on disk which
steps had returned. Whatever it left is then opened. Documents, lessons, epochs, rankings and scores must equal, bit for
bit, those of a fresh memory that took the noted steps, or those and the one that was under way: nothing acknowledged is
lost, nothing is half done, what was forgotten is gone from every file. And the memory must go on: it is added to and
taught, and that too is compared. A failure is replayed with --scenario NAME --boundary N.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from boundaries import NOWHERE, Boundaries, install
from scenarios import CLOSE, OPEN, SCENARIOS, SECRET, Scenario, Stage

import evokey
from evokey.stores.embedded import EmbeddedStore

PERSIST_AT = 4
"""Rows after which the killed process writes a segment: few, so that segments are written and merged often."""
DERIVED = ("pools", "migrations", "sqlite_sequence", "writers")
FAST = Path("/dev/shm")
Rankings = list[list[tuple[str, float]]]


@dataclass(frozen=True)
class Seen:
    """What is found in a memory: at once, and after it was written to again."""

    ledger: dict[str, list[Any]]
    rankings: Rankings
    ledger_later: dict[str, list[Any]]
    rankings_later: Rankings


class Left(AssertionError):
    """What a kill must not leave behind."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    begun, kills, failures = time.perf_counter(), 0, 0
    base = Path(tempfile.mkdtemp(prefix="evokey-faults-", dir=FAST if FAST.is_dir() else None))
    try:
        found = {name: boundaries(base / "counting", name) for name in options.scenario or SCENARIOS}
        share = min(1.0, options.kills / sum(map(len, found.values()))) if options.kills else 1.0
        for name, labels in found.items():
            chosen = [options.boundary] if options.boundary is not None else _spread(len(labels), share)
            wrong = [number for number in chosen if not _survives(base, name, number, labels[number])]
            kills, failures = kills + len(chosen), failures + len(wrong)
            seconds = time.perf_counter() - begun
            _say(f"{name:16} {len(labels):5} boundaries, {len(chosen):5} kills, {len(wrong)} failures, {seconds:.0f} s")
    finally:
        shutil.rmtree(base)
    _say(f"{kills} kills, {failures} failures")
    return 1 if failures else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this one (may be repeated)")
    parser.add_argument("--boundary", type=int, help="only this boundary of the scenario")
    parser.add_argument("--kills", type=int, help="about so many, evenly spread, instead of all")
    options = parser.parse_args(arguments)
    if options.boundary is not None and len(options.scenario or ()) != 1:
        parser.error("--boundary needs one --scenario")
    return options


def _spread(count: int, share: float) -> list[int]:
    """That share of the numbers below a count, evenly: the same ones every time."""
    return [number for number in range(count) if int((number + 1) * share) > int(number * share)]


def _survives(base: Path, name: str, number: int, label: str) -> bool:
    folder = base / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        check(name, folder, killed(folder, name, number), base)
    except Exception:  # noqa: BLE001  whatever went wrong is a failure of this kill, and the next one is tried
        _say(f"FAILED: --scenario {name} --boundary {number} ({label})\n{traceback.format_exc()}")
        return False
    return True


# ---- the child


def boundaries(folder: Path, name: str) -> list[str]:
    """Where a scenario can be killed, found by living through it to its end."""
    shutil.rmtree(folder, ignore_errors=True)
    status, _ = _forked(folder, name, NOWHERE)
    if status:
        raise RuntimeError(f"scenario {name} does not reach its end even without a kill")
    labels: list[str] = json.loads(_beside(folder, "labels").read_text())
    return labels


def killed(folder: Path, name: str, number: int) -> int:
    """Live through a scenario up to a boundary; return how many steps had been acknowledged."""
    status, acknowledged = _forked(folder, name, number)
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        raise RuntimeError(f"the process was to be killed at boundary {number}; it ended with status {status}")
    return acknowledged


def _forked(folder: Path, name: str, die_at: int) -> tuple[int, int]:
    """Fork, for a new interpreter would take longer than a scenario."""
    notes = _beside(folder, "acknowledged")
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_bytes(b"")
    child = os.fork()
    if not child:
        try:
            _live(SCENARIOS[name], folder, die_at)
            os._exit(0)
        except BaseException:  # noqa: BLE001  a child must not return into its parent's code
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return status, len(notes.read_bytes())


def _live(scenario: Scenario, folder: Path, die_at: int) -> None:
    notes = os.open(_beside(folder, "acknowledged"), os.O_WRONLY | os.O_APPEND)
    sync, at = os.fsync, Boundaries(die_at)
    EmbeddedStore.persist_at = PERSIST_AT
    install(at)
    stage = Stage(folder, scenario.encoder, scenario.policy)
    for number, step in enumerate(scenario.steps):
        at.step = f"step {number}, {step[0]}"
        stage.take(step)
        os.write(notes, b".")
        sync(notes)
    at.die_at = NOWHERE
    _beside(folder, "labels").write_text(json.dumps(at.seen))


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f"{folder.name}.{what}")


# ---- what it left


def check(name: str, folder: Path, acknowledged: int, base: Path) -> None:
    steps = SCENARIOS[name].steps
    if _forgotten(steps[:acknowledged]):
        _no_trace(folder)
    under_way = min(acknowledged + 1, len(steps))
    found = examined(SCENARIOS[name], folder, new=OPEN not in steps[:acknowledged])
    allowed = [expected(name, count, base) for count in sorted({acknowledged, under_way})]
    if found not in allowed:
        raise Left(
            f"after {acknowledged} acknowledged steps:\n" + "\n".join(_differences(found, one) for one in allowed)
        )
    if SECRET not in json.dumps(found.ledger_later, default=repr):
        _no_trace(folder)
    strays = [path.name for path in (folder / "keys").rglob("*.tmp")]
    if strays:
        raise Left(f"the next writer did not sweep away {strays}")


@cache
def expected(name: str, steps: int, base: Path) -> Seen:
    """What a fresh memory holds that took the first steps of a scenario."""
    scenario, folder = SCENARIOS[name], base / "fresh"
    shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(folder, scenario.encoder, scenario.policy)
    for step in scenario.steps[:steps]:
        stage.take(step)
    new = OPEN not in scenario.steps[:steps]
    if not new:
        stage.take(CLOSE)
    return examined(scenario, folder, new=new)


def examined(scenario: Scenario, folder: Path, *, new: bool) -> Seen:
    """Look at a memory, write to it, and look again, before and after it is closed."""
    stage = Stage(folder, scenario.encoder if new else None, scenario.policy)  # its settings were acknowledged too
    stage.take(OPEN)
    ledger, rankings = _ledger(folder), _rankings(scenario, stage.memory)
    for step in scenario.probe:
        stage.take(step)
    later = _rankings(scenario, stage.memory)
    stage.take(CLOSE)
    stage.take(OPEN)
    reopened = _rankings(scenario, stage.memory)
    stage.take(CLOSE)
    if reopened != later:
        raise Left(f"closing and opening changed the rankings:\n{later}\n{reopened}")
    return Seen(ledger, rankings, _ledger(folder), later)


def _rankings(scenario: Scenario, memory: evokey.Memory) -> Rankings:
    epochs = (None, 0)
    return [
        [(hit.id, hit.score) for hit in memory.search(**asked, epoch=epoch)]
        for asked in scenario.asked
        for epoch in epochs
    ]


def _ledger(folder: Path) -> dict[str, list[Any]]:
    """All rows of all tables but those that are derived."""
    connection = sqlite3.connect(folder / "ledger.sqlite")
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
            for name in sorted(set(names) - set(DERIVED))
        }
    finally:
        connection.close()


def _forgotten(steps: Sequence[Any]) -> bool:
    return any(verb == "forget" and "actor" in given for verb, given in steps)


def _no_trace(folder: Path) -> None:
    held = [path.name for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    if held:
        raise Left(f"what was forgotten is still in {held}")


def _differences(found: Seen, wanted: Seen) -> str:
    lines = []
    for part in ("ledger", "rankings", "ledger_later", "rankings_later"):
        one, other = getattr(found, part), getattr(wanted, part)
        if one != other:
            lines.append(f"  {part}: found {one}\n  {' ' * len(part)}  wanted {other}")
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
