"""With the lens against without: half of a set's test queries teach, the other half is tested; what bystanders lose.

    python benchmarks/lens.py DATA_DIR… [--encoder bm25 wordllama minilm] [--cache FOLDER] [--wrong 0.3] [--out FILE]
    python benchmarks/lens.py DATA_DIR… --bystanders taught/other … [--traffic none heard] [--out FILE]
    python benchmarks/lens.py --latency 100000 [--out FILE]

The queries that are tested were searched before anything was taught: they are traffic, without judgements. Bystanders:
two sets in one index, one of them taught; half of the other's questions are traffic (or none), the other half is asked
before and after. Results in FILE stay.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from holdout import Collection, paired_p, quality, rounds, teach, written

import evokey
from evokey.evolution.focus import CENTRES
from evokey.search.lens import Ways
from evokey.stores.embedded import NO_NUMBERS
from evokey.stores.flat import DenseBlock, DenseQuestion, FlatStore

MOST_ASKED = 600
POLICIES = {"rows": {"name": "guarded", "lens": "none"}, "lens": {"name": "guarded", "lens": "all"}}


def encoder_of(name: str, cache: str | None) -> Any:
    if name != "minilm":
        return name
    return {"name": "cached", "encoder": "all-MiniLM-L6-v2", "at": cache} if cache else "all-MiniLM-L6-v2"


def holdout(data: Collection, encoder: str, cache: str | None, seeds: int, wrong: float) -> dict[str, Any]:
    found: dict[str, list[Any]] = {"untaught": [], "rows": [], "lens": [], "taught": [], "choices": [], "seconds": []}
    for policy in POLICIES:
        with (
            tempfile.TemporaryDirectory() as folder,
            evokey.open(folder, encoder=encoder_of(encoder, cache), policy=POLICIES[policy]) as memory,
        ):
            memory.add(data.documents)
            for seed in range(seeds):
                taught, asked = list(rounds(data, "half", seeds))[seed]
                before = quality(memory, data, asked)
                if policy == "rows":
                    found["untaught"].append(before)
                teach(memory, data, taught, wrong, f"seed {seed}", seed)
                began = time.perf_counter()
                report = memory.evolve()
                seconds = time.perf_counter() - began
                found[policy].append(quality(memory, data, asked))
                if policy == "lens":
                    found["taught"].append(float(quality(memory, data, taught[:MOST_ASKED]).mean()))
                    found["choices"].append({name: choice.turn for name, choice in report.choice.items()})
                    found["seconds"].append(seconds)
                memory.forget(actor=f"seed {seed}", traffic=True)
    untaught, rows, lens = (np.concatenate(found[name]) for name in ("untaught", "rows", "lens"))
    pairs = [paired_p(untaught, lens), paired_p(rows, lens)]
    return {
        "dataset": data.name,
        "encoder": encoder,
        "seeds": seeds,
        "wrong": wrong,
        **{name: float(np.mean([part.mean() for part in found[name]])) for name in ("untaught", "rows", "lens")},
        "taught": float(np.mean(found["taught"])),
        "p_untaught": pairs[0],
        "p_rows": pairs[1],
        "lenses": found["choices"],
        "evolve_seconds": float(np.mean(found["seconds"])),
    }


def bystanders(
    taught: Collection, other: Collection, encoder: str, cache: str | None, wrong: float, policy: str, heard: str
) -> dict[str, Any]:
    """One index of both; half of the first set's queries teach."""
    heard_size = 512 if heard == "heard" else 0
    with (
        tempfile.TemporaryDirectory() as folder,
        evokey.open(folder, encoder=encoder_of(encoder, cache), policy=POLICIES[policy], traffic=heard_size) as memory,
    ):
        for data in (taught, other):
            memory.add([evokey.Document(f"{data.name}/{one.id}", one.text, one.title) for one in data.documents])
        first, second = renamed(taught), renamed(other)
        (teaching, asked), (searched, beside) = (next(rounds(data, "half", 1)) for data in (first, second))
        asked, beside = asked[:MOST_ASKED], beside[:MOST_ASKED]
        with evokey.open(folder) as reader:  # what a reader is asked is not noted
            before = [quality(reader, first, asked), quality(reader, second, beside)]
        quality(memory, second, searched)
        teach(memory, first, teaching, wrong, "a", 0)
        report = memory.evolve()
        after = [quality(memory, first, asked), quality(memory, second, beside)]
    return {
        "taught": taught.name,
        "bystander": other.name,
        "encoder": encoder,
        "policy": policy,
        "wrong": wrong,
        "traffic": heard,
        "held_out": [float(before[0].mean()), float(after[0].mean())],
        "bystanders": [float(before[1].mean()), float(after[1].mean())],
        "p": paired_p(before[1], after[1]),
        "lens": {name: choice.turn for name, choice in report.choice.items()},
    }


def renamed(data: Collection) -> Collection:
    """The same judgements, of documents that carry their set's name."""
    made = object.__new__(Collection)
    made.name, made.queries = data.name, data.queries
    made.documents = [evokey.Document(f"{data.name}/{one.id}", one.text, one.title) for one in data.documents]
    made.judged = made.test = {
        query: {f"{data.name}/{id}": grade for id, grade in grades.items()} for query, grades in data.test.items()
    }
    return made


def latency(count: int, size: int = 384) -> dict[str, Any]:
    """A dense search among random vectors, in turn without a lens and through a large one."""
    chance = np.random.default_rng(0)

    def units(rows: int) -> Any:
        vectors = chance.normal(size=(rows, size)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    store = FlatStore(None, "random")
    store.add(np.arange(count), np.arange(count), DenseBlock(units(count)))
    asked, questions = units(CENTRES), [DenseQuestion(vector) for vector in units(200)]
    everyone = np.arange(CENTRES)
    ways = Ways(asked, units(CENTRES), everyone % 10, everyone, units(64))
    made = ways.lenses([str(at) for at in everyone], [(1.0, 0.0)])[1.0, 0.0]
    made = replace(made, closed=-1.0, open=-0.5)  # wide open
    times: dict[str, list[float]] = {"off": [], "on": []}
    for question, which in product(questions, times):
        began = time.perf_counter()
        store.scan(made.turned(question) if which == "on" else question).top(10, NO_NUMBERS, None)
        times[which].append(time.perf_counter() - began)
    medians = {which: float(np.median(spent)) for which, spent in times.items()}
    return {
        "documents": count,
        "dimensions": size,
        "centres": CENTRES,
        **medians,
        "ratio": medians["on"] / medians["off"],
    }


NAMED_BY = ("dataset", "taught", "bystander", "encoder", "policy", "wrong", "traffic", "documents")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama"])
    parser.add_argument("--bystanders", nargs="+", default=[], help="pairs: taught/other")
    parser.add_argument("--traffic", nargs="+", default=["heard"], choices=["heard", "none"])
    parser.add_argument("--cache")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--latency", type=int, nargs="*", default=[], help="numbers of documents")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []

    def keep(result: dict[str, Any]) -> None:
        results.append(result)
        print(json.dumps(result), flush=True)
        if options.out:
            written(options.out, json.dumps(results, indent=1) + "\n")

    def done(**told: Any) -> bool:
        return any(
            all(one.get(key) == told.get(key) for key in NAMED_BY if key != "taught" or "bystander" in told)
            for one in results
        )

    for count in options.latency:
        keep(latency(count))
    folders = {folder.name: folder for folder in options.folders}
    for encoder in options.encoder:
        for pair, policy, heard in product(options.bystanders, POLICIES, options.traffic):
            taught, other = pair.split("/")
            told = {"encoder": encoder, "policy": policy, "wrong": options.wrong, "traffic": heard}
            if not done(taught=taught, bystander=other, **told):
                sets = Collection(folders[taught]), Collection(folders[other])
                keep(bystanders(*sets, encoder, options.cache, options.wrong, policy, heard))
        for name, folder in folders.items() if not options.bystanders else ():
            if not done(dataset=name, encoder=encoder, wrong=options.wrong):
                keep(holdout(Collection(folder), encoder, options.cache, options.seeds, options.wrong))


if __name__ == "__main__":
    main()
