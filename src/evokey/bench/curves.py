"""What changes as lessons come in: gain by budget, quality along a stream and after few lessons, how far keys move,
when the paper's rule is saturated, and what learning costs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from evokey.bench import style
from evokey.bench.grid import UNLEARNED, Grid, Row, in_order
from evokey.bench.measures import MAIN
from evokey.bench.protocols import IN_STEPS
from evokey.bench.style import Figure
from evokey.bench.systems import REFERENCE, UNTAUGHT
from evokey.bench.tables import budget, keys, prices, saturation, streams

SHADES = {
    "again": ("questions that taught", "#1f5fa8"),
    "related": ("other questions about the same documents", "#2a9d8f"),
    "unrelated": ("unrelated questions", "#c2452d"),
}
"""By group: what it is called, and its colour."""


def growth(grid: Grid) -> Figure | None:
    """Gain on the mean over sets, by the share of queries that teach."""
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in budget(grid):
        panels[row["encoder"]].append(row)
    if not panels:
        return None
    figure, axes = style.row(len(panels), sharey=True)
    for axis, (encoder, rows) in zip(axes, panels.items(), strict=True):
        for row in rows:
            points = {float(rate): gain for rate, gain in row.items() if rate[0].isdigit()}
            style.line(axis, points, row["policy"], markersize=5)
        axis.axhline(0, **style.ZERO)
        axis.set_xticks(list(points), [f"{rate:g}" for rate in points])
        count = rows[0]["sets"]
        axis.set_title(f"{encoder} ({count} set{'s' * (count != 1)})")
        axis.set_xlabel("share of queries that teach")
    axes[0].set_ylabel(f"gain in {MAIN}\nover the untaught index")
    style.legend(figure, _policies(row for rows in panels.values() for row in rows))
    return figure


def stream(grid: Grid) -> Figure | None:
    """Quality after every batch, a panel for each set and encoder."""
    panels = _panels(row for row in streams(grid) if row["protocol"].startswith("stream"))
    if not panels:
        return None
    figure, axes = style.tiles(len(panels))
    policies = _policies(row for rows in panels.values() for row in rows)
    for axis, ((name, encoder), rows) in zip(axes, panels.items(), strict=True):
        for policy in policies:
            style.line(axis, {row["taught"]: row["metrics"] for row in rows if row["policy"] == policy}, policy)
        axis.set_title(f"{name}, {encoder}")
        axis.set_xlabel("lessons so far")
    axes[0].set_ylabel(f"{MAIN}, tested queries")
    style.legend(figure, policies)
    return figure


def few(grid: Grid) -> Figure | None:
    """Quality after 1, 3, 10 … lessons, of the questions that taught, of related and of unrelated ones; dashed: the
    same questions before anything was taught."""
    panels = _panels(row for row in streams(grid) if row["protocol"].startswith("curve") and row["taught"])
    if not panels:
        return None
    figure, axes = style.tiles(len(panels))
    for axis, ((name, encoder), rows) in zip(axes, panels.items(), strict=True):
        for policy, dashes in ((UNTAUGHT, "--"), (REFERENCE, "-")):
            for group, (_, shade) in SHADES.items():
                here = {row["taught"]: row[group] for row in rows if row["policy"] == policy and row[group] is not None}
                axis.plot(list(here), list(here.values()), color=shade, linestyle=dashes, linewidth=1.3,
                          marker="o" if policy == REFERENCE else "", markersize=3)  # fmt: skip
        axis.set_title(f"{name}, {encoder}")
        axis.set_xlabel("lessons")
        style.logarithmic(axis)
    axes[0].set_ylabel(MAIN)
    known = [(Line2D([], [], color=shade, marker="o", markersize=3, linewidth=1.3), said)
             for said, shade in SHADES.values()]  # fmt: skip
    before = (Line2D([], [], color="#555555", linestyle="--", linewidth=1.3), "before teaching")
    style.legend(figure, [], [*known, before])
    return figure


def displacement(grid: Grid) -> Figure | None:
    """How far touched keys have moved after every batch: the median, and a band up to 95 %."""
    rows = keys(grid)
    moving = {row["policy"] for row in rows if row["moved"]}
    panels = _panels([row for row in rows if row["policy"] in moving], "retriever")
    if not panels:
        return None
    figure, axes = style.tiles(len(panels))
    policies = _policies(row for rows in panels.values() for row in rows)
    for axis, ((name, encoder, retriever), rows) in zip(axes, panels.items(), strict=True):
        for policy in policies:
            here = [row for row in rows if row["policy"] == policy]
            lessons = [row["taught"] for row in here]
            style.line(axis, dict(zip(lessons, (row["median"] for row in here), strict=True)), policy)
            axis.fill_between(lessons, [row["median"] for row in here], [row["p95"] for row in here],
                              color=style.colour(policy), alpha=0.15, linewidth=0)  # fmt: skip
        axis.set_title(f"{name}, {encoder}" + (f": {retriever}" if retriever != encoder else ""))
        axis.set_xlabel("lessons so far")
        axis.set_ylabel("weight added to a key" if rows[0]["kind"] == "sparse" else "1 − cosine to the first key")
        axis.set_ylim(bottom=0)
    style.legend(figure, policies, [(Rectangle((0, 0), 1, 1, color="#bbbbbb", alpha=0.5), "up to 95 % of the keys")])
    return figure


def stopping(grid: Grid) -> Figure | None:
    """The paper's largest gain of every batch, and the bar that it must pass; where it is saturated, keys evolve."""
    panels = _panels(saturation(grid), "retriever")
    if not panels:
        return None
    figure, axes = style.tiles(len(panels))
    shade = style.colour("paper")
    for axis, ((name, encoder, retriever), rows) in zip(axes, panels.items(), strict=True):
        batches = [row["batch"] for row in rows]
        axis.plot(batches, [row["gain"] for row in rows], color=shade, linewidth=1.2, marker="o", markersize=3)
        axis.step(
            batches, [row["bar"] or math.nan for row in rows], where="mid", color="#555555", linewidth=1, linestyle="--"
        )
        for row in rows:
            if row["saturated"]:
                axis.axvline(row["batch"], color=style.colour("guarded"), linewidth=0.9, alpha=0.6)
        axis.set_title(f"{name}, {encoder}" + (f": {retriever}" if retriever != encoder else ""))
        axis.set_xlabel("batch of ten lessons")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("largest gain Δ of a batch")
    known = [
        (Line2D([], [], color=shade, marker="o", markersize=3, linewidth=1.2), "largest gain of a batch"),
        (Line2D([], [], color="#555555", linestyle="--", linewidth=1), "95 % of the best so far"),
        (Line2D([], [], color=style.colour("guarded"), linewidth=0.9), "saturated: keys evolve"),
    ]
    style.legend(figure, [], known)
    return figure


def cost(grid: Grid) -> Figure | None:
    """What learning costs: seconds of processor for one evolve, against the number of lessons. A stream or a curve
    evolves often, so it has no place here."""
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in prices(grid):
        once = row["policy"] not in UNLEARNED and not row["protocol"].startswith(IN_STEPS)
        if once and row["evolve_cpu_s"] and row["lessons"]:
            panels[row["encoder"]].append(row)
    if not panels:
        return None
    figure, axes = style.row(len(panels), sharex=True, sharey=True)
    for axis, (encoder, rows) in zip(axes, panels.items(), strict=True):
        for row in rows:
            style.mark(axis, row["lessons"], row["evolve_cpu_s"], row["policy"])
        axis.set_title(encoder)
        axis.set_xlabel("lessons")
        axis.margins(0.12)
    for axis in axes:
        style.logarithmic(axis)
        style.logarithmic(axis, across=False)
    axes[0].set_ylabel("evolve, s of processor")
    style.legend(figure, _policies(row for rows in panels.values() for row in rows))
    return figure


def _panels(rows: Iterable[Row], *more: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in ("set", "encoder", *more))].append(row)
    return found


def _policies(rows: Iterable[Row]) -> list[str]:
    return in_order({row["policy"] for row in rows})


CURVES = {
    "budget": growth,
    "stream": stream,
    "few": few,
    "displacement": displacement,
    "saturation": stopping,
    "cost": cost,
}
