"""Table of clicks.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from results import read, table

NAMES = {
    "true": "all judgements",
    "shown": "judgements of what was shown",
    "clicks": "clicks",
    "explored": "clicks, with exploration",
    "random": "random clicks",
}


def clicks() -> str:
    found = read("clicks.json")
    rows = []
    for name, one in sorted(found["sets"].items()):
        start = one["untaught"]
        rows.append(
            [f"{name} ({one['questions']})", "untaught", "", f"{start['taught']:.3f}", f"{start['held_out']:.3f}"]
        )
        rows += [["", NAMES[kind], *_cells(one[kind])] for kind in NAMES if kind in one]
    return table(["set (questions)", "taught by", "verdicts (right)", "taught questions", "held-out questions"], rows)


def _cells(one: dict[str, Any]) -> list[str]:
    shares = [(one[part], one[f"{part}_share"], one[f"{part}_share_of_shown"]) for part in ("taught", "held_out")]
    return [
        f"{one['verdicts']} ({one['right']})",
        *(f"{value:.3f} ({_share(a)}, {_share(b)})" for value, a, b in shares),
    ]


def _share(one: float | None) -> str:
    """None: what it is beside has gained nothing."""
    return "–" if one is None else f"{one:.0%}"


TABLES: dict[str, Callable[[], str]] = {"clicks": clicks}
