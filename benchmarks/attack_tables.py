"""Tables of docs/voices.md: attacks by feedback, with the defences and before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from results import read, table

KINDS = ("titles", "words", "flooding", "copies", "contradiction", "units", "several", "hidden")
BEFORE = 10
"""The share of attackers with which the version before was measured: it did not ask who says something."""
Runs = Mapping[str, Any]


def _cells(runs: Runs) -> list[str]:
    """Each set with each retriever."""
    return list(dict.fromkeys(key.rsplit(" ", 1)[0] for key in runs if key.endswith(" honest")))


def _changes(runs: Runs, attack: str) -> list[float]:
    """What others lose against no attack, cell by cell."""
    cells = [cell for cell in _cells(runs) if f"{cell} {attack}" in runs]
    return [runs[f"{cell} {attack}"]["ndcg"] / runs[f"{cell} honest"]["ndcg"] - 1 for cell in cells]


def _spam(runs: Runs, attack: str) -> list[float]:
    return [runs[f"{cell} {attack}"]["spam"] for cell in _cells(runs) if f"{cell} {attack}" in runs]


def _summary(runs: Runs, attack: str) -> list[str]:
    changes, spam = _changes(runs, attack), _spam(runs, attack)
    if not changes:
        return []
    return [f"{fmean(changes):+.1%}", f"{min(changes):+.1%}", f"{fmean(spam):.1%} ({max(spam):.1%})"]


def kinds() -> str:
    """By kind of attack and share of attackers, over all sets and retrievers."""
    now, before = read("attacks.json"), read("attacks-before.json")
    rows = [[kind, "before", *_summary(before, f"{kind} {BEFORE}")] for kind in KINDS]
    rows += [[kind, f"{share} %", *_summary(now, f"{kind} {share}")] for kind in KINDS for share in (1, 10, 30)]
    order = {kind: place for place, kind in enumerate(KINDS)}
    shown = sorted((row for row in rows if len(row) > 2), key=lambda row: order[row[0]])
    return table(["attack", "attackers", "others, mean", "worst cell", "advertisement found, mean (most)"], shown)


def _cell(runs: Runs, cell: str, share: int) -> Sequence[str]:
    honest = runs[f"{cell} honest"]["ndcg"]
    found = [runs[key]["ndcg"] / honest - 1 for kind in KINDS if (key := f"{cell} {kind} {share}") in runs]
    return [f"{fmean(found):+.1%}", f"{min(found):+.1%}"] if found else ["", ""]


def cells() -> str:
    """By set and retriever: what honest teaching brings with the defences and without, and what attacks cost."""
    now, before = read("attacks.json"), read("attacks-before.json")
    rows = []
    for cell in _cells(now):
        scores = [now[f"{cell} {name}"]["ndcg"] for name in ("untaught", "unnamed", "honest")]
        was = _cell(before, cell, BEFORE) if f"{cell} honest" in before else ["", ""]
        rows.append([*cell.split(), *(f"{one:.3f}" for one in scores), *was, *_cell(now, cell, 10)])
    head = ["set", "retriever", "untaught", "taught by one voice", "by 100 actors", "attacked before, mean", "worst",
            "now, mean", "worst"]  # fmt: skip
    return table(head, rows)


def gain() -> str:
    """The honest gain that is left with the defences."""
    runs = read("attacks.json")
    gains = [
        [runs[f"{cell} {name}"]["ndcg"] - runs[f"{cell} untaught"]["ndcg"] for cell in _cells(runs)]
        for name in ("unnamed", "honest")
    ]
    one, many = (fmean(some) for some in gains)
    return f"Honest gain on the mean: {one:+.4f} by one voice, {many:+.4f} by a hundred actors ({many / one:.0%})."


TABLES: dict[str, Callable[[], str]] = {"attack_kinds": kinds, "attack_cells": cells, "attack_gain": gain}
