"""With the lens against without: half of a set's queries teach, the other half is tested; and what bystanders lose.

    python benchmarks/lens.py DATA_DIR… [--encoder bm25 wordllama minilm] [--cache FOLDER] [--wrong 0.3] [--out FILE]
    python benchmarks/lens.py DATA_DIR… --bystanders taught/other … [--out FILE]

Bystanders: two sets in one index, one of them taught, and the questions of the other asked before and after.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from holdout import Collection, paired_p, quality, teach

import evokey

MOST_QUERIES = 3_000
MOST_ASKED = 600
POLICIES = {"rows": {"name": "guarded", "lens": "none"}, "lens": {"name": "guarded", "lens": "all"}}


def encoder_of(name: str, cache: str | None) -> Any:
    if name != "minilm":
        return name
    return {"name": "cached", "encoder": "all-MiniLM-L6-v2", "at": cache} if cache else "all-MiniLM-L6-v2"


def holdout(data: Collection, encoder: str, cache: str | None, seeds: int, wrong: float) -> dict[str, Any]:
    found: dict[str, list[Any]] = {"untaught": [], "rows": [], "lens": [], "taught": [], "choices": [], "seconds": []}
    pairs = []
    for policy in POLICIES:
        with (
            tempfile.TemporaryDirectory() as folder,
            evokey.open(folder, encoder=encoder_of(encoder, cache), policy=POLICIES[policy]) as memory,
        ):
            memory.add(data.documents)
            for seed in range(seeds):
                queries = sorted(data.judged)
                random.Random(seed).shuffle(queries)
                queries = queries[:MOST_QUERIES]
                taught, asked = queries[: len(queries) // 2], queries[len(queries) // 2 :]
                if policy == "rows":
                    found["untaught"].append(quality(memory, data, asked))
                teach(memory, data, taught, wrong, f"seed {seed}", seed)
                began = time.perf_counter()
                report = memory.evolve()
                seconds = time.perf_counter() - began
                found[policy].append(quality(memory, data, asked))
                if policy == "lens":
                    found["taught"].append(float(quality(memory, data, taught[:MOST_ASKED]).mean()))
                    found["choices"].append({name: choice.lens for name, choice in report.choice.items()})
                    found["seconds"].append(seconds)
                memory.forget(actor=f"seed {seed}")
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
    taught: Collection, other: Collection, encoder: str, cache: str | None, wrong: float, policy: str
) -> dict[str, Any]:
    """One index of both; half of the first set's queries teach."""
    with (
        tempfile.TemporaryDirectory() as folder,
        evokey.open(folder, encoder=encoder_of(encoder, cache), policy=POLICIES[policy]) as memory,
    ):
        for data in (taught, other):
            memory.add([evokey.Document(f"{data.name}/{one.id}", one.text, one.title) for one in data.documents])
        first, second = renamed(taught), renamed(other)
        queries = sorted(first.judged)
        random.Random(0).shuffle(queries)
        queries = queries[:MOST_QUERIES]
        teaching, asked = queries[: len(queries) // 2], queries[len(queries) // 2 :][:MOST_ASKED]
        beside = sorted(second.judged)[:MOST_ASKED]
        before = [quality(memory, first, asked), quality(memory, second, beside)]
        teach(memory, first, teaching, wrong, "a", 0)
        report = memory.evolve()
        after = [quality(memory, first, asked), quality(memory, second, beside)]
    return {
        "taught": taught.name,
        "bystander": other.name,
        "encoder": encoder,
        "policy": policy,
        "wrong": wrong,
        "held_out": [float(before[0].mean()), float(after[0].mean())],
        "bystanders": [float(before[1].mean()), float(after[1].mean())],
        "p": paired_p(before[1], after[1]),
        "lens": {name: choice.lens for name, choice in report.choice.items()},
    }


def renamed(data: Collection) -> Collection:
    """The same judgements, of documents that carry their set's name."""
    made = object.__new__(Collection)
    made.name, made.queries = data.name, data.queries
    made.documents = [evokey.Document(f"{data.name}/{one.id}", one.text, one.title) for one in data.documents]
    made.judged = {
        query: {f"{data.name}/{id}": grade for id, grade in grades.items()} for query, grades in data.judged.items()
    }
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama"])
    parser.add_argument("--bystanders", nargs="+", default=[], help="pairs: taught/other")
    parser.add_argument("--cache")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []

    def keep(result: dict[str, Any]) -> None:
        results.append(result)
        print(json.dumps({key: value for key, value in result.items() if key != "lenses"}), flush=True)
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")

    folders = {folder.name: folder for folder in options.folders}
    for encoder in options.encoder:
        for pair, policy in product(options.bystanders, POLICIES):
            taught, other = pair.split("/")
            told = {"taught": taught, "bystander": other, "encoder": encoder, "policy": policy, "wrong": options.wrong}
            if not any(
                all(one.get(key) == value for key, value in told.items()) for one in results if "bystander" in one
            ):
                sets = Collection(folders[taught]), Collection(folders[other])
                keep(bystanders(*sets, encoder, options.cache, options.wrong, policy))
        for name, folder in folders.items() if not options.bystanders else ():
            if (name, encoder, options.wrong) not in {
                (one.get("dataset"), one["encoder"], one["wrong"]) for one in results
            }:
                keep(holdout(Collection(folder), encoder, options.cache, options.seeds, options.wrong))


if __name__ == "__main__":
    main()
