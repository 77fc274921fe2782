"""The table of faults in words: for the terminal, and the page of the docs that is made from the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "faults.json"
PAGE = ROOT / "docs" / "faults.md"
HARMS = ("lost", "wrong ranking", "crash", "raw error", "no way out", "unsound", "wedged", "not injected")
COLUMNS = ("fault", "injected", "checked", "errors seen", "lost", "wrong rankings", "crashes", "other harm", "seconds")


def render(rows: Sequence[dict[str, Any]]) -> str:
    cells = [_cells(row) for row in rows]
    cells.append(["**all**", *(f"{sum(column):,}" for column in zip(*(_numbers(row) for row in rows), strict=True))])
    head = [f"| {' | '.join(COLUMNS)} |", f"|---|{'---:|' * (len(COLUMNS) - 1)}"]
    return "\n".join([*head, *(f"| {' | '.join(line)} |" for line in cells)])


def _cells(row: dict[str, Any]) -> list[str]:
    return [row["kind"], *(f"{number:,}" for number in _numbers(row))]


def _numbers(row: dict[str, Any]) -> list[int]:
    others = sum(row[harm] for harm in HARMS[3:])
    return [row["injected"], row["checked"], sum(row["errors"].values()), row["lost"], row["wrong ranking"],
            row["crash"], others, round(row["seconds"])]  # fmt: skip


HEAD = """# Faults

What happens to a memory when its process is killed, its disk is full, its files are damaged, its services fail. `make
faults` injects {faults:,} faults of {kinds} kinds, each seeded, in {minutes} minutes of processor time, and makes this
page ([result](../benchmarks/results/faults.json)); a run that was stopped goes on where it stopped.

After every fault the memory is opened again. Each document, lesson and epoch that was acknowledged before must be there
(*checked* counts them), and what was under way wholly or not at all. Rankings and scores must equal, bit for bit, those
of a memory to which nothing happened, at once and after more was added and learned (after kills and restored files also
those of keys made anew from the ledger); `evokey doctor` must find nothing. An error that the caller saw must be one of
evokey's own and tell a way out, which is then taken: anything else is *other harm*.

"""
TAIL = """
## What each kind is

{kinds}

## What no check can tell

- SQLite keeps a commit in `ledger.sqlite-wal` until it is moved to `ledger.sqlite`. Where a process was killed, and
  that file is then cut or flipped before anybody opens the memory, SQLite drops the commits from the damage on.
- Flipped bits in a ledger are found where it was closed after the last write and the time of the file is as it was:
  what is written by another program, or copied without its time, is not checked.
- Settings (`evokey.toml`) that turn into other valid settings are believed: people may edit them.
- A key file that another program cuts while it is mapped kills the process that reads it (SIGBUS); evokey's own files
  are only ever replaced by rename.
- A service that sends wrong vectors of the right form is believed.
"""


def page() -> str:
    """The page of the docs, from the result."""
    found = json.loads(RESULT.read_text("utf-8"))
    rows = found["kinds"]
    minutes = round(found["seconds"] / 60)
    head = HEAD.format(faults=found["faults"], kinds=len(rows), minutes=minutes)
    lines = "\n".join(f"- **{row['kind']}**: {row['what']}. Seen: {_errors(row)}." for row in rows)
    return head + render(rows) + "\n" + TAIL.format(kinds=lines)


def _errors(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in row["errors"].items()) or "no error"
