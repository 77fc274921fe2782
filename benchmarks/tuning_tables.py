"""The table of tuning.json."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from results import better, read, table

FILE = "tuning.json"
STATES = ("untaught", "evolve", "tune")


def tuning() -> str:
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, one in read(FILE).items():
        name, encoder, _ = key.split("/")
        cells.setdefault((name, encoder), []).append(one)
    rows = [_row(name, encoder, found) for (name, encoder), found in cells.items()]
    head = ["set", "retriever", "lessons", "untaught", "evolve", "tune", "related", "unrelated", "published", "seconds"]
    note = (
        "Related, unrelated: evolve → tune. Published: in how many of the splits. Seconds: of tune, all it compares "
        "included, on one processor of a busy machine."
    )
    return f"{table(head, rows)}\n\n{note}"


def _row(name: str, encoder: str, found: list[dict[str, Any]]) -> list[str]:
    untaught, *after = (fmean(one[state]["tested"] for one in found) for state in STATES)
    apart = [_change(found, group) for group in ("related", "unrelated")]
    published = f"{sum(one['published'] for one in found)} of {len(found)}"
    seconds = f"{fmean(one['tune_seconds'] for one in found):.0f}"
    return [name, encoder, str(found[0]["lessons"]), f"{untaught:.3f}", *better(*after), *apart, published, seconds]


def _change(found: list[dict[str, Any]], group: str) -> str:
    some = [one for one in found if one["evolve"][group] is not None]
    if not some:
        return "–"
    before, after = (fmean(one[state][group] for one in some) for state in ("evolve", "tune"))
    return f"{before:.3f} → {after:.3f}"


TABLES = {"tuning": tuning}
