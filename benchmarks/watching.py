"""Searching while the background learner works: latency beside the same memory at rest.

    python benchmarks/watching.py [--data ../shared/data] [--documents 100000] [--blocks 6] [--out FILE]

Two memories with the default retrievers: SciFact, and the large corpus of speed.py. Searches come one after the other,
without pause, in blocks: at rest, watched, at rest, … The same queries are asked in both. In a watched block the
learner always has queries waiting (judged queries with words left out; for the large corpus, words of a document): its
process expands (prf), searches and verifies all the time, lessons are remembered, and keys evolve on the way. A block
lasts until the learner has evolved. A first block, not counted, brings the memory to its first epoch, so that both
phases search taught keys.
"""

# ruff: noqa: E402 - the number of threads must be set before numpy is imported
from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import evokey
from evokey.types import Attempt, Ruling

HERE = Path(__file__).parent
JUDGEMENTS = "EVOKEY_BENCHMARK_JUDGEMENTS"
"""Environment variable: a file of {query: ids of the right documents}, for the learner's process."""
ASKED = 300
"""Queries that are timed, over and over."""
LONGEST = 90.0
"""Seconds of a block."""
Judged = Mapping[str, list[str]]


@cache
def judgements() -> Judged:
    known: Judged = json.loads(Path(os.environ[JUDGEMENTS]).read_text("utf-8"))
    return known


def judged(attempt: Attempt) -> Ruling:
    """The verifier that memories name: watching:judged."""
    right = {*judgements().get(attempt.query, ())}
    found = {hit.id: 1.0 for hit in attempt.hits if hit.id in right}
    return Ruling(bool(found), float(bool(found)), found, "judged")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ---- what is searched


def scifact(data: Path) -> tuple[list[evokey.Document], list[str], dict[str, list[str]]]:
    """Documents, the queries that are timed, and many wordings of all judged queries."""
    folder, chance = data / "scifact", random.Random(5)
    documents = [evokey.Document(row["_id"], row["text"], row["title"]) for row in lines(folder / "corpus.jsonl")]
    queries = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
    right: dict[str, list[str]] = {}
    for split in ("train", "test"):
        for row in (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines()[1:]:
            query, document, _ = row.split("\t")
            right.setdefault(query, []).append(document)
    wordings: dict[str, list[str]] = {}
    for _ in range(20):
        for query in chance.sample(sorted(right), len(right)):
            words = queries[query].split()
            kept = sorted(chance.sample(range(len(words)), max(3, len(words) - 3)) if len(words) > 3 else range(3))
            wordings.setdefault(" ".join(words[place] for place in kept if place < len(words)), right[query])
    asked = chance.sample(sorted(queries.values()), ASKED)
    return documents, asked, {text: ids for text, ids in wordings.items() if text not in asked}


def large(data: Path, count: int) -> tuple[list[evokey.Document], list[str], dict[str, list[str]]]:
    from speed import corpus, questions

    documents, chance, wordings = corpus(data, count), random.Random(5), dict[str, list[str]]()
    for document in chance.sample(documents, min(4_000, count)):
        words = document.text.split()
        for _ in range(5):
            wordings[" ".join(chance.sample(words, min(6, len(words))))] = [document.id]
    asked = questions(data, ASKED)
    return documents, asked, {text: ids for text, ids in wordings.items() if text not in asked}


# ---- timing


def block(memory: evokey.Memory, asked: Any, seconds: float, learner: Any = None, fodder: Any = None) -> list[float]:
    """Seconds of each search: for some time, or until the learner has evolved once more (and that long at least)."""
    times, began = list[float](), time.perf_counter()
    epochs = learner.progress.epochs if learner else 0
    while (past := time.perf_counter() - began) < seconds or (
        learner is not None and learner.progress.epochs == epochs and past < LONGEST
    ):
        if learner is not None and len(learner._waiting) < 100:
            for text in (next(fodder) for _ in range(100)):
                learner.offer(text)
        query = next(asked)
        start = time.perf_counter()
        memory.search(query)
        times.append(time.perf_counter() - start)
    return times


def quantiles(times: list[float]) -> dict[str, float]:
    return {name: 1000 * float(np.quantile(times, at)) for name, at in (("p50_ms", 0.5), ("p99_ms", 0.99))}


def run(
    name: str, made: tuple[list[evokey.Document], list[str], Judged], blocks: int, seconds: float
) -> dict[str, Any]:
    documents, queries, wordings = made
    phases: dict[str, list[list[float]]] = {"rest": [], "watched": []}
    work = {"thought": 0, "learned": 0, "epochs": 0}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "judgements.json"
        file.write_text(json.dumps(wordings), "utf-8")
        os.environ[JUDGEMENTS] = str(file)
        verifier = {"name": "custom", "function": "watching:judged"}
        with evokey.open(Path(folder) / "kb", verifier=verifier, expander="prf") as memory:
            for start in range(0, len(documents), 5_000):
                memory.add(documents[start : start + 5_000])
            memory.save()
            asked, fodder = cycle(queries), iter(wordings)
            for number in range(blocks + 1):
                rest = block(memory, asked, seconds)
                learner = memory.watch()
                learner.offer(next(fodder))
                while not learner.progress.thought:
                    time.sleep(0.05)
                before, began = learner.progress.thought, time.perf_counter()
                watched = block(memory, asked, seconds, learner, fodder)
                thought, took = learner.progress.thought - before, time.perf_counter() - began
                learner.stop()
                shown = {phase: quantiles(times) for phase, times in (("rest", rest), ("watched", watched))}
                print(f"{name} block {number}: {shown}, {thought} thoughts, {learner.progress.learned} lessons, "
                      f"{learner.progress.epochs} epochs in {took:.0f} s", flush=True)  # fmt: skip
                if number:
                    phases["rest"].append(rest), phases["watched"].append(watched)
                    work["thought"] += thought
                    work["learned"] += learner.progress.learned
                    work["epochs"] += learner.progress.epochs
    told = {
        phase: quantiles([one for times in some for one in times]) | {"searches": sum(map(len, some))}
        for phase, some in phases.items()
    }
    ratios = {
        at: told["watched"][f"{at}_ms"] / told["rest"][f"{at}_ms"]
        for at in ("p50", "p99")
    }  # fmt: skip
    by_block = [
        {at: quantiles(watched)[f"{at}_ms"] / quantiles(rest)[f"{at}_ms"] for at in ("p50", "p99")}
        for rest, watched in zip(phases["rest"], phases["watched"], strict=True)
    ]
    return {"name": name, "documents": len(documents), **told, "ratio": ratios, "ratio_by_block": by_block, **work}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--documents", type=int, default=100_000, help="of the large corpus; 0 leaves it out")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5.0, help="a block lasts so long at least")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    for name, make in {
        "scifact": lambda: scifact(options.data),
        "large": lambda: large(options.data, options.documents),
    }.items():
        if name == "large" and not options.documents:
            continue
        results.append(run(name, make(), options.blocks, options.seconds))
        print({key: value for key, value in results[-1].items() if key != "ratio_by_block"}, flush=True)
        if options.out:
            told = {"cores": os.cpu_count(), "python": sys.version.split()[0], "runs": results}
            options.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
