"""evolve against NUDGE-N's fit: the same lessons, first among the documents of a set, then among many more.

The lessons are a set's train queries, its test queries are asked, and vectors are those that lie beside the set. The
further documents are unit vectors by lot. The two learn in turn; seconds are of processors, the least of the rounds.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evokey.bench import measures, protocols, systems
from evokey.bench.clock import Clock
from evokey.bench.data import Dataset, load
from evokey.bench.lab import Lab
from evokey.bench.measures import MAIN, MEASURED_DEPTH
from evokey.bench.protocols import Split
from evokey.bench.speed.texts import unit
from evokey.errors import InvalidInput
from evokey.types import Document

OURS, THEIRS = "guarded", "nudge-n"
ROUNDS = 3


def measure(data: Dataset, documents: int, most: int | None = None) -> dict[str, Any]:
    if not data.embeddings:
        raise InvalidInput(f"{data.name} has no vectors beside it (embeddings/NAME.corpus.npy), which NUDGE moves")
    encoder = min(data.embeddings)
    dealt = protocols.split(data, "official", most=most)
    told: dict[str, Any] = {"dataset": data.name, "encoder": encoder, "lessons": len(dealt.taught)}
    with tempfile.TemporaryDirectory() as folder:
        told["alone"] = _both(data, encoder, dealt, Path(folder) / "alone")
        if documents > len(data.documents):
            told["among_many"] = _both(pad(data, encoder, documents, Path(folder)), encoder, dealt,
                                       Path(folder) / "many")  # fmt: skip
    return told


def nfcorpus(folder: Path, documents: int) -> dict[str, Any]:
    """The set of the comparison, out of a folder of sets."""
    if not (folder / "nfcorpus").is_dir():
        raise InvalidInput(f"{folder} has no nfcorpus, whose train queries are the lessons")
    return measure(load(folder / "nfcorpus"), documents)


def pad(data: Dataset, encoder: str, documents: int, folder: Path) -> Dataset:
    """The set among so many documents."""
    corpus, queries = data.embeddings[encoder]
    vectors = np.load(corpus)
    further = documents - len(vectors)
    noise = unit(np.random.default_rng(19).normal(size=(further, vectors.shape[1]))).astype(vectors.dtype)
    np.save(folder / "padded.npy", np.concatenate([vectors, noise]))
    filler = [Document(f"further-{number}", "further") for number in range(further)]
    return replace(data, documents=[*data.documents, *filler], embeddings={encoder: (folder / "padded.npy", queries)})


def _both(data: Dataset, encoder: str, dealt: Split, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    lab = Lab(data, encoder, folder)
    found: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
    for _ in range(ROUNDS):
        for name, rounds in found.items():
            rounds.append(_learn(name, lab, dealt))
    best = {name: min(rounds, key=lambda one: one["cpu_seconds"]) for name, rounds in found.items()}
    ratio = best[OURS]["cpu_seconds"] / best[THEIRS]["cpu_seconds"]
    return {"documents": len(data.documents), **best, "ratio": ratio}


def _learn(name: str, lab: Lab, dealt: Split) -> dict[str, float]:
    clock = Clock()
    with systems.system(name, lab) as system:
        clock.call("teach", system.teach, dealt.taught)
        clock.call("evolve", system.evolve)
        values = measures.evaluate(dealt.tested, {one.id: system.rank(one, MEASURED_DEPTH) for one in dealt.tested})
    mean = measures.mean(values, [one.id for one in dealt.tested])
    assert mean is not None
    return {
        "cpu_seconds": clock.cpu["evolve"],
        "seconds": clock.seconds["evolve"],
        "teach_cpu_seconds": clock.cpu["teach"],
        MAIN: mean[MAIN],
    }
