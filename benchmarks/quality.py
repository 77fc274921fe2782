"""Tables of what is learned, from the results of `evokey bench` (results/bench); tables.py puts them into the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any

from results import bench, better, table
from run import SETS

from evokey.bench.significance import holm

USUAL = ("bm25", "wordllama", "hybrid")
MINILM = "all-MiniLM-L6-v2"
HALF = "holdout 0.5"
READERS = {"none": "untaught memory", "guarded": "taught memory", "judged": "the judged documents themselves"}
Row = Mapping[str, Any]
Cell = tuple[str, str]
"""Set and encoder."""


@dataclass(frozen=True)
class Results:
    """One protocol of one folder of results."""

    folder: str
    protocol: str = HALF

    @cached_property
    def tables(self) -> dict[str, list[Row]]:
        found = bench(self.folder)
        return {name: [row for row in rows if row.get("protocol") == self.protocol] for name, rows in found.items()}

    def row(self, name: str, cell: Cell, **more: str) -> Row:
        wanted = {"set": cell[0], "encoder": cell[1], **more}.items()
        return next((row for row in self.tables[name] if wanted <= row.items()), {})

    def cells(self, encoders: Iterable[str], *policies: str) -> list[Cell]:
        """Those that have results of all policies, sets in their usual order."""
        rows = [row for row in self.tables["quality"] if all(row.get(one) is not None for one in policies)]
        known = {(row["set"], row["encoder"]) for row in rows}
        return [cell for cell in product(SETS.split(), encoders) if cell in known]

    def quality(self, cell: Cell, policy: str) -> float:
        return float(self.row("quality", cell)[policy])

    def group(self, cell: Cell, group: str, *policies: str) -> str:
        """A group's quality under one policy and the next; empty where no question is in the group."""
        found = [self.row("groups", cell, policy=policy).get(group) for policy in policies]
        return " → ".join(f"{value:.3f}" for value in found if value is not None)

    def p_values(self, cells: Sequence[Cell], against: str = "none") -> dict[Cell, float]:
        """The guarded policy against another, corrected by Holm over these cells."""
        return holm({cell: self.row("differences", cell, against=against)["p"] for cell in cells})


def change(before: float, after: float) -> list[str]:
    return [*better(before, after), f"{after / before - 1:+.1%}"]


def learning(results: Results, encoders: Iterable[str]) -> str:
    cells, rows = results.cells(encoders, "none", "guarded"), []
    p = results.p_values(cells)
    for cell in cells:
        both = ("none", "guarded")
        seconds = results.row("prices", cell, policy="guarded")["evolve_cpu_s"]
        rows.append(
            [*cell, *change(*(results.quality(cell, one) for one in both)), f"{p[cell]:.3f}",
             *(results.group(cell, group, *both) for group in ("taught", "related", "unrelated")), f"{seconds:.1f} s"]
        )  # fmt: skip
    head = ["set", "retriever", "untaught", "taught", "change", "p", "taught questions", "related questions",
            "unrelated questions", "evolve"]  # fmt: skip
    return table(head, rows)


def holdout() -> str:
    return learning(Results("holdout"), USUAL)


def noise() -> str:
    return learning(Results("noise", f"{HALF}, noise 0.3"), USUAL)


def official() -> str:
    return learning(Results("official", "official"), ("bm25", MINILM))


def shown(encoders: Iterable[str] = USUAL) -> str:
    """Lessons that name all right documents, beside those that name only what the searcher saw."""
    every, seen, rows = Results("holdout"), Results("shown", f"{HALF}, shown 10"), []
    cells = seen.cells(encoders, "none", "guarded")
    p = seen.p_values(cells)
    for cell in cells:
        untaught, full = (every.quality(cell, one) for one in ("none", "guarded"))
        before, limited = (seen.quality(cell, one) for one in ("none", "guarded"))
        groups = [seen.group(cell, group, "none", "guarded") for group in ("taught", "related", "unrelated")]
        rows.append([*cell, f"{before:.3f}", f"{full:.3f}", f"{full / untaught - 1:+.1%}", f"{limited:.3f}",
                     f"{limited / before - 1:+.1%}", f"{p[cell]:.3f}", *groups])  # fmt: skip
    head = ["set", "retriever", "untaught", "all right documents named", "change", "only shown ones named",
            "change", "p", "taught questions", "related", "unrelated"]  # fmt: skip
    return table(head, rows)


def shown_hybrid() -> str:
    return shown(("hybrid",))


def minilm() -> str:
    """MiniLM, BM25 and both together on the same sets; the last rows are means over the sets."""
    results, encoders = Results("holdout"), ("bm25", MINILM, f"bm25+{MINILM}")
    sets = [name for name, _ in results.cells(encoders[2:], "none", "guarded")]
    cells, rows = list(product(sets, encoders)), []
    p = results.p_values(cells)
    for cell in cells:
        pair = (results.quality(cell, "none"), results.quality(cell, "guarded"))
        rows.append([*cell, *change(*pair), results.group(cell, "taught", "none", "guarded"), f"{p[cell]:.3f}"])
    for encoder in encoders:
        means = [fmean(results.quality((name, encoder), one) for name in sets) for one in ("none", "guarded")]
        rows.append(["mean of the sets", encoder, *change(*means), "", ""])
    return table(["set", "retriever", "untaught", "taught", "change", "taught questions", "p"], rows)


def groups() -> str:
    results, both = Results("holdout"), ("none", "guarded")
    rows = [
        [*cell, *(results.group(cell, group, *both) for group in ("taught", "related", "unrelated")),
         results.row("groups", cell, policy="guarded")["queries"]]
        for cell in results.cells((*USUAL, MINILM, f"bm25+{MINILM}"), *both)
    ]  # fmt: skip
    head = ["set", "retriever", "taught questions", "related questions", "unrelated questions",
            "how many (taught / tested / related / unrelated)"]  # fmt: skip
    return table(head, rows)


def few() -> str:
    """The first lessons: what taught, other questions about the same documents, and unrelated ones."""
    by = {(row["set"], row["encoder"], row["taught"], row["policy"]): row for row in bench("few")["streams"]}
    rows = []
    for name, encoder, lessons, policy in by:
        if policy != "guarded" or not lessons:
            continue
        sides = [by[name, encoder, lessons, one] for one in ("none", "guarded")]
        groups = []
        for group in ("again", "related", "unrelated"):
            before, after = (side[group] for side in sides)
            groups.append("" if before is None or after is None else f"{before:.3f} → {after:.3f}")
        rows.append([name, encoder, str(lessons), *groups])
    return table(["set", "retriever", "lessons", "taught questions", "related questions", "unrelated questions"], rows)


def negatives() -> str:
    """What was wrong is named too, against the same lessons without it."""
    rows = []
    for noise in ("", ", noise 0.3"):
        results = Results("wrong", f"{HALF}, wrong 10{noise}")
        for cell in results.cells((*USUAL, MINILM), "none", "no-negatives", "guarded"):
            compared = results.row("differences", cell, against="no-negatives")
            untaught, *pair = (results.quality(cell, one) for one in ("none", "no-negatives", "guarded"))
            rows.append(
                [*cell, "30%" if noise else "0%", f"{untaught:.3f}", *change(*pair), f"{compared['p']:.3f}",
                 f"{compared['wins']} / {compared['losses']}",
                 results.group(cell, "taught", "no-negatives", "guarded")]
            )  # fmt: skip
    head = ["set", "retriever", "mistaken lessons", "untaught", "right documents only", "right and wrong", "change",
            "p", "better / worse", "taught questions"]  # fmt: skip
    return table(head, rows)


def answers() -> str:
    rows, found = [], bench("answers")["answers"]
    for one in found:
        scores = [f"{one[name]:.3f}" for name in ("recall@3", "token-f1", "exact-match", "rouge-l", "loss")]
        rows.append([one["set"], READERS[one["policy"]], str(one["questions"]), *scores, f"{one['some right']:.0%}",
                     f"{one['p']:.2f}" if one["p"] is not None else ""])  # fmt: skip
    head = ["set", "three passages from", "questions", "recall@3", "token F1", "exact match", "ROUGE-L",
            "loss on the gold answer", "a right one among them", "p (F1, against untaught)"]  # fmt: skip
    return f"{table(head, rows)}\n\nAnswered by {found[-1]['model']}."


TABLES = {
    "holdout": holdout,
    "shown": shown,
    "shown_hybrid": shown_hybrid,
    "minilm": minilm,
    "official": official,
    "noise": noise,
    "few": few,
    "negatives": negatives,
    "groups": groups,
    "answers": answers,
}
