"""Tables of seeding.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from results import read, table

ROWS = {
    "upper": "people's questions, as if a model had written them",
    "people": "the same as people's lessons",
    "both": "people's lessons and the model's questions",
}


def seeding() -> str:
    rows = []
    for name, one in read("seeding.json")["sets"].items():
        seeds = one["seeds"]
        rows.append([name, f"{seeds['kept']} questions of the model", "all", *_cells(seeds["all"])])
        rows.append(["", "", "about seeded documents", *_cells(seeds["seeded"])])
        rows.append(["", "", "about others", *_cells(seeds["others"])])
        rows += [["", said, "held out", *_cells(one[kind])] for kind, said in ROWS.items() if kind in one]
    return table(["set", "taught by", "people's questions", "number", "untaught → taught", "change (95 %)"], rows)


def seeding_written() -> str:
    rows = []
    for name, one in read("seeding.json")["sets"].items():
        written, dropped = one["written"], one["written"]["dropped"]
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items(), key=lambda one: -one[1]))
        kept = f"{written['kept']} ({written['found_first']} found first)"
        rows.append([name, str(written["passages"]), kept, told])
    return table(["set", "passages", "kept", "dropped"], rows)


def _cells(one: dict[str, Any]) -> list[str]:
    if not one["questions"] or not one["before"]:
        return [str(one["questions"]), "–", "–"]
    change = [(one["after"] - one["before"]), one["low"], one["high"]]
    shown = [f"{value / one['before']:+.1%}" for value in change]
    return [
        str(one["questions"]),
        f"{one['before']:.3f} → {one['after']:.3f}",
        f"{shown[0]} ({shown[1]} … {shown[2]})",
    ]


TABLES: dict[str, Callable[[], str]] = {"seeding": seeding, "seeding_written": seeding_written}
