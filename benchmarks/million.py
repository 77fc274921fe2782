"""A million documents on one machine: the store ann beside the bare libraries.

    python benchmarks/million.py [--documents 1000000] [--out FILE] [--only STAGE …] [--again STAGE …] [--steps N]

Vectors are real: WordLlama, 256 dimensions, of spans of real texts (spans.py), handed in (encoder "given"). Questions
are people's. Every step runs in a process of its own, so that its memory can be told, and its result is written at
once. The same command goes on where it was stopped; --steps ends it after so many steps; --again makes stages again.

    fill      add the documents, 125,000 a step, each until one graph holds them all; then watch recall with 64
              questions that are not asked again (evolve does that): the graph is widened until it finds .95
    usearch, pgvector           build the index of the bare library, with one thread
    open      open the memory and search
    search    p50 and p99, one thread, in turns: through memory.search (vector in, documents out); as the retriever
              ranks (vector in, numbers out), untaught and with 10³, 10⁴ and 10⁵ documents that have learned; bare
              faiss, the same graph at the same width; and the other libraries at the least width that finds as much.
              Recall@10 is against all rows
    teach     feedback one by one and many at once, then evolve, whose pools are current
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import million_peers as peers
import numpy as np
import spans
from million_peers import WIDTHS, K
from scipy import sparse

import evokey
from evokey.bench.speed.machine import describe
from evokey.bench.speed.timing import time_searches
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.search.overlay import UNTAUGHT, Overlay, Touched
from evokey.search.retriever import search
from evokey.types import Choice

QUESTIONS, CHECKED, WATCHED, BATCH = 1_000, 200, 64, 10_000
PIECE = 125_000
"""Rows that a step adds."""
SLACK = 0.005
"""A recall that is lower by less is as good."""
TAUGHT = (1_000, 10_000, 100_000)
LESSONS = 1_000
ROOT = Path(__file__).parents[1]
STAGES = ("fill", "usearch", "pgvector", "open", "search", "teach")
Result = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    at: Path
    data: Path
    count: int
    out: Path

    @property
    def memory(self) -> Path:
        return self.at / "memory"

    @cached_property
    def vectors(self) -> Any:
        return spans.vectors(self.data, self.count)

    @cached_property
    def questions(self) -> Any:
        return spans.questions(self.data, QUESTIONS + WATCHED)

    @property
    def asked(self) -> Any:
        return self.questions[:QUESTIONS]


def memory_now() -> Result:
    """Megabytes: all, and those that are no file's."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    found = {name: int(lines[key].split()[0]) // 1024 for name, key in (("rss_mb", "VmRSS"), ("own_mb", "RssAnon"))}
    return {**found, "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def disk(path: Path) -> int:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files) // 2**20


# ---- building, piece by piece; `before` is what the steps before have found


def add_up(before: Result, now: Result) -> Result:
    """Seconds are added, memory is the greatest."""
    both = {name: max(value, before.get(name, 0)) for name, value in now.items() if name.endswith("_mb")}
    spent = {name: round(value + before.get(name, 0), 1) for name, value in now.items() if name.endswith("seconds")}
    return {**before, **now, **both, **spent}


def documents(start: int, end: int) -> Iterator[Result]:
    for number in range(start, end):
        yield {"id": f"d{number}", "text": f"span {number}", "metadata": {"hundredth": number % 100}}


def fill(plan: Plan, before: Result) -> Result:
    start = before.get("rows", 0)
    end = min(start + PIECE, plan.count)
    if not start:
        shutil.rmtree(plan.memory, ignore_errors=True)
    began, busy = time.perf_counter(), time.process_time()
    with evokey.open(plan.memory, encoder="given", store="ann") as memory:
        assert len(memory) == start, (
            f"{plan.memory} has {len(memory)} documents, not {start}: remove it, and begin again"
        )
        memory.add(documents(start, end), np.array(plan.vectors[start:end]), batch=BATCH)
        seconds = {"add_seconds": time.perf_counter() - began}
        memory.save()
        seconds["until_graph_seconds"] = time.perf_counter() - began
        seconds["processor_seconds"] = time.process_time() - busy
        found: Result = {**seconds, **memory_now(), "rows": end, "recall_between_rows": memory.stats().recall["given"]}
        if end == plan.count:
            found |= {"recall_watched": _watch(memory, plan.questions[QUESTIONS:]), "done": True}
    return {**add_up(before, found), "keys_mb": disk(plan.memory / "keys"), "memory_on_disk_mb": disk(plan.memory)}


def _watch(memory: evokey.Memory, questions: Any) -> float:
    """As evolve does."""
    memory.index.background.watch(lambda _: [DenseQuestion(vector) for vector in questions])
    memory.index.background.wait()
    return memory.stats().recall["given"]


def build_usearch(plan: Plan, before: Result) -> Result:
    start, file = before.get("rows", 0), plan.at / "usearch.index"
    end = min(start + PIECE, plan.count)
    found = peers.build_usearch(file, plan.vectors, start, end)
    return add_up(before, {**found, **memory_now(), "disk_mb": disk(file), "rows": end, "done": end == plan.count})


def build_pgvector(plan: Plan, before: Result) -> Result:
    folder = plan.at / "postgres"
    if not before:
        return {**peers.copy_pgvector(folder, plan.vectors), "done": False}
    return {**before, **peers.index_pgvector(folder), "done": True}


# ---- searching


def open_once(plan: Plan, before: Result) -> Result:
    asked, idle, began, busy = plan.asked, memory_now(), time.perf_counter(), time.process_time()
    with evokey.open(plan.memory) as memory:
        opening, processor = time.perf_counter() - began, time.process_time() - busy
        memory.search("asked", K, vector=asked[0])
        first = time.perf_counter() - began - opening
        for one in asked[:CHECKED]:
            memory.search("asked", K, vector=one)
        now = memory_now()
    found = {"open_seconds": round(opening, 2), "open_processor_seconds": round(processor, 2), **now}
    found["first_search_ms"] = round(1000 * first, 1)
    return {**found, "before_rss_mb": idle["rss_mb"], "done": True}


@dataclass(frozen=True)
class Truth:
    """The score of the tenth best of all rows for some questions."""

    vectors: Any
    asked: Any
    least: Any

    @classmethod
    def of(cls, vectors: Any, asked: Any) -> Truth:
        best = np.full((len(asked), K), -np.inf, np.float32)
        for start in range(0, len(vectors), 1 << 16):
            scores = np.concatenate([best, asked @ vectors[start : start + (1 << 16)].T], axis=1)
            best = np.partition(scores, scores.shape[1] - K, axis=1)[:, -K:]
        return cls(vectors, asked, best.min(axis=1))

    def recall(self, find: Callable[[int], Any]) -> float:
        """Rows that are as good as the tenth best."""
        found = 0
        for number, bound in enumerate(self.least):
            found += int((self.vectors[np.sort(find(number))] @ self.asked[number] >= bound - 1e-5).sum())
        return round(found / (K * len(self.least)), 4)


def choose_width(find: Callable[[int], Any], widen: Callable[[int], None], truth: Truth, wanted: float) -> Result:
    """The least that finds as much as is wanted; what each finds."""
    recalls: dict[str, float] = {}
    width = WIDTHS[-1]
    for width in WIDTHS:
        widen(width)
        recalls[str(width)] = truth.recall(find)
        if recalls[str(width)] >= wanted - SLACK:
            break
    return {"width": width, "recalls": recalls, "recall": recalls[str(width)]}


def make_overlay(memory: evokey.Memory, count: int, vectors: Any) -> Overlay:
    """Documents that have learned, each from one question; ten documents share one."""
    retriever, chance = memory.index.retrievers[0], np.random.default_rng(3)
    numbers = np.sort(chance.choice(memory.index.live, count, replace=False))
    texts = np.array(vectors[np.sort(chance.choice(len(vectors), max(count // 10, 1), replace=False))])
    said = np.arange(count) % len(texts)
    evidence = sparse.csr_array((np.full(count, 0.5), said, np.arange(count + 1)), (count, len(texts)))
    keys = retriever.base.fetch(numbers)
    moved = keys.block.vectors.astype(np.float64) + 0.5 * (evidence @ texts.astype(np.float64))
    norms = np.linalg.norm(moved, axis=1)
    touched, choice = Touched.of(numbers, np.ones(count, np.int64)), Choice(step=0.5, penalty=0.2)
    return Overlay(
        touched, keys.block, tuple(map(str, range(len(texts)))), DenseBlock(texts), evidence, norms, choice, {}
    )


def our_searches(memory: evokey.Memory, plan: Plan) -> dict[str, Callable[[int], Any]]:
    import faiss

    asked, asking = plan.asked, [DenseQuestion(vector) for vector in plan.asked]
    retriever = memory.index.retrievers[0]
    (segment,) = retriever.base.segments  # type: ignore[attr-defined]
    wide = faiss.SearchParametersHNSW(efSearch=segment.graph.width)
    found: dict[str, Callable[[int], Any]] = {
        "faiss": lambda at: segment.graph.index.search(asked[at : at + 1], K, params=wide)[1][0],
        "evokey": lambda at: search(retriever, asking[at], K, UNTAUGHT).numbers - 1,  # the first document is number 1
        "memory.search": lambda at: memory.search("asked", K, vector=asked[at]),
    }
    for touched in [some for some in TAUGHT if some < plan.count]:
        overlay = make_overlay(memory, touched, plan.vectors)
        found[f"evokey, {touched} taught"] = lambda at, overlay=overlay: search(retriever, asking[at], K, overlay)
    return found


def open_bare(plan: Plan, stack: ExitStack) -> dict[str, tuple[peers.Find, peers.SetWidth]]:
    """The libraries whose index holds all rows."""
    done = json.loads(plan.out.read_text())
    found = {}
    if done.get("usearch", {}).get("done"):
        found["usearch"] = peers.open_usearch(plan.at / "usearch.index", plan.asked)
    if done.get("pgvector", {}).get("done"):
        found["pgvector"] = peers.open_pgvector(stack.enter_context(peers.postgres(plan.at / "postgres")), plan.asked)
    return found


def search_many(plan: Plan, before: Result) -> Result:
    truth = Truth.of(plan.vectors, plan.asked[:CHECKED])
    with evokey.open(plan.memory) as memory, ExitStack() as stack:
        searches = our_searches(memory, plan)
        recalls = {name: truth.recall(searches[name]) for name in ("faiss", "evokey")}
        bare = open_bare(plan, stack)
        widths = {name: choose_width(*one, truth, recalls["evokey"]) for name, one in bare.items()}
        searches |= {name: find for name, (find, _) in bare.items()}
        for one in searches.values():
            for number in range(50):
                one(number)
        timed = time_searches(searches, range(len(plan.asked)), 20)
        width = memory.index.retrievers[0].base.width  # type: ignore[attr-defined]
        filters = time_filters(memory, plan.asked)
    found = {"width": width, "recall": {**recalls, **{name: one["recall"] for name, one in widths.items()}}}
    seconds = {name: summarise(times) for name, times in timed.items()}
    ratios = {name: round(seconds["evokey"]["p50_ms"] / seconds[name]["p50_ms"], 3) for name in ("faiss", *bare)}
    return {**found, "widths": widths, "seconds": seconds, "ratio": ratios, "filters": filters, "done": True}


def summarise(seconds: list[float]) -> dict[str, float]:
    last = float(np.quantile(seconds, 0.99))
    return {"p50_ms": round(1000 * statistics.median(seconds), 3), "p99_ms": round(1000 * last, 3)}


def time_filters(memory: evokey.Memory, asked: Any) -> Result:
    """A hundredth and half of the documents pass."""
    wanted = {"1 %": {"hundredth": 7}, "50 %": {"hundredth": list(range(50))}}
    found = {}
    for name, where in wanted.items():
        memory.search("asked", K, where, vector=asked[0])  # the ledger resolves a filter once
        searches = {name: lambda at, where=where: memory.search("asked", K, where, vector=asked[at])}
        found[name] = summarise(time_searches(searches, range(100), 20)[name])
    return found


# ---- teaching


def teach(plan: Plan, before: Result) -> Result:
    copy = plan.at / "taught"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(plan.memory, copy)
    with evokey.open(copy) as memory:
        found = time_lessons(memory, plan)
        began, busy = time.perf_counter(), time.process_time()
        report = memory.evolve()
        found |= {"evolve_seconds": round(time.perf_counter() - began, 2), "published": report.published}
        found["evolve_processor_seconds"] = round(time.process_time() - busy, 2)
        memory.index.background.wait()
        found |= {"recall_watched": memory.stats().recall, **memory_now()}
    found["bytes_per_lesson"] = round((disk(copy) - disk(plan.memory)) * 2**20 / LESSONS)
    shutil.rmtree(copy)
    return {**found, "done": True}


def time_lessons(memory: evokey.Memory, plan: Plan) -> Result:
    named = np.random.default_rng(5).choice(plan.count, LESSONS, replace=False)
    lessons = [
        {"query": f"question {n}", "relevant": [f"d{named[n]}"], "vector": plan.asked[n % len(plan.asked)]}
        for n in range(LESSONS)
    ]
    half = LESSONS // 2

    def one_by_one() -> None:
        for one in lessons[:half]:
            memory.feedback(**one)

    found: Result = {"lessons": LESSONS}
    work = {"feedback": one_by_one, "feedback_many": lambda: memory.feedback_many(lessons[half:])}
    for name, do in work.items():
        began, busy = time.perf_counter(), time.process_time()
        do()
        found[f"{name}_per_second"] = round(half / (time.perf_counter() - began))
        found[f"{name}_per_processor_second"] = round(half / (time.process_time() - busy))
    return found


WORK: dict[str, Callable[[Plan, Result], Result]] = {
    "fill": fill,
    "usearch": build_usearch,
    "pgvector": build_pgvector,
    "open": open_once,
    "search": search_many,
    "teach": teach,
}


def main() -> None:
    given = read_options()
    found: Result = json.loads(given.out.read_text()) if given.out.exists() else {}
    if given.stage:
        plan = Plan(given.at, given.data, given.documents, given.out)
        print(json.dumps(WORK[given.stage](plan, found.get(given.stage, {}))))
        return
    given.at.mkdir(parents=True, exist_ok=True)
    if given.again:
        found = {stage: one for stage, one in found.items() if stage not in given.again}
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    spans.vectors(given.data, given.documents)
    for _ in range(given.steps):
        missing = [stage for stage in given.only if not found.get(stage, {}).get("done")]
        if not missing:
            break
        step = {missing[0]: take_step(missing[0], given), "documents": given.documents, "machine": describe()}
        found = {
            **(json.loads(given.out.read_text()) if given.out.exists() else {}),
            **step,
        }  # others may run meanwhile
        given.out.write_text(json.dumps(found, indent=1) + "\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "million.json")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=spans.DATA)
    parser.add_argument("--at", type=Path, default=ROOT / "bench-output" / "million")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES, help="these stages alone")
    parser.add_argument("--again", nargs="+", choices=STAGES, default=[], help="measure these stages again")
    parser.add_argument("--steps", type=int, default=1_000, help="stop after so many steps")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    return parser.parse_args()


def take_step(stage: str, given: argparse.Namespace) -> Result:
    """In a process of its own, which reads from the result file what the steps before have found."""
    command = [sys.executable, __file__, "--stage", stage, "--at", str(given.at), "--data", str(given.data)]
    command += ["--documents", str(given.documents), "--out", str(given.out)]
    load = round(os.getloadavg()[0], 1)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{stage} failed ({done.returncode}); the same command goes on with it")
    found: Result = {**json.loads(done.stdout.splitlines()[-1]), "load_before": load}
    print(stage, json.dumps(found), flush=True)
    return found


if __name__ == "__main__":
    main()
