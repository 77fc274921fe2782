"""A trained encoder of one retriever, with the keys of all documents: what the guard compares, and is published."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from evokey.tuning import static
from evokey.tuning.pairs import Parts, Sources, TrainingSet, training_set
from evokey.tuning.revisions import STATIC, write_table
from evokey.types import TuningCost

Progress = Callable[[str, float], None]
"""Is told what is being done, and which share of it is done."""
TRIED = "tried"
"""The revision of an encoder that was not published yet."""
SAMPLE = 64
"""Documents by which the cost of encoding is measured."""


@dataclass(frozen=True)
class Candidate:
    retriever: Retriever
    """Frozen, with the keys of all documents in memory."""
    kind: str
    seen: frozenset[str]
    """Questions that it was trained on."""
    save: Callable[[Path], None]
    """Writes the weights into a folder."""


def is_tunable(retriever: Retriever) -> bool:
    return isinstance(retriever, DenseRetriever) and type(retriever.encoder) is WordLlamaEncoder


@dataclass(frozen=True)
class Trainer:
    index: Index
    ledger: Ledger
    settings: Settings
    progress: Progress = lambda stage, share: None

    def train(self, retriever: Retriever, lessons: Judgements, parts: Parts) -> Candidate:
        """retriever: with the encoder that training begins with."""
        data = self.collect(retriever, lessons, parts.train | parts.validation)
        seen, validation = data.only(parts.train), data.only(parts.validation)
        told = partial(self.progress, f"training {retriever.name}")
        made = static.train(token_table(), count_tokens, seen, validation, progress=told)
        encoder = TunedWordLlama(made.tokens, made.vectors, TRIED)
        save = partial(write_table, tokens=made.tokens, vectors=made.vectors)
        return Candidate(self.encode(retriever.name, encoder, parts.train), STATIC, parts.train, save)

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
    if isinstance(encoder, WordLlamaEncoder):
        try:
            return str(metadata("wordllama")["License"]).splitlines()[0]
        except (PackageNotFoundError, KeyError):
            return None
    return None


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
