"""A vector store that learns: documents are added and searched as in any other, and verdicts on them improve it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

import evokey
from evokey.client import Client
from evokey.frameworks import Backend, open_with
from langchain_evokey.documents import to_langchain


class EvokeyVectorStore(VectorStore):
    """
    store = EvokeyVectorStore("kb", embedding=OpenAIEmbeddings())
    store.add_documents(documents)
    store.similarity_search("how do I undo a commit?", k=5)
    store.feedback("how do I undo a commit?", relevant=["git-revert"])
    store.evolve()
    """

    def __init__(self, memory: evokey.Memory | Client | str | Path, embedding: Embeddings | None = None) -> None:
        """memory: one that is open, or the directory of one, which is made on first use. With an embedding, the memory
        in that directory has its vectors; without one, it has those of evokey.open (BM25 and WordLlama)."""
        self._embedding = embedding
        if isinstance(memory, str | Path):
            memory = evokey.open(memory) if embedding is None else _open(memory, embedding)
        self.memory = memory
        self._backend = Backend(memory)

    @property
    def embeddings(self) -> Embeddings | None:
        return self._embedding

    # ---- documents

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids. Metadata must be JSON."""
        given = list(texts)
        names = [one or str(uuid.uuid4()) for one in ids or [""] * len(given)]
        described = metadatas or [{}] * len(given)
        self._backend.add(
            evokey.Document(id, text, metadata=metadata)
            for id, text, metadata in zip(names, given, described, strict=True)
        )
        return names

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents; without ids, all of them. What they were taught waits, in case they come back."""
        self._backend.delete([one.id for one in self._backend.documents()] if ids is None else ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return [to_langchain(one) for one in self._backend.get(ids)]

    # ---- searching

    def similarity_search(
        self, query: str, k: int = 4, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Scores are higher for better documents: similarities, not distances."""
        return [(to_langchain(hit.document), hit.score) for hit in self._backend.search(query, k, filter)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: min(1.0, max(0.0, score))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Of the best fetch_k documents those k that are most relevant and least alike. Embeds them: needs an
        embedding."""
        if self._embedding is None:
            raise ValueError("max_marginal_relevance_search compares documents by an embedding: pass embedding=…")
        found = self.similarity_search(query, fetch_k, **kwargs)
        if not found:
            return []
        vectors = self._embedding.embed_documents([one.page_content for one in found])
        asked = np.array(self._embedding.embed_query(query))
        return [found[at] for at in maximal_marginal_relevance(asked, vectors, lambda_mult, k)]

    # ---- learning

    def feedback(
        self,
        query: str,
        relevant: Iterable[str] | Mapping[str, float] = (),
        irrelevant: Iterable[str] = (),
        actor: str | None = None,
    ) -> evokey.Lesson:
        """Record which documents (ids) were right for a query, and which were wrong. Nothing is learned until
        evolve."""
        return self._backend.teach(query, relevant, irrelevant, actor)

    def evolve(self) -> evokey.EpochReport:
        """Learn from the lessons so far; published if held-out questions say that it helps."""
        return self.memory.evolve()

    def forget(
        self, query: str | None = None, actor: str | None = None, document: str | None = None
    ) -> evokey.Forgotten:
        """Erase lessons, with all that was learned from them."""
        return self.memory.forget(query, actor, document)

    def close(self) -> None:
        self.memory.close()

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path = "evokey-memory",
        **kwargs: Any,
    ) -> Self:
        store = cls(path, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _open(path: str | Path, embedding: Embeddings) -> evokey.Memory:
    def queries(texts: list[str]) -> list[list[float]]:
        return [embedding.embed_query(text) for text in texts]

    return open_with(path, embedding.embed_documents, queries, type(embedding).__name__)
