"""Write the tables of README and docs from the result files, between their markers.

    python benchmarks/tables.py [--check]

--check changes nothing and fails if a table is not what its result file says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "loop.md"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] + ["---:"] * (len(list(head)) - 1), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def loaded(name: str) -> list[dict] | dict:
    return json.loads((RESULTS / name).read_text("utf-8"))


def demo() -> str:
    found = loaded("demo.json")
    rows = [
        [f"{row['group']} ({row['questions']})", f"{row['before']:.3f}", f"**{row['after']:.3f}**",
         f"{row['first_before']:.0%}", f"**{row['first_after']:.0%}**"]
        for row in found["rows"]
    ]  # fmt: skip
    shown = table(["questions", "nDCG@10 untaught", "taught", "first hit right, untaught", "taught"], rows)
    said = f"{found['lessons']} lessons on {found['documents']:,} entries (Python {found['python']}), one `evolve`."
    return f"{shown}\n\n{said}"


def holdout(name: str = "holdout.json") -> str:
    rows = []
    for one in loaded(name):
        (before, after), (own_before, own_after) = one["held_out"], one["taught"]
        low = min(one["p"])
        rows.append(
            [one["dataset"], one["encoder"], f"{before:.3f}", f"**{after:.3f}**", f"{after / before - 1:+.1%}",
             f"{own_before:.2f} → {own_after:.2f}", f"{low:.3f}", f"{one['evolve_seconds']:.1f} s"]
        )  # fmt: skip
    head = ["set", "retriever", "untaught", "taught", "change", "taught queries", "smallest p", "evolve"]
    return table(head, rows)


def wrong() -> str:
    return holdout("holdout-wrong.json")


def cost() -> str:
    rows = [
        [one["encoder"], f"{one['documents']:,}", f"{one['evolve_seconds']:.2f} s", f"{one['ratio']:.2f}",
         f"{one['add_per_second']:,.0f}", f"{one['feedback_per_second']:,.0f}"]
        for one in loaded("evolve-cost.json")
    ]  # fmt: skip
    return table(["retriever", "documents", "evolve", "ratio", "add / s", "feedback / s"], rows)


def paper() -> str:
    rows = []
    for one in loaded("paper.json"):
        (before, after), (own_before, own_after) = one["held_out"], one["taught"]
        change = f"{after / before - 1:+.1%}"
        own = f"{own_before:.2f} → {own_after:.2f}"
        rows.append([one["dataset"], one["encoder"], one["policy"], f"{before:.3f}", f"**{after:.3f}**", change, own])
    return table(["set", "retriever", "policy", "untaught", "taught", "change", "taught queries"], rows)


def speed() -> str:
    found, rows = loaded("speed.json"), []
    for kind in ("dense", "bm25"):
        one = found[kind]
        for name, milliseconds in one["median_ms"].items():
            ratio = milliseconds / one["median_ms"]["evokey"]
            rows.append([f"{kind}: {name}", f"{milliseconds:.2f}", f"{one['p95_ms'][name]:.2f}", f"{1 / ratio:.2f}"])
    return table([f"{found['documents']:,} documents", "median ms", "p95 ms", "evokey takes × as long"], rows)


def expansion_asked() -> str:
    rows = []
    for one in loaded("expansion.json")["asked"]:
        found = [one[search] for search in ("blend", "concat", "fuse")]
        shown = [f"**{score:.3f}**" if score == max(one["plain"], *found) else f"{score:.3f}" for score in found]
        change = f"{one['blend'] / one['plain'] - 1:+.1%}"
        of = f"{one['expanded']} of {one['queries']}"
        rows.append([one["dataset"], one["encoder"], one["method"], of, f"{one['plain']:.3f}", *shown, change,
                     f"{one['p_blend']:.3f}"])  # fmt: skip
    head = ["set", "retriever", "method", "expanded", "plain", "blend", "concat", "fuse", "change by blend", "p"]
    return table(head, rows)


def expansion_taught() -> str:
    """A line for each method; the query alone is the same for all of them, and a last line has the mean."""
    rows, found = [], loaded("expansion.json")["taught"]
    for dataset, encoder in dict.fromkeys((one["dataset"], one["encoder"]) for one in found):
        here = [one for one in found if (one["dataset"], one["encoder"]) == (dataset, encoder)]
        alone = next(one for one in here if one["lessons"] == "query")
        by_method: dict[str, dict[str, dict]] = {}
        for one in here:
            if one is not alone:
                by_method.setdefault(one["method"], {})[one["lessons"]] = one
        lines = {name: [alone, one["units"], one["both"]] for name, one in by_method.items() if len(one) == 2}
        shown = {name: [[run["held_out"][1] for run in runs], [run["taught"] for run in runs]]
                 for name, runs in lines.items()}  # fmt: skip
        if len(shown) > 1:
            shown["*mean*"] = [[sum(column) / len(lines) for column in zip(*part, strict=True)]
                               for part in zip(*shown.values(), strict=True)]  # fmt: skip
        for name, (held_out, own) in shown.items():
            scores = [f"{score:.3f}" for score in held_out]
            of = " / ".join(f"{score:.2f}" for score in own)
            rows.append([dataset, encoder, name, f"{alone['held_out'][0]:.3f}", *scores[:2], f"**{scores[2]}**",
                         f"{held_out[2] - held_out[0]:+.3f}", of])  # fmt: skip
    head = ["set", "retriever", "method", "untaught", "query alone", "units alone", "both", "units add",
            "taught queries (query / units / both)"]  # fmt: skip
    return table(head, rows)


def regimes() -> str:
    rows = []
    for one in loaded("regimes.json"):
        (before, after), (own_before, own_after) = one["held_out"], one["taught"]
        rows.append(
            [one["dataset"], one["encoder"], one["expander"], one["regime"],
             f"{one['lessons']:.0f} of {one['queries']}", f"{one['wrong']:.0%}", f"{before:.3f}", f"**{after:.3f}**",
             f"{after / before - 1:+.1%}", f"{min(seed['p'] for seed in one['seeds']):.3f}",
             f"{one['significantly_below']} of {len(one['seeds'])}", f"{own_before:.2f} → {own_after:.2f}"]
        )  # fmt: skip
    head = ["set", "retriever", "expander", "who says what is right", "lessons", "wrong credits", "untaught", "taught",
            "change", "smallest p", "seeds significantly below", "taught queries"]  # fmt: skip
    return table(head, rows)


def exploration() -> str:
    rows = []
    for one in loaded("exploration.json")["compared"]:
        p = [f"{one[f'p_{name}']:.3f}" if f"p_{name}" in one else "" for name in ("own", "held_out")]
        mistaken = f"{one['mistaken_own']:.3f} ({one['mistaken']:.0f})" if one["mistakes"] else ""
        rows.append(
            [one["dataset"], f"{one['mistakes']:.0%}", str(one["explore"]), f"{one['shown']:.3f}",
             f"{one['own_untaught']:.3f} → **{one['own']:.3f}**", p[0],
             f"{one['held_out_untaught']:.3f} → **{one['held_out']:.3f}**", p[1],
             f"{one['credited']:.1%}", f"{one['right_by_exploration']:.0f}", mistaken]
        )  # fmt: skip
    head = ["set", "early mistakes", "explore", "shown, nDCG@5", "stream's queries", "p", "other queries", "p",
            "right documents credited", "first brought by exploring", "queries once mistaken"]  # fmt: skip
    return table(head, rows)


def watching() -> str:
    rows = []
    for one in loaded("watching.json")["runs"]:
        rest, watched, ratio = one["rest"], one["watched"], one["ratio"]
        rows.append(
            [f"{one['documents']:,}", f"{rest['p50_ms']:.2f}", f"{watched['p50_ms']:.2f}", f"**{ratio['p50']:.2f}**",
             f"{rest['p99_ms']:.2f}", f"{watched['p99_ms']:.2f}", f"**{ratio['p99']:.2f}**",
             f"{watched['searches']:,}", f"{one['thought']:,}", f"{one['learned']:,}", str(one["epochs"])]
        )  # fmt: skip
    head = ["documents", "p50 at rest, ms", "watched", "ratio", "p99 at rest, ms", "watched", "ratio", "searches",
            "thoughts", "lessons", "epochs"]  # fmt: skip
    return table(head, rows)


def asking() -> str:
    found, rows = loaded("asking.json"), []
    names = {"untaught": "untaught memory", "taught": "taught memory", "judged": "the judged documents themselves"}
    for state, name in names.items():
        one = found[state]
        rows.append(
            [name, f"{one['recall']:.3f}", f"{one['some_right']:.0%}", f"{one['f1']:.3f}", f"{one['rouge_l']:.3f}"]
        )
    shown = table(["three passages from", "recall@3", "a right one among them", "token F1", "ROUGE-L"], rows)
    changed, gained = found["other_passages"], found["gained"]
    said = (
        f"{found['questions']} questions, {found['lessons']} lessons, {found['model']}. Taught against untaught: p = "
        f"{found['p_f1']:.2f} (F1), {found['p_rouge_l']:.2f} (ROUGE-L). {changed['questions']} questions were read "
        f"from other passages after teaching, {gained['questions']} from more right ones"
    )
    if gained["questions"]:
        said += f" (token F1 {gained['untaught']:.3f} → {gained['taught']:.3f})"
    return f"{shown}\n\n{said}."


TABLES: dict[str, Callable[[], str]] = {
    "demo": demo,
    "holdout": holdout,
    "wrong": wrong,
    "cost": cost,
    "paper": paper,
    "speed": speed,
    "expansion_asked": expansion_asked,
    "expansion_taught": expansion_taught,
    "regimes": regimes,
    "exploration": exploration,
    "watching": watching,
    "asking": asking,
}


def filled(text: str) -> str:
    def fill(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    stale = []
    check = parser.parse_args().check
    for page in PAGES:
        before = page.read_text("utf-8")
        after = filled(before)
        if before != after:
            stale.append(page.name)
            if not check:
                page.write_text(after, "utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'none'}")
    sys.exit(bool(check and stale))


if __name__ == "__main__":
    main()
