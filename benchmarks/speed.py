"""Search, add, feedback and open, timed through the public interface, beside bare indexes of the same rows.

    python benchmarks/speed.py [--documents 100000] [--queries 400] [--data ../shared/data] [--out FILE]

Texts are those of the corpora under --data, repeated with shuffled sentences until there are enough; queries are
theirs too, taken from the sets in turn. A memory has learned from 2,000 lessons on 400 documents, takes the query as a
text and fetches the documents it finds. A bare index does less: it returns numbers alone, and gets the query's vector
(faiss) or stems (bm25s, tantivy). "Texts in and out" are the same indexes made to stem the query and to hand out texts.
Everything runs on one thread, query by query in turn, so that noise hits all alike (bm25s's numpy back-end, far behind,
runs by itself: it would leave the others cold caches). The taught and the untaught BM25 are two open memories, so that
neither finds documents or postings that the other has just fetched. Ratios are of medians, over the fastest of the
others. BM25 is warmed by other queries of the same sets first; its compiled scan (evokey[fast]) is loaded before, as
those of bm25s are.
"""

# ruff: noqa: E402 - the number of threads must be set before numpy is imported
from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"

import bm25s
import faiss
import numpy as np
import tantivy

import evokey
from evokey.encoders.bm25 import BM25
from evokey.stores import compiled

DIMENSIONS, K, WARM = 256, 10, 20
OTHERS = 1_000
"""Other queries, asked first."""
WHOLE = "texts in and out"
TAUGHT, WORDINGS = 400, 5
BATCH = 5_000
HERE = Path(__file__).parent
ENCODER = BM25()
Search = Callable[[int], Any]


# ---- what is searched


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def corpus(data: Path, count: int) -> list[evokey.Document]:
    sets = [lines(path) for path in sorted(data.glob("*/corpus.jsonl"))]
    texts = [f"{row['title']}. {row['text']}" for row in chain(*sets)]
    chance = random.Random(7)
    chance.shuffle(texts)
    for text in islice(cycle(texts[:]), max(0, count - len(texts))):
        sentences = re.split(r"(?<=[.!?]) +", text)
        if len(sentences) < 3:
            sentences = text.split()
        chance.shuffle(sentences)
        texts.append(" ".join(sentences))
    return [evokey.Document(f"d{number}", text) for number, text in enumerate(texts[:count])]


def questions(data: Path, count: int) -> list[str]:
    """From every set that has a corpus, in turn."""
    chance = random.Random(11)
    sets = [[row["text"] for row in lines(path.with_name("queries.jsonl"))] for path in data.glob("*/corpus.jsonl")]
    for queries in sets:
        chance.shuffle(queries)
    return list(islice((query for turn in zip(*map(cycle, sorted(sets)), strict=False) for query in turn), count))


def unit(vectors: Any) -> Any:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def lessons(documents: list[evokey.Document]) -> Iterator[dict[str, Any]]:
    """Wordings of a document share words with it, and two of four that it lacks."""
    chance = random.Random(13)
    for document in documents[:TAUGHT]:
        words = document.text.split()
        for wording in range(WORDINGS):
            own = chance.sample([f"{document.id}says{n}" for n in range(4)], 2)
            said = chance.sample(words, min(5, len(words)))
            yield {"query": f"{' '.join(said + own)} wording{wording}", "relevant": [document.id]}


def vectors_of_lessons(vectors: Any) -> Any:
    """Near their document, but all of one document's moved the same way."""
    noise = np.random.default_rng(13)
    moved = 0.35 * vectors[:TAUGHT] + unit(noise.normal(size=(min(TAUGHT, len(vectors)), DIMENSIONS)))
    return unit(np.repeat(moved, WORDINGS, axis=0) + 0.7 * unit(noise.normal(size=(len(moved) * WORDINGS, DIMENSIONS))))


# ---- timing


def interleaved(searches: dict[str, Search], count: int, warm: int = WARM) -> dict[str, list[float]]:
    """Seconds of every search for every query, taken in turn, in another order each time."""
    for search in searches.values():
        for query in range(min(warm, count)):
            search(query)
    names, chance = list(searches), random.Random(17)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for query in range(count):
        chance.shuffle(names)
        for name in names:
            began = time.perf_counter()
            searches[name](query)
            seconds[name].append(time.perf_counter() - began)
    return seconds


def compared(searches: dict[str, Search], count: int) -> dict[str, Any]:
    apart = {name for name in searches if "(numpy)" in name}
    seconds = interleaved({name: search for name, search in searches.items() if name not in apart}, count)
    seconds |= interleaved({name: searches[name] for name in sorted(apart)}, count)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    bare = {name: median for name, median in medians.items() if not name.startswith("evokey") and WHOLE not in name}
    whole = {name: median for name, median in medians.items() if WHOLE in name} or bare
    return {
        "queries": count,
        "median_ms": {name: 1000 * median for name, median in medians.items()},
        "p95_ms": {name: 1000 * float(np.quantile(times, 0.95)) for name, times in seconds.items()},
        "fastest_other": min(bare, key=bare.__getitem__),
        "ratio": medians["evokey"] / min(bare.values()),
        "ratio_untaught": medians["evokey, untaught"] / min(bare.values()),
        "ratio_texts_in_and_out": medians["evokey"] / min(whole.values()),
    }


def filled(folder: Path, encoder: str | None, documents: list[evokey.Document], vectors: Any = None) -> dict[str, Any]:
    """A new memory with these documents: how fast they went in, and what they take."""
    with evokey.open(folder, encoder=encoder) as memory:
        began = time.perf_counter()
        for start in range(0, len(documents), BATCH):
            some = slice(start, start + BATCH)
            memory.add(documents[some], vectors=None if vectors is None else vectors[some])
        adding = time.perf_counter() - began
    return {"add_per_second": len(documents) / adding, **opened(folder, len(documents))}


def taught(memory: evokey.Memory, given: list[dict[str, Any]]) -> dict[str, Any]:
    began = time.perf_counter()
    memory.feedback_many(given)
    teaching = time.perf_counter() - began
    report = memory.evolve()
    return {
        "feedback_per_second": len(given) / teaching,
        "published": report.published,
        "choice": {name: [one.step, one.handicap] for name, one in report.choice.items()},
        "touched": memory.stats().documents_touched,
        "lessons": len(given),
    }


def opened(folder: Path, documents: int) -> dict[str, Any]:
    """Opening in a process of its own: seconds once it is warm, and what a document takes, in memory and on disk."""
    command = [sys.executable, __file__, "--opening", folder]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ledger = sum(path.stat().st_size for path in folder.glob("ledger.sqlite*"))
    keys = sum(path.stat().st_size for path in (folder / "keys").rglob("*") if path.is_file())
    return {
        "open_seconds": told["open_seconds"],
        "memory_bytes_per_document": told["bytes"] / documents,
        "memory_private_bytes_per_document": told["private"] / documents,
        "disk_bytes_per_document": {"ledger": ledger / documents, "keys": keys / documents},
    }


def opening(folder: Path) -> None:
    seconds = []
    vector = None if not (folder / "keys" / "given").exists() else np.ones(DIMENSIONS)
    small = Path(tempfile.mkdtemp())
    try:  # everything imported and every model loaded first, by a memory of one document
        settings = None if vector is None else "given"
        if not (folder / "keys" / "wordllama").exists() and vector is None:
            settings = "bm25"
        with evokey.open(small / "kb", encoder=settings) as memory:
            memory.add([evokey.Document("one", "some words")], vectors=None if vector is None else [vector])
            memory.search("some words", vector=vector)
    finally:
        shutil.rmtree(small)
    before = resident()
    for _ in range(5):
        began = time.perf_counter()
        memory = evokey.open(folder)
        seconds.append(time.perf_counter() - began)
        memory.close()
    with evokey.open(folder) as memory:
        for _ in range(3):
            memory.search("what are the effects of some words on the others", vector=vector)
        after = resident()
    total, private = (later - earlier for later, earlier in zip(after, before, strict=True))
    print(json.dumps({"open_seconds": statistics.median(seconds), "bytes": total, "private": private}))


def resident() -> tuple[int, int]:
    """Bytes in memory: all, and those that are not of a mapped file."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(1024 * int(told[name].split()[0]) for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]


# ---- the three comparisons


def dense(folder: Path, documents: list[evokey.Document], count: int) -> dict[str, Any]:
    chance = np.random.default_rng(5)
    vectors = unit(chance.normal(size=(len(documents), DIMENSIONS)))
    asked = unit(vectors[chance.integers(len(vectors), size=count)] + unit(chance.normal(size=(count, DIMENSIONS))))
    costs = filled(folder, "given", documents, vectors)
    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(vectors)
    faiss.omp_set_num_threads(1)
    with evokey.open(folder) as memory:
        told = zip(lessons(documents), vectors_of_lessons(vectors), strict=True)
        teaching = taught(memory, [{**lesson, "vector": vector} for lesson, vector in told])
        searches: dict[str, Search] = {
            "evokey": lambda query: memory.search("asked", K, vector=asked[query]),
            "evokey, untaught": lambda query: memory.search("asked", K, vector=asked[query], epoch=0),
            "faiss IndexFlatIP": lambda query: index.search(asked[query : query + 1], K),
        }
        return {**costs, **teaching, **compared(searches, count)}


def sparse(
    folder: Path, documents: list[evokey.Document], queries: list[str], other_queries: list[str]
) -> dict[str, Any]:
    costs = filled(folder, "bm25", documents)
    stems = [stemmed(document.text) for document in documents]
    others = {**bm25s_searches(documents, stems, queries), **tantivy_searches(stems, queries)}
    with evokey.open(folder) as memory:
        teaching = taught(memory, list(lessons(documents)))
    compiled.load()
    with evokey.open(folder) as memory, evokey.open(folder) as untaught:
        first: dict[str, Search] = {
            "just opened": lambda query: memory.search(other_queries[query], K),
            "untaught": lambda query: untaught.search(other_queries[query], K, epoch=0),
        }
        seconds = interleaved(first, len(other_queries), warm=1)["just opened"]
        searches: dict[str, Search] = {
            "evokey": lambda query: memory.search(queries[query], K),
            "evokey, untaught": lambda query: untaught.search(queries[query], K, epoch=0),
            **others,
        }
        opening = {"first_queries_median_ms": 1000 * statistics.median(seconds[: len(queries)])}
        return {**costs, **teaching, **compared(searches, len(queries)), **opening}


def stemmed(text: str) -> list[str]:
    return list(ENCODER.documents([text])[0].elements())  # type: ignore[attr-defined]


def bm25s_searches(documents: list[evokey.Document], stems: list[list[str]], queries: list[str]) -> dict[str, Search]:
    asked = [stemmed(query) for query in queries]
    searches: dict[str, Search] = {}
    for backend in ("numpy", "numba"):
        index = bm25s.BM25(k1=ENCODER.k1, b=ENCODER.b, method="lucene", backend=backend)
        index.index(stems, show_progress=False)
        if backend == "numba":
            index.activate_numba_scorer()

        def bare(stems: list[str], index: Any = index) -> Any:
            return index.retrieve([stems], k=K, show_progress=False)

        def whole(text: str, bare: Any = bare) -> Any:
            return [documents[number] for number in bare(stemmed(text)).documents[0]]

        searches[f"bm25s ({backend})"] = lambda query, bare=bare: bare(asked[query])
        searches[f"bm25s ({backend}), {WHOLE}"] = lambda query, whole=whole: whole(queries[query])
    return searches


def tantivy_searches(stems: list[list[str]], queries: list[str]) -> dict[str, Search]:
    builder = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="words", index_option="freq", stored=True)
    index = tantivy.Index(builder.build())
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("words", words)
    writer = index.writer(heap_size=1_000_000_000, num_threads=1)
    for one in stems:
        writer.add_document(tantivy.Document(text=" ".join(one)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    asked = [" ".join(stemmed(query)) for query in queries]

    def bare(stems: str) -> Any:
        return searcher.search(index.parse_query(stems, ["text"]), K, count=False).hits

    def whole(text: str) -> Any:
        return [searcher.doc(place)["text"] for _, place in bare(" ".join(stemmed(text)))]

    return {
        "tantivy": lambda query: bare(asked[query]),
        f"tantivy, {WHOLE}": lambda query: whole(queries[query]),
    }


def versions() -> dict[str, str]:
    names = ("numpy", "scipy", "faiss-cpu", "bm25s", "numba", "tantivy")
    return {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}}


def printed(name: str, result: dict[str, Any]) -> None:
    print(f"\n{name}")
    for key, value in result.items():
        if isinstance(value, dict):
            for inner, number in value.items():
                print(f"  {key:34} {inner:34} {number if isinstance(number, list) else format(number, ',.3f')}")
        else:
            print(f"  {key:34} {format(value, ',.3f') if isinstance(value, float) else value}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--only", nargs="+", default=["dense", "bm25", "hybrid"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--opening", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.opening:
        return opening(options.opening)
    if not options.data.is_dir():
        sys.exit(f"{options.data} is not there: give --data, a folder of sets in BEIR layout. Nothing was measured.")
    documents = corpus(options.data, options.documents)
    queries = questions(options.data, options.queries + OTHERS)
    queries, others = queries[: options.queries], queries[options.queries :]
    results: dict[str, Any] = {"documents": len(documents), "k": K, "threads": 1, "versions": versions()}
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {
        "dense": lambda folder: dense(folder, documents, len(queries)),
        "bm25": lambda folder: sparse(folder, documents, queries, others),
        "hybrid": lambda folder: filled(folder, None, documents),
    }
    for name in options.only:
        folder = Path(tempfile.mkdtemp())
        try:
            results[name] = parts[name](folder / "kb")
        finally:
            shutil.rmtree(folder)
        printed(name, results[name])
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
