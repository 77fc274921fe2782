"""The feedback loop: only what is shown can be verified. What a place for another document costs, and what it recovers.

    python benchmarks/exploration.py ../shared/data/locomo10 ../shared/data/nfcorpus --out FILE [--seeds 3]

A stream of queries that come again, several rounds of them. Five documents are shown for each; a judge credits the
right ones among them and says nothing of others, so a right document that is never shown is never learned. Keys evolve
every so many queries. With explore = 1 or 2 the last places of the five go to documents that another retriever, or the
untaught index, would have brought. Every stream also runs with early mistakes: in its first quarter three verdicts in
ten credit a wrong one of the documents shown, and nobody ever takes that back.

Measured after each evolve: nDCG@10 of plain search, for the stream's own queries and for queries that are never in it;
on the way: nDCG@5 of what is shown (the price), and which right documents were credited. Rows already in the result
file are not made again; benchmarks/figures.py draws the figure.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.lines import Line2D

import evokey
from evokey.bench import protocols, style
from evokey.bench.data import load
from evokey.bench.lab import HYBRID, Lab
from evokey.bench.measures import evaluate, quality
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json
from evokey.bench.significance import p_value
from evokey.bench.systems import Plain

SHOWN = 5
EXPLORE = (0, 1, 2)
MISTAKES = (0.0, 0.3)
EARLY = 0.25
"""The share of the stream in which mistakes are made."""
SPAN = 0.08
COLOURS = {0: "0.45", 1: "#1f5fa8", 2: "#c78a2c"}
NAMES = {"locomo10": "LoCoMo", "nfcorpus": "NFCorpus", "clinc150": "CLINC150", "scifact": "SciFact"}


@dataclass
class Stream:
    """Queries that come again, and what a judge who sees five documents credits."""

    memory: evokey.Memory
    explore: int
    mistakes: float
    seed: int
    credited: set[tuple[str, str]] = field(default_factory=set)
    mistaken: set[str] = field(default_factory=set)
    shown: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    brought: int = 0

    def ask(self, place: int, question: Question, early: bool) -> None:
        best, ids = (
            [hit.id for hit in self.memory.search(question.text, SHOWN, explore=places)] for places in (0, self.explore)
        )
        for ranking, scores in ((ids, self.shown), (best, self.plain)):
            scores.append(evaluate([question], {question.id: ranking})[question.id]["nDCG@5"])
        names, wrong = ([id for id in ids if (id in question.right) is right] for right in (True, False))
        chance = random.Random(f"{self.seed} {place}")
        if early and chance.random() < self.mistakes and wrong:
            names = [chance.choice(wrong)]
            self.mistaken.add(question.id)
        else:
            new = {(question.id, id) for id in names} - self.credited
            self.brought += sum(id not in best for _, id in new)
            self.credited |= new
        if names:
            self.memory.feedback(question.text, relevant=names)


def run(lab: Lab, explore: int, mistakes: float, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    dealt = protocols.split(lab.data, "holdout", seed=seed)
    taught, tested, every = dealt.taught[: options.size], dealt.tested[: options.size], options.every
    chance = random.Random(f"stream {seed}")
    arriving = [one for _ in range(options.rounds) for one in chance.sample(taught, len(taught))]
    total, windows = sum(len(one.right) for one in taught), list[dict[str, Any]]()
    with lab.memory() as memory:
        memory.searcher.chance = np.random.default_rng(seed)
        stream, plain = Stream(memory, explore, mistakes, seed), Plain(memory)
        for start in range(0, len(arriving) + 1, every):
            if start:
                memory.evolve()
            own, held = quality(plain.rank, taught), quality(plain.rank, tested)
            window = {"after": start, "own": fmean(own.values()), "held_out": fmean(held.values())}
            window |= {"credited": len(stream.credited) / total}
            if start:
                window |= {"shown": fmean(stream.shown[-every:]), "plain": fmean(stream.plain[-every:])}
            windows.append(window)
            for place, question in enumerate(arriving[start : start + every], start):
                stream.ask(place, question, place < EARLY * len(arriving))
    return {
        "windows": windows,
        "right_by_exploration": stream.brought,
        "right_credited": len(stream.credited),
        "right": total,
        "mistaken": len(stream.mistaken),
        "mistaken_own": fmean(own[id] for id in sorted(stream.mistaken)) if stream.mistaken else None,
        "own_scores": [round(own[one.id], 4) for one in taught],
        "held_out_scores": [round(held[one.id], 4) for one in tested],
    }


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each setting over its seeds, beside the same stream without exploration."""
    told = []
    for dataset, mistakes, explore in dict.fromkeys((row["dataset"], row["mistakes"], row["explore"]) for row in rows):
        some = [
            row for row in rows if (row["dataset"], row["mistakes"], row["explore"]) == (dataset, mistakes, explore)
        ]
        plain = [row for row in rows if (row["dataset"], row["mistakes"], row["explore"]) == (dataset, mistakes, 0)]
        end = [row["windows"][-1] for row in some]
        one: dict[str, Any] = {"dataset": dataset, "mistakes": mistakes, "explore": explore, "seeds": len(some)}
        one |= {name: float(np.mean([window[name] for window in end])) for name in ("own", "held_out", "credited")}
        one |= {f"{name}_untaught": float(np.mean([row["windows"][0][name] for row in some]))
                for name in ("own", "held_out")}  # fmt: skip
        for name in ("shown", "plain"):
            one[name] = float(np.mean([window[name] for row in some for window in row["windows"][1:]]))
        one["shown_last"] = float(np.mean([window["shown"] for window in end]))
        one["right_by_exploration"] = float(np.mean([row["right_by_exploration"] for row in some]))
        if mistakes:
            one["mistaken"] = float(np.mean([row["mistaken"] for row in some]))
            one["mistaken_own"] = float(np.mean([row["mistaken_own"] for row in some]))
        if explore and len(plain) == len(some):
            for name in ("own", "held_out"):
                before, after = (
                    np.concatenate([row[f"{name}_scores"] for row in sorted(which, key=lambda row: row["seed"])])
                    for which in (plain, some)
                )
                one[f"p_{name}"] = p_value(after - before)
        told.append(one)
    return told


def draw(rows: list[dict[str, Any]]) -> style.Figure:
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    panels = {
        "own": "queries of the stream, nDCG@10",
        "held_out": "other queries, nDCG@10",
        "shown": "what is shown, nDCG@5",
        "credited": "right documents credited",
    }
    figure, axes = pyplot.subplots(
        len(sets), len(panels), figsize=(12, 2.5 * len(sets) + 0.6), layout="constrained", squeeze=False
    )
    for (line, dataset), (column, (name, title)) in product(enumerate(sets), enumerate(panels.items())):
        panel = axes[line][column]
        length = max(row["windows"][-1]["after"] for row in rows if row["dataset"] == dataset)
        panel.axvspan(0, EARLY * length, color="0.93", lw=0)
        for mistakes, explore in product(MISTAKES, EXPLORE):
            some = [
                row for row in rows
                if (row["dataset"], row["mistakes"], row["explore"]) == (dataset, mistakes, explore)
            ]  # fmt: skip
            if not some:
                continue
            windows = [[window for window in row["windows"] if name in window] for row in some]
            at = [window["after"] for window in windows[0]]
            values = np.mean([[window[name] for window in row] for row in windows], 0)
            style = {"lw": 1.9} if mistakes else {"lw": 1.1, "ls": (0, (4, 2))}
            panel.plot(at, values, color=COLOURS[explore], **style)
        panel.set(xlim=(0, length))
        if name == "held_out":  # a scale on which a thousandth does not look like a gain
            middle = sum(panel.get_ylim()) / 2
            panel.set_ylim(middle - SPAN / 2, middle + SPAN / 2)
        if name == "credited":
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if line == 0:
            panel.set_title(title)
        if line == len(sets) - 1:
            panel.set_xlabel("queries of the stream so far")
        if column == 0:
            panel.set_ylabel(NAMES.get(dataset, dataset), fontweight="bold")
    lines = [Line2D([], [], color=COLOURS[explore], lw=1.9, label=f"explore = {explore}") for explore in EXPLORE]
    lines += [
        Line2D([], [], color="black", lw=1.9, label="with early mistakes (shaded: 30 % of the verdicts)"),
        Line2D([], [], color="black", lw=1.1, ls=(0, (4, 2)), label="without"),
    ]
    figure.legend(handles=lines, loc="outside lower center", ncols=5, frameon=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--size", type=int, default=300, help="queries in the stream, and as many that never are")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--every", type=int, default=150, help="queries between two evolves")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text("utf-8"))["rows"] if options.out.exists() else []
    for seed, folder in product(range(options.seeds), options.folders):
        data = load(folder)
        with tempfile.TemporaryDirectory() as scratch:
            lab = Lab(data, HYBRID, Path(scratch))
            for mistakes, explore in product(MISTAKES, EXPLORE):
                row = {"dataset": data.name, "mistakes": mistakes, "explore": explore, "seed": seed}
                if any(row.items() <= one.items() for one in rows):
                    continue
                row |= run(lab, explore, mistakes, seed, options)
                rows.append(row)
                result = {"shown": SHOWN, "early": EARLY, "size": options.size, "rounds": options.rounds}
                result |= {"every": options.every, "compared": compare(rows), "rows": rows}
                write_json(options.out, result, indent=1)
                print({key: value for key, value in row.items() if "scores" not in key and key != "windows"},
                      row["windows"][0], row["windows"][-1], flush=True)  # fmt: skip
    for one in compare(rows):
        print(one)


if __name__ == "__main__":
    main()
