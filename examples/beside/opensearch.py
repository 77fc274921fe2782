"""evokey beside OpenSearch with hybrid search: BM25 and a neural query, normalised and fused by a search pipeline.

    python examples/beside/opensearch.py http://localhost:9200 pages MODEL_ID "how do I undo a commit?"

The pipeline "hybrid" and the vector field "embedding" are yours. Scores of a hybrid query are between 0 and 1.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import evokey


class OpenSearch:
    def __init__(self, url: str, index: str, model: str) -> None:
        self._url, self._model = f"{url}/{index}/_search", model

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        rights = _rights(team)
        words = {"bool": {"must": [{"match": {"text": {"query": query}}}], "filter": rights}}
        neural: dict[str, Any] = {"query_text": query, "model_id": self._model, "k": k}
        if rights:
            neural["filter"] = {"bool": {"filter": rights}}
        body = {"size": k, "query": {"hybrid": {"queries": [words, {"neural": {"embedding": neural}}]}}}
        return [_result(hit) for hit in self._ask("?search_pipeline=hybrid", body)]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        some = [{"ids": {"values": list(ids)}}, *_rights(team)]
        return [_result(hit) for hit in self._ask("", {"size": len(ids), "query": {"bool": {"filter": some}}})]

    def _ask(self, parameters: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        body["_source"] = ["title", "text"]  # the vector stays there
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self._url + parameters, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            hits: list[dict[str, Any]] = json.load(answer)["hits"]["hits"]
        return hits


def _rights(team: str | None) -> list[dict[str, Any]]:
    return [] if team is None else [{"terms": {"team": ["all", team]}}]


def _result(hit: dict[str, Any]) -> dict[str, Any]:
    return {"id": hit["_id"], "score": hit["_score"], **hit["_source"]}


if __name__ == "__main__":
    url, index, model, query = sys.argv[1:]
    engine = OpenSearch(url, index, model)
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(query, k=5):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.title}")
