"""Vectors that the caller hands in (encoder 'given'), checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from evokey import checks
from evokey.errors import EncoderMismatch, InvalidVector
from evokey.search.imported import SAME
from evokey.search.retriever import DenseRetriever, GivenRetriever
from evokey.types import Document, Vectors


def query_vector(retriever: GivenRetriever | None, given: Any) -> Vectors | None:
    """The vector that came beside a query. retriever: the one that takes such vectors, if the memory has one."""
    if given is None:
        return None
    if retriever is None:
        raise InvalidVector("this memory makes its own vectors; vector=… is for encoder='given'")
    vector = checks.vectors([given], 1)
    retriever.check_dimension(vector)
    return np.asarray(vector[0])


def add_in_batches(documents: Iterable[Any], vectors: Any, size: int, add: Callable[[list[Any], Any], int]) -> int:
    """Documents, with the vectors beside them, so many at a time; how many they were."""
    source, count = iter(documents), 0
    while some := list(islice(source, size)):
        count += add(some, None if vectors is None else vectors[count : count + len(some)])
    if vectors is not None and len(vectors) != count:
        raise InvalidVector(
            f"{len(vectors)} vectors came with {count} documents: pass one row for each. All are stored"
        )
    return count


def document_vectors(retriever: DenseRetriever | None, documents: Sequence[Document], given: Any) -> Vectors | None:
    """The vectors that came beside documents. retriever: the one that takes them, if the memory has one."""
    if isinstance(retriever, GivenRetriever) and given is None and documents:
        raise InvalidVector("this memory takes its vectors from the caller (encoder 'given'): pass vectors=… to add")
    if given is not None and retriever is None:
        raise InvalidVector(
            "this memory makes its own vectors; vectors=… is for encoder='given', or where one dense encoder made them "
            "and the memory has it, with keys='full'"
        )
    if given is None or retriever is None or not documents:
        return None
    vectors = checks.vectors(given, len(documents))
    if (found := retriever.find_mismatch(documents, vectors)) is not None:
        id, likeness = found
        raise EncoderMismatch(
            f"document {id!r} came with a vector that encoder {retriever.name!r} does not make of its text (similarity "
            f"{likeness:.3f}, where {SAME} is needed). Name the encoder that made these vectors; nothing was stored"
        )
    return vectors
