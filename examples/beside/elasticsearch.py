"""evokey beside Elasticsearch: the index stays where it is, and every search goes through the layer.

    python examples/beside/elasticsearch.py http://localhost:9200 pages "how do I undo a commit?" staff

Documents are expected to have the fields title, text and team (who may read them).
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import evokey


class Elasticsearch:
    def __init__(self, url: str, index: str, api_key: str | None = None) -> None:
        self._url, self._headers = f"{url}/{index}/_search", {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"ApiKey {api_key}"

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        """What evokey.beside takes: a query, a number of results, and filters of your own."""
        words = {"multi_match": {"query": query, "fields": ["title^2", "text"]}}
        found = self._ask({"size": k, "query": {"bool": {"must": [words], "filter": _team(team)}}})
        return [_result(hit) for hit in found]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        """Those of the ids that exist and that this team may read, by the same filter."""
        some = {"ids": {"values": list(ids)}}
        return [
            _result(hit) for hit in self._ask({"size": len(ids), "query": {"bool": {"filter": [some, *_team(team)]}}})
        ]

    def _ask(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            hits: list[dict[str, Any]] = json.load(answer)["hits"]["hits"]
        return hits


def _team(team: str | None) -> list[dict[str, Any]]:
    return [] if team is None else [{"terms": {"team": ["all", team]}}]


def _result(hit: dict[str, Any]) -> dict[str, Any]:
    source = hit["_source"]
    return {"id": hit["_id"], "score": hit["_score"], "text": source["text"], "title": source.get("title")}


if __name__ == "__main__":
    url, index, query, team = sys.argv[1:]
    engine = Elasticsearch(url, index)
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(query, k=5, team=team):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.title}")
