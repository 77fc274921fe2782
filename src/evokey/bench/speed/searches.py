"""Search, add and feedback through the public interface, beside bare indexes of the same rows.

A memory has learned from 2,000 lessons on 400 documents, takes the query as a text and fetches the documents it finds.
A bare index does less: it returns numbers alone, and gets the query's vector (faiss) or stems (bm25s, tantivy). With
"text in" the same index has to stem the query, with "texts in and out" to hand out texts too. Everything runs on one
thread, in short runs that take turns, so that noise hits all alike; no query was asked before. The taught and the
untaught BM25 are two open memories, so that neither finds documents or postings that the other has just fetched. Ratios
are of medians, over the fastest of the others. BM25 is warmed by other queries of the same sets first; its compiled
scan (evokey[fast]) is loaded before, as those of bm25s are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evokey import memory as memory_
from evokey.bench.peers import package
from evokey.bench.speed import K
from evokey.bench.speed.opening import time_opening
from evokey.bench.speed.texts import DIMENSIONS, lessons, unit, vectors_of_lessons
from evokey.bench.speed.timing import TEXT, WHOLE, Search, compare, time_searches
from evokey.encoders.bm25 import BM25
from evokey.memory import Memory
from evokey.scoring import compiled
from evokey.types import Document

BATCH = 5_000
FIRST = 400
"""Queries that tell how long they take in a memory that was just opened."""
ENCODER = BM25()


def fill(folder: Path, encoder: str | None, documents: list[Document], vectors: Any = None) -> dict[str, Any]:
    """A new memory with these documents: how fast they went in, and what they take."""
    with memory_.open(folder, encoder=encoder) as memory:
        began = time.perf_counter()
        for start in range(0, len(documents), BATCH):
            some = slice(start, start + BATCH)
            memory.add(documents[some], vectors=None if vectors is None else vectors[some])
        adding = time.perf_counter() - began
    return {"add_per_second": len(documents) / adding, **time_opening(folder, len(documents))}


def taught(memory: Memory, given: list[dict[str, Any]]) -> dict[str, Any]:
    began = time.perf_counter()
    memory.feedback_many(given)
    teaching = time.perf_counter() - began
    report = memory.evolve()
    return {
        "feedback_per_second": len(given) / teaching,
        "published": report.published,
        "choice": {name: [one.step, one.penalty] for name, one in report.choice.items()},
        "touched": memory.stats().documents_touched,
        "lessons": len(given),
    }


def dense(folder: Path, documents: list[Document], count: int) -> dict[str, Any]:
    chance = np.random.default_rng(5)
    vectors = unit(chance.normal(size=(len(documents), DIMENSIONS)))
    asked = unit(vectors[chance.integers(len(vectors), size=count)] + unit(chance.normal(size=(count, DIMENSIONS))))
    costs = fill(folder, "given", documents, vectors)
    faiss = package("faiss", "speed")
    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(vectors)
    faiss.omp_set_num_threads(1)
    with memory_.open(folder) as memory:
        told = zip(lessons(documents), vectors_of_lessons(vectors), strict=True)
        teaching = taught(memory, [{**lesson, "vector": vector} for lesson, vector in told])
        searches: dict[str, Search] = {
            "evokey": lambda query: memory.search("asked", K, vector=asked[query]),
            "evokey, untaught": lambda query: memory.search("asked", K, vector=asked[query], epoch=0),
            "faiss IndexFlatIP": lambda query: index.search(asked[query : query + 1], K),
        }
        return {**costs, **teaching, **compare(searches, count)}


def sparse(folder: Path, documents: list[Document], queries: list[str], other_queries: list[str]) -> dict[str, Any]:
    costs = fill(folder, "bm25", documents)
    stems = [stem(document.text) for document in documents]
    others = {**bm25s_searches(documents, stems, queries), **tantivy_searches(stems, queries)}
    with memory_.open(folder) as memory:
        teaching = taught(memory, list(lessons(documents)))
    compiled.load()
    with memory_.open(folder) as memory, memory_.open(folder) as untaught:
        first: dict[str, Search] = {
            "just opened": lambda query: memory.search(other_queries[query], K),
            "untaught": lambda query: untaught.search(other_queries[query], K, epoch=0),
        }
        seconds = time_searches(first, range(len(other_queries)), 1)["just opened"]
        searches: dict[str, Search] = {
            "evokey": lambda query: memory.search(queries[query], K),
            "evokey, untaught": lambda query: untaught.search(queries[query], K, epoch=0),
            **others,
        }
        opening = {"first_queries_median_ms": 1000 * statistics.median(seconds[:FIRST])}
        return {**costs, **teaching, **compare(searches, len(queries)), **opening}


def stem(text: str) -> list[str]:
    return [stem for stem, count in ENCODER.documents([text])[0].items() for _ in range(int(count))]


def bm25s_searches(documents: list[Document], stems: list[list[str]], queries: list[str]) -> dict[str, Search]:
    bm25s, asked = package("bm25s", "speed"), [stem(query) for query in queries]
    searches: dict[str, Search] = {}
    for backend in ("numpy", "numba"):
        index = bm25s.BM25(k1=ENCODER.k1, b=ENCODER.b, method="lucene", backend=backend)
        index.index(stems, show_progress=False)
        if backend == "numba":
            index.activate_numba_scorer()

        def bare(stems: list[str], index: Any = index) -> Any:
            return index.retrieve([stems], k=K, show_progress=False)

        def stemming(text: str, bare: Any = bare) -> Any:
            return bare(stem(text))

        def whole(text: str, stemming: Any = stemming) -> Any:
            return [documents[number] for number in stemming(text).documents[0]]

        searches[f"bm25s ({backend})"] = partial(_given, bare, asked)
        if backend == "numba":
            searches[f"bm25s ({backend}), {TEXT}"] = partial(_given, stemming, queries)
            searches[f"bm25s ({backend}), {WHOLE}"] = partial(_given, whole, queries)
    return searches


def _given(search: Callable[[Any], Any], asked: Sequence[Any], query: int) -> Any:
    return search(asked[query])


def tantivy_searches(stems: list[list[str]], queries: list[str]) -> dict[str, Search]:
    tantivy = package("tantivy", "speed")
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
    asked = [" ".join(stem(query)) for query in queries]

    def bare(stems: str) -> Any:
        return searcher.search(index.parse_query(stems, ["text"]), K, count=False).hits

    def stemming(text: str) -> Any:
        return bare(" ".join(stem(text)))

    def whole(text: str) -> Any:
        return [searcher.doc(place)["text"] for _, place in stemming(text)]

    return {
        "tantivy": lambda query: bare(asked[query]),
        f"tantivy, {TEXT}": lambda query: stemming(queries[query]),
        f"tantivy, {WHOLE}": lambda query: whole(queries[query]),
    }
