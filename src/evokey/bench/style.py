"""How figures look: one colour, mark and name for each system in all of them; written as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from evokey.bench.ablations import ABLATIONS
from evokey.bench.systems import ADAPTER, EXPANSION, FINE_TUNE, JUDGED, LIVE, REFERENCE, UNTAUGHT

TUNE = "tune"
"""`evokey tune`, which stands beside the systems of the bench in one figure."""
STYLE: Any = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "evokey",
}
COLOURS = {
    UNTAUGHT: "#8a8a8a",
    REFERENCE: "#1f5fa8",
    "paper": "#c2452d",
    "nudge-n": "#c78a2c",
    "nudge-m": "#6b8f3a",
    FINE_TUNE: "#8c4b1f",
    ADAPTER: "#c9788f",
    TUNE: "#2f9e63",
    EXPANSION: "#7b5ea7",
    LIVE: "#b0479a",
    JUDGED: "#2f2f2f",
    "bm25s": "#3d3d3d",
}
OTHERS = ("#2a9d8f", "#b5547f", "#5c6b73", "#a0793d", "#4f7cac", "#8d6e97", "#94a13d", "#d1785a", "#1f6f8b", "#e08a72")
RECORDED = ("#a58bc9", "#5b3f8c", "#c9a6d8", "#8460b8", "#3f2a66")
"""Of recorded expansions, by who wrote them."""
MARKS = {UNTAUGHT: "|", REFERENCE: "o", "paper": "X", "nudge-n": "D", "nudge-m": "s", EXPANSION: "^", LIVE: "^",
         FINE_TUNE: "P", ADAPTER: "v", TUNE: "^", JUDGED: "*", "bm25s": "_"}  # fmt: skip
COLOURS |= dict(zip(ABLATIONS, OTHERS, strict=True))
MARKS |= dict(zip(ABLATIONS, "vP*h<>p8Hd", strict=True))
NAMES = {UNTAUGHT: "untaught", "nudge-n": "NUDGE-N", "nudge-m": "NUDGE-M", "paper": "paper's rule",
         FINE_TUNE: "fine-tuned", ADAPTER: "linear adapter"}  # fmt: skip
ZERO: Any = {"color": "#555555", "linewidth": 0.8, "zorder": 1}
Figure = Any
Axis = Any


def save(drawn: Mapping[str, Callable[[], Figure | None]], folder: Path) -> list[Path]:
    """Draw each figure that there is something for, as NAME.png and NAME.svg."""
    paths = []
    with plt.rc_context(STYLE):
        for name, figure in ((name, draw()) for name, draw in drawn.items()):
            if figure is None:
                continue
            for path in (folder / f"{name}.png", folder / f"{name}.svg"):
                dated = {} if path.suffix == ".png" else {"metadata": {"Date": None}}
                figure.savefig(path, dpi=200, bbox_inches="tight", **dated)
                paths.append(path)
            plt.close(figure)
    return paths


def row(count: int, height: float = 2.7, **more: Any) -> tuple[Figure, list[Axis]]:
    """So many panels side by side."""
    figure, axes = plt.subplots(1, count, figsize=(1.2 + 2.5 * count, height), squeeze=False, **more)
    return figure, list(axes[0])


def tiles(count: int) -> tuple[Figure, list[Axis]]:
    """So many panels, two or three in each line."""
    columns = 2 if count == 4 else min(count, 3)
    lines = -(-count // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(1.2 + 2.6 * columns, 0.6 + 2.2 * lines), squeeze=False)
    for axis in list(axes.flat)[count:]:
        axis.set_visible(False)
    return figure, list(axes.flat)[:count]


def mark(axis: Axis, x: float, y: float, policy: str) -> None:
    """The guarded policy lies on top."""
    axis.plot([x], [y], zorder=4 if policy == REFERENCE else 3, linestyle="", **marker(policy))


def line(axis: Axis, points: Mapping[float, float], policy: str, **more: Any) -> None:
    style = {"linewidth": 1.4, "marker": MARKS.get(kind(policy), "o"), "markersize": 4, **more}
    if style["marker"] in "|_":
        style["marker"] = ""
    axis.plot(list(points), list(points.values()), color=colour(policy), zorder=3 + (policy == REFERENCE), **style)


def marker(policy: str) -> dict[str, Any]:
    shape, shade = MARKS.get(kind(policy), "o"), colour(policy)
    if shape in "|_":
        return {"marker": shape, "color": shade, "markeredgewidth": 2.2, "markersize": 11 if shape == "|" else 8}
    return {"marker": shape, "color": shade, "markeredgewidth": 0.5, "markeredgecolor": "white", "markersize": 6.5}


def legend(figure: Figure, policies: Sequence[str], further: Iterable[tuple[Any, str]] = ()) -> None:
    """Above all panels. further: handles of other things, with their names."""
    known = [(Line2D([], [], linestyle="", **marker(policy)), name(policy)) for policy in policies]
    shown = [*known, *further]
    columns = min(len(shown), max(2, int(figure.get_figwidth() / 1.7)))
    figure.legend(*zip(*shown, strict=True), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    figure.tight_layout()


def logarithmic(axis: Axis, *, across: bool = True) -> None:
    """Few round numbers, written out."""
    (axis.set_xscale if across else axis.set_yscale)("log")
    scale = axis.xaxis if across else axis.yaxis
    low, high = axis.get_xlim() if across else axis.get_ylim()
    steps = ((3, range(1, 10)), (15, (1, 2, 5)), (1000, (1, 3)), (math.inf, (1,)))
    subs = next(list(subs) for most, subs in steps if high < most * low)
    scale.set_major_locator(LogLocator(base=10 if high < 10_000 * low else 100, subs=subs))
    scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    scale.set_minor_locator(NullLocator())


def kind(policy: str) -> str:
    """Without the name of who or what."""
    return policy.partition(":")[0]


def colour(policy: str) -> str:
    """A colour of its own; the same in every figure."""
    if policy in COLOURS or kind(policy) == LIVE:
        return COLOURS[policy if policy in COLOURS else LIVE]
    shades = RECORDED if kind(policy) == EXPANSION else OTHERS
    return shades[sum(map(ord, policy)) % len(shades)]


def name(policy: str) -> str:
    return NAMES.get(policy) or policy.replace(f"{LIVE}:", "expanded live: ").replace(f"{EXPANSION}:", "expanded: ")
