"""Tables that put the paper's figures beside the published collections' and beside ours; tables.py fills them in."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
HOLDOUT = RESULTS / "bench" / "holdout"
RATE = "holdout 0.5"
PAPERS_FIRST = {
    ("nfcorpus", "bm25"): 0.207,
    ("nfcorpus", "all-MiniLM-L6-v2"): 0.246,
    ("bright_theoremqa_theorems", "bm25"): 0.079,
}
"""nDCG@1 of untaught retrievers by the paper's table of main results (tab:main:results)."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] + ["---:"] * (len(list(head)) - 1), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def sets() -> str:
    rows = []
    for one in json.loads((RESULTS / "sets.json").read_text("utf-8")):
        paper, published, here = one["paper"], one["published"], one["here"] or {}
        documents = f"{here['documents']:,}" if here.get("documents") else "none" if here else ""
        rows.append(
            [one["set"], f"{paper['queries']:,}", _differs(published["queries"], paper["queries"]),
             f"{here['queries']:,}" if here else "", f"{paper['documents']:,}",
             _differs(published["documents"], paper["documents"]), documents, f"{paper['right_per_query']:.1f}",
             f"{here['right_per_query']:.1f}" if here else "", f"{here['shared']:.0%}" if here else "",
             "yes" if paper["generation_truth"] else "no", f"{here['answered']:,}" if here else ""]
        )  # fmt: skip
    head = ["set", "queries: paper", "published", "here", "documents: paper", "published", "here",
            "right per query: paper", "here", "queries that share a right document", "gold answers: paper",
            "here"]  # fmt: skip
    return table(head, rows)


def _differs(number: int, said: int) -> str:
    return f"{number:,}" if number == said else f"**{number:,}**"


def baselines() -> str:
    rows = []
    grid = json.loads((RESULTS / "grid.json").read_text("utf-8"))
    first = {(one["dataset"], one["encoder"], one["keys"]): one["measures"]["nDCG@1"] for one in grid}
    for one in read(HOLDOUT / "everything.csv"):
        if (one["protocol"], one["policy"], one["group"]) == (RATE, "none", "tested"):
            first.setdefault((one["set"], one["encoder"], "full"), float(one["nDCG@1"]))
    keys = ("full", "title", "abstract", "keywords")
    for (name, encoder), said in PAPERS_FIRST.items():
        found = [first.get((name, encoder, one)) for one in keys]
        rows.append([name, encoder, f"{said:.3f}", *("" if one is None else f"{one:.3f}" for one in found)])
    return table(["set", "retriever", "paper", *(f"ours, keys: {one}" for one in keys)], rows)


def rule() -> str:
    rows = []
    for one in read(HOLDOUT / "quality.csv"):
        if one["protocol"] == RATE and one["paper"]:
            before, after, ours = (float(one[name]) for name in ("none", "paper", "guarded"))
            rows.append([one["set"], one["encoder"], f"{before:.3f}", f"{after:.3f}", f"{after / before - 1:+.0%}",
                         f"**{ours:.3f}**"])  # fmt: skip
    return table(["set", "retriever", "untaught", "paper's rule", "change", "guarded"], rows)


def groups() -> str:
    """Taught, label-overlap and label-disjoint queries apart; untaught → guarded."""
    found = {
        (one["set"], one["encoder"], one["policy"]): one
        for one in read(HOLDOUT / "groups.csv")
        if one["protocol"] == RATE
    }
    rows = []
    for (name, encoder, policy), after in found.items():
        if policy != "guarded":
            continue
        before = found[name, encoder, "none"]
        shown = [_change(before[group], after[group]) for group in ("taught", "overlap", "disjoint")]
        rows.append([name, encoder, *shown, after["queries"]])
    head = ["set", "retriever", "taught queries", "share a right document with one", "share none",
            "queries (taught / untaught / overlap / disjoint)"]  # fmt: skip
    return table(head, rows)


def _change(before: str, after: str) -> str:
    return f"{float(before):.3f} → {float(after):.3f}" if before and after else ""


TABLES = {"sets": sets, "baselines": baselines, "rule": rule, "groups": groups}
