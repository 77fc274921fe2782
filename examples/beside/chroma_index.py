"""evokey beside Chroma: a folder, a server or Chroma Cloud, by its collection.

    python examples/beside/chroma_index.py ./chroma "how do I undo a commit?"

`where` is a filter of Chroma's own, such as {"team": {"$in": ["all", "staff"]}}; documents carry the metadata.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import chromadb

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder

Where = dict[str, Any]


class Chroma:
    def __init__(self, collection: chromadb.Collection, embed: Callable[[str], Sequence[float]]) -> None:
        self._collection, self._embed = collection, embed

    def search(self, query: str, k: int, where: Where | None = None) -> list[dict[str, Any]]:
        vector = [float(one) for one in self._embed(query)]
        found: Any = self._collection.query(
            query_embeddings=[vector], n_results=k, where=where, include=["documents", "distances"]
        )
        rows = zip(found["ids"][0], found["distances"][0], found["documents"][0], strict=True)
        return [{"id": id, "score": -distance, "text": text} for id, distance, text in rows]

    def allowed(self, ids: Sequence[str], where: Where | None = None) -> list[dict[str, Any]]:
        found: Any = self._collection.get(ids=list(ids), where=where, include=["documents"])
        return [{"id": id, "text": text} for id, text in zip(found["ids"], found["documents"], strict=True)]


if __name__ == "__main__":
    collection = chromadb.PersistentClient(sys.argv[1]).get_collection("pages", embedding_function=None)
    engine = Chroma(collection, lambda text: WordLlamaEncoder().queries([text])[0])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(sys.argv[2], k=5):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.text[:80]}")
