"""evokey beside Vespa: whatever your rank profile computes, the layer sees its relevance.

    python examples/beside/vespa.py http://localhost:8080 "how do I undo a commit?" staff

The schema "page" has the fields id (an attribute), title, text and team.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import evokey


class Vespa:
    def __init__(self, url: str, profile: str = "bm25") -> None:
        self._url, self._profile = f"{url}/search/", profile

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        where = f"userQuery(){_rights(team)}"
        return self._ask(where, k, {"query": query, "ranking": self._profile, **_named(team)})

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        """Ids and the team go as parameters, never into the text of the query."""
        names = {f"id{number}": id for number, id in enumerate(ids)}
        among = ", ".join(f"@{name}" for name in names)
        return self._ask(f"id in ({among}){_rights(team)}", len(ids), {"ranking": "unranked", **names, **_named(team)})

    def _ask(self, where: str, hits: int, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"yql": f"select id, title, text from page where {where}", "hits": hits, **parameters}
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            root = json.load(answer)["root"]
        if root.get("errors"):
            raise RuntimeError(root["errors"][0]["message"])
        return [{**one["fields"], "score": one["relevance"]} for one in root.get("children", [])]


def _rights(team: str | None) -> str:
    return "" if team is None else " and (team contains 'all' or team contains @team)"


def _named(team: str | None) -> dict[str, str]:
    return {} if team is None else {"team": team}


if __name__ == "__main__":
    url, query, team = sys.argv[1:]
    engine = Vespa(url)
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        for hit in layer.search(query, k=5, team=team):
            print(f"{hit.score:8.3f}  {hit.id}  {hit.document.title}")
