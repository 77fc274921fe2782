"""Results → figures, as PNG and SVG: quality by set, gain by budget, gains of single queries, quality and latency."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from evokey.bench.ablations import ABLATIONS
from evokey.bench.measures import MAIN
from evokey.bench.runs import results
from evokey.bench.tables import REFERENCE, UNTAUGHT, Grid, Row, Setting, budget, in_order, streams

STYLE: Any = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
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
    "expansion": "#7b5ea7",
    "bm25s": "#3d3d3d",
}
OTHERS = ("#2a9d8f", "#b5547f", "#5c6b73", "#a0793d", "#4f7cac", "#8d6e97", "#94a13d", "#d1785a")
MARKS = {UNTAUGHT: "|", REFERENCE: "o", "paper": "X", "nudge-n": "D", "nudge-m": "s", "expansion": "^", "bm25s": "_"}
COLOURS |= dict(zip(ABLATIONS, OTHERS, strict=True))
MARKS |= dict(zip(ABLATIONS, "vP*h<>p8", strict=True))
NAMES = {UNTAUGHT: "untaught", "nudge-n": "NUDGE-N", "nudge-m": "NUDGE-M", "paper": "paper's rule"}
UNLEARNED = (UNTAUGHT, "bm25s")
"""Systems without gains to show."""
Figure = Any


def draw(folder: Path) -> list[Path]:
    """All figures that the results of a folder allow, beside them."""
    grid = Grid(results(folder))
    paths = []
    with plt.rc_context(STYLE):
        for name, figure in {**_by_protocol("quality", quality, grid), **_by_protocol("gains", gains, grid),
                             **_by_protocol("latency", latency, grid), "budget": growth(grid),
                             "stream": stream(grid)}.items():  # fmt: skip
            if figure is None:
                continue
            for path in (folder / f"{name}.png", folder / f"{name}.svg"):
                dated = {} if path.suffix == ".png" else {"metadata": {"Date": None}}
                figure.savefig(path, dpi=200, bbox_inches="tight", **dated)
                paths.append(path)
            plt.close(figure)
    return paths


def _by_protocol(
    name: str, figure: Callable[[Grid, Sequence[Setting]], Figure | None], grid: Grid
) -> dict[str, Figure | None]:
    kinds: dict[str, list[Setting]] = defaultdict(list)
    for setting in grid.settings:
        kinds[setting.how].append(setting)
    return {
        f"{name}-{how.replace(' ', '-').replace(',', '')}": figure(grid, settings) for how, settings in kinds.items()
    }


def quality(grid: Grid, settings: Sequence[Setting]) -> Figure:
    """A panel for each encoder: every set a line, every system a mark on it."""
    panels = _panels(settings)
    policies = in_order({policy for setting in settings for policy in grid.of(setting)})
    most = max(len(ones) for ones in panels.values())
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.6 + 2.5 * len(panels), 1.3 + 0.34 * most), sharex=True, sharey=True, squeeze=False
    )
    sets = sorted({setting.dataset for setting in settings}, reverse=True)
    for axis, (encoder, ones) in zip(axes[0], panels.items(), strict=True):
        for setting in ones:
            place = sets.index(setting.dataset)
            known = {policy: grid.mean(setting, policy) for policy in policies}
            found = [value for value in known.values() if value is not None]
            axis.plot([min(found), max(found)], [place, place], color="#cfcfcf", linewidth=1.2, zorder=1)
            for policy, value in known.items():
                if value is not None:
                    _mark(axis, value, place, policy)
        axis.set_title(encoder, fontsize=9, fontweight="bold")
        axis.set_xlabel(f"{MAIN}, tested queries")
        axis.set_yticks(range(len(sets)), sets)
        axis.grid(axis="y", visible=False)
        axis.set_ylim(-0.6, len(sets) - 0.4)
    _legend(figure, policies)
    return figure


def gains(grid: Grid, settings: Sequence[Setting]) -> Figure | None:
    """Box plots: how much single queries win or lose against the untaught index."""
    panels = _panels([one for one in settings if UNTAUGHT in grid.of(one) and len(grid.of(one)) > 1])
    if not panels:
        return None
    policies = [one for one in in_order({p for s in settings for p in grid.of(s)}) if one not in UNLEARNED]
    sets = sorted({setting.dataset for ones in panels.values() for setting in ones})
    height = 1.0 + len(sets) * (0.16 * len(policies) + 0.12)
    figure, axes = plt.subplots(1, len(panels), figsize=(1.6 + 2.5 * len(panels), height), sharey=True, squeeze=False)
    for axis, (encoder, ones) in zip(axes[0], panels.items(), strict=True):
        for setting in ones:
            for place, policy in enumerate(policies):
                change = _changes(grid, setting, policy)
                if len(change):
                    at = sets.index(setting.dataset) + (place - (len(policies) - 1) / 2) * 0.8 / len(policies)
                    _box(axis, change, at, 0.62 / len(policies), _colour(policy))
        axis.axvline(0, color="#555555", linewidth=0.8, zorder=1)
        axis.set_title(encoder, fontsize=9, fontweight="bold")
        axis.set_xlabel(f"change in {MAIN} of a query")
        axis.set_yticks(range(len(sets)), sets)
        axis.grid(axis="y", visible=False)
        axis.set_ylim(len(sets) - 0.5, -0.5)
        axis.set_xlim(-1.05, 1.05)
    handles = [Rectangle((0, 0), 1, 1, color=_colour(policy), alpha=0.75) for policy in policies]
    figure.legend(handles, [_name(policy) for policy in policies], loc="lower center", bbox_to_anchor=(0.5, 1.0),
                  ncols=min(len(policies), 6))  # fmt: skip
    figure.tight_layout()
    return figure


def _changes(grid: Grid, setting: Setting, policy: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    seeds = grid.seeds(setting, policy) & grid.seeds(setting, UNTAUGHT)
    before, after = grid.by_query(setting, UNTAUGHT, seeds), grid.by_query(setting, policy, seeds)
    return np.array([after[id] - before[id] for id in sorted(after) if id in before])


def _box(axis: Any, values: Any, at: float, width: float, colour: str) -> None:
    """The middle half as a box, 5 % to 95 % as whiskers, the mean as a dot, the worst and best as small ticks."""
    axis.boxplot(
        [values],
        positions=[at],
        widths=width,
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.75, "linewidth": 0},
        medianprops={"color": "#222222", "linewidth": 1},
        whiskerprops={"color": colour, "linewidth": 1},
        capprops={"color": colour, "linewidth": 1},
    )
    axis.plot([values.min(), values.max()], [at, at], "|", color=colour, markersize=3, alpha=0.7)
    axis.plot([values.mean()], [at], "o", color="white", markeredgecolor="#222222", markeredgewidth=0.6, markersize=3)


def latency(grid: Grid, settings: Sequence[Setting]) -> Figure | None:
    """A panel for each encoder: mean quality over the sets that all systems have, against the time of a search."""
    panels = _panels(settings)
    policies = in_order({policy for setting in settings for policy in grid.of(setting)})
    drawn = {}
    for encoder, ones in panels.items():
        here = [policy for policy in policies if any(policy in grid.of(setting) for setting in ones)]
        shared = [setting for setting in ones if all(policy in grid.of(setting) for policy in here)]
        points = {policy: _latency(grid, shared, policy) for policy in here} if shared else {}
        if len(points) > 1:
            drawn[encoder] = (points, len(shared))
    if not drawn:
        return None
    figure, axes = plt.subplots(1, len(drawn), figsize=(1.2 + 2.5 * len(drawn), 2.7), squeeze=False)
    for axis, (encoder, (points, count)) in zip(axes[0], drawn.items(), strict=True):
        for policy, (milliseconds, value) in points.items():
            _mark(axis, milliseconds, value, policy)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axis.margins(0.2)
        axis.set_title(f"{encoder} ({count} set{'s' * (count != 1)})", fontsize=9, fontweight="bold")
        axis.set_xlabel("median search, ms")
    axes[0][0].set_ylabel(f"{MAIN}, tested queries")
    _legend(figure, policies)
    return figure


def _latency(grid: Grid, settings: Sequence[Setting], policy: str) -> tuple[float, float]:
    times = [one["search_ms"] for setting in settings for one in grid.of(setting)[policy] if one.get("search_ms")]
    values = [value for setting in settings if (value := grid.mean(setting, policy)) is not None]
    return statistics.fmean(times), statistics.fmean(values)


def growth(grid: Grid) -> Figure | None:
    """Gain on the mean over sets, by the share of queries that teach."""
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in budget(grid):
        panels[row["encoder"]].append(row)
    if not panels:
        return None
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 2.5 * len(panels), 2.7), sharey=True, squeeze=False)
    policies = in_order({row["policy"] for rows in panels.values() for row in rows})
    for axis, (encoder, rows) in zip(axes[0], panels.items(), strict=True):
        for row in rows:
            points = {float(rate): gain for rate, gain in row.items() if rate[0].isdigit()}
            colour = _colour(row["policy"])
            axis.plot(list(points), list(points.values()), color=colour, linewidth=1.4,
                      marker=MARKS.get(row["policy"], "o"), markersize=5)  # fmt: skip
        axis.axhline(0, color="#555555", linewidth=0.8)
        axis.set_xticks(list(points), [f"{rate:g}" for rate in points])
        count = rows[0]["sets"]
        axis.set_title(f"{encoder} ({count} set{'s' * (count != 1)})", fontsize=9, fontweight="bold")
        axis.set_xlabel("share of queries that teach")
    axes[0][0].set_ylabel(f"gain in {MAIN}\nover the untaught index")
    _legend(figure, policies)
    return figure


def stream(grid: Grid) -> Figure | None:
    """Quality after every batch, a panel for each set and encoder."""
    panels: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in streams(grid):
        panels[row["set"], row["encoder"]].append(row)
    if not panels:
        return None
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(1.2 + 2.6 * columns, 0.6 + 2.2 * lines), squeeze=False)
    policies = in_order({row["policy"] for rows in panels.values() for row in rows})
    for axis, ((name, encoder), rows) in zip(axes.flat, panels.items(), strict=False):
        for policy in policies:
            points = {row["taught"]: row["metrics"] for row in rows if row["policy"] == policy}
            axis.plot(list(points), list(points.values()), color=_colour(policy), linewidth=1.4,
                      marker=MARKS.get(policy, "o"), markersize=4)  # fmt: skip
        axis.set_title(f"{name}, {encoder}", fontsize=9, fontweight="bold")
        axis.set_xlabel("lessons so far")
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    axes[0][0].set_ylabel(f"{MAIN}, tested queries")
    _legend(figure, policies)
    return figure


def _panels(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = defaultdict(list)
    for setting in settings:
        found[setting.encoder].append(setting)
    return found


def _mark(axis: Any, x: float, y: float, policy: str) -> None:
    """The guarded policy lies on top."""
    axis.plot([x], [y], zorder=4 if policy == REFERENCE else 3, linestyle="", **_marker(policy))


def _marker(policy: str) -> dict[str, Any]:
    mark, colour = MARKS.get(policy.partition(":")[0], "o"), _colour(policy)
    if mark in "|_":
        return {"marker": mark, "color": colour, "markeredgewidth": 2.2, "markersize": 11 if mark == "|" else 8}
    return {"marker": mark, "color": colour, "markeredgewidth": 0.5, "markeredgecolor": "white", "markersize": 6.5}


def _legend(figure: Any, policies: Sequence[str]) -> None:
    handles = [Line2D([], [], linestyle="", **_marker(policy)) for policy in policies]
    figure.legend(handles, [_name(policy) for policy in policies], loc="lower center", bbox_to_anchor=(0.5, 1.0),
                  ncols=min(len(policies), 6))  # fmt: skip
    figure.tight_layout()


def _colour(policy: str) -> str:
    """A colour of its own; the same in every figure."""
    return COLOURS.get(policy) or OTHERS[sum(map(ord, policy)) % len(OTHERS)]


def _name(policy: str) -> str:
    return NAMES.get(policy, policy)
