"""Which library holds the graph of the store "ann": recall and speed of each at 200,000 × 256, on one thread.

    python benchmarks/ann.py [--only INDEX] [--documents 200000] [--data DIR] [--out benchmarks/results/ann.json]

Vectors: spans.py. All graphs have up to 32 neighbours a node (HNSW32: 64) and are built with a width of 128. For each:
seconds to build, bytes in memory, and for several search widths recall@10 against exact search and queries per second,
one question at a time as a memory asks; the same with a filter that lets a tenth of the documents through, where the
library takes one that is not a Python callback. With --only, the rows of the other indexes stay as they are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import spans

from evokey.bench.speed.machine import describe

K, QUESTIONS = 10, 1_000
WIDTHS = (32, 64, 128, 256, 512)
BUILD_WIDTH = 128
EVERY = 10
"""The filter lets through each document whose number it divides."""
Search = Callable[[Any], Any]
"""A question's vector → numbers of documents."""


def exact(vectors: Any, asked: Any) -> Any:
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index.search(asked, K)[1]


def recall(found: Any, right: Any) -> float:
    return float(np.mean([len(np.intersect1d(one, best)) / K for one, best in zip(found, right, strict=True)]))


def measure(search: Search, asked: Any, right: Any) -> dict[str, float]:
    for one in asked[:50]:
        search(one)
    began = time.perf_counter()
    found = [search(one) for one in asked]
    seconds = time.perf_counter() - began
    return {"recall": round(recall(found, right), 4), "per_second": round(len(asked) / seconds)}


class Faiss:
    def __init__(self, described: str, vectors: Any) -> None:
        self.index = faiss.index_factory(vectors.shape[1], described, faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction = BUILD_WIDTH
        self.index.train(vectors[:1])  # 16-bit numbers learn nothing
        self.index.add(vectors)
        self.bytes = len(faiss.serialize_index(self.index))
        bits = np.packbits(np.arange(len(vectors)) % EVERY == 0, bitorder="little")
        self._bits, self._selector = bits, faiss.IDSelectorBitmap(bits)

    def searches(self) -> Iterator[tuple[int, Search]]:
        for width in WIDTHS:
            yield width, self._search(faiss.SearchParametersHNSW(efSearch=width))

    def filtered(self) -> Search:
        return self._search(faiss.SearchParametersHNSW(efSearch=EVERY * 64, sel=self._selector))

    def _search(self, parameters: Any) -> Search:
        return lambda one: self.index.search(one[None], K, params=parameters)[1][0]


class Usearch:
    def __init__(self, vectors: Any) -> None:
        from usearch.index import Index

        self.index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16", connectivity=16, expansion_add=BUILD_WIDTH)
        self.index.add(np.arange(len(vectors)), vectors, threads=1)
        self.bytes = self.index.memory_usage

    def searches(self) -> Iterator[tuple[int, Search]]:
        for width in WIDTHS:
            self.index.expansion_search = width
            yield width, lambda one: self.index.search(one, K, threads=1).keys

    filtered = None


class Vamana:
    def __init__(self, vectors: Any) -> None:
        import svs

        parameters = svs.VamanaBuildParameters(alpha=0.95, graph_max_degree=32, window_size=BUILD_WIDTH)
        data = np.ascontiguousarray(vectors, np.float16)
        self.index = svs.Vamana.build(parameters, data, svs.DistanceType.MIP, num_threads=1)
        self.bytes = data.nbytes + 4 * 33 * len(vectors)

    def searches(self) -> Iterator[tuple[int, Search]]:
        for width in WIDTHS:
            self.index.search_window_size = width
            yield width, lambda one: self.index.search(one[None], K)[0][0]

    filtered = None


MAKERS: dict[str, Callable[[Any], Any]] = {
    "faiss HNSW16,SQfp16": lambda vectors: Faiss("HNSW16,SQfp16", vectors),
    "faiss HNSW32,SQfp16": lambda vectors: Faiss("HNSW32,SQfp16", vectors),
    "faiss HNSW16,Flat": lambda vectors: Faiss("HNSW16,Flat", vectors),
    "usearch f16": Usearch,
    "scalable-vs Vamana f16": Vamana,
}


def measure_index(make: Callable[[Any], Any], vectors: Any, asked: Any, right: tuple[Any, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    made = make(vectors)
    told: dict[str, Any] = {"build_seconds": round(time.perf_counter() - began, 1)}
    told["bytes_per_document"] = round(made.bytes / len(vectors))
    told["widths"] = {str(width): measure(search, asked, right[0]) for width, search in made.searches()}
    if made.filtered is not None:
        told["filtered"] = measure(made.filtered(), asked, right[1])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--data", type=Path, default=spans.DATA)
    parser.add_argument("--only", choices=MAKERS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ann.json")
    told = parser.parse_args()
    faiss.omp_set_num_threads(1)
    vectors = np.array(spans.vectors(told.data, told.documents))
    asked = spans.questions(told.data, QUESTIONS)
    right = exact(vectors, asked), EVERY * exact(np.ascontiguousarray(vectors[::EVERY]), asked)
    rows = json.loads(told.out.read_text())["indexes"] if told.only and told.out.exists() else {}
    for name in [told.only] if told.only else MAKERS:
        rows[name] = measure_index(MAKERS[name], vectors, asked, right)
        print(name, json.dumps(rows[name]), flush=True)
    result = {"documents": len(vectors), "dimensions": vectors.shape[1], "questions": len(asked), "machine": describe()}
    told.out.write_text(json.dumps({**result, "indexes": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
