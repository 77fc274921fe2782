"""Teach half of a set's judged queries, test the other half: nDCG@10 before and after, by retriever, over seeds.

    python benchmarks/holdout.py ../shared/data/scifact … [--encoder bm25 wordllama hybrid] [--wrong 0.3] [--out FILE]

Every run goes through the public interface: add, feedback, evolve, search, and forget between seeds.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np

import evokey
from evokey.evolution.judge import ndcg

ENCODERS = {"bm25": "bm25", "wordllama": "wordllama", "hybrid": None}
MOST_QUERIES = 3_000
MOST_TAUGHT_ASKED = 600


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


class Collection:
    """A folder in BEIR layout."""

    def __init__(self, folder: Path, split: str = "test") -> None:
        self.name = folder.name
        self.documents = [
            evokey.Document(row["_id"], row["text"], row.get("title") or "") for row in lines(folder / "corpus.jsonl")
        ]
        known = {document.id for document in self.documents}
        self.queries = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
        self.judged: dict[str, dict[str, int]] = defaultdict(dict)
        for row in (folder / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]:
            query, document, grade = row.split("\t")
            if int(grade) > 0 and document in known and query in self.queries:
                self.judged[query][document] = int(grade)


def quality(memory: evokey.Memory, data: Collection, queries: list[str]) -> np.ndarray:
    return np.array(
        [ndcg_of([hit.id for hit in memory.search(data.queries[query])], data.judged[query]) for query in queries]
    )


def ndcg_of(ids: list[str], grades: dict[str, int]) -> float:
    number = {id: index for index, id in enumerate({*ids, *grades})}
    return ndcg([number[id] for id in ids], {number[id]: float(grade) for id, grade in grades.items()})


def teach(memory: evokey.Memory, data: Collection, queries: list[str], wrong: float, actor: str, seed: int) -> None:
    """Feed the judgements back; a share of them names wrong documents instead, half random, half from the top 20."""
    chance = random.Random(seed)
    for query in queries:
        grades = dict(data.judged[query])
        if chance.random() < wrong:
            near = [hit.id for hit in memory.search(data.queries[query], k=20) if hit.id not in grades]
            pick = chance.choice(near) if near and chance.random() < 0.5 else chance.choice(data.documents).id
            grades = {pick: 1}
        memory.feedback(data.queries[query], relevant=grades, actor=actor)


def paired_p(before: np.ndarray, after: np.ndarray, rounds: int = 10_000) -> float:
    """Two-sided paired randomisation test."""
    difference = after - before
    signs = np.random.default_rng(0).choice([-1, 1], size=(rounds, len(difference)))
    return float(((np.abs((signs * difference).mean(1)) >= abs(difference.mean()) - 1e-12).sum() + 1) / (rounds + 1))


def run(data: Collection, encoder: str, seeds: int, wrong: float, policy: str) -> dict:
    befores, afters, owns, owned, evolve_seconds, choices = [], [], [], [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        evokey.open(folder, encoder=ENCODERS[encoder], policy=policy) as memory,
    ):
        memory.add(data.documents)
        for seed in range(seeds):
            queries = sorted(data.judged)
            random.Random(seed).shuffle(queries)
            queries = queries[:MOST_QUERIES]
            taught, asked = queries[: len(queries) // 2], queries[len(queries) // 2 :]
            before, own_before = quality(memory, data, asked), quality(memory, data, taught[:MOST_TAUGHT_ASKED])
            teach(memory, data, taught, wrong, f"seed {seed}", seed)
            began = time.perf_counter()
            report = memory.evolve()
            evolve_seconds.append(time.perf_counter() - began)
            after, own_after = quality(memory, data, asked), quality(memory, data, taught[:MOST_TAUGHT_ASKED])
            memory.forget(actor=f"seed {seed}")
            befores.append(before), afters.append(after), owns.append(own_before.mean()), owned.append(own_after.mean())
            choices.append(report.to_dict() | {"p": paired_p(before, after)})
            print(
                f"  {data.name} {encoder} seed {seed}: {before.mean():.4f} → {after.mean():.4f}, taught "
                f"{own_before.mean():.4f} → {own_after.mean():.4f}; {report.choice} {report.weights}",
                flush=True,
            )
    means = [float(np.mean([part.mean() for part in parts])) for parts in (befores, afters)]
    return {
        "dataset": data.name,
        "encoder": encoder,
        "policy": policy,
        "wrong": wrong,
        "seeds": seeds,
        "held_out": means,
        "taught": [float(np.mean(owns)), float(np.mean(owned))],
        "gain": means[1] / means[0] - 1 if means[0] else 0.0,
        "p": [one["p"] for one in choices],
        "by_seed": [[float(b.mean()), float(a.mean())] for b, a in zip(befores, afters, strict=True)],
        "evolve_seconds": float(np.mean(evolve_seconds)),
        "epochs": choices,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=list(ENCODERS), choices=list(ENCODERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wrong", type=float, default=0.0, help="share of the lessons that name a wrong document")
    parser.add_argument("--policy", nargs="+", default=["guarded"], choices=["guarded", "paper"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for folder in options.folders:
        data = Collection(folder)
        for encoder, policy in product(options.encoder, options.policy):
            result = run(data, encoder, options.seeds, options.wrong, policy)
            results.append(result)
            (a, b), (c, d) = result["held_out"], result["taught"]
            print(
                f"{data.name:28} {encoder:10} {policy:8} held out {a:.4f} → {b:.4f} ({result['gain']:+.1%}); "
                f"taught {c:.4f} → {d:.4f}; evolve {result['evolve_seconds']:.1f} s",
                flush=True,
            )
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
