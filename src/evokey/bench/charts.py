"""Figures of the other result files: how keys are built, expanders and retrievers, what learning costs among many
documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from evokey.bench import style
from evokey.bench.measures import MAIN
from evokey.bench.style import Axis, Figure

Row = Mapping[str, Any]
ENCODERS = {"bm25": "#5c6b73", "wordllama": "#2a9d8f", "all-MiniLM-L6-v2": "#1f5fa8", "hybrid": "#c78a2c"}
KEYS = {"full": "#1f5fa8", "title": "#c78a2c", "abstract": "#2a9d8f", "keywords": "#b5547f", "chunks": "#8a8a8a"}
"""Ways to build a key, and their colours."""
UP, DOWN = "#1f5fa8", "#c2452d"
BUBBLE = 17.0
"""Points² of a bubble for each percent."""


def index_methods(cells: Sequence[Row]) -> Figure:
    """A panel for each set: nDCG@10 of every retriever with every way to build a key."""
    sets = list(dict.fromkeys(one["dataset"] for one in cells))
    ways = [way for way in KEYS if any(one["keys"] == way for one in cells)]
    figure, axes = style.row(len(sets), 2.6)
    for axis, name in zip(axes, sets, strict=True):
        here = {(one["encoder"], one["keys"]): one["measures"][MAIN] for one in cells if one["dataset"] == name}
        encoders = list(dict.fromkeys(encoder for encoder, _ in here))
        for place, encoder in enumerate(encoders):
            known = {way: here[encoder, way] for way in ways if (encoder, way) in here}
            best = max(known.values())
            for way, value in known.items():
                at = place + (ways.index(way) - (len(ways) - 1) / 2) * 0.8 / len(ways)
                axis.bar([at], [value], width=0.72 / len(ways), color=KEYS[way])
                if value == best:
                    axis.text(at, value, f"{value:.3f}".lstrip("0"), ha="center", va="bottom", fontsize=6.5)
        axis.set_title(name)
        axis.set_xticks(range(len(encoders)), [one.removeprefix("all-").removesuffix("-L6-v2") for one in encoders])
        axis.set_xlim(-0.5, len(encoders) - 0.5)
        axis.grid(axis="x", visible=False)
    axes[0].set_ylabel(f"{MAIN}, untaught")
    handles = [Rectangle((0, 0), 1, 1, color=KEYS[way]) for way in ways]
    style.legend(figure, [], zip(handles, (f"keys: {way}" for way in ways), strict=True))
    return figure


def bubbles(asked: Sequence[Row], taught: Sequence[Row]) -> Figure:
    """Expander × retriever: what an expansion gives to the query that is asked with it, and to the plain queries of
    others when it taught beside its own. Area: percent of change; hollow: a loss."""
    now = {(one["dataset"], one["encoder"], one["method"]): one["blend"] / one["plain"] - 1 for one in asked}
    later = {
        (one["dataset"], one["encoder"], one["method"]): one["held_out"][1] / one["held_out"][0] - 1
        for one in taught
        if one["lessons"] == "both"
    }
    sets = list(dict.fromkeys(name for name, *_ in now if any(name == other for other, *_ in later)))
    panels = [(name, found, said) for name in sets
              for found, said in ((now, "asked with it"), (later, "taught with it"))]  # fmt: skip
    methods = [sorted({method for dataset, _, method in found if dataset == name}) for name, found, _ in panels]
    encoders = list(dict.fromkeys(encoder for _, encoder, _ in now))
    widths = [len(columns) for columns in methods]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.6 + 0.37 * sum(widths), 1.7 + 0.5 * len(encoders)), sharey=True,
        gridspec_kw={"width_ratios": [width + 0.6 for width in widths]}, squeeze=False,
    )  # fmt: skip
    for axis, (name, found, said), columns in zip(axes[0], panels, methods, strict=True):
        for (dataset, encoder, method), change in found.items():
            if dataset == name:
                _bubble(axis, columns.index(method), encoders.index(encoder), change)
        axis.set_title(f"{name}\n{said}", fontsize=8)
        axis.set_xticks(range(len(columns)), columns, rotation=40, ha="right", fontsize=7.5)
        axis.set_yticks(range(len(encoders)), encoders)
        axis.set_xlim(-0.6, len(columns) - 0.4)
        axis.set_ylim(-0.6, len(encoders) - 0.4)
    known = [(Line2D([], [], linestyle="", marker="o", markersize=(BUBBLE * size) ** 0.5, color=UP, alpha=0.6),
              f"{size} %") for size in (2, 10, 25)]  # fmt: skip
    lost = Line2D([], [], linestyle="", marker="o", markersize=(BUBBLE * 5) ** 0.5, markerfacecolor="none", color=DOWN)
    figure.legend(*zip(*known, (lost, "a loss"), strict=True), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4,
                  columnspacing=2.5, handletextpad=1.2)  # fmt: skip
    figure.tight_layout()
    return figure


def _bubble(axis: Axis, x: float, y: float, change: float) -> None:
    size = BUBBLE * abs(100 * change)
    if change >= 0:
        axis.scatter([x], [y], s=size, color=UP, alpha=0.6, linewidths=0)
    else:
        axis.scatter([x], [y], s=size, facecolors="none", edgecolors=DOWN, linewidths=1.2)
    axis.text(
        x, y - 0.46, f"{100 * change:+.0f}".replace("-", "−"), ha="center", va="center", fontsize=6, color="#444444"
    )


def corpus_cost(rows: Sequence[Row]) -> Figure:
    """Seconds of one evolve over the same lessons, as the corpus grows."""
    panels: dict[str, dict[float, float]] = defaultdict(dict)
    for row in rows:
        panels[row["encoder"]][row["documents"]] = row["evolve_cpu_seconds"]
    figure, (axis,) = style.row(1)
    for encoder, points in panels.items():
        axis.plot(list(points), list(points.values()), marker="o", markersize=4, linewidth=1.4,
                  color=ENCODERS.get(encoder, "#3d3d3d"), label=encoder)  # fmt: skip
    axis.set_ylim(bottom=0)
    style.logarithmic(axis)
    axis.set_xlabel("documents")
    axis.set_ylabel(f"one evolve over {rows[0]['lessons']:,} lessons, s")
    figure.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(panels))
    figure.tight_layout()
    return figure
