"""Searching while the background learner works: latency beside the same memory at rest.

    python benchmarks/watching.py [--data ../shared/data] [--documents 100000] [--blocks 6] [--out FILE]

Two memories with the default retrievers: SciFact, and the large corpus of `evokey bench speed`. Searches come one
after the other, without pause, in blocks: at rest, watched, at rest, … The same queries are asked in both. At rest the
learner's process is halted and hears of nothing. In a watched block it always has queries waiting (judged queries with
words left out; for the large corpus, words of a document): it expands (prf), searches and verifies, lessons are
remembered, and keys evolve on the way. Before the first block the memory is brought to its first epoch, so that both
phases search taught keys.
"""

# ruff: noqa: E402 - the number of threads must be set before numpy is imported
from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import evokey
from evokey.loop.watch import WAITING, Learner
from evokey.types import Attempt, Ruling

HERE = Path(__file__).parent
JUDGEMENTS = "EVOKEY_BENCHMARK_JUDGEMENTS"
"""Environment variable: a file of {query: ids of the right documents}, for the learner's process."""
ASKED = 300
"""Queries that are timed, over and over."""
TAUGHT = 64
"""Queries learned before the first block."""
Judged = Mapping[str, list[str]]


@cache
def judgements() -> Judged:
    known: Judged = json.loads(Path(os.environ[JUDGEMENTS]).read_text("utf-8"))
    return known


def judge(attempt: Attempt) -> Ruling:
    """The verifier that memories name: watching:judge."""
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
    from evokey.bench.speed.texts import corpus, questions

    documents, chance, wordings = corpus(data, count), random.Random(5), dict[str, list[str]]()
    for document in chance.sample(documents, min(4_000, count)):
        words = document.text.split()
        for _ in range(5):
            wordings[" ".join(chance.sample(words, min(6, len(words))))] = [document.id]
    asked = questions(data, ASKED)
    return documents, asked, {text: ids for text, ids in wordings.items() if text not in asked}


# ---- timing


def block(memory: evokey.Memory, asked: Iterator[str], seconds: float) -> list[float]:
    """Seconds of each search."""
    times, end = list[float](), time.perf_counter() + seconds
    while time.perf_counter() < end:
        query = next(asked)
        start = time.perf_counter()
        memory.search(query)
        times.append(time.perf_counter() - start)
    return times


def watch(memory: evokey.Memory, learner: Learner, asked: Iterator[str], fodder: Iterator[str], seconds: float) -> Any:
    """A block while the learner works."""
    process = learner._thinker._process
    assert process is not None
    memory._learner = learner
    process.send_signal(signal.SIGCONT)
    for text in islice(fodder, WAITING - len(learner._waiting)):
        learner.offer(text)
    try:
        return block(memory, asked, seconds)
    finally:
        process.send_signal(signal.SIGSTOP)
        memory._learner = None


def quantiles(times: list[float]) -> dict[str, float]:
    return {name: 1000 * float(np.quantile(times, at)) for name, at in (("p50_ms", 0.5), ("p99_ms", 0.99))}


def run(name: str, made: tuple[list[evokey.Document], list[str], Judged], blocks: int, seconds: float) -> Any:
    """What is known after each block."""
    documents, queries, wordings = made
    phases: dict[str, list[list[float]]] = {"rest": [], "watched": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "judgements.json"
        file.write_text(json.dumps(wordings), "utf-8")
        os.environ[JUDGEMENTS] = str(file)
        verifier = {"name": "custom", "function": "watching:judge"}
        with evokey.open(Path(folder) / "kb", verifier=verifier, expander="prf") as memory:
            for start in range(0, len(documents), 5_000):
                memory.add(documents[start : start + 5_000])
            memory.save()
            asked, fodder = cycle(queries), iter(wordings)
            for query in islice(fodder, TAUGHT):
                memory.learn(query)
            memory.evolve()
            learner = memory.watch()
            learner.offer(next(fodder))
            while not learner.progress.thought:
                time.sleep(0.05)
            before = replace(learner.progress)
            for number in range(blocks):
                phases["watched"].append(watch(memory, learner, asked, fodder, 2 * seconds))
                phases["rest"].append(block(memory, asked, seconds))
                last = {phase: quantiles(times[-1]) for phase, times in phases.items()}
                print(f"{name} block {number}: {last}, {learner.progress}", flush=True)
                work = {
                    what: getattr(learner.progress, what) - getattr(before, what)
                    for what in ("thought", "learned", "epochs")
                }
                yield {"name": name, "documents": len(documents), **told(phases), **work}
            learner.stop()


def told(phases: Mapping[str, list[list[float]]]) -> dict[str, Any]:
    found = {
        phase: quantiles([one for times in some for one in times]) | {"searches": sum(map(len, some))}
        for phase, some in phases.items()
    }
    ratios = [ratio(*pair) for pair in zip(phases["rest"], phases["watched"], strict=True)]
    rest, busy = ([one for times in phases[phase] for one in times] for phase in ("rest", "watched"))
    return {**found, "ratio": ratio(rest, busy), "ratio_by_block": ratios}


def ratio(rest: list[float], busy: list[float]) -> dict[str, float]:
    return {at: quantiles(busy)[f"{at}_ms"] / quantiles(rest)[f"{at}_ms"] for at in ("p50", "p99")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--documents", type=int, default=100_000, help="of the large corpus; 0 leaves it out")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of a block at rest; a watched one lasts twice as long"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    makers = {"scifact": lambda: scifact(options.data), "large": lambda: large(options.data, options.documents)}
    for name, make in makers.items():
        if name == "large" and not options.documents:
            continue
        for result in run(name, make(), options.blocks, options.seconds):
            results[name] = result
            if options.out:
                found = {"cores": os.cpu_count(), "python": sys.version.split()[0], "runs": list(results.values())}
                found["load"] = os.getloadavg()[0]
                options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        print({key: value for key, value in results[name].items() if key != "ratio_by_block"}, flush=True)


if __name__ == "__main__":
    main()
