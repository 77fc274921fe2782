"""A trained encoder of one retriever, with the keys of all documents: what the guard compares, and is published."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import numpy as np

from evokey.encoders.wordllama import TunedWordLlama, WordLlamaEncoder, count_tokens, token_table
from evokey.evolution.judgements import Judgements
from evokey.evolution.pools import CurrentPools
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.search.indexing import Watch, attempt
from evokey.search.retriever import DenseRetriever, Retriever
from evokey.settings import Settings, assemble
from evokey.settings.trust import MODEL
from evokey.tuning import static
from evokey.tuning.pairs import Parts, Sources, TrainingSet, training_set
from evokey.tuning.revisions import NEURAL, STATIC, write_table
from evokey.types import TuningCost

Share = Callable[[float], None]
"""Is told which share of the work is done."""
Progress = Callable[[str, float], None]
"""Is told what is being done, and which share of it is done."""
Save = Callable[[Path], None]
"""Writes weights into a folder."""
TRIED = "tried"
"""The revision of an encoder that was not published yet."""
LONGEST_CARD = 20_000
"""Characters of a model's card that are read."""
SAMPLE = 64
"""Documents by which the cost of encoding is measured."""


@dataclass(frozen=True)
class Candidate:
    retriever: Retriever
    """Frozen, with the keys of all documents in memory."""
    kind: str
    seen: frozenset[str]
    """Questions that it was trained on."""
    save: Save


def is_tunable(retriever: Retriever) -> bool:
    """Whether its encoder is WordLlama, or a model that can be loaded again with other weights."""
    trained = type(retriever.encoder) is WordLlamaEncoder or hasattr(retriever.encoder, "with_weights")
    return isinstance(retriever, DenseRetriever) and trained


@dataclass(frozen=True)
class Trainer:
    index: Index
    ledger: Ledger
    settings: Settings
    progress: Progress = lambda stage, share: None
    scratch: Path | None = None
    """Where the training of a model leaves off and goes on if it is interrupted."""

    def train(self, retriever: Retriever, lessons: Judgements, parts: Parts) -> Candidate:
        """retriever: with the encoder that training begins with."""
        data = self.collect(retriever, lessons, parts.train | parts.validation)
        seen, validation = data.only(parts.train), data.only(parts.validation)
        told = partial(self.progress, f"training {retriever.name}")
        static_ = type(retriever.encoder) is WordLlamaEncoder
        train = train_static if static_ else partial(train_neural, folder=self._scratch_of(retriever.name))
        encoder, save = train(retriever.encoder, seen, validation, told)
        made = self.encode(retriever.name, encoder, parts.train)
        return Candidate(made, STATIC if static_ else NEURAL, parts.train, save)

    def _scratch_of(self, name: str) -> Path:
        return Path(tempfile.mkdtemp()) if self.scratch is None else self.scratch / name

    def collect(self, retriever: Retriever, lessons: Judgements, queries: frozenset[str]) -> TrainingSet:
        """Training data of these queries. Restricted documents have no part in it."""
        index, apart = self.index, frozenset(self.index.restricted.tolist())
        pools = CurrentPools(retriever, self.ledger.pools, index.position, index.live)

        def find(query: str) -> Sequence[int]:
            return [number for number in pools[query].numbers.tolist() if number not in apart]

        grades = {query: found for query, found in lessons.grades.items() if query in queries}
        return training_set(replace(lessons, grades=grades), Sources(Texts(retriever, self.ledger).get, find))

    def encode(self, name: str, encoder: Any, seen: frozenset[str]) -> Retriever:
        """A retriever with this encoder and the keys of all documents, in memory."""
        one, index = next(one for one in self.settings.retrievers if one.name == name), self.index
        retriever = assemble(self.settings, one, encoder, None)
        retriever.revision, retriever.seen = TRIED, seen
        retriever.store.follow(index.live, index.live.tolist(), ())
        watch = Watch(len(index.live), 1, partial(self.progress, f"encoding documents with {name}"))
        encoding = attempt(retriever, self.ledger.documents, index.live, self.ledger.words, watch)
        if encoding.failure is not None:
            raise encoding.failure
        for keys in encoding.keys:
            retriever.store.write(keys)
        return retriever.freeze(index.live)

    def cost(self, retriever: Retriever) -> TuningCost:
        """What it takes to encode all documents again, by a sample of them."""
        live = self.index.live
        some = live[:: max(1, len(live) // SAMPLE)][:SAMPLE].tolist()
        entries = list(self.ledger.documents.entries(some))
        begin = time.perf_counter()
        if entries:
            retriever.keys(entries, self.ledger.words)
        seconds = (time.perf_counter() - begin) / max(len(entries), 1) * len(live)
        return TuningCost(
            retriever.name, retriever.encoder.identity, find_licence(retriever.encoder), len(live), seconds
        )


def find_licence(encoder: Any) -> str | None:
    """Under which the weights come that training begins with; None: it is not known."""
    with suppress(PackageNotFoundError, KeyError, OSError):
        if isinstance(encoder, WordLlamaEncoder):
            return str(metadata("wordllama")["License"]).splitlines()[0]
        said = (encoder.folder / "README.md").read_text("utf-8", "replace")[:LONGEST_CARD].splitlines()
        return next((line.partition(":")[2].strip() for line in said if line.startswith("license:")), None)
    return None


def train_static(encoder: Any, seen: TrainingSet, validation: TrainingSet, told: Share) -> tuple[Any, Save]:
    """WordLlama with other token vectors."""
    made = static.train(token_table(), count_tokens, seen, validation, progress=told)
    save = partial(write_table, tokens=made.tokens, vectors=made.vectors)
    return TunedWordLlama(made.tokens, made.vectors, TRIED), save


def train_neural(
    encoder: Any, seen: TrainingSet, validation: TrainingSet, told: Share, *, folder: Path
) -> tuple[Any, Save]:
    """A sentence-transformers model with other weights, in this folder."""
    from evokey.tuning import neural

    options = neural.TrainingOptions(
        query_prefix=encoder.query_prefix,
        document_prefix=encoder.document_prefix,
        max_length=encoder.max_length,
        device=encoder.device,
    )

    def tell(at: neural.Progress) -> None:
        told(min(1.0, (max(at.epoch - 1, 0) + at.step / max(at.steps, 1) * (at.epoch > 0)) / at.epochs))

    made = neural.train(encoder.folder, seen, validation, folder, options, tell)
    return encoder.with_weights(made.model, TRIED), partial(move_model, made.model)


def move_model(model: Path, folder: Path) -> None:
    """Into the folder of a revision."""
    shutil.move(model, folder / MODEL)


class Texts:
    """The texts of documents by which queries should find them."""

    def __init__(self, retriever: Retriever, ledger: Ledger) -> None:
        self._retriever, self._ledger = retriever, ledger
        self._rows: dict[int, list[str]] = {}

    def get(self, query: str, number: int) -> str | None:
        """Of several rows the one that matches the query best."""
        if number not in self._rows:
            found = self._ledger.documents.fetch([number]).get(number)
            self._rows[number] = [] if found is None else [row.text for row in self._retriever.rows(found)]
        rows = self._rows[number]
        if len(rows) < 2:
            return rows[0] if rows else None
        block = self._retriever.base.fetch(np.array([number], np.int64)).block
        scores = block.scores(self._retriever.lesson(query, {}))
        return rows[int(np.argmax(scores))] if len(scores) == len(rows) else rows[0]
