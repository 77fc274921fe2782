"""From how many rows on an overlay is cheaper in Milvus than in the searching process.

    python benchmarks/shelves.py [--documents 120000] [--out FILE] [--only fill search]

Keys are WordLlama's vectors of spans of real texts (spans.py), 256 dimensions, in a standalone server on this machine;
questions are people's. Each of n documents has learned from a question of its own: 2 n rows. Both ways are asked in
turns, by the same function that every search goes through. `same` is the share of rankings that are equal to the bit;
`same_again`, that of the overlay in the process with itself, asked once more: Milvus's own graph moves.

    fill      add the documents
    search    for each n: p50 and p99 of a search with the overlay in the process, and on a shelf; how long the shelf
              takes to fill; and the megabytes of rows that a searcher holds less by it
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import spans
from million import BATCH, K, documents, summarise
from scipy import sparse

import evokey
from evokey.bench.speed.machine import describe
from evokey.bench.speed.timing import time_searches
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.search.gate import Taught
from evokey.search.overlay import UNTAUGHT, Overlay, Touched
from evokey.search.retriever import search
from evokey.search.shelving import use_shelves
from evokey.search.view import Overlays
from evokey.types import Choice, Ranking

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from milvus_server import MilvusProcess  # noqa: E402

TAUGHT = (1_000, 10_000, 25_000, 50_000, 100_000)
QUESTIONS = 200
GATE = (-3.0, 5.0, 0.5, -0.5, 1.0, 0.3, 2.0, 0.5, -0.4)
"""As the cross-fit finds them, about: open near what was taught."""
Result = dict[str, Any]


def fill(memory: evokey.Memory, vectors: Any) -> Result:
    began = time.perf_counter()
    memory.add(documents(len(memory), len(vectors)), np.array(vectors[len(memory) :]), batch=BATCH)
    return {"documents": len(memory), "add_seconds": round(time.perf_counter() - began, 1)}


def make_overlay(memory: evokey.Memory, count: int, vectors: Any) -> Overlay:
    """So many documents that have learned, each from a question of its own: its vector, turned a little."""
    retriever, chance = memory.index.retrievers[0], np.random.default_rng(3)
    numbers = np.sort(chance.choice(memory.index.live, count, replace=False))
    keys = retriever.base.fetch(numbers)
    noise = chance.standard_normal(keys.block.vectors.shape) / np.sqrt(keys.block.vectors.shape[1])
    texts = keys.block.vectors + 0.8 * noise
    texts = (texts / np.linalg.norm(texts, axis=1, keepdims=True)).astype(np.float32)
    evidence = sparse.csr_array((np.full(count, 0.5), np.arange(count), np.arange(count + 1)), (count, count))
    norms = np.linalg.norm(keys.block.vectors.astype(np.float64) + 0.5 * texts, axis=1)
    choice = Choice(step=1.0, penalty=0.2, gate_weights=GATE)
    known = Taught(np.arange(count), [frozenset((at,)) for at in range(count)])
    touched = Touched.of(numbers, np.ones(count, np.int64))
    names = tuple(f"question {at}" for at in range(count))
    return Overlay(touched, keys.block, names, DenseBlock(texts), evidence, norms, choice, {}, known=known)


def compare(memory: evokey.Memory, count: int, vectors: Any, asked: Any) -> Result:
    retriever, overlay = memory.index.retrievers[0], make_overlay(memory, count, vectors)
    retriever.store.shelve_from = 1  # type: ignore[attr-defined]
    slim = use_shelves(Overlays({retriever.name: overlay}, {}), [retriever], count, 0).of[retriever.name]
    assert slim.shelved is not None
    began = time.perf_counter()
    slim.shelved.write()
    filled = round(time.perf_counter() - began, 1)
    questions = [DenseQuestion(one) for one in asked]
    searches = {
        "untaught": lambda at: search(retriever, questions[at], K, UNTAUGHT),
        "in the process": lambda at: search(retriever, questions[at], K, overlay),
        "on a shelf": lambda at: search(retriever, questions[at], K, slim),
    }
    found = [[search(retriever, one, K, each) for one in questions] for each in (overlay, slim, overlay)]
    same, again = share_equal(found[0], found[1]), share_equal(found[0], found[2])
    held = any(getattr(block, "held", False) for block in (slim.base, slim.texts))
    seconds = {name: summarise(times) for name, times in time_searches(searches, range(len(asked)), 20).items()}
    for name in retriever.store.shelves():  # type: ignore[attr-defined]
        retriever.store.clear_shelf(name)  # type: ignore[attr-defined]
    megabytes = round((overlay.base.vectors.nbytes + overlay.texts.vectors.nbytes) / 2**20)  # type: ignore[union-attr]
    told = {"rows": 2 * count, "fill_seconds": filled, "megabytes": megabytes, "same": same, "same_again": again}
    return {**told, "fell_back": held, "seconds": seconds}


def share_equal(some: list[Ranking], others: list[Ranking]) -> float:
    """The share of rankings that are equal to the bit."""
    pairs = zip(some, others, strict=True)
    same = [np.array_equal(a.numbers, b.numbers) and np.array_equal(a.scores, b.scores) for a, b in pairs]
    return round(float(np.mean(same)), 4)


def main() -> None:
    given = read_options()
    result: Result = json.loads(given.out.read_text()) if given.out.exists() else {}
    at = ROOT / "bench-output" / "shelves"
    vectors = spans.vectors(given.data, given.vectors)[: given.documents]
    asked = spans.questions(given.data, QUESTIONS)
    if "fill" in given.only:
        shutil.rmtree(at, ignore_errors=True)
    with MilvusProcess(at / "milvus") as server:
        settings = at / "memory" / "evokey.toml"
        if settings.exists():  # the server has another port each time
            text = settings.read_text()
            old = text.split('uri = "')[1].split('"')[0]
            settings.write_text(text.replace(old, server.uri))
        store = {"name": "milvus", "uri": server.uri}
        with evokey.open(at / "memory", encoder="given", store=store, allow=[server.uri]) as memory:
            if "fill" in given.only:
                result = fill(memory, vectors)
            if "search" in given.only:
                sizes = [count for count in given.taught if count <= len(memory)]
                result |= {"machine": describe(), "taught": [compare(memory, n, vectors, asked) for n in sizes]}
    given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "shelves.json")
    parser.add_argument("--documents", type=int, default=120_000)
    parser.add_argument("--vectors", type=int, default=120_000, help="spans to encode, of which the first are taken")
    parser.add_argument("--taught", type=int, nargs="+", default=TAUGHT)
    parser.add_argument("--data", type=Path, default=spans.DATA)
    parser.add_argument("--only", nargs="+", choices=("fill", "search"), default=("fill", "search"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
