"""Write the tables of README and docs from the result files, between their markers.

    python benchmarks/tables.py [--check]

--check changes nothing, and fails if a table differs from its result file, or if a result file is in no table and
named on no page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

import attack_tables
import beside_paper
import beside_tables
import click_tables
import fairness
import groups
import package_tables
import passage_tables
import prices
import quality
import scaling_tables
import seeding_tables
import service_tables
import training_tables
import tuning_tables
from results import READ, RESULTS, better, read, table

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def demo() -> str:
    found = read("demo.json")
    rows = [
        [f"{row['group']} ({row['questions']})", *better(row["before"], row["after"]),
         *better(row["first_before"], row["first_after"], form=".0%")]
        for row in found["rows"]
    ]  # fmt: skip
    shown = table(["questions", "nDCG@10 untaught", "taught", "first hit right, untaught", "taught"], rows)
    said = f"{found['lessons']} lessons on {found['documents']:,} entries (Python {found['python']}), one `evolve`."
    return f"{shown}\n\n{said}"


def expansion_asked() -> str:
    rows = []
    for one in read("expansion.json")["asked"]:
        found = {search: one[search] for search in ("blend", "concat", "fuse") if search in one}
        best = max(one["plain"], *found.values())
        shown = {search: f"**{score:.3f}**" if score == best else f"{score:.3f}" for search, score in found.items()}
        change = f"{one['blend'] / one['plain'] - 1:+.1%}"
        of = f"{one['expanded']} of {one['queries']}"
        rows.append([one["dataset"], one["encoder"], one["method"], of, f"{one['plain']:.3f}",
                     *(shown.get(search, "") for search in ("blend", "concat", "fuse")), change,
                     f"{one['p_blend']:.3f}"])  # fmt: skip
    head = ["set", "retriever", "method", "expanded", "plain", "blend", "concat", "fuse", "change by blend", "p"]
    return table(head, rows)


def expansion_taught() -> str:
    """A line for each method; the query alone is the same for all of them, and a last line has the mean."""
    rows, found = [], read("expansion.json")["taught"]
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
            of = " / ".join(f"{score:.2f}" for score in own)
            rows.append([dataset, encoder, name, f"{alone['held_out'][0]:.3f}", *better(*held_out),
                         f"{held_out[2] - held_out[0]:+.3f}", of])  # fmt: skip
    head = ["set", "retriever", "method", "untaught", "query alone", "units alone", "both", "units add",
            "taught queries (query / units / both)"]  # fmt: skip
    return table(head, rows)


MEASURES = ("nDCG@1", "nDCG@5", "nDCG@10", "Recall@5", "Recall@10", "MRR")


def grid_table(cells: Sequence[dict]) -> str:
    """Every set × retriever × keys; each set's best of a measure in bold."""
    best = {
        (one["dataset"], name): max(other["measures"][name] for other in cells if other["dataset"] == one["dataset"])
        for one in cells
        for name in MEASURES
    }
    rows = []
    for one in cells:
        shown = {name: f"{value:.3f}" for name, value in one["measures"].items()}
        bold = {name for name in MEASURES if one["measures"][name] == best[one["dataset"], name]}
        figures = [f"**{shown[name]}**" if name in bold else shown[name] for name in MEASURES]
        rows.append([one["dataset"], one["encoder"], one["keys"], *figures])
    return table(["set", "retriever", "keys", *MEASURES], rows)


def grid() -> str:
    return grid_table(read("grid.json"))


def stream() -> str:
    found = read("stream.json")
    rows = []
    for one in [found["stream"], *found["other_streams"]]:
        grown = one["exponent"]
        seen = [f"{one['intents_seen']:,}", f"{one['wordings_seen']:,}"]
        known = [f"**{one['calls']:,}**", f"{one['hit_rate']:.1%}", f"{one['false_hit_rate']:.2%}"]
        slopes = [f"{grown['calls']:.2f}", f"{grown['paper']:.2f}"]
        rows.append([f"{one['alpha']:g}", f"{one['queries']:,}", *seen, *known, *slopes])
    head = ["Zipf α", "queries", "intents seen", "wordings seen", "calls", "known", "false hits", "slope", "1/α"]
    return table(head, rows)


def lens() -> str:
    rows = []
    for one in (row for row in read("lens.json") if "dataset" in row):
        scores = better(one["untaught"], one["rows"], one["lens"])
        rows.append([one["dataset"], one["encoder"], *scores,
                     f"{one['rows'] / one['untaught'] - 1:+.1%}", f"{one['lens'] / one['untaught'] - 1:+.1%}",
                     f"{one['p_rows']:.3f}", f"{one['taught']:.2f}", f"{one['wrong']:.0%}",
                     str(one["seeds"])])  # fmt: skip
    head = ["set", "retriever", "untaught", "without a lens", "with a lens", "change without", "change with",
            "p (with against without)", "taught queries", "wrong lessons", "seeds"]  # fmt: skip
    return table(head, rows)


def lens_bystanders() -> str:
    rows = []
    for one in (row for row in read("lens.json") if "bystander" in row):
        (a, b), (c, d) = one["held_out"], one["bystanders"]
        turns = [turn for turn in one["lens"].values() if turn is not None]
        used = "; ".join(", ".join(f"{part:g}" for part in turn) for turn in turns) or "none"
        used = used if one["policy"] == "lens" else "not allowed"
        rows.append([one["taught"], one["encoder"], used, one["traffic"], f"{one['wrong']:.0%}", f"{a:.3f} → {b:.3f}",
                     one["bystander"], f"{c:.3f} → {d:.3f}", f"{d / c - 1:+.1%}", f"{one['p']:.3f}"])  # fmt: skip
    head = [
        "taught set",
        "retriever",
        "lens (μ, gate, ν)",
        "traffic",
        "wrong lessons",
        "its held-out queries",
        "untaught set beside it",
        "its queries",
        "change",
        "p",
    ]
    return table(head, rows)


def lens_forms() -> str:
    found = read("lens-forms.json")
    pairs = list(dict.fromkeys((one["encoder"], one["pair"]) for one in found))
    by = {(one["form"], one["encoder"], one["pair"]): one for one in found}
    rows = []
    for form in dict.fromkeys(one["form"] for one in found):
        cells = [by.get((form, *pair)) for pair in pairs]
        told = ["" if one is None else f"{one['held_out']:+.1%}, {one['bystanders']:+.1%}" for one in cells]
        rows.append([form, *told])
    return table(["form", *(f"{encoder}, {pair}" for encoder, pair in pairs)], rows)


def lens_latency() -> str:
    rows = [
        [f"{one['documents']:,}", str(one["dimensions"]), str(one["centres"]), f"{1000 * one['off']:.2f} ms",
         f"{1000 * one['on']:.2f} ms", f"{one['ratio']:.2f}"]
        for one in read("lens.json") if "ratio" in one
    ]  # fmt: skip
    return table(["documents", "dimensions", "centres", "without a lens (median)", "with", "ratio"], rows)


def regimes() -> str:
    rows = []
    for one in read("regimes.json"):
        (before, after), (own_before, own_after) = one["held_out"], one["taught"]
        rows.append(
            [one["dataset"], one["encoder"], one["expander"], one["regime"],
             f"{one['lessons']:.0f} of {one['queries']}", f"{one['wrong']:.0%}", *better(before, after),
             f"{after / before - 1:+.1%}", f"{min(seed['p'] for seed in one['seeds']):.3f}",
             f"{one['significantly_below']} of {len(one['seeds'])}", f"{own_before:.2f} → {own_after:.2f}"]
        )  # fmt: skip
    head = ["set", "retriever", "expander", "who says what is right", "lessons", "wrong credits", "untaught", "taught",
            "change", "smallest p", "seeds significantly below", "taught queries"]  # fmt: skip
    return table(head, rows)


def exploration() -> str:
    rows = []
    for one in read("exploration.json")["compared"]:
        p = [f"{one[f'p_{name}']:.3f}" if f"p_{name}" in one else "" for name in ("own", "held_out")]
        mistaken = f"{one['mistaken_own']:.3f} ({one['mistaken']:.0f})" if one["mistakes"] else ""
        rows.append(
            [one["dataset"], f"{one['mistakes']:.0%}", str(one["explore"]), f"{one['shown']:.3f}",
             " → ".join(better(one["own_untaught"], one["own"])), p[0],
             " → ".join(better(one["held_out_untaught"], one["held_out"])), p[1],
             f"{one['credited']:.1%}", f"{one['right_by_exploration']:.0f}", mistaken]
        )  # fmt: skip
    head = ["set", "early mistakes", "explore", "shown, nDCG@5", "stream's queries", "p", "other queries", "p",
            "right documents credited", "first brought by exploring", "queries once mistaken"]  # fmt: skip
    return table(head, rows)


def watching() -> str:
    rows = []
    for one in read("watching.json")["runs"]:
        rest, watched, ratio = one["rest"], one["watched"], one["ratio"]
        rows.append(
            [f"{one['documents']:,}", f"{rest['p50_ms']:.2f}", f"{watched['p50_ms']:.2f}", f"**{ratio['p50']:.2f}**",
             f"{rest['p99_ms']:.2f}", f"{watched['p99_ms']:.2f}", f"**{ratio['p99']:.2f}**",
             f"{watched['searches']:,}", f"{one['thought']:,}", f"{one['learned']:,}", str(one["epochs"])]
        )  # fmt: skip
    head = ["documents", "p50 at rest, ms", "watched", "ratio", "p99 at rest, ms", "watched", "ratio", "searches",
            "thoughts", "lessons", "epochs"]  # fmt: skip
    return table(head, rows)


def languages() -> str:
    found = read("languages.json")
    names = list(found[0]["first"])
    rows = [[one["language"], *(str(one["first"][name]) for name in names), f"{one['trust']:.2f}"] for one in found]
    total = ["**of " + str(sum(one["questions"] for one in found)) + "**"]
    rows.append([*total, *(str(sum(one["first"][name] for one in found)) for name in names), ""])
    return table(["language", *names, "trust"], rows)


def unrelated_pairs() -> str:
    """Taught set by other set: what the other one's questions lose, without traffic and with it."""
    runs = read("unrelated.json")
    sets = list(dict.fromkeys(key.split()[1].split("/")[0] for key in runs if key.startswith("pair")))

    def cell(a: str, b: str) -> str:
        found = [runs.get(f"pair {a}/{b} {traffic}") for traffic in ("none", "heard")]
        return ", ".join(_lost(one) for one in found if one) if a != b else ""

    return table(["taught \\ asked", *sets], [[a, *(cell(a, b) for b in sets)] for a in sets])


def unrelated_others() -> str:
    rows = []
    for key, run in read("unrelated.json").items():
        protocol, name, traffic = key.split()
        if protocol in ("topic", "once"):
            said = [f"{run[group][0]:.3f} → {run[group][1]:.3f}" for group in ("taught", "related", "unrelated")]
            rows.append([protocol, name, traffic, str(run["lessons"]), *said, _lost(run)])
    head = ["protocol", "set", "traffic", "lessons", "taught questions", "other questions on taught documents",
            "unrelated questions", "change"]  # fmt: skip
    return table(head, rows)


def unrelated_all() -> str:
    """One set is taught in the index of all sets."""
    lines = []
    for key, run in read("unrelated.json").items():
        protocol, taught, traffic = key.split()
        if protocol == "all":
            pairs = ["{:.3f} → {:.3f}".format(*run[name]) for name in ("taught", "related", "unrelated")]
            lines.append([taught, traffic, str(run["lessons"]), *pairs, _lost(run)])
    head = ["taught set", "traffic", "lessons", "taught questions", "related questions", "questions of all other sets",
            "change"]  # fmt: skip
    return table(head, lines)


def unrelated_means() -> str:
    """Beside the version before, over the runs that both have."""
    now, before = read("unrelated.json"), read("unrelated-before.json")
    rows = []
    for protocol in ("pair", "topic", "once"):
        keys = [key for key in now if key.startswith(protocol) and key in before]
        for name, runs in (("before", before), ("now", now)):
            some = [runs[key] for key in keys]
            gains = [fmean(one[group][1] - one[group][0] for one in some) for group in ("related", "taught")]
            losses = [_change_of(one["unrelated"]) for one in some]
            lost = [f"{fmean(losses):+.1%}", f"{min(losses):+.1%}", str(sum(loss < -0.01 for loss in losses))]
            rows.append([protocol, str(len(keys)), name, *(f"{gain:+.3f}" for gain in gains), *lost])
    head = ["protocol", "runs", "version", "gain on related questions", "on taught ones", "unrelated ones, mean",
            "worst", "runs below −1 %"]  # fmt: skip
    return table(head, rows)


def unrelated_newest() -> str:
    """Pairs without traffic, by the newest version and the one of the tables beside, over the runs that both have."""
    newest, earlier = read("pairs.json"), read("unrelated.json")
    rows = []
    for name, runs in (("16 November", earlier), ("20 November", newest)):
        losses = {key: _change_of(runs[key]["unrelated"]) for key in newest if key in earlier}
        gains = [fmean(runs[key][group][1] - runs[key][group][0] for key in losses) for group in ("related", "taught")]
        first, second = sorted(losses, key=lambda key: losses[key])[:2]
        worst = ", ".join(f"{losses[key]:+.1%} ({key.split()[1]})" for key in (first, second))
        below = str(sum(loss < -0.01 for loss in losses.values()))
        rows.append(
            [
                name,
                str(len(losses)),
                *(f"{gain:+.3f}" for gain in gains),
                f"{fmean(losses.values()):+.1%}",
                worst,
                below,
            ]
        )
    head = ["version of", "runs", "gain on related questions", "on taught ones", "unrelated ones, mean", "worst two",
            "runs below −1 %"]  # fmt: skip
    return table(head, rows)


def _change_of(pair: Sequence[float]) -> float:
    return pair[1] / pair[0] - 1 if pair[0] else 0.0


def _lost(run: dict) -> str:
    change = f"{_change_of(run['unrelated']):+.1%}"
    return "0" if change in ("+0.0%", "-0.0%") else change


TABLES: dict[str, Callable[[], str]] = {
    "demo": demo,
    "expansion_asked": expansion_asked,
    "expansion_taught": expansion_taught,
    "stream": stream,
    "lens": lens,
    "lens_bystanders": lens_bystanders,
    "lens_forms": lens_forms,
    "lens_latency": lens_latency,
    "grid": grid,
    "languages": languages,
    "regimes": regimes,
    "exploration": exploration,
    "watching": watching,
    "unrelated_means": unrelated_means,
    "unrelated_newest": unrelated_newest,
    "unrelated_all": unrelated_all,
    "unrelated_pairs": unrelated_pairs,
    "unrelated_others": unrelated_others,
    **attack_tables.TABLES,
    **quality.TABLES,
    **fairness.TABLES,
    **groups.TABLES,
    **beside_paper.TABLES,
    **beside_tables.TABLES,
    **click_tables.TABLES,
    **package_tables.TABLES,
    **prices.TABLES,
    **passage_tables.TABLES,
    **scaling_tables.TABLES,
    **seeding_tables.TABLES,
    **service_tables.TABLES,
    **training_tables.TABLES,
    **tuning_tables.TABLES,
}


def fill(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", replace, text, flags=re.DOTALL)


def unused(texts: Iterable[str]) -> list[str]:
    """Result files that no table reads and no page names."""
    named = READ | {name for text in texts for name in re.findall(r"benchmarks/results/([\w./-]+\w)", text)}
    files = (path for path in RESULTS.rglob("*") if path.is_file())
    return sorted(name for path in files if (name := str(path.relative_to(RESULTS))) not in named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    before = {page: page.read_text("utf-8") for page in PAGES}
    after = {page: fill(text) for page, text in before.items()}
    stale = [page for page in PAGES if before[page] != after[page]]
    for page in stale if not check else ():
        page.write_text(after[page], "utf-8")
    left = unused(after.values())
    print(f"{'stale' if check else 'written'}: {', '.join(page.name for page in stale) or 'none'}")
    print(f"unused result files: {', '.join(left) or 'none'}")
    sys.exit(bool(check and (stale or left)))


if __name__ == "__main__":
    main()
