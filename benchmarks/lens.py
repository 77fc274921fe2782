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
from statistics import fmean
from typing import Any

import numpy as np

import evokey
from evokey.bench import protocols
from evokey.bench.data import Dataset, load, prefix
from evokey.bench.lab import Lab
from evokey.bench.lessons import add_noise
from evokey.bench.measures import quality
from evokey.bench.runs import write_json
from evokey.bench.significance import compare
from evokey.bench.systems import Plain, Taught
from evokey.encoders.given import Given
from evokey.evolution.guarded import Guarded
from evokey.evolution.lens_training import CENTRES
from evokey.protocols import Space
from evokey.scoring.block import Keys
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.search.lens import Ways
from evokey.stores.flat import FlatStore

MOST, MOST_ASKED = 3_000, 600
"""Queries of a set, and those asked in one group, at most."""
WIDE = (1.0, 0.0, 1.0)
"""A lens with a metric."""
MODELS = {"minilm": "all-MiniLM-L6-v2"}
POLICIES = {"rows": {"name": "guarded", "lens": "none"}, "lens": {"name": "guarded", "lens": "all"}}


def encoder_of(name: str, cache: str | None) -> Any:
    model = MODELS.get(name)
    return {"name": "cached", "encoder": model, "at": cache} if cache and model else model or name


def holdout(data: Dataset, encoder: str, seeds: int, noise: float) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {"untaught": {}, "rows": {}, "lens": {}}
    taught: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(data, MODELS.get(encoder, encoder), Path(folder))
        for (policy, options), seed in product(POLICIES.items(), range(seeds)):
            dealt = protocols.split(data, "holdout", seed=seed, most=MOST)
            with lab.memory(Guarded(lens=options["lens"])) as memory:
                system = Taught(memory, lab)
                untaught = quality(system.rank, dealt.tested)
                system.teach(add_noise(dealt.taught, system.rank, data.documents, noise, seed))
                system.evolve()
                after = quality(system.rank, dealt.tested)
                own = quality(system.rank, dealt.taught[:MOST_ASKED]) if policy == "lens" else {}
            for name, values in (("untaught", untaught), (policy, after)):
                found[name] |= {f"{seed} {id}": value for id, value in values.items()}
            taught += own.values()
    return {
        "dataset": data.name,
        "encoder": encoder,
        "seeds": seeds,
        "wrong": noise,
        **{name: fmean(values.values()) for name, values in found.items()},
        "taught": fmean(taught),
        "p_untaught": compare(found["lens"], found["untaught"]).p,
        "p_rows": compare(found["lens"], found["rows"]).p,
    }


def bystanders(sets: tuple[Dataset, Dataset], encoder: Any, noise: float, policy: str, heard: str) -> dict[str, Any]:
    """One index of both sets; half of the first one's queries teach."""
    first, second = (protocols.split(prefix(data), "holdout", most=MOST) for data in sets)
    asked, beside = first.tested[:MOST_ASKED], second.tested[:MOST_ASKED]
    documents = [one for data in sets for one in prefix(data).documents]
    options = {"encoder": encoder, "policy": POLICIES[policy], "traffic": 512 if heard == "heard" else 0}
    with tempfile.TemporaryDirectory() as folder, evokey.open(folder, **options) as memory:
        memory.add(documents)
        system = Taught(memory)
        with evokey.open(folder) as reader:  # what a reader is asked is not traffic
            before = [quality(Plain(reader).rank, some) for some in (asked, beside)]
        quality(system.rank, second.taught)
        system.teach(add_noise(first.taught, system.rank, documents, noise, 0))
        report = memory.evolve()
        after = [quality(system.rank, some) for some in (asked, beside)]
    pairs = [[fmean(one.values()), fmean(other.values())] for one, other in zip(before, after, strict=True)]
    return {
        "taught": sets[0].name,
        "bystander": sets[1].name,
        "policy": policy,
        "wrong": noise,
        "traffic": heard,
        "held_out": pairs[0],
        "bystanders": pairs[1],
        "p": compare(after[1], before[1]).p,
        "lens": {name: choice.lens_id for name, choice in report.choice.items()},
    }


def latency(count: int, size: int = 384) -> dict[str, Any]:
    """A dense search among random vectors, in turn without a lens and through a large one."""
    chance = np.random.default_rng(0)

    def units(rows: int) -> Any:
        vectors = chance.normal(size=(rows, size)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    store = FlatStore(Space(None, Given()))
    store.write(Keys(np.arange(count), np.arange(count), DenseBlock(units(count))))
    asked, questions = units(CENTRES), [DenseQuestion(vector) for vector in units(200)]
    everyone = np.arange(CENTRES)
    ways = Ways(asked, units(CENTRES), everyone % 10, everyone, units(2 * size))
    made = ways.lenses([str(at) for at in everyone], [WIDE])[WIDE]
    made = replace(made, closed=-1.0, open=-0.5)  # wide open
    times: dict[str, list[float]] = {"off": [], "on": []}
    for question, which in product(questions, times):
        began = time.perf_counter()
        store.snapshot.search([made.turn(question) if which == "on" else question], 10)
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
            write_json(options.out, results, indent=1)

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
                sets = load(folders[taught]), load(folders[other])
                found = bystanders(sets, encoder_of(encoder, options.cache), options.wrong, policy, heard)
                keep(found | {"encoder": encoder})
        for name, folder in folders.items() if not options.bystanders else ():
            if not done(dataset=name, encoder=encoder, wrong=options.wrong):
                keep(holdout(load(folder), encoder, options.seeds, options.wrong))


if __name__ == "__main__":
    main()
