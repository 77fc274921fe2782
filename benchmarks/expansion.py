"""What expansion is worth: asked at query time, and taught. nDCG@10 by set, retriever and method.

    python benchmarks/expansion.py ../shared/data/scifact ../shared/data/nfcorpus [--encoder bm25 wordllama …]
        [--part asked taught] [--cache FOLDER] [--out FILE]

Asked: all judged test queries, no teaching; the plain query beside the query with its units, in each way to search.
Taught: half of the queries teach, the other half is tested, as in holdout.py; the lessons bring the query alone, its
units alone, or both. Methods are the recorded expansions of a set; asked, also the classical ones without a model. A
query that a method has no expansion of goes without. Rows already in the result file are not made again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from holdout import Collection, ndcg_of, paired_p

import evokey
from evokey import registry
from evokey.encoders import cached
from evokey.errors import ExpansionFailed
from evokey.evolution import attribution, guarded
from evokey.types import Expansion

SEARCHES = ("blend", "concat", "fuse")
LESSONS = ("query", "units", "both")
CLASSICAL: dict[str, dict[str, Any]] = {
    "prf, terms": {"name": "prf", "form": "terms"},
    "prf, passages": {"name": "prf", "form": "passages"},
    "synonyms": {"name": "synonyms"},
}
Expansions = Mapping[str, Expansion]


def methods(folder: Path) -> dict[str, dict[str, Any]]:
    files = sorted((folder / "expansions").glob("*.jsonl"))
    return {file.stem: {"name": "recorded", "file": str(file)} for file in files} | CLASSICAL


def expansions(memory: evokey.Memory, data: Collection, expander: Mapping[str, Any]) -> Expansions:
    """By query id; what fails is left out."""
    found = {}
    for query in sorted(data.test):
        try:
            found[query] = memory.expand(data.queries[query], dict(expander))
        except ExpansionFailed:
            continue
    return found


def quality(memory: evokey.Memory, data: Collection, queries: list[str], known: Expansions | None = None) -> np.ndarray:
    scores = []
    for query in queries:
        expansion = known.get(query) if known else None
        hits = memory.search(data.queries[query], expansion=expansion)
        scores.append(ndcg_of([hit.id for hit in hits], data.judged[query]))
    return np.array(scores)


def asked(
    memory: evokey.Memory, data: Collection, known: Expansions, plain: np.ndarray, searches: Sequence[str]
) -> dict[str, Any]:
    queries = sorted(data.test)
    found: dict[str, Any] = {"queries": len(queries), "expanded": len(known), "plain": float(plain.mean())}
    for search in searches:
        scores = quality(memory, data, queries, {query: replace(one, search=search) for query, one in known.items()})
        found[search] = float(scores.mean())
        found[f"p_{search}"] = paired_p(plain, scores)
    return found


def taught(base: Path, data: Collection, known: Expansions, lessons: str, seeds: int) -> dict[str, Any]:
    """Held-out and taught queries before and after, each seed on a copy of the untaught memory."""
    before, after, own, choices, p = [], [], [], [], []
    for seed in range(seeds):
        queries = sorted(data.test)
        random.Random(seed).shuffle(queries)
        teaching, tested = queries[: len(queries) // 2], queries[len(queries) // 2 :]
        with copied(base) as memory, units_alone(lessons == "units"):
            untaught = quality(memory, data, tested)
            for query in teaching:
                units = known[query].texts if query in known and lessons != "query" else None
                memory.feedback(data.queries[query], relevant=data.judged[query], units=units)
            report = memory.evolve()
            held_out = quality(memory, data, tested)
            own.append(float(quality(memory, data, teaching).mean()))
        before.append(float(untaught.mean())), after.append(float(held_out.mean()))
        p.append(paired_p(untaught, held_out))
        choices += [asdict(choice) for choice in report.choice.values()]
    return {
        "lessons": lessons,
        "held_out": [float(np.mean(before)), float(np.mean(after))],
        "taught": float(np.mean(own)),
        "by_seed": [list(pair) for pair in zip(before, after, strict=True)],
        "p": p,
        "choices": choices,
    }


@contextmanager
def copied(base: Path) -> Iterator[evokey.Memory]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        with evokey.open(folder) as memory:
            yield memory


@contextmanager
def units_alone(alone: bool) -> Iterator[None]:
    """Lessons whose query does not speak for itself, except to documents that none of its units finds."""
    if not alone:
        yield
        return
    paired = attribution.paired

    def without_queries(*arguments: Any) -> tuple[attribution.Pairs, attribution.Pairs]:
        pairs, wrong = paired(*arguments)
        lessons = list(zip(pairs.rows.tolist(), pairs.queries.tolist(), strict=True))
        spoken = {lesson for lesson, share in zip(lessons, pairs.shares, strict=True) if share > 0}
        return pairs.where((pairs.shares > 0) | np.array([lesson not in spoken for lesson in lessons], bool)), wrong

    with patch.object(attribution, "paired", without_queries), patch.object(guarded, "UNITS", (1.0,)):
        yield


def encoder_of(name: str, folder: Path, data: Collection, cache: str | None) -> Any:
    """An encoder as settings name it, kept encoded where a cache is given, which takes over the vectors of documents
    and queries that lie beside the set."""
    if cache is None or name in ("bm25", "wordllama"):
        return name
    named = {"name": "cached", "encoder": name, "at": cache}
    documents = folder / "embeddings" / f"{name}.corpus.npy"
    if documents.exists():
        kept = registry.build("encoder", named)
        texts = [f"{document.title} {document.text}".strip() for document in data.documents]
        _take_over(kept, "documents", texts, np.load(documents))
        _take_over(kept, "queries", list(data.queries.values()), np.load(folder / "embeddings" / f"{name}.queries.npy"))
        kept.close()
    return named


def _take_over(kept: Any, side: str, texts: list[str], vectors: np.ndarray) -> None:
    maker = cached._hash(side, kept.identity)
    wide = vectors.astype(np.float32)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    pairs = zip(texts, wide, strict=True)
    kept._file.write({(cached._hash(text), maker): kept._pack(vector) for text, vector in pairs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama", "all-MiniLM-L6-v2"])
    parser.add_argument("--part", nargs="+", default=["asked", "taught"], choices=["asked", "taught"])
    parser.add_argument("--method", nargs="+", help="only these")
    parser.add_argument("--lessons", nargs="+", default=list(LESSONS), choices=LESSONS)
    parser.add_argument("--search", nargs="+", default=list(SEARCHES), choices=SEARCHES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", help="a folder where encoded texts are kept")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {"asked": [], "taught": []}

    def have(part: str, **said: Any) -> bool:
        return any(said.items() <= row.items() for row in results[part])

    def keep(part: str, row: dict[str, Any]) -> None:
        results[part].append(row)
        print(part, {name: value for name, value in row.items() if name not in ("choices", "by_seed", "p")}, flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")

    for folder in options.folders:
        data = Collection(folder)
        for encoder in options.encoder:
            named = encoder_of(encoder, folder, data, options.cache)
            with tempfile.TemporaryDirectory() as base:
                with evokey.open(base, encoder=named) as memory:
                    memory.add(data.documents)
                    plain = quality(memory, data, sorted(data.test)) if "asked" in options.part else None
                    wanted = {name: one for name, one in methods(folder).items() if name in (options.method or [name])}
                    if plain is None:
                        wanted = {name: one for name, one in wanted.items() if name not in CLASSICAL}
                    known = {}
                    for name, expander in wanted.items():
                        known[name] = expansions(memory, data, expander)
                        row = {"dataset": data.name, "encoder": encoder, "method": name}
                        if plain is not None and not have("asked", **row):
                            keep("asked", row | asked(memory, data, known[name], plain, options.search))
                if "taught" not in options.part:
                    continue
                row = {"dataset": data.name, "encoder": encoder}
                if "query" in options.lessons and not have("taught", **row, lessons="query"):
                    keep("taught", row | {"method": ""} | taught(Path(base), data, {}, "query", options.seeds))
                recorded = [name for name in known if name not in CLASSICAL]
                for name, lessons in product(recorded, [one for one in options.lessons if one != "query"]):
                    row |= {"method": name}
                    if not have("taught", **row, lessons=lessons):
                        keep("taught", row | taught(Path(base), data, known[name], lessons, options.seeds))


if __name__ == "__main__":
    main()
