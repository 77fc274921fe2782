"""evokey beside Qdrant: a server by its URL, or qdrant-client's local mode (a directory, ":memory:").

    python examples/beside/qdrant.py http://localhost:6333 "how do I undo a commit?"

Points of the collection "pages" have whole numbers as ids, and a payload with page (your own id), team, title and text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.models import Condition, FieldCondition, Filter, MatchAny

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder


class Qdrant:
    def __init__(self, client: QdrantClient, embed: Callable[[str], Sequence[float]]) -> None:
        self._client, self._embed = client, embed

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        vector = [float(one) for one in self._embed(query)]
        found = self._client.query_points(
            "pages", query=vector, limit=k, query_filter=Filter(must=_rights(team)), with_payload=True
        )
        return [{**_page(point), "score": point.score} for point in found.points]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        among: Condition = FieldCondition(key="page", match=MatchAny(any=list(ids)))
        rights = Filter(must=[among, *_rights(team)])
        points, _ = self._client.scroll("pages", scroll_filter=rights, limit=len(ids), with_payload=True)
        return [_page(point) for point in points]


def _rights(team: str | None) -> list[Condition]:
    return [] if team is None else [FieldCondition(key="team", match=MatchAny(any=["all", team]))]


def _page(point: Any) -> dict[str, Any]:
    payload = point.payload
    return {"id": payload["page"], "title": payload["title"], "text": payload["text"]}


if __name__ == "__main__":
    client = QdrantClient(url=sys.argv[1])
    engine = Qdrant(client, lambda text: WordLlamaEncoder().queries([text])[0])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(sys.argv[2], k=5):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.title}")
