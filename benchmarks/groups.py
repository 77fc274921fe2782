"""Tables of who gains and who pays, from the results of nobody.py; tables.py puts them into the docs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from results import read, table

Row = Mapping[str, Any]
Side = Mapping[str, Any]
"""What one version does in a cell."""
ENOUGH = 100
"""Pairs of an unrelated question and a seed from which an interval says something."""
LIMIT = -0.01
DENSE = ("wordllama", "all-MiniLM-L6-v2")
KINDS: dict[str, Callable[[Row], bool]] = {
    "BM25": lambda one: one["encoder"] == "bm25",
    "dense": lambda one: one["encoder"] in DENSE,
    "dense, without LoCoMo": lambda one: one["encoder"] in DENSE and one["set"] != "locomo10",
    "hybrid": lambda one: one["encoder"] not in ("bm25", *DENSE),
}


def rows(protocol: str, file: str = "nobody.json") -> list[Row]:
    return [one for one in read(file) if one["protocol"] == protocol]


def versions(found: Iterable[Row]) -> dict[str, str]:
    """By key, what a version is called: the one before only where every cell has it."""
    return {"before": "before", "now": "now"} if all(one["before"] for one in found) else {"now": "now"}


def pair(one: Mapping[str, Any] | None) -> str:
    return "" if one is None else "{:.3f} → {:.3f}".format(*one["ndcg"])


def change(one: Mapping[str, Any] | None) -> str:
    """In percent, with its interval."""
    if one is None or one["change"] is None:
        return ""
    return "{:+.1%} ({:+.1%} … {:+.1%})".format(*one["change"])


def cells(protocol: str) -> str:
    """A line for each set, retriever and version."""
    found, lines = rows(protocol), []
    for one in found:
        for key, name in versions(found).items():
            side = one[key]
            figures = [pair(side["tested"]), change(side["tested"]), pair(side["related"]), pair(side["unrelated"]),
                       change(side["unrelated"]), pair(side["taught"]), f"{side['evolve']:.1f} s"]  # fmt: skip
            count = str(side["unrelated"]["pairs"]) if side["unrelated"] else "0"
            lines.append([one["set"], one["encoder"], name, *figures, count])
    head = ["set", "retriever", "version", "tested questions", "change", "related", "unrelated", "their change",
            "taught questions", "evolve", "unrelated questions × seeds"]  # fmt: skip
    return table(head, lines)


def holdout() -> str:
    return cells("holdout")


def topic() -> str:
    return cells("topic")


def once() -> str:
    """Taught wordings, other wordings and unrelated questions, where each question is taught once."""
    found, lines = rows("once"), []
    for one in found:
        for key, name in versions(found).items():
            side = one[key]
            single = "" if side["single"] is None else f"{side['single']['ndcg'][1]:.3f}"
            lessons, taught, *others = taught_once(side)
            lines.append([one["set"], one["encoder"], name, lessons, taught, single, *others])
    head = ["set", "retriever", "version", "lessons", "taught questions", "with one right document", "other wordings",
            "their change", "unrelated", "their change"]  # fmt: skip
    return table(head, lines)


def once_hybrid() -> str:
    """The default retriever alone, as it is now."""
    lines = [[one["set"], *taught_once(one["now"])] for one in rows("once") if one["encoder"] == "hybrid"]
    head = ["set", "lessons", "taught questions", "other wordings", "their change", "unrelated questions",
            "their change"]  # fmt: skip
    return table(head, lines)


def hybrid() -> str:
    """The default retriever on the mean of the sets: all right documents are named, or only those that were shown."""
    named = [one["now"] for one in rows("holdout") if one["encoder"] == "hybrid"]
    shown = [one["now"] for one in rows("shown") if one["encoder"] == "hybrid"]
    lines = []
    for feedback, sides in (("names every right document", named), ("names what was shown", shown)):
        for group in ("taught", "related", "unrelated"):
            figures = [side[group]["ndcg"] for side in sides if side[group]]
            if figures:
                before, after = (fmean(one[at] for one in figures) for at in (0, 1))
                lines.append([feedback, group, f"{before:.3f}", f"{after:.3f}", f"{after / before - 1:+.1%}"])
    return table(["feedback", "questions", "untaught", "taught", "change"], lines)


def taught_once(side: Side) -> list[str]:
    others = [text for group in ("related", "unrelated") for text in (pair(side[group]), change(side[group]))]
    return [f"{fmean(side['lessons']):.0f}", pair(side["taught"]), *others]


def summary() -> str:
    """Means over cells, by kind of retriever and version."""
    lines = []
    for protocol in ("holdout", "topic"):
        found = rows(protocol)
        for kind, chosen in KINDS.items():
            some = [one for one in found if chosen(one)]
            lines += [[protocol, kind, name, *describe([one[key] for one in some])]
                      for key, name in versions(found).items()]  # fmt: skip
    head = ["protocol", "retrievers", "version", "cells", "mean change", "unrelated, mean", "worst",
            f"interval wholly below {LIMIT:.0%}", "taught questions, mean", "evolve, mean"]  # fmt: skip
    return table(head, lines)


def describe(sides: Sequence[Side]) -> list[str]:
    """Sets of which the untaught index finds almost nothing are left out of relative changes."""
    tested = [one["tested"]["change"][0] for one in sides if one["tested"]["change"] and one["tested"]["ndcg"][0] > 0.1]
    large = [one["unrelated"] for one in sides if one["unrelated"] and one["unrelated"]["pairs"] >= ENOUGH]
    losses = [one["change"] for one in large if one["change"] and one["ndcg"][0] > 0.1]
    below = sum(high < LIMIT for _, _, high in losses)
    return [
        str(len(sides)), f"{fmean(tested):+.1%}" if tested else "",
        f"{fmean(one[0] for one in losses):+.1%}" if losses else "",
        f"{min(one[0] for one in losses):+.1%}" if losses else "", f"{below} of {len(losses)}",
        f"{fmean(one['taught']['ndcg'][1] for one in sides):.3f}", f"{fmean(one['evolve'] for one in sides):.1f} s",
    ]  # fmt: skip


def confirmation() -> str:
    """The same cells under seeds that were looked at, and under new ones, by the version that was confirmed."""
    seen = {(one["set"], one["encoder"]): one["before"] for one in rows("holdout")}
    lines, pairs = [], []
    for one in rows("holdout", "confirmation.json"):
        old, new = seen.get((one["set"], one["encoder"])), one["now"]
        if old is not None:
            pairs.append((old, new))
            both = [text for group in ("tested", "unrelated") for text in (change(old[group]), change(new[group]))]
            lines.append([one["set"], one["encoder"], *both])
    means = [_mean(side[place][group] for side in pairs) for group in ("tested", "unrelated") for place in (0, 1)]
    lines.append(["*mean*", "without TheoremQA-T", *means])
    head = ["set", "retriever", "tested questions, earlier seeds", "new seeds", "unrelated questions, earlier seeds",
            "new seeds"]  # fmt: skip
    return table(head, lines)


def seeds() -> str:
    """The version now under five seeds: means by kind of retriever, and where unrelated questions are many."""
    lines = []
    for protocol in ("holdout", "once"):
        found = rows(protocol, "seeds.json")
        for kind, belongs in KINDS.items():
            sides = [one["now"] for one in found if belongs(one)]
            if sides and (protocol == "holdout" or "without" not in kind):
                lines.append([protocol, f"*{kind}*, mean", *describe(sides)[1:6]])
    for one in rows("holdout", "seeds.json"):
        side = one["now"]["unrelated"]
        if side and side["pairs"] >= ENOUGH and side["ndcg"][0] > 0.1:
            taught = f"{one['now']['taught']['ndcg'][1]:.3f}"
            figures = [change(one["now"]["tested"]), change(side), "", f"{side['pairs']} questions", taught]
            lines.append([one["set"], one["encoder"], *figures])
    head = ["protocol or set", "retriever", "tested questions", "unrelated", "worst", "interval wholly below -1%",
            "taught"]  # fmt: skip
    return table(head, lines)


def _mean(found: Iterable[Mapping[str, Any] | None]) -> str:
    known = [one["change"][0] for one in found if one and one["change"] and one["ndcg"][0] > 0.1]
    return f"{fmean(known):+.1%}" if known else ""


TABLES = {
    "nobody": holdout,
    "nobody_hybrid": hybrid,
    "nobody_topic": topic,
    "nobody_means": summary,
    "once": once,
    "once_hybrid": once_hybrid,
    "confirmation": confirmation,
    "nobody_seeds": seeds,
}
