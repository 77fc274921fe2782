"""evokey beside Milvus: a local file, a server or a cluster, by its URI.

    python examples/beside/milvus.py milvus.db "how do I undo a commit?"

The collection "pages" has the fields id, vector, team, title and text, and the metric COSINE (more is better).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pymilvus import MilvusClient

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder

FIELDS = ["id", "title", "text"]


class Milvus:
    def __init__(self, uri: str, embed: Callable[[str], Sequence[float]], collection: str = "pages") -> None:
        self._client, self._embed, self._collection = MilvusClient(uri), embed, collection

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        vector = [float(one) for one in self._embed(query)]
        (found,) = self._client.search(
            self._collection, data=[vector], limit=k, filter=_rights(team), output_fields=FIELDS
        )
        return [{**hit["entity"], "id": hit["id"], "score": hit["distance"]} for hit in found]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        """json.dumps quotes ids and names as Milvus reads them."""
        among = f"id in {json.dumps(list(ids))}"
        rights = f"{among} and {_rights(team)}" if team is not None else among
        rows: list[dict[str, Any]] = self._client.query(self._collection, filter=rights, output_fields=FIELDS)
        return rows

    def close(self) -> None:
        self._client.close()


def _rights(team: str | None) -> str:
    return "" if team is None else f"team in {json.dumps(['all', team])}"


if __name__ == "__main__":
    engine = Milvus(sys.argv[1], lambda text: WordLlamaEncoder().queries([text])[0])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(sys.argv[2], k=5):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.title}")
