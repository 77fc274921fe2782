"""Lessons that also name what is wrong among the first ten found: held-out nDCG@10 with that and without, over seeds.

    python benchmarks/negatives.py ../shared/data/scifact … [--encoder bm25 wordllama hybrid all-MiniLM-L6-v2]
                                   [--wrong 0 0.3] [--jobs 2] [--out FILE]

Half of the test queries teach. Somebody looks through the first ten documents that the untaught index finds, and names
right and wrong. With --wrong, a share of the lessons errs: it takes a wrong document for right (a random one, or one of
the first twenty), and the right ones among the first ten for wrong. Vectors beside a set are taken as they are; a set
without them is encoded. Results in FILE stay, but for those that are made again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from holdout import written

from evokey.bench import measures, protocols
from evokey.bench.data import load
from evokey.bench.lab import Lab
from evokey.bench.measures import MAIN
from evokey.bench.protocols import Question
from evokey.bench.significance import paired
from evokey.bench.systems import Lessons, Plain, Taught
from evokey.evolution.guarded import Guarded

LOOKED_AT, NEAR = 10, 20
MOST = 2_000
SEEDS = 3
NAMED_BY = ("dataset", "encoder", "wrong")


def mistaken(question: Question, near: list[str], everyone: list[str], chance: random.Random) -> Question:
    """The same question, with a wrong document taken for right."""
    others = [id for id in near if id not in question.right]
    pick = chance.choice(others) if others and chance.random() < 0.5 else chance.choice(everyone)
    return replace(question, grades={pick: 1.0})


def once(folder: Path, encoder: str, wrong: float, seed: int) -> dict[str, Any]:
    """One seed: per-query outcomes untaught, taught what is right, and taught what is wrong too."""
    data, chance = load(folder), random.Random(seed)
    dealt = protocols.split(data, "holdout", seed=seed, most=MOST)
    everyone = [one.id for one in data.documents]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(data, encoder, Path(place))
        with lab.memory() as memory:
            plain = Plain(memory, lab)
            told = [
                mistaken(one, plain.rank(one, NEAR), everyone, chance) if chance.random() < wrong else one
                for one in dealt.taught
            ]
            found["untaught"] = values(plain, dealt.tested)
        for name, negatives in (("without", False), ("with", True)):
            with lab.memory(Guarded(negatives=negatives)) as memory:
                system = Taught(memory, lab, Lessons(wrong=LOOKED_AT))
                system.teach(told)
                found[f"choice {name}"] = {one: dict(choice) for one, choice in system.evolve()["choice"].items()}
                found[name], found[f"taught {name}"] = values(system, dealt.tested), values(system, dealt.taught)
    return found


def values(system: Plain, questions: Any) -> dict[str, float]:
    judged = measures.judged(questions, {one.id: system.rank(one, LOOKED_AT) for one in questions})
    return {id: one[MAIN] for id, one in judged.items()}


def together(folder: Path, encoder: str, wrong: float, seeds: list[dict[str, Any]]) -> dict[str, Any]:
    pooled = {
        name: {f"{seed} {id}": value for seed, one in enumerate(seeds) for id, value in one[name].items()}
        for name in ("untaught", "without", "with")
    }
    compared = {other: paired(pooled["with"], pooled[other]) for other in ("without", "untaught")}
    names = ("untaught", "without", "with", "taught without", "taught with")
    return {
        "dataset": folder.name,
        "encoder": encoder,
        "wrong": wrong,
        "seeds": len(seeds),
        **{name: float(np.mean([np.mean(list(one[name].values())) for one in seeds])) for name in names},
        "p": compared["without"].p,
        "p_untaught": compared["untaught"].p,
        "wins": compared["without"].wins,
        "losses": compared["without"].losses,
        "away": [{name: one["away"] for name, one in seed["choice with"].items()} for seed in seeds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama", "hybrid"])
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0, 0.3], help="share of the lessons that err")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells = list(product(options.folders, options.encoder, options.wrong))
    with ProcessPoolExecutor(options.jobs) as pool:
        runs = {cell: [pool.submit(once, *cell, seed) for seed in range(SEEDS)] for cell in cells}
        for cell, futures in runs.items():
            result = together(*cell, [one.result() for one in futures])
            print(
                f"{result['dataset']:28} {result['encoder']:18} wrong {result['wrong']:.0%}: untaught "
                f"{result['untaught']:.4f}, without {result['without']:.4f}, with {result['with']:.4f} (p "
                f"{result['p']:.3f})",
                flush=True,
            )
            if options.out:
                known = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
                by = {tuple(one[name] for name in NAMED_BY): one for one in [*known, result]}
                written(options.out, json.dumps(list(by.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
