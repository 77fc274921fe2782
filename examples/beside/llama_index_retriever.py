"""evokey beside a vector index of LlamaIndex: the folder of `storage_context.persist`, with the index's own embedding.

    python examples/beside/llama_index_retriever.py ./index "how do I undo a commit?"

`where` is a MetadataFilters. Ids are those of nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core import QueryBundle, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.vector_stores import MetadataFilters

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder


class Retriever:
    def __init__(self, index: VectorStoreIndex) -> None:
        self._index, self._any = index, QueryBundle("anything")

    def search(self, query: str, k: int, where: MetadataFilters | None = None) -> list[dict[str, Any]]:
        found = VectorIndexRetriever(self._index, similarity_top_k=k, filters=where).retrieve(query)
        return [{"id": one.node_id, "score": one.score, "text": one.text} for one in found]

    def allowed(self, ids: Sequence[str], where: MetadataFilters | None = None) -> list[dict[str, Any]]:
        """The index is asked for these nodes alone, whatever the question: the bundle keeps its vector."""
        among = VectorIndexRetriever(self._index, similarity_top_k=len(ids), node_ids=list(ids), filters=where)
        return [{"id": one.node_id, "text": one.text} for one in among.retrieve(self._any)]


class WordLlama(BaseEmbedding):
    """Yours, instead: the one that made the index."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(one) for one in WordLlamaEncoder().documents([text])[0]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(one) for one in WordLlamaEncoder().queries([query])[0]]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


if __name__ == "__main__":
    stored = StorageContext.from_defaults(persist_dir=sys.argv[1])
    engine = Retriever(load_index_from_storage(stored, embed_model=WordLlama()))
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(sys.argv[2], k=5):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.text[:80]}")
