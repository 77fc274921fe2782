"""Two versions of the program and one memory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from boundaries import Boundaries, install
from damage import LEDGER, files, run
from fixtures.earlier import story
from world import Harm, Trial, program, read_ledger

from evokey.errors import NewerFormat
from evokey.inspect import doctor

ROOT = Path(__file__).parents[2]
EARLIER = ROOT / "tests" / "fixtures" / "earlier"
VERSION_BEFORE = "823b68d"


def versions(trial: Trial) -> None:
    kinds = [newer_ledger, newer_settings, upgrade, *([older_program] * bool(older_source()))]
    trial.chance.choice(kinds)(trial)


def newer_ledger(trial: Trial) -> None:
    """A memory that a later version has written to: refused, and not one byte is changed."""
    run(trial, program(trial, 2))
    with closing(sqlite3.connect(trial.folder / LEDGER)) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES (?)", (f"{trial.chance.randint(10, 99):04}_later",))
        connection.execute("ALTER TABLE lessons ADD COLUMN later TEXT")
    refuse(trial, lambda: trial.open())


def newer_settings(trial: Trial) -> None:
    path = trial.folder / "evokey.toml"
    path.write_text(path.read_text().replace("format = 2", f"format = {trial.chance.randint(3, 99)}"))
    refuse(trial, lambda: trial.open())


def refuse(trial: Trial, attempt: Callable[[], object]) -> None:
    before, rows = digests(trial.folder), read_ledger(trial.folder)
    with trial.meets():
        try:
            attempt()
        except NewerFormat:
            trial.errors.append("NewerFormat")
        else:
            raise Harm("lost", "a memory of a newer version is opened")
    unchanged(trial, before, rows)


def unchanged(trial: Trial, before: dict[str, str], rows: dict[str, Any]) -> None:
    if digests(trial.folder) != before or read_ledger(trial.folder) != rows:
        raise Harm("lost", "a memory of another version was changed")
    trial.checked += sum(map(len, rows.values()))


def digests(folder: Path) -> dict[str, str]:
    keep = [path for path in files(folder) if not path.name.endswith(("-shm", "-wal", ".lock", ".commits"))]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in keep}


def older_program(trial: Trial) -> None:
    """The version before reads a memory that this one has written to: it refuses, and changes nothing."""
    run(trial, program(trial, 2))
    if trial.chance.random() < 0.5:  # its settings alone would do
        path = trial.folder / "evokey.toml"
        path.write_text(path.read_text().replace("format = 2", "format = 1"))
    before, rows = digests(trial.folder), read_ledger(trial.folder)
    answer = ask_older(str(trial.folder))
    if answer != "NewerFormat":
        raise Harm("lost", f"the older program says {answer}")
    trial.errors.append(answer)
    unchanged(trial, before, rows)


@cache
def older_source() -> Path | None:
    """The source of the version before, where this is a clone with its history."""
    folder = Path(os.environ["EVOKEY_FAULTS_HOME"]) / "older"
    if not folder.exists():
        folder.mkdir()
        made = subprocess.run(["git", "-C", ROOT, "archive", VERSION_BEFORE, "src"], capture_output=True, check=False)
        if made.returncode == 0:
            subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True)
    return folder / "src" if (folder / "src").exists() else None


OLDER = """
import sys, evokey
for line in sys.stdin:
    try:
        with evokey.open(line.strip()) as memory:
            memory.search("castle")
        print("opened", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@cache
def _older() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(older_source())}
    command = [sys.executable, "-c", OLDER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask_older(folder: str) -> str:
    process = _older()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{folder}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def upgrade(trial: Trial) -> None:
    """A memory of the version before is brought up to date, and killed at some write of that."""
    name = trial.chance.choice(["chunks", "paper", "hybrid"])
    shutil.rmtree(trial.folder)
    shutil.copytree(EARLIER / name, trial.folder)
    for left in ("-wal", "-shm"):
        (trial.folder / f"{LEDGER}{left}").unlink(missing_ok=True)
    before = sums(trial.folder)
    die_at = trial.chance.randrange(60)
    child = os.fork()
    if child == 0:
        try:
            install(Boundaries(die_at))
            trial.open().close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with trial.meets(), trial.open() as memory:
        found = story.rankings(memory)
        near(found, earlier_rankings(name), name)
        memory.add([{"id": "new", "text": "descale the espresso machine with citric acid"}])
        if memory.search("citric acid", k=1)[0].id != "new":
            raise Harm("wrong ranking", "a document added after the upgrade is not found")
        memory.delete(["new"])
    if sums(trial.folder) != before:
        raise Harm("lost", f"{name}: rows changed with the upgrade")
    copy = trial.copy("unkeyed")
    shutil.rmtree(copy / "keys")
    with trial.meets(), trial.open() as memory, trial.open(copy) as unkeyed:
        if story.rankings(memory) != story.rankings(unkeyed):
            raise Harm("wrong ranking", f"{name}: keys that are made anew rank otherwise")
    if doctor.examine(trial.folder):
        raise Harm("unsound", str(doctor.examine(trial.folder)))
    trial.checked += sum(map(len, before.values()))


def sums(folder: Path) -> dict[str, list[Any]]:
    """What people told it."""
    with closing(sqlite3.connect(folder / LEDGER)) as connection:
        return {
            "documents": sorted(connection.execute("SELECT number, id, title, text, metadata FROM documents")),
            "lessons": sorted(connection.execute("SELECT number, query, units, verifier, time FROM lessons")),
            "epochs": sorted(connection.execute("SELECT number, kind, lessons_to, choice FROM epochs")),
        }


@cache
def earlier_rankings(name: str) -> Any:
    return json.loads((EARLIER / "expected.json").read_text("utf-8"))[name]["rankings"]


def near(found: Any, expected: Any, name: str) -> None:
    for epoch, rankings in expected.items():
        for query, ranking in rankings.items():
            hits = found[epoch][query]
            if [id for id, _ in hits] != [id for id, _ in ranking]:
                raise Harm("wrong ranking", f"{name}, epoch {epoch}, {query!r}")
            if any(abs(score - old) > 1e-5 for (_, score), (_, old) in zip(hits, ranking, strict=True)):
                raise Harm("wrong ranking", f"{name}, epoch {epoch}, {query!r}: other scores")
