"""An index, whatever its engine, into a memory."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import islice

import numpy as np

from evokey.errors import InvalidInput, UnknownComponent
from evokey.importing.records import Place, Record, Source
from evokey.memory import Memory
from evokey.types import Document

BATCH = 1_000
SPREAD = 0.01
"""Greatest relative difference between the lengths of vectors at which distance, product and cosine rank alike."""
SOURCES = {
    "chroma": ("chroma:Chroma", "chroma"),
    "lancedb": ("lancedb:LanceDB", "lancedb"),
    "qdrant": ("qdrant:Qdrant", "qdrant"),
    "faiss": ("faiss:Faiss", "ann"),
    "pgvector": ("pgvector:PgVectorTable", "postgres"),
    "milvus": ("milvus:Milvus", "milvus"),
    "langchain": ("langchain:LangChain", "ann"),
    "llama-index": ("llama_index:LlamaIndex", None),
}
"""Engine → its file here and class, and the extra that installs what it imports."""


def load_source(engine: str, place: Place) -> Source:
    """The index of an engine at a place, or the line to type when the engine is not installed."""
    if engine not in SOURCES:
        raise InvalidInput(f"nothing is imported from {engine!r}; there are: {', '.join(SOURCES)}")
    path, extra = SOURCES[engine]
    module, _, name = path.partition(":")
    try:
        found: Callable[[Place], Source] = getattr(import_module(f"evokey.importing.{module}"), name)
        return found(place)
    except ModuleNotFoundError as error:
        if extra is None:
            raise
        raise UnknownComponent(
            f"reading {engine} needs {error.name}; install it with: pip install 'evokey[{extra}]'"
        ) from error


def import_index(memory: Memory, source: Source, progress: Callable[[int], None] | None = None) -> int:
    """Add all records of an index with their vectors; how many. Batch by batch: an error leaves those before it
    stored, and running it again goes on. progress: is told how many are stored."""
    if memory.index.takes_vectors is None:
        raise InvalidInput("an index is imported into a memory with one dense encoder, and keys='full'")
    stored, records, lengths = 0, source.records(), Lengths(source.metric)
    while batch := list(islice(records, BATCH)):
        lengths.check(batch)
        documents = [Document(one.id, one.text, metadata=one.metadata) for one in batch]
        memory.add(documents, np.asarray([one.vector for one in batch], np.float32))
        stored += len(batch)
        if progress is not None:
            progress(stored)
    return stored


class Lengths:
    """The lengths of the vectors so far: a memory ranks by cosine, which is what the engine does only where these are
    equal, or where it ranks by cosine, too."""

    def __init__(self, metric: str) -> None:
        self._metric, self._shortest, self._longest = metric, np.inf, 0.0

    def check(self, batch: list[Record]) -> None:
        if self._metric == "cosine":
            return
        found = np.linalg.norm(np.asarray([one.vector for one in batch], np.float64), axis=1)
        self._shortest, self._longest = min(self._shortest, found.min()), max(self._longest, found.max())
        if self._longest > self._shortest * (1 + SPREAD):
            raise InvalidInput(
                f"the index ranks by {self._metric}, and its vectors have lengths from {self._shortest:.3g} to "
                f"{self._longest:.3g}; a memory ranks by cosine, which would be another order. Learn beside the index "
                f"instead: evokey.beside (docs/beside.md)"
            )
