"""Committed result files, and Markdown tables of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
READ: set[str] = set()
"""Names of the files that were read."""


def read(name: str) -> Any:
    READ.add(name)
    return json.loads((RESULTS / name).read_text("utf-8"))


def bench(name: str) -> Mapping[str, list[dict[str, Any]]]:
    """The tables that `evokey bench` wrote into a folder: quality, groups, differences, prices, …"""
    tables: Mapping[str, list[dict[str, Any]]] = read(f"bench/{name}/tables.json")
    return tables


def better(*values: float, form: str = ".3f") -> list[str]:
    """The best in bold: a loss must not look like a gain. Where all read the same, none."""
    shown = [f"{value:{form}}" for value in values]
    best = shown[max(range(len(values)), key=lambda place: values[place])]
    return [f"**{one}**" if one == best and len(set(shown)) > 1 else one for one in shown]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] + ["---:"] * (len(list(head)) - 1), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
