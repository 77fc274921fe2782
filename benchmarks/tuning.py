"""What `evokey tune` brings on top of evolve: half of the judged queries of a set teach, the others are asked.

    python benchmarks/tuning.py [DATA_DIR] [--out FILE] [--set NAME …] [--encoder NAME …] [--seeds 0 1 2]
        [--seconds S]

For each set, retriever and split: the untaught index, after evolve, and after tune (which publishes a tuned encoder or
refuses it), for all tested questions, those that share a right document with a lesson (related) and the others. Runs
that FILE has are not made again; after so many seconds no further one begins.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evokey
from evokey.bench import protocols
from evokey.bench.data import Dataset, load
from evokey.bench.measures import MAIN, evaluate, mean
from evokey.bench.protocols import Split
from evokey.bench.runs import write_json

SHARED = Path(__file__).parents[2] / "shared" / "data"
RESULTS = Path(__file__).parent / "results" / "tuning.json"
SETS = ("locomo10", "climate_fever_evidence", "pubmedqa_l", "nfcorpus", "scifact", "cranfield", "clinc150")
"""Half of the questions of SciFact, Cranfield and NFCorpus are too few: tune refuses to train."""
ENCODERS = ("wordllama", "hybrid")
SEEDS = (0, 1, 2)
DEPTH = 100
GROUPS = ("tested", "related", "unrelated")


def measure(memory: evokey.Memory, dealt: Split) -> dict[str, float | None]:
    """nDCG@10 of the tested questions, and of some of them apart."""
    found = {one.id: [hit.id for hit in memory.search(one.text, DEPTH)] for one in dealt.tested}
    values = evaluate(dealt.tested, found)
    groups = {"tested": list(dealt.tested), **dealt.groups()}
    means = {name: mean(values, [one.id for one in groups[name]]) for name in GROUPS}
    return {name: None if one is None else round(one[MAIN], 4) for name, one in means.items()}


def run(data: Dataset, encoder: str, seed: int) -> dict[str, Any]:
    """One split of one set. Nothing is kept of what is searched: asking before teaching must teach nothing."""
    dealt = protocols.split(data, "holdout", rate=0.5, seed=seed)
    encoders = None if encoder == "hybrid" else encoder
    with tempfile.TemporaryDirectory() as place, evokey.open(Path(place) / "kb", encoder=encoders, traffic=0) as memory:
        memory.add(data.documents)
        memory.feedback_many([{"query": one.text, "relevant": right(one.grades)} for one in dealt.taught])
        found: dict[str, Any] = {"untaught": measure(memory, dealt)}
        began = time.perf_counter()
        memory.evolve()
        found |= {"evolve_seconds": round(time.perf_counter() - began, 1), "evolve": measure(memory, dealt)}
        began = time.perf_counter()
        report = memory.tune()
        found |= {"tune_seconds": round(time.perf_counter() - began, 1), "tune": measure(memory, dealt)}
    return {**found, "lessons": report.lessons, "published": report.published, "guard": report.to_dict()["encoders"]}


def right(grades: Any) -> dict[str, float]:
    return {id: grade for id, grade in grades.items() if grade > 0}


def cells(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    for seed in options.seeds:
        for name in options.set:
            for encoder in options.encoder:
                yield name, encoder, seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=SHARED)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--set", nargs="+", default=SETS)
    parser.add_argument("--encoder", nargs="+", default=ENCODERS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    began = time.perf_counter()
    for name, encoder, seed in cells(options):
        key = f"{name}/{encoder}/{seed}"
        if key in known or time.perf_counter() - began > options.seconds:
            continue
        known[key] = run(load(str(options.data / name)), encoder, seed)
        write_json(options.out, dict(sorted(known.items())))
        done = known[key]
        print(key, done["untaught"], done["evolve"], done["tune"], done["published"], flush=True)


if __name__ == "__main__":
    main()
