"""`evokey tune` with an encoder that was trained on another machine: recorded vectors stand for both encoders.

Everything else is the product's own: which questions are held out, evolve with either encoder, and the guard.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evokey import memory as memory_
from evokey.bench.data import Dataset
from evokey.bench.measures import MAIN, evaluate, mean
from evokey.bench.protocols import Split
from evokey.evolution.policy import Log
from evokey.evolution.proposing import propose
from evokey.memory import Memory
from evokey.search.retriever import Retriever
from evokey.search.view import Overlays, View
from evokey.tuning.judging import Judge
from evokey.tuning.training import Trainer
from evokey.types import Vectors

DEPTH = 100


class Recorded:
    """Vectors of known texts. The model reads documents and queries alike."""

    kind: ClassVar[str] = "dense"
    cost: ClassVar[str] = "time"

    def __init__(self, identity: str, data: Dataset, vectors: tuple[Vectors, Vectors]) -> None:
        self.identity, self.dimension = identity, vectors[0].shape[1]
        texts = [*(f"{one.title} {one.text}" for one in data.documents), *data.queries.values()]
        self._known = dict(zip(map(_strip, texts), _units(np.concatenate(vectors)), strict=True))

    def documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._known[_strip(text)] for text in texts])

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self.documents(texts)


def _strip(text: str) -> str:
    """A memory stores queries without spaces around them."""
    return " ".join(text.split())


def _units(vectors: Vectors) -> Vectors:
    found = vectors.astype(np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1), np.float32)


def read_vectors(folder: Path, model: str) -> tuple[Vectors, Vectors]:
    corpus, queries = (np.load(folder / "embeddings" / f"{model}.{part}.npy") for part in ("corpus", "queries"))
    return corpus, queries


@dataclass(frozen=True)
class Case:
    """One split of a set, with the encoder as it came and as it was trained."""

    data: Dataset
    dealt: Split
    base: Recorded
    tuned: Recorded
    fused: bool
    """Whether BM25 stands beside it."""

    def run(self) -> dict[str, Any]:
        """Teach, compare both encoders as tune does, and ask the tested questions: of the untaught index, after evolve,
        and after evolve with the trained encoder, whatever the guard says."""
        encoders = ["bm25", self.base] if self.fused else self.base
        with tempfile.TemporaryDirectory() as place, memory_.open(Path(place) / "kb", encoder=encoders) as memory:
            memory.add(self.data.documents)
            lessons = [{"query": one.text, "relevant": _right(one.grades)} for one in self.dealt.taught]
            memory.feedback_many(lessons)
            return self._compare(memory)

    def _compare(self, memory: Memory) -> dict[str, Any]:
        tuner, ledger = memory.tuner, memory.ledger
        taught = tuner.publisher.composer.log(ledger.lessons.last, ledger.lessons.find_held())
        parts, base = tuner.divide(taught), list(memory.index.with_revisions({}))
        dense = next(one for one in base if getattr(one, "encoder", None) is self.base)
        trained = Trainer(memory.index, ledger, tuner.revisions.settings).encode(dense.name, self.tuned, parts.train)
        tried = [trained if one is dense else one for one in base]
        verdict = Judge(tuner.publisher, taught, sorted(parts.held_out)).compare(base, tried)
        untaught = View(base, tuner.publisher.index.fusion, Overlays.untaught(tuner.publisher.index.fusion))
        evolved, unguarded = (self._learn(memory, retrievers, taught) for retrievers in (base, tried))
        return {
            "refusal": verdict.refusal,
            "held_out": [verdict.all.before, verdict.all.after],
            "none": self._ask(memory, untaught),
            "guarded": {**self._ask(memory, evolved.view), "seconds": evolved.seconds},
            "unguarded": self._ask(memory, unguarded.view),
            "weights": [dict(one.view.overlays.weights) for one in (evolved, unguarded)],
        }

    def _learn(self, memory: Memory, retrievers: Sequence[Retriever], taught: Log) -> Learned:
        """What evolve makes of all lessons, and how long it takes."""
        publisher, began = memory.tuner.publisher, time.process_time()
        report = propose(publisher.setting(retrievers), taught, keep=False)
        epoch = publisher.make_epoch("evolve", report, taught.up_to, taught.omitted)
        overlays = publisher.composer.compose(epoch, retrievers)
        return Learned(View(retrievers, publisher.index.fusion, overlays), time.process_time() - began)

    def _ask(self, memory: Memory, view: View) -> dict[str, float | None]:
        """nDCG@10 of all tested questions, and of some apart."""
        groups: Mapping[str, Any] = {"ndcg": self.dealt.tested, **self.dealt.groups()}
        asked = {one.id: one for one in (*self.dealt.tested, *self.dealt.taught)}
        ids = {number: one.id for number, one in memory.ledger.documents.fetch(memory.index.live.tolist()).items()}
        found = {id: [ids[int(number)] for number in view.rank(one.text, DEPTH).numbers] for id, one in asked.items()}
        values = evaluate(asked.values(), found)
        means = {name: mean(values, [one.id for one in ones]) for name, ones in groups.items()}
        return {name: None if one is None else one[MAIN] for name, one in means.items()}


@dataclass(frozen=True)
class Learned:
    view: View
    seconds: float
    """Of one processor."""


def _right(grades: Mapping[str, float]) -> dict[str, float]:
    return {id: grade for id, grade in grades.items() if grade > 0}
