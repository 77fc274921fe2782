"""Which form of a dense lens: what it does alone, without moved keys and rows, to its own kind and to bystanders.

    python benchmarks/lens_forms.py ../shared/data --encoder wordllama minilm [--out FILE]

Two sets in one index. Half of the first one's test queries teach a lens; the other half, and half of the other set's
queries, are asked with it (nDCG@10, change against the untaught index, mean of the seeds). The rest of the other set's
queries are its traffic. MiniLM's vectors are read from the embeddings beside the sets. Results of other pairs stay.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evokey.bench import measures, protocols
from evokey.bench.data import load, prefix
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.evolution.lens_training import CAUTIOUS, CENTRES, OPEN
from evokey.scoring.dense import DenseQuestion
from evokey.search.lens import Ways

PAIRS = ("nfcorpus/scifact", "scifact/nfcorpus", "locomo10/scifact", "cranfield/climate_fever_evidence")
MOST = 400
"""Queries asked at the most."""
RIDGE, LINEAR = 0.3, 30.0
"""μ of the kernel and of the linear map: near the best of each over the pairs."""
WIDE, WARY = (RIDGE, OPEN, 0.0), (RIDGE, max(CAUTIOUS), 0.0)
Turner = Callable[[Any], Any]


def unit(vectors: Any) -> Any:
    return np.nan_to_num(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)).astype(np.float32)


class Side:
    """One of the two sets, with vectors for everything."""

    def __init__(self, folder: Path, encoder: str) -> None:
        self.data = prefix(load(folder))
        queries = list(self.data.queries)
        if encoder == "minilm":
            read = lambda side: unit(np.load(folder / "embeddings" / f"all-MiniLM-L6-v2.{side}.npy"))  # noqa: E731
            self.keys, vectors, self.leads = read("corpus"), read("queries"), None
        else:
            model = WordLlamaEncoder()
            self.keys = unit(model.documents([f"{one.title} {one.text}".strip() for one in self.data.documents]))
            self.leads = unit(model.queries([(one.title or one.text)[:150] for one in self.data.documents]))
            vectors = unit(model.queries([self.data.queries[query] for query in queries]))
        self.asked = dict(zip(queries, vectors, strict=True))

    def vectors(self, questions: Sequence[Question]) -> Any:
        return np.stack([self.asked[one.id] for one in questions])


def forms(
    taught: Side, other: Side, teaching: Sequence[Question], searched: Sequence[Question]
) -> Iterator[tuple[str, Turner]]:
    """A name, and what turns vectors of questions."""
    asked, place = taught.vectors(teaching), {one.id: at for at, one in enumerate(taught.data.documents)}
    right = [
        unit(sum(grade * taught.keys[place[id]] for id, grade in one.grades.items() if grade > 0)) for one in teaching
    ]
    right, chance = np.stack(right), np.random.default_rng(0)
    x, change = asked.astype(np.float64), (right - asked).astype(np.float64)
    matrix = np.linalg.solve(x.T @ x + LINEAR * np.eye(x.shape[1]), x.T @ change).astype(np.float32)
    yield "linear map", lambda vectors: unit(vectors + vectors @ matrix)
    everyone, keys = np.arange(len(asked)), np.concatenate([taught.keys, other.keys])
    drawn = chance.permutation(len(keys))
    anchors: dict[str, Any] = {"none": keys[:0], "traffic": other.vectors(searched), "512 documents": keys[drawn[:512]]}
    if taught.leads is not None and other.leads is not None:
        anchors["512 leads"] = np.concatenate([taught.leads, other.leads])[drawn[:512]]
        anchors["2048 leads"] = np.concatenate([taught.leads, other.leads])[drawn[:2048]]
    anchors["2048 documents"] = keys[drawn[:2048]]
    for name, held in anchors.items():
        made = Ways(asked, right, everyone % 10, everyone[:CENTRES], held).lenses(
            [one.id for one in teaching[:CENTRES]], [WIDE, WARY]
        )
        lenses: dict[str, Any] = {"no gate": replace(made[WIDE], closed=-2.0, open=-1.5)}
        if name == "2048 documents":
            lenses |= {"open gate": made[WIDE], "wary gate": made[WARY]}
        for gate, lens in lenses.items():
            yield (
                f"kernel, anchors: {name}, {gate}",
                lambda vectors, lens=lens: np.stack([lens.turn(DenseQuestion(vector)).vector for vector in vectors]),
            )


def quality(keys: Any, ids: list[str], vectors: Any, questions: Sequence[Question]) -> float:
    tops = np.argsort(-(vectors @ keys.T), axis=1, kind="stable")[:, : measures.MEASURED_DEPTH]
    found = {one.id: [ids[at] for at in top] for one, top in zip(questions, tops, strict=True)}
    return fmean(measures.quality(lambda one, depth: found[one.id][:depth], questions).values())


def pair(folder: Path, names: str, encoder: str, seeds: int) -> list[dict[str, Any]]:
    taught, other = (Side(folder / name, encoder) for name in names.split("/"))
    keys = np.concatenate([taught.keys, other.keys])
    ids = [one.id for side in (taught, other) for one in side.data.documents]
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for seed in range(seeds):
        first, second = (protocols.split(side.data, "holdout", seed=seed) for side in (taught, other))
        asked = [(side.vectors(dealt.tested[:MOST]), dealt.tested[:MOST])
                 for side, dealt in ((taught, first), (other, second))]  # fmt: skip
        before = [quality(keys, ids, *given) for given in asked]
        for name, turn in forms(taught, other, first.taught, second.taught[:512]):
            after = [quality(keys, ids, turn(vectors), questions) for vectors, questions in asked]
            found[name].append((after[0] / before[0] - 1, after[1] / before[1] - 1))
    return [
        {"pair": names, "encoder": encoder, "form": name, "seeds": seeds,
         "held_out": float(np.mean([one for one, _ in parts])), "bystanders": float(np.mean([one for _, one in parts]))}
        for name, parts in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["wordllama", "minilm"], choices=["wordllama", "minilm"])
    parser.add_argument("--pairs", nargs="+", default=PAIRS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = json.loads(options.out.read_text("utf-8")) if options.out and options.out.exists() else []
    for encoder, names in product(options.encoder, options.pairs):
        made = pair(options.folder, names, encoder, options.seeds)
        results = [one for one in results if (one["pair"], one["encoder"]) != (names, encoder)] + made
        for one in made:
            print(json.dumps(one), flush=True)
        if options.out:
            write_json(options.out, results, indent=1)


if __name__ == "__main__":
    main()
