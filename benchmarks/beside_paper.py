"""Tables that put the paper's figures beside the published collections' and beside ours; tables.py fills them in."""

from __future__ import annotations

from quality import HALF
from results import bench, read, table

PAPERS_FIRST = {
    ("nfcorpus", "bm25"): 0.207,
    ("nfcorpus", "all-MiniLM-L6-v2"): 0.246,
    ("bright_theoremqa_theorems", "bm25"): 0.079,
}
"""nDCG@1 of untaught retrievers by the paper's table of main results (tab:main:results)."""


def sets() -> str:
    rows = []
    for one in read("sets.json"):
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
    first = {(one["dataset"], one["encoder"], one["keys"]): one["measures"]["nDCG@1"] for one in read("grid.json")}
    for one in bench("holdout")["everything"]:
        if (one["protocol"], one["policy"], one["group"]) == (HALF, "none", "tested"):
            first.setdefault((one["set"], one["encoder"], "full"), one["nDCG@1"])
    keys = ("full", "title", "abstract", "keywords")
    for (name, encoder), said in PAPERS_FIRST.items():
        found = [first.get((name, encoder, one)) for one in keys]
        rows.append([name, encoder, f"{said:.3f}", *("" if one is None else f"{one:.3f}" for one in found)])
    return table(["set", "retriever", "paper", *(f"ours, keys: {one}" for one in keys)], rows)


TABLES = {"sets": sets, "baselines": baselines}
