"""Systems by other hands: NUDGE (nudge-ft) for dense vectors, bm25s for BM25; those that train are in trained.py."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from evokey.bench import naming
from evokey.bench.data.trec import Scored
from evokey.bench.lab import Lab
from evokey.bench.nearest import best
from evokey.bench.protocols import Question
from evokey.bench.systems import TRAINED, Still, System
from evokey.encoders.bm25 import BM25
from evokey.errors import InvalidInput, UnknownComponent
from evokey.types import Vectors

VALIDATION = 0.2
"""The share of the lessons on which NUDGE chooses its step."""


def peer(name: str, lab: Lab, seed: int) -> System:
    if naming.base(name) in TRAINED:
        from evokey.bench.trained import train_peer

        return train_peer(name, lab, seed)
    return Bm25s(lab) if name == "bm25s" else Nudge(name, lab, seed)


def package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UnknownComponent(f"this needs {error.name}; install it with: pip install 'evokey[{extra}]'") from error


class Nudge(Still):
    """Document vectors moved towards the queries they answer, once for all lessons."""

    def __init__(self, name: str, lab: Lab, seed: int) -> None:
        nudge = package("nudge", "peers")
        self._fit = {"nudge-n": nudge.NUDGEN, "nudge-m": nudge.NUDGEM}[name]
        self._lab, self._seed = lab, seed
        self._ids = [document.id for document in lab.data.documents]
        self._vectors: Vectors = lab.keys
        self._lessons: list[Question] = []

    def teach(self, questions: Sequence[Question]) -> None:
        self._lessons += questions

    def evolve(self) -> Mapping[str, Any]:
        dealt = list(self._lessons)
        random.Random(self._seed).shuffle(dealt)
        edge = max(1, round(VALIDATION * len(dealt)))
        if len(dealt) < 2:
            raise InvalidInput("NUDGE needs two lessons or more: one to learn from, and one to choose its step")
        sets = [self._set(dealt[edge:]), self._set(dealt[:edge])]
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it is doing
            self._vectors = self._fit().finetune_embeddings(self._lab.keys, *sets)
        return {"validation": edge, "documents": int((np.abs(self._vectors - self._lab.keys).max(axis=1) > 1e-5).sum())}

    def _set(self, questions: Sequence[Question]) -> dict[str, Any]:
        place = {id: number for number, id in enumerate(self._ids)}
        right = [sorted(place[id] for id in one.right) for one in questions]
        return {"q_embs": self._lab.question_vectors(questions), "q_ans_indx": right}

    def search(self, question: Question, depth: int) -> Scored:
        scores = self._vectors @ self._lab.question_vectors([question])[0]
        return [(self._ids[place], float(scores[place])) for place in best(scores, depth)]

    def displacements(self) -> Mapping[str, Sequence[float]]:
        """NUDGE-N leaves its vectors longer than 1; what counts is where they point."""
        lengths = np.linalg.norm(self._vectors, axis=1) * np.linalg.norm(self._lab.keys, axis=1)
        turned = 1 - np.vecdot(self._vectors, self._lab.keys) / np.maximum(lengths, 1e-12)
        return {self._lab.encoder: sorted(turned[turned > 1e-6].tolist())}


class Bm25s(Still):
    """BM25 in Lucene's form with the same words, by bm25s. Learns nothing."""

    def __init__(self, lab: Lab) -> None:
        bm25s, self._words = package("bm25s", "bench"), BM25()
        self._ids = [document.id for document in lab.data.documents]
        texts = [f"{document.title} {document.text}".strip() for document in lab.data.documents]
        self._index = bm25s.BM25(method="lucene", k1=self._words.k1, b=self._words.b)
        self._index.index([self._tokens(text) for text in texts], show_progress=False)

    def _tokens(self, text: str) -> list[str]:
        return [word for word, count in self._words.documents([text])[0].items() for _ in range(int(count))]

    def search(self, question: Question, depth: int) -> Scored:
        tokens = self._tokens(question.text)
        if not tokens:
            return []
        scores = np.asarray(self._index.get_scores(tokens), np.float64)
        return [(self._ids[place], float(scores[place])) for place in best(scores, depth) if scores[place] > 0]
