"""evokey beside Azure AI Search, its semantic ranker included: what the ranker says last is what the layer sees.

AZURE_SEARCH_KEY=… python examples/beside/azure_search.py https://NAME.search.windows.net pages "undo a commit"
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import evokey

VERSION = "2024-07-01"


class AzureSearch:
    def __init__(self, url: str, index: str, key: str, semantic: str | None = None) -> None:
        """semantic: the name of the semantic configuration, if the ranker is to be used."""
        self._url = f"{url}/indexes/{index}/docs/search?api-version={VERSION}"
        self._headers, self._semantic = {"content-type": "application/json", "api-key": key}, semantic

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"search": query, "top": k, "select": "id,title,text"}
        if self._semantic:
            body |= {"queryType": "semantic", "semanticConfiguration": self._semantic}
        if team is not None:
            body["filter"] = _rights(team)
        score = "@search.rerankerScore" if self._semantic else "@search.score"
        found = [{**one, "score": one[score]} for one in self._ask(body)]
        return sorted(found, key=lambda one: -one["score"])

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        among = f"search.in(id, {_quote('|'.join(ids))}, '|')"
        rights = among if team is None else f"{among} and {_rights(team)}"
        return self._ask({"search": "*", "filter": rights, "top": len(ids), "select": "id,title,text"})

    def _ask(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["value"]
        return found


def _rights(team: str) -> str:
    return f"(team eq 'all' or team eq {_quote(team)})"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    engine = AzureSearch(*sys.argv[1:3], os.environ["AZURE_SEARCH_KEY"])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        print(*(f"{hit.score:8.3f}  {hit.id}" for hit in layer.search(sys.argv[3], k=5)), sep="\n")
