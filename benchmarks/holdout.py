"""Teach half of a set's judged queries, test the other half: nDCG@10 before and after, by retriever, over seeds.

    python benchmarks/holdout.py ../shared/data/scifact … [--encoder bm25 wordllama hybrid] [--wrong 0.3] [--out FILE]
    python benchmarks/holdout.py ../shared/data/scifact … --encoder all-MiniLM-L6-v2 --cache FOLDER --split official

With --split official the queries of the train split teach, and those of the test split are asked; sets without a train
split are passed over. Every run goes through the public interface: add once, then in a copy of the untaught memory for
each seed feedback, evolve and search. Results in FILE stay, but for those that are made again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

import evokey
from evokey.evolution.judge import ndcg

ENCODERS = {
    "bm25": "bm25",
    "wordllama": "wordllama",
    "hybrid": "bm25+wordllama",
    "all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
    "bm25+MiniLM": "bm25+all-MiniLM-L6-v2",
}
USUAL = ["bm25", "wordllama", "hybrid"]
QUICK = {"bm25", "wordllama"}
MOST_QUERIES = 3_000
MOST_TAUGHT_ASKED = 600


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


class Collection:
    """A folder in BEIR layout."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.documents = [
            evokey.Document(row["_id"], row["text"], row.get("title") or "") for row in lines(folder / "corpus.jsonl")
        ]
        self.queries = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
        self.test, self.train = (self._judged(folder / "qrels" / f"{split}.tsv") for split in ("test", "train"))
        self.judged = self.train | self.test

    def _judged(self, path: Path) -> dict[str, dict[str, int]]:
        """Query → documents that are right, and how right; nothing for a split that the set does not have."""
        known = {document.id for document in self.documents}
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for row in path.read_text("utf-8").splitlines()[1:] if path.exists() else []:
            query, document, grade = row.split("\t")
            if int(grade) > 0 and document in known and query in self.queries:
                found[query][document] = int(grade)
        return dict(found)


def encoder_of(names: str, cache: Path | None) -> list[str | dict[str, str]]:
    """What evokey.open is told. With a cache, a model encodes no text twice, however many runs there are."""
    return [
        one if one in QUICK or cache is None else {"name": "cached", "encoder": one, "at": str(cache)}
        for one in names.split("+")
    ]


def rounds(data: Collection, split: str, seeds: int) -> Iterator[tuple[list[str], list[str]]]:
    """Queries that teach, and queries that are asked: a half each for every seed, or the set's own splits."""
    if split == "official":
        yield sorted(data.train.keys() - data.test.keys()), sorted(data.test)
        return
    for seed in range(seeds):
        queries = sorted(data.test)
        random.Random(seed).shuffle(queries)
        queries = queries[:MOST_QUERIES]
        yield queries[: len(queries) // 2], queries[len(queries) // 2 :]


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


def run(data: Collection, encoder: str, options: argparse.Namespace, policy: str, split: str) -> dict:
    befores, afters, owns, owned, seconds, busy, epochs = [], [], [], [], [], [], []
    made = encoder_of(ENCODERS[encoder], options.cache)
    with tempfile.TemporaryDirectory() as folder:
        with evokey.open(f"{folder}/untaught", encoder=made, policy=policy) as memory:
            memory.add(data.documents)
        for seed, (taught, asked) in enumerate(rounds(data, split, options.seeds)):
            shutil.copytree(f"{folder}/untaught", f"{folder}/{seed}")
            with evokey.open(f"{folder}/{seed}") as memory:
                before, own_before = quality(memory, data, asked), quality(memory, data, taught[:MOST_TAUGHT_ASKED])
                teach(memory, data, taught, options.wrong, f"seed {seed}", seed)
                began, worked = time.perf_counter(), time.process_time()
                report = memory.evolve()
                seconds.append(time.perf_counter() - began), busy.append(time.process_time() - worked)
                after, own_after = quality(memory, data, asked), quality(memory, data, taught[:MOST_TAUGHT_ASKED])
            befores.append(before), afters.append(after), owns.append(own_before.mean()), owned.append(own_after.mean())
            epochs.append(report.to_dict() | {"p": paired_p(before, after)})
            print(
                f"  {data.name} {encoder} {split} seed {seed}: {before.mean():.4f} → {after.mean():.4f}, taught "
                f"{own_before.mean():.4f} → {own_after.mean():.4f}; {report.choice} {report.weights}",
                flush=True,
            )
    means = [float(np.mean([part.mean() for part in parts])) for parts in (befores, afters)]
    return {
        "dataset": data.name,
        "encoder": encoder,
        "policy": policy,
        "split": split,
        "wrong": options.wrong,
        "seeds": len(epochs),
        "held_out": means,
        "taught": [float(np.mean(owns)), float(np.mean(owned))],
        "gain": means[1] / means[0] - 1 if means[0] else 0.0,
        "p": [one["p"] for one in epochs],
        "by_seed": [[float(b.mean()), float(a.mean())] for b, a in zip(befores, afters, strict=True)],
        "evolve_seconds": float(np.mean(seconds)),
        "evolve_cpu_seconds": float(np.mean(busy)),
        "epochs": epochs,
    }


NAMED_BY = ("dataset", "encoder", "policy", "split", "wrong")


def kept(path: Path, result: dict) -> None:
    """Put a result into a file, in the place of an earlier one of the same run."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else []
    by = {tuple(({"split": "half"} | one)[name] for name in NAMED_BY): one for one in [*found, result]}
    written(path, json.dumps(list(by.values()), indent=1) + "\n")


def written(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_suffix(".tmp")
    making.write_text(text, "utf-8")
    making.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=USUAL, choices=list(ENCODERS))
    parser.add_argument("--split", nargs="+", default=["half"], choices=["half", "official"])
    parser.add_argument("--cache", type=Path, help="folder that keeps what a model has encoded")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wrong", type=float, default=0.0, help="share of the lessons that name a wrong document")
    parser.add_argument("--policy", nargs="+", default=["guarded"], choices=["guarded", "paper"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for folder, split in product(options.folders, options.split):
        data = Collection(folder)
        if split == "official" and not data.train:
            print(f"{data.name} has no train split: passed over")
            continue
        for encoder, policy in product(options.encoder, options.policy):
            result = run(data, encoder, options, policy, split)
            (a, b), (c, d) = result["held_out"], result["taught"]
            print(
                f"{data.name:28} {encoder:16} {policy:8} {split:8} held out {a:.4f} → {b:.4f} ({result['gain']:+.1%}); "
                f"taught {c:.4f} → {d:.4f}; evolve {result['evolve_seconds']:.1f} s",
                flush=True,
            )
            if options.out:
                kept(options.out, result)


if __name__ == "__main__":
    main()
