"""Results → figures: quality by set, gains of single queries, who wins and loses, quality against latency."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from evokey.bench import curves, style
from evokey.bench.grid import UNLEARNED, Grid, Setting, in_order
from evokey.bench.measures import MAIN
from evokey.bench.runs import results
from evokey.bench.significance import TIE
from evokey.bench.style import Axis, Figure
from evokey.bench.systems import EXPANSION, JUDGED, UNTAUGHT

FEW = 3
"""Settings that have a panel each."""
Changes = np.ndarray[Any, np.dtype[np.float64]]


def draw(folder: Path) -> list[Path]:
    """All figures that the results of a folder allow, beside them."""
    grid = Grid(results(folder))
    kinds: dict[str, list[Setting]] = defaultdict(list)
    for setting in grid.settings:
        kinds[setting.how].append(setting)
    drawn: dict[str, Callable[[], Figure | None]] = {
        f"{figure.__name__}-{how.replace(' ', '-').replace(',', '')}": partial(figure, grid, settings)
        for figure in (quality, gains, wins, latency)
        for how, settings in kinds.items()
    }
    return style.save(drawn | {name: partial(curve, grid) for name, curve in curves.CURVES.items()}, folder)


def quality(grid: Grid, settings: Sequence[Setting]) -> Figure:
    """A panel for each encoder: every set a line, every system a mark on it."""
    panels = by_encoder(settings)
    policies = [one for one in _policies(grid, settings) if one != JUDGED]
    sets = sorted({setting.dataset for setting in settings}, reverse=True)
    figure, axes = style.row(len(panels), 1.3 + 0.34 * len(sets), sharex=True, sharey=True)
    for axis, (encoder, ones) in zip(axes, panels.items(), strict=True):
        for setting in ones:
            place = sets.index(setting.dataset)
            known = {policy: grid.mean(setting, policy) for policy in policies}
            found = [value for value in known.values() if value is not None]
            axis.plot([min(found), max(found)], [place, place], color="#cfcfcf", linewidth=1.2, zorder=1)
            for policy, value in known.items():
                if value is not None:
                    style.mark(axis, value, place, policy)
        axis.set_title(encoder)
        axis.set_xlabel(f"{MAIN}, tested queries")
        axis.set_yticks(range(len(sets)), sets)
        axis.grid(axis="y", visible=False)
        axis.set_ylim(-0.6, len(sets) - 0.4)
    style.legend(figure, policies)
    return figure


def gains(grid: Grid, settings: Sequence[Setting]) -> Figure | None:
    """Box plots: how much single queries win or lose against the untaught index."""
    figure = _by_query(grid, settings, _box)
    for axis in figure.axes if figure is not None else ():
        axis.set_xlabel(f"change in {MAIN} of a query")
        axis.set_xlim(-1.05, 1.05)
    return figure


def wins(grid: Grid, settings: Sequence[Setting]) -> Figure | None:
    """Which share of the queries wins (to the right) and loses (to the left) against the untaught index."""
    figure = _by_query(grid, settings, _bars)
    if figure is None:
        return None
    most = max(abs(limit) for axis in figure.axes for limit in axis.get_xlim())
    for axis in figure.axes:
        axis.set_xlim(-1.08 * most, 1.08 * most)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g} %"))
        axis.set_xlabel("queries: lose ←   → win")
    return figure


def _by_query(grid: Grid, settings: Sequence[Setting], shape: Callable[..., None]) -> Figure | None:
    """A panel for each encoder, a band for each set, and in it a shape for each system."""
    panels = by_encoder([one for one in settings if UNTAUGHT in grid.of(one) and len(grid.of(one)) > 1])
    policies = [one for one in _policies(grid, settings) if one not in UNLEARNED]
    if not panels or not policies:
        return None
    sets = sorted({setting.dataset for ones in panels.values() for setting in ones})
    figure, axes = style.row(len(panels), 1.0 + len(sets) * (0.16 * len(policies) + 0.12), sharey=True)
    for axis, (encoder, ones) in zip(axes, panels.items(), strict=True):
        for place in range(0, len(sets), 2):
            axis.axhspan(place - 0.5, place + 0.5, color="#f6f6f6", zorder=0)
        for setting in ones:
            for place, policy in enumerate(policies):
                change = _changes(grid, setting, policy)
                if len(change):
                    at = sets.index(setting.dataset) + (place - (len(policies) - 1) / 2) * 0.8 / len(policies)
                    shape(axis, change, at, 0.62 / len(policies), style.colour(policy))
        axis.axvline(0, **style.ZERO)
        axis.set_title(encoder)
        axis.set_yticks(range(len(sets)), sets)
        axis.grid(axis="y", visible=False)
        axis.set_ylim(len(sets) - 0.5, -0.5)
    handles = [Rectangle((0, 0), 1, 1, color=style.colour(policy), alpha=0.8) for policy in policies]
    style.legend(figure, [], zip(handles, map(style.name, policies), strict=True))
    return figure


def _changes(grid: Grid, setting: Setting, policy: str) -> Changes:
    seeds = grid.seeds(setting, policy) & grid.seeds(setting, UNTAUGHT)
    before, after = grid.by_query(setting, UNTAUGHT, seeds), grid.by_query(setting, policy, seeds)
    return np.array([after[id] - before[id] for id in sorted(after) if id in before])


def _box(axis: Axis, values: Changes, at: float, width: float, colour: str) -> None:
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


def _bars(axis: Axis, values: Changes, at: float, width: float, colour: str) -> None:
    lost, won = 100 * float((values < -TIE).mean()), 100 * float((values > TIE).mean())
    axis.barh([at], [won], height=1.25 * width, color=colour, alpha=0.85)
    axis.barh([at], [-lost], height=1.25 * width, color=colour, alpha=0.4)


def latency(grid: Grid, settings: Sequence[Setting]) -> Figure | None:
    """Quality against the time of a search: a panel for each set and encoder, or, where these are many, for each
    encoder, with the mean over the sets that all systems have.

    A recorded expansion took its time elsewhere: it is a line.
    """
    drawn = {}
    for title, ones in _few(settings).items():
        here = [one for one in _policies(grid, ones) if one != JUDGED]
        shared = [setting for setting in ones if all(policy in grid.of(setting) for policy in here)]
        if shared and len(here) > 1:
            counted = f" ({len(shared)} set{'s' * (len(shared) != 1)})" * (len(settings) > FEW)
            drawn[title + counted] = {policy: _latency(grid, shared, policy) for policy in here}
    if not drawn:
        return None
    figure, axes = style.row(len(drawn), sharex=True)
    policies = in_order({policy for points in drawn.values() for policy in points})
    recorded = [one for one in policies if style.kind(one) == EXPANSION]
    for axis, (title, points) in zip(axes, drawn.items(), strict=True):
        for policy, (milliseconds, value) in points.items():
            if policy in recorded:
                axis.axhline(value, color=style.colour(policy), linestyle="--", linewidth=1)
            else:
                style.mark(axis, milliseconds, value, policy)
        axis.margins(0.2)
        axis.set_title(title)
        axis.set_xlabel("median search, ms")
    for axis in axes:
        style.logarithmic(axis)
    axes[0].set_ylabel(f"{MAIN}, tested queries")
    lines = [Line2D([], [], color=style.colour(one), linestyle="--", linewidth=1) for one in recorded]
    further = zip(lines, (style.name(one) for one in recorded), strict=True)
    style.legend(figure, [one for one in policies if one not in recorded], further)
    return figure


def _latency(grid: Grid, settings: Sequence[Setting], policy: str) -> tuple[float, float]:
    times = [one["search_ms"] for setting in settings for one in grid.of(setting)[policy] if one.get("search_ms")]
    values = [value for setting in settings if (value := grid.mean(setting, policy)) is not None]
    return statistics.fmean(times), statistics.fmean(values)


def by_encoder(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = defaultdict(list)
    for setting in settings:
        found[setting.encoder].append(setting)
    return found


def _few(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    apart = {f"{one.dataset}, {one.encoder}": [one] for one in settings}
    return apart if len(settings) <= FEW else by_encoder(settings)


def _policies(grid: Grid, settings: Sequence[Setting]) -> list[str]:
    return in_order({policy for setting in settings for policy in grid.of(setting)})
