"""Tables of docs/beside.md, from results/beside.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from results import better, read, table

FILE = "beside.json"
SPEED = "speed "
ENGINES = {"bm25": "BM25", "hybrid": "hybrid"}
Run = Mapping[str, Any]


def runs() -> dict[tuple[str, str], list[Run]]:
    """By set and engine."""
    found: dict[tuple[str, str], list[Run]] = {}
    for key, run in read(FILE).items():
        if key.startswith(SPEED):
            continue
        name, engine, _ = key.rsplit(" ", 2)
        found.setdefault((name, engine), []).append(run)
    return dict(sorted(found.items()))


def means(some: Sequence[Run], group: str) -> list[float] | None:
    """nDCG@10 untaught, embedded and beside."""
    rows = [run["quality"][group] for run in some if run["quality"][group][0] is not None]
    return [fmean(column) for column in zip(*rows, strict=True)] if rows else None


def change(values: Sequence[float] | None, at: int) -> str:
    if values is None:
        return "–"
    return f"{values[at] / values[0] - 1:+.1%}" if values[0] >= 0.1 else f"{values[at] - values[0]:+.3f}"


def doubt(some: Sequence[Run], values: Sequence[float] | None) -> str:
    """Two standard errors of the layer's change on unrelated questions, of one split: splits share questions."""
    errors = [run["layer_errors"]["unrelated"] for run in some if "layer_errors" in run]
    if values is None or not errors or not any(errors):
        return ""
    error = 2 * fmean(errors)
    return f" ± {error / values[0]:.1%}" if values[0] >= 0.1 else f" ± {error:.3f}"


def kept(values: Sequence[float]) -> str:
    """Which part of the memory's gain the layer has; where that gains nothing, nothing can be kept."""
    gain = values[1] - values[0]
    return f"{(values[2] - values[0]) / gain:.0%}" if gain >= 0.002 else "–"


def quality() -> str:
    rows = []
    for (name, engine), some in runs().items():
        held = means(some, "untaught")
        assert held is not None
        unrelated, elsewhere = means(some, "unrelated"), means(some, "elsewhere")
        rows.append(
            [
                f"{name}, {ENGINES[engine]}",
                f"{held[0]:.3f}",
                *better(held[1], held[2]),
                kept(held),
                f"{change(unrelated, 1)} / {change(unrelated, 2)}{doubt(some, unrelated)}",
                change(elsewhere, 2),
                str(len(some)),
            ]
        )
    head = ["set, engine", "engine alone", "memory", "layer", "kept", "unrelated: memory / layer", "elsewhere", "seeds"]
    return table(head, rows)


def latency() -> str:
    names = {
        "engine, 10 results": "the engine alone, 10 results",
        "engine, 100 results": "100 results",
        "layer, far": "through the layer, far from every lesson",
        "layer, near": "near a lesson",
    }
    found = {key.removeprefix(SPEED): run for key, run in read(FILE).items() if key.startswith(SPEED)}
    rows = []
    for key, run in sorted(found.items()):
        name, engine = key.rsplit(" ", 1)
        said = f"{name}, {ENGINES[engine]}, {run['lessons']} lessons"
        rows.append([said, *(f"{run[one]:.2f}" for one in names)])
    return table(["milliseconds of processor time (median)", *names.values()], rows)


TABLES: dict[str, Callable[[], str]] = {"beside_quality": quality, "beside_latency": latency}
