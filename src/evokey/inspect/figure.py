"""The account of what a memory has learned, as a figure."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from evokey.errors import UnknownComponent
from evokey.inspect.accounting import Account
from evokey.inspect.hubness import Hubness

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Told apart also by those who do not see all colours."""
GREY = "#999999"


def plot(account: Account, path: str | Path) -> None:
    """The account as one figure of four panels; the file's ending says its format."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise UnknownComponent("a plot needs matplotlib; install it with: pip install 'evokey[demo]'") from error
    mpl.use("Agg")
    from matplotlib import pyplot

    style: Any = {
        "font.size": 8,
        "axes.titlesize": 9,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 7,
        "svg.hashsalt": "evokey",
    }
    with pyplot.rc_context(style):
        figure, panels = pyplot.subplots(2, 2, figsize=(7.2, 5.6), layout="constrained")
        _plot_shares(panels[0][0], account)
        _plot_displacements(panels[0][1], account)
        neutral = account.neutral.queries > 0
        _plot_occurrences(panels[1][0], *((account.neutral, "neutral") if neutral else (account.taught, "taught")))
        _plot_hubs(panels[1][1], account.together)
        figure.savefig(path, dpi=200)
        pyplot.close(figure)


def _plot_shares(panel: Any, account: Account) -> None:
    spread = {"documents": account.credited, "queries": account.queries, "actors": account.actors}
    panel.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    for colour, (name, one) in zip(COLOURS, spread.items(), strict=False):
        if one.count:
            held_by = np.concatenate([[0], np.cumsum(sorted(one.shares))])
            label = f"{one.count:,} {name}, effectively {one.effective:,.1f} (Gini {one.gini:.2f})"
            panel.plot(np.linspace(0, 1, len(held_by)), held_by, color=colour, label=label)
    panel.set(title="a  Who has the credit", xlabel="share of them, least credit first", ylabel="share of the credit")
    panel.set(xlim=(0, 1), ylim=(0, 1.02))
    _legend(panel, "upper left")


def _plot_displacements(panel: Any, account: Account) -> None:
    for colour, one in zip(COLOURS, account.displacements, strict=False):
        if not one.largest:
            panel.plot([], [], color=colour, label=f"{one.retriever}: keys stay (λ = {one.choice.step:g})")
            continue
        scale = one.bound if one.kind != "dense" or one.bound < 1 else max(one.bounds)
        shares = np.arange(1, one.documents + 1) / one.documents
        unit = "1 − cos" if one.kind == "dense" else "mass"
        label = f"{one.retriever}, λ = {one.choice.step:g}: {unit} ≤ {scale:.2g}"
        ends = np.array([0.0, *one.moved, *one.moved[-1:]]) / scale
        panel.step(ends, [0, *shares, 1], where="post", color=colour, label=label)
        limits = np.array([0.0, *sorted(one.bounds)]) / scale
        panel.step(limits, [0, *shares], where="post", color=colour, linewidth=0.8, linestyle="--")
    panel.plot([], [], color=GREY, linewidth=0.8, linestyle="--", label="each document's own bound")
    panel.set(title="b  How far keys moved", xlabel="displacement, as a share of its bound")
    panel.set(xlim=(0, 1.02), ylim=(0, 1.42), ylabel="share of taught documents", yticks=np.linspace(0, 1, 6))
    _legend(panel, "upper left")


def _plot_occurrences(panel: Any, hubness: Hubness, kind: str) -> None:
    """The share of documents found at least so often."""
    for when, look, skew in (
        ("before", {"color": GREY, "marker": "s", "linestyle": "--"}, hubness.skewness_before),
        ("after", {"color": COLOURS[0], "marker": "o"}, hubness.skewness_after),
    ):
        counts = Counter[int]()
        for point in hubness.points:
            counts[getattr(point, when)] += point.documents
        levels = np.array(sorted(level for level in counts if level))
        if len(levels):
            shares = np.array([sum(counts[other] for other in counts if other >= level) for level in levels])
            label = f"{when} teaching: skewness {skew:.2f}"
            panel.plot(levels, shares / sum(counts.values()), markersize=3, linewidth=1, label=label, **look)
    panel.set(yscale="log", xlabel="N₁₀ at least", ylabel="share of all documents")
    panel.set(title=f"c  Hubs of {hubness.queries:,} {kind} queries")
    panel.xaxis.get_major_locator().set_params(integer=True)
    _legend(panel, "upper right")


def _plot_hubs(panel: Any, hubness: Hubness) -> None:
    most = max([1, hubness.largest_before, hubness.largest_after])
    panel.plot([0, most], [0, most], color=GREY, linewidth=0.8, linestyle=":")
    for touched, colour, label in ((False, GREY, "untaught"), (True, COLOURS[1], "taught")):
        points = [one for one in hubness.points if one.touched == touched]
        sizes = [8 + 6 * np.log2(one.documents) for one in points]
        at = [one.before for one in points], [one.after for one in points]
        panel.scatter(*at, s=sizes, color=colour, alpha=0.6, linewidths=0, label=f"{label} documents")
    panel.set(title=f"d  Every document, {hubness.queries:,} queries", xlabel="N₁₀ before teaching", ylabel="N₁₀ after")
    for axis in (panel.xaxis, panel.yaxis):
        axis.get_major_locator().set_params(integer=True)
    _legend(panel, "lower right")


def _legend(panel: Any, place: str) -> None:
    if panel.get_legend_handles_labels()[1]:
        panel.legend(loc=place)
