"""A million documents on one machine: the store ann beside the bare libraries.

    python benchmarks/million.py --out benchmarks/results/million.json [--documents 1000000] [--only STAGE …]

Vectors are real: WordLlama, 256 dimensions, of spans of real texts (spans.py), handed in (encoder "given"). Questions
are people's. Stages, each in a process of its own, so that its memory can be told; what a stage found is written
at once, and --only makes some again:

    fill      add all documents, wait until one graph holds them, and watch recall with 64 questions that are not asked
              again (evolve does that): the graph is widened until it finds .95 of the ten best
    open      open the memory and search once
    search    p50 and p99, one thread, in turns: through memory.search (vector in, documents out); as the retriever
              ranks (vector in, numbers out), untaught and with 10³, 10⁴ and 10⁵ documents that have learned; and bare
              faiss on the same graph at the same width. Recall@10 is against all rows
    teach     feedback one by one and many at once, then evolve, whose pools are current
    usearch   the bare library, widths up to the recall of the store
    pgvector  the same in PostgreSQL (halfvec, HNSW)
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
from pathlib import Path
from typing import Any

import numpy as np
import spans
from scipy import sparse

import evokey
from evokey.bench.speed.machine import describe
from evokey.bench.speed.timing import time_searches
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.search.overlay import UNTAUGHT, Overlay, Touched
from evokey.search.retriever import search
from evokey.types import Choice

K, QUESTIONS, CHECKED, BATCH = 10, 1_000, 200, 10_000
TAUGHT = (1_000, 10_000, 100_000)
LESSONS = 1_000
WIDTHS = (64, 128, 256, 512)
ROOT = Path(__file__).parents[1]
STAGES = ("fill", "open", "search", "teach", "usearch", "pgvector")


def memory_now() -> dict[str, int]:
    """Megabytes: all, and those that are no file's."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    found = {name: int(lines[key].split()[0]) // 1024 for name, key in (("rss_mb", "VmRSS"), ("own_mb", "RssAnon"))}
    return {**found, "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 2**20


def documents(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"id": f"d{number}", "text": f"span {number}", "metadata": {"hundredth": number % 100}}


def questions(data: Path) -> Any:
    return spans.questions(data, QUESTIONS)


def least_scores(vectors: Any, asked: Any) -> Any:
    """For each question, the score of the tenth best of all rows."""
    best = np.full((len(asked), K), -np.inf, np.float32)
    for start in range(0, len(vectors), 1 << 16):
        scores = np.concatenate([best, asked @ vectors[start : start + (1 << 16)].T], axis=1)
        best = np.partition(scores, scores.shape[1] - K, axis=1)[:, -K:]
    return best.min(axis=1)


def recall(find: Callable[[int], Any], vectors: Any, asked: Any) -> float:
    """Rows that are as good as the tenth best of all."""
    least, found = least_scores(vectors, asked), 0
    for number, bound in enumerate(least):
        found += int((vectors[np.sort(find(number))] @ asked[number] >= bound - 1e-5).sum())
    return round(found / (K * len(asked)), 4)


def summary(seconds: list[float]) -> dict[str, float]:
    last = float(np.quantile(seconds, 0.99))
    return {"p50_ms": round(1000 * statistics.median(seconds), 3), "p99_ms": round(1000 * last, 3)}


def fill(at: Path, data: Path, count: int) -> dict[str, Any]:
    vectors = spans.vectors(data, count)
    shutil.rmtree(at, ignore_errors=True)
    began = time.perf_counter()
    with evokey.open(at, encoder="given", store="ann") as memory:
        memory.add(documents(count), vectors, batch=BATCH)
        adding = time.perf_counter() - began
        memory.save()
        told: dict[str, Any] = {"add_seconds": round(adding), "until_graph_seconds": round(time.perf_counter() - began)}
        told["recall_between_rows"] = memory.stats().recall["given"]
        others = spans.questions(data, QUESTIONS + CHECKED)[QUESTIONS:]
        memory.index.background.watch(lambda _: [DenseQuestion(vector) for vector in others[:64]])  # as evolve does
        memory.index.background.wait()
        told["recall_watched"] = memory.stats().recall["given"]
    return {**told, **memory_now(), "keys_mb": disk(at / "keys"), "memory_on_disk_mb": disk(at)}


def open_once(at: Path, data: Path, count: int) -> dict[str, Any]:
    asked, before, began = questions(data), memory_now(), time.perf_counter()
    with evokey.open(at) as memory:
        opening = time.perf_counter() - began
        memory.search("asked", K, vector=asked[0])
        first = time.perf_counter() - began - opening
        for one in asked[:CHECKED]:
            memory.search("asked", K, vector=one)
        now = memory_now()
    told = {"open_seconds": round(opening, 2), "first_search_ms": round(1000 * first, 1), **now}
    return {**told, "before_rss_mb": before["rss_mb"]}


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


def search_many(at: Path, data: Path, count: int) -> dict[str, Any]:
    import faiss

    faiss.omp_set_num_threads(1)
    vectors, asked = spans.vectors(data, count), questions(data)
    asking = [DenseQuestion(vector) for vector in asked]
    with evokey.open(at) as memory:
        retriever = memory.index.retrievers[0]
        (segment,) = retriever.base.segments  # type: ignore[attr-defined]
        wide = faiss.SearchParametersHNSW(efSearch=segment.graph.width)
        searches: dict[str, Callable[[int], Any]] = {
            "faiss": lambda at: segment.graph.index.search(asked[at : at + 1], K, params=wide),
            "evokey": lambda at: search(retriever, asking[at], K, UNTAUGHT),
            "memory.search": lambda at: memory.search("asked", K, vector=asked[at]),
        }
        for touched in [some for some in TAUGHT if some < count]:
            overlay = make_overlay(memory, touched, vectors)
            searches[f"evokey, {touched} taught"] = lambda at, overlay=overlay: search(
                retriever, asking[at], K, overlay
            )
        for one in searches.values():
            for number in range(50):
                one(number)
        seconds = {name: summary(times) for name, times in time_searches(searches, range(len(asked)), 20).items()}
        find: dict[str, Callable[[int], Any]] = {
            "faiss": lambda at: searches["faiss"](at)[1][0],
            "evokey": lambda at: searches["evokey"](at).numbers - 1,  # the first document has the number 1
        }
        found = {name: recall(one, vectors, asked[:CHECKED]) for name, one in find.items()}
        ratio = round(seconds["evokey"]["p50_ms"] / seconds["faiss"]["p50_ms"], 3)
        told = {"width": segment.graph.width, "recall": found, "seconds": seconds, "ratio": ratio}
        return {**told, "filters": _filters(memory, asked), **memory_now()}


def _rank(retriever: Any, asking: list[DenseQuestion], overlay: Overlay, at: int) -> Any:
    return search(retriever, asking[at], K, overlay)


def _filters(memory: evokey.Memory, asked: Any) -> dict[str, Any]:
    """A hundredth and half of the documents pass."""
    wanted = {"1 %": {"hundredth": 7}, "50 %": {"hundredth": list(range(50))}}
    found = {}
    for name, where in wanted.items():
        memory.search("asked", K, where, vector=asked[0])  # the ledger resolves a filter once
        searches = {name: lambda at, where=where: memory.search("asked", K, where, vector=asked[at])}
        found[name] = summary(time_searches(searches, range(100), 20)[name])
    return found


def teach(at: Path, data: Path, count: int) -> dict[str, Any]:
    asked, chance = questions(data), np.random.default_rng(5)
    named = chance.choice(count, LESSONS, replace=False)
    lessons = [
        {"query": f"question {n}", "relevant": [f"d{named[n]}"], "vector": asked[n % len(asked)]}
        for n in range(LESSONS)
    ]
    copy = at.with_name("taught")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(at, copy)
    with evokey.open(copy) as memory:
        began, busy = time.perf_counter(), time.process_time()
        for one in lessons[: LESSONS // 2]:
            memory.feedback(**one)
        alone = LESSONS // 2 / (time.perf_counter() - began)
        unhindered = LESSONS // 2 / (time.process_time() - busy)
        began = time.perf_counter()
        memory.feedback_many(lessons[LESSONS // 2 :])
        together = LESSONS // 2 / (time.perf_counter() - began)
        began = time.perf_counter()
        report = memory.evolve()
        evolving = time.perf_counter() - began
        memory.index.background.wait()
        told: dict[str, Any] = {"recall_watched": memory.stats().recall, **memory_now()}
    told["bytes_per_lesson"] = round((disk(copy) - disk(at)) * 2**20 / LESSONS)
    shutil.rmtree(copy)
    told |= {"feedback_per_second": round(alone), "feedback_many_per_second": round(together), "lessons": LESSONS}
    told["feedback_per_processor_second"] = round(unhindered)
    return {**told, "evolve_seconds": round(evolving, 2), "published": report.published}


def usearch(at: Path, data: Path, count: int) -> dict[str, Any]:
    from usearch.index import Index

    vectors, asked = spans.vectors(data, count), questions(data)
    began = time.perf_counter()
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16", connectivity=16, expansion_add=128)
    for start in range(0, count, BATCH):
        some = np.array(vectors[start : start + BATCH])
        index.add(np.arange(start, start + len(some)), some, threads=1)
    told: dict[str, Any] = {
        "build_seconds": round(time.perf_counter() - began),
        "index_mb": index.memory_usage // 2**20,
    }
    for width in WIDTHS:
        index.expansion_search = width
        find = {"usearch": lambda at: index.search(asked[at], K, threads=1).keys}
        seconds = time_searches(find, range(len(asked)), 20)["usearch"]
        told[f"width {width}"] = {**summary(seconds), "recall": recall(find["usearch"], vectors, asked[:CHECKED])}
    return {**told, **memory_now()}


def pgvector(at: Path, data: Path, count: int) -> dict[str, Any]:
    sys.path.append(str(ROOT / "tests"))
    import psycopg
    from postgres_server import Server

    vectors, asked = spans.vectors(data, count), questions(data)
    with Server.start() as server, psycopg.connect(server.url, autocommit=True) as connection:
        began = time.perf_counter()
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TABLE keys (number int, vector halfvec({vectors.shape[1]}))")
        with connection.cursor().copy("COPY keys (number, vector) FROM STDIN") as copy:
            for number in range(count):
                copy.write_row((number, "[" + ",".join(map(repr, vectors[number].tolist())) + "]"))
        copying = time.perf_counter() - began
        connection.execute("SET maintenance_work_mem = '3GB'; SET max_parallel_maintenance_workers = 0")
        connection.execute(
            "CREATE INDEX ON keys USING hnsw (vector halfvec_ip_ops) WITH (m = 16, ef_construction = 128)"
        )
        told: dict[str, Any] = {"copy_seconds": round(copying), "build_seconds": round(time.perf_counter() - began)}
        size = connection.execute("SELECT pg_total_relation_size('keys')").fetchone()
        told["table_and_index_mb"] = (size[0] if size else 0) // 2**20
        texts = ["[" + ",".join(map(repr, one.tolist())) + "]" for one in asked]
        sql = "SELECT number FROM keys ORDER BY vector <#> %s::halfvec LIMIT 10"

        def find(number: int) -> Any:
            return np.array([row[0] for row in connection.execute(sql, (texts[number],)).fetchall()])

        for width in WIDTHS:
            connection.execute(f"SET hnsw.ef_search = {width}")
            seconds = time_searches({"pgvector": find}, range(len(asked)), 20)["pgvector"]
            told[f"width {width}"] = {**summary(seconds), "recall": recall(find, vectors, asked[:CHECKED])}
    return told


WORK: dict[str, Callable[[Path, Path, int], dict[str, Any]]] = {
    "fill": fill, "open": open_once, "search": search_many, "teach": teach, "usearch": usearch, "pgvector": pgvector,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "million.json")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=spans.DATA)
    parser.add_argument("--at", type=Path, default=ROOT / "bench-output" / "million")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.stage:
        print(json.dumps(WORK[told.stage](told.at, told.data, told.documents)))
        return
    spans.vectors(told.data, told.documents)
    found = json.loads(told.out.read_text()) if told.out.exists() else {}
    for stage in told.only:
        command = [sys.executable, __file__, "--stage", stage, "--at", str(told.at), "--data", str(told.data)]
        command += ["--documents", str(told.documents)]
        load = round(os.getloadavg()[0], 1)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"{stage} failed ({done.returncode})", flush=True)
            continue
        found[stage] = {**json.loads(done.stdout), "load_before": load}
        found |= {"documents": told.documents, "machine": describe()}
        told.out.write_text(json.dumps(found, indent=1) + "\n")
        print(stage, json.dumps(found[stage]), flush=True)


if __name__ == "__main__":
    main()
