"""Tables and the figure of training.json: evokey beside training on the same lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.lines import Line2D
from results import better, read, table

from evokey.bench import style
from evokey.bench.style import Axis, Figure

Cell = Mapping[str, Any]
MINILM = "all-MiniLM-L6-v2"
HYBRID = f"bm25+{MINILM}"
SYSTEMS = {"none": "untaught", "guarded": "evokey", "fine-tune": "fine-tuned", "adapter": "linear adapter",
           "tune": "evokey, tuned"}  # fmt: skip
SPLITS = 3
NAMES = {"scifact": "SciFact", "nfcorpus": "NFCorpus", "cranfield": "Cranfield", "locomo10": "LoCoMo",
         "climate_fever_evidence": "Climate-FEVER"}  # fmt: skip


def cells() -> list[Cell]:
    found: list[Cell] = read("training.json")
    return found


def rows(encoder: str = MINILM) -> dict[str, dict[str, Cell]]:
    """By row, train → test first, then the first half/half split of each set: the systems that were measured."""
    found: dict[str, dict[str, Cell]] = {}
    for one in sorted(cells(), key=lambda one: (one["protocol"] != "official", -one["lessons"])):
        if one["encoder"] == encoder and one["seed"] == 0 and one["system"] in SYSTEMS:
            how = "train → test" if one["protocol"] == "official" else "half/half"
            found.setdefault(f"{NAMES[one['set']]}, {how}", {})[one["system"]] = one
    in_order = {name: {system: known[system] for system in SYSTEMS if system in known} for name, known in found.items()}
    return {name: known for name, known in in_order.items() if "none" in known}


def training() -> str:
    """nDCG@10 of held-out questions, and what learning cost."""
    systems = [name for name in SYSTEMS if any(name in known for known in rows().values())]
    lines = []
    for name, known in rows().items():
        shown = dict(zip(known, better(*(one["ndcg"] for one in known.values())), strict=True))
        lines.append([name, str(known["none"]["lessons"]), *(_cell(shown, known, system) for system in systems)])
    return table(["", "lessons", *(SYSTEMS[system] for system in systems)], lines)


def _cell(shown: Mapping[str, str], known: Mapping[str, Cell], system: str) -> str:
    if system not in known:
        return "–"
    one = known[system]
    if one.get("refusal"):
        return f"{shown[system]} (refused)"
    return shown[system] + (f" ({format_seconds(one['seconds'])})" if one["seconds"] else "")


def format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def training_groups() -> str:
    """Questions that share a right document with a lesson, and those that share none."""
    systems = [name for name in SYSTEMS if any(name in known for known in rows().values())]
    lines = []
    for name, known in rows().items():
        for group in ("related", "unrelated"):
            values = {system: one[group] for system, one in known.items() if one[group] is not None}
            if values:
                shown = dict(zip(values, better(*values.values()), strict=True))
                lines.append([name, group, *(shown.get(system, "–") for system in systems)])
    return table(["", "questions", *(SYSTEMS[system] for system in systems)], lines)


def training_splits() -> str:
    """Mean of three splits: MiniLM alone, and beside BM25."""
    lines = []
    for name in ("locomo10", "climate_fever_evidence"):
        for encoder in (MINILM, HYBRID):
            here = [one for one in cells() if (one["set"], one["encoder"]) == (name, encoder)]
            means = {system: _mean(here, system) for system in SYSTEMS}
            forced = [one["unguarded"]["ndcg"] for one in here if one["system"] == "tune"]
            known = {system: mean for system, mean in means.items() if mean is not None}
            if not known:
                continue
            shown = dict(zip(known, better(*known.values()), strict=True))
            without = f"{fmean(forced):.3f}" if len(forced) == SPLITS else "–"
            lines.append([NAMES[name], encoder, *(shown.get(system, "–") for system in SYSTEMS), without])
    return table(["", "retriever", *SYSTEMS.values(), "tuned, without its guard"], lines)


def _mean(found: Sequence[Cell], system: str) -> float | None:
    """Over the three splits; None if one is missing."""
    values = [one["ndcg"] for one in found if one["system"] == system]
    return fmean(values) if len(values) == SPLITS else None


# ---- figure


def draw() -> Figure:
    """A panel for each row: nDCG@10 against the seconds that learning took; the untaught index is a line."""
    found = rows()
    figure, axes = style.tiles(len(found))
    seconds = [one["seconds"] for known in found.values() for one in known.values() if one["seconds"]]
    for axis, (name, known) in zip(axes, found.items(), strict=True):
        _panel(axis, known)
        axis.set_title(name)
        axis.set_xlim(min(seconds) / 2, max(seconds) * 2)
        style.logarithmic(axis)
        axis.set_xlabel("seconds to learn")
    for axis in axes[::3]:
        axis.set_ylabel("nDCG@10, held-out questions")
    shown = [one for one in SYSTEMS if any(one in known for known in found.values())]
    style.legend(figure, [], [(Line2D([], [], linestyle="", **style.marker(one)), SYSTEMS[one]) for one in shown])
    return figure


def _panel(axis: Axis, known: Mapping[str, Cell]) -> None:
    axis.axhline(known["none"]["ndcg"], color=style.colour("none"), linewidth=1.4)
    for system, one in known.items():
        if one["seconds"] and not one.get("refusal"):
            style.mark(axis, one["seconds"], one["ndcg"], system)
    axis.margins(y=0.15)


TABLES: dict[str, Callable[[], str]] = {
    "training": training,
    "training_groups": training_groups,
    "training_splits": training_splits,
}
