"""The learning story on SciFact with MiniLM vectors, on several engines: do they find the same documents before
anything is taught, after it, and after some of it is forgotten? Makes benchmarks/results/engines.json.

python benchmarks/engines.py [ENGINE …]             (default: all; they are compared with the first one, embedded)

An engine is a function that opens a memory of given vectors: add one to ENGINES.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import evokey

sys.path.append(str(Path(__file__).parents[1] / "tests"))
DATA = Path(__file__).parents[2] / "shared" / "data" / "scifact"
RESULT = Path(__file__).parent / "results" / "engines.json"
MODEL, TAUGHT, ASKED = "all-MiniLM-L6-v2", 300, 300
Opened = Iterator[evokey.Memory]


@contextmanager
def in_directory(store: Any) -> Opened:
    with tempfile.TemporaryDirectory() as folder, evokey.open(f"{folder}/kb", encoder="given", store=store) as memory:
        yield memory


@contextmanager
def in_postgres(store: Any) -> Opened:
    from postgres_server import Server

    with Server.start() as server, evokey.open(server.url, name="kb", encoder="given", store=store) as memory:
        yield memory


@contextmanager
def in_milvus() -> Opened:
    from milvus_server import MilvusProcess

    with tempfile.TemporaryDirectory() as folder, MilvusProcess(Path(folder) / "milvus") as server:
        store = {"name": "milvus", "uri": server.uri}
        with evokey.open(f"{folder}/kb", encoder="given", store=store) as memory:
            yield memory


ENGINES: dict[str, Callable[[], Any]] = {
    "embedded": lambda: in_directory("flat"),
    "ann": lambda: in_directory({"name": "ann", "recall": 0.99, "build_at": 1_000}),
    "postgresql": lambda: in_postgres("pgvector"),
    "postgresql, HNSW": lambda: in_postgres({"name": "pgvector", "exact_below": 1_000}),
    "milvus": in_milvus,
}
"""PostgreSQL looks at all of SciFact's 5,183 rows unless it is told to use its index."""


def read(name: str) -> list[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class SciFact:
    def __init__(self) -> None:
        self.documents = [
            evokey.Document(one["_id"], one["text"], one.get("title", "")) for one in read("corpus.jsonl")
        ]
        self.keys = np.load(DATA / "embeddings" / f"{MODEL}.corpus.npy").astype(np.float32)
        vectors = np.load(DATA / "embeddings" / f"{MODEL}.queries.npy").astype(np.float32)
        queries = read("queries.jsonl")
        self.vectors = {one["text"]: vector for one, vector in zip(queries, vectors, strict=True)}
        self._texts = {one["_id"]: one["text"] for one in queries}

    def judged(self, split: str, most: int) -> dict[str, list[str]]:
        """Query → its right documents."""
        found: dict[str, list[str]] = {}
        for line in (DATA / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]:
            query, document, grade = line.split("\t")
            if int(grade) > 0:
                found.setdefault(self._texts[query], []).append(document)
        return dict(list(found.items())[:most])


def tell(memory: evokey.Memory, data: SciFact) -> tuple[dict[str, Any], dict[str, float]]:
    """What an engine finds at each point of the story, and how long each part took."""
    found, seconds, taught, asked = {}, {}, data.judged("train", TAUGHT), data.judged("test", ASKED)

    def timed(what: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        value = work()
        seconds[what] = round(time.perf_counter() - began, 2)
        return value

    def ask() -> dict[str, list[str]]:
        return {query: [hit.id for hit in memory.search(query, 10, vector=data.vectors[query])] for query in asked}

    timed("add", lambda: memory.add(data.documents, vectors=data.keys))
    found["before"] = timed("search before", ask)
    for at, (query, documents) in enumerate(taught.items()):
        memory.feedback(query, relevant=documents, vector=data.vectors[query], actor=("ada", "bob")[at % 2])
    found["published"] = timed("evolve", memory.evolve).published
    found["after"] = timed("search after", ask)
    erased = timed("forget", lambda: memory.forget(actor="bob"))
    found["erased"], found["after forget"] = erased.erased, timed("search after forget", ask)
    return found, seconds


def overlap(one: dict[str, list[str]], other: dict[str, list[str]]) -> float:
    return statistics.mean(len(set(one[query]) & set(other[query])) / max(len(one[query]), 1) for query in one)


def main(names: list[str]) -> None:
    data, told = SciFact(), dict[str, Any]()
    results = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    for name in dict.fromkeys(["embedded", *names]):
        with ExitStack() as stack:
            told[name], seconds = tell(stack.enter_context(ENGINES[name]()), data)
        same = {when: round(overlap(told["embedded"][when], told[name][when]), 4) for when in WHEN}
        moved = round(1 - overlap(told[name]["before"], told[name]["after"]), 4)
        results[name] = {"overlap@10": same, "changed by learning": moved, "erased": told[name]["erased"], "s": seconds}
        print(name, results[name], flush=True)
        RESULT.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


WHEN = ("before", "after", "after forget")
if __name__ == "__main__":
    main(sys.argv[1:] or list(ENGINES))
