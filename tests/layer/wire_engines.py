"""Search services as they answer over HTTP: the wire format is theirs, and SQLite's full-text search is behind it.

Each answers only what its real counterpart would: an unknown field of a request is an error, not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from layer.library import Library
from wire import Reply

import evokey

QUOTED = re.compile(r"'((?:[^']|'')*)'")


class Shelf:
    """A library with the texts of its pages, as a service knows them."""

    def __init__(self, library: Library, pages: Sequence[evokey.Document]) -> None:
        self._library, self._pages = library, {one.id: one for one in pages}

    def find(self, query: str, k: int, team: str | None) -> list[tuple[evokey.Document, float]]:
        return [(self._pages[id], score) for id, score in self._library.search(query, k, team)]

    def fetch(self, ids: Sequence[str], team: str | None) -> list[evokey.Document]:
        return [self._pages[id] for id in self._library.allowed(ids, team)]


def only(body: dict[str, Any], *fields: str) -> None:
    assert set(body) <= set(fields), f"unknown fields: {set(body) - set(fields)}"


def team_of(filters: Sequence[dict[str, Any]]) -> str | None:
    """From {"terms": {"team": ["all", NAME]}}."""
    for one in filters:
        if "terms" in one:
            everybody, team = one["terms"]["team"]
            assert everybody == "all"
            return str(team)
    return None


def hits(found: Sequence[tuple[evokey.Document, float]]) -> dict[str, Any]:
    """Elasticsearch's and OpenSearch's answer."""
    rows = [
        {"_index": "pages", "_id": one.id, "_score": score, "_source": {"title": one.title, "text": one.text}}
        for one, score in found
    ]
    total = {"value": len(rows), "relation": "eq"}
    best = rows[0]["_score"] if rows else None
    return {"took": 1, "timed_out": False, "hits": {"total": total, "max_score": best, "hits": rows}}


def elasticsearch(shelf: Shelf) -> Callable[[Any], Any]:
    def answer(body: dict[str, Any]) -> Any:
        only(body, "size", "query", "_source")
        only(body["query"], "bool")
        clause = body["query"]["bool"]
        only(clause, "must", "filter")
        team = team_of(clause["filter"])
        if "must" in clause:
            (words,) = clause["must"]
            asked = words.get("multi_match", words.get("match", {}).get("text"))
            return hits(shelf.find(asked["query"], body["size"], team))
        (some,) = [one["ids"]["values"] for one in clause["filter"] if "ids" in one]
        return hits([(one, 0.0) for one in shelf.fetch(some, team)])

    return answer


def opensearch(shelf: Shelf) -> Callable[[Any], Any]:
    """A hybrid query through a pipeline: scores between 0 and 1."""

    def answer(body: dict[str, Any]) -> Any:
        only(body, "size", "query", "_source")
        words, neural = body["query"]["hybrid"]["queries"]
        asked = neural["neural"]["embedding"]
        only(asked, "query_text", "model_id", "k", "filter")
        clause = words["bool"]
        assert asked["query_text"] == clause["must"][0]["match"]["text"]["query"]
        assert asked.get("filter", {"bool": {"filter": []}})["bool"]["filter"] == clause["filter"]
        found = shelf.find(asked["query_text"], body["size"], team_of(clause["filter"]))
        best = max((score for _, score in found), default=1.0)
        return hits([(one, score / best) for one, score in found])

    return answer


def azure(shelf: Shelf) -> Callable[[Any], Any]:
    def answer(body: dict[str, Any]) -> Any:
        only(body, "search", "top", "select", "filter", "queryType", "semanticConfiguration")
        quoted = [one.replace("''", "'") for one in QUOTED.findall(body.get("filter", ""))]
        team = quoted[-1] if "team eq" in body.get("filter", "") else None
        if body["search"] == "*":
            assert body["filter"].startswith("search.in(id, ")
            found = [(one, 1.0) for one in shelf.fetch(quoted[0].split("|"), team)]
        else:
            found = shelf.find(body["search"], body["top"], team)
        rows = [{"@search.score": score, "id": one.id, "title": one.title, "text": one.text} for one, score in found]
        if body.get("queryType") == "semantic":
            rows = [{**row, "@search.rerankerScore": 4 / (1 + at)} for at, row in enumerate(rows)]
        return {"@odata.context": "https://…/$metadata#docs(*)", "value": rows}

    return answer


def vespa(shelf: Shelf) -> Callable[[Any], Any]:
    def answer(body: dict[str, Any]) -> Any:
        where = re.fullmatch(
            r"select id, title, text from page where (userQuery\(\)|id in \((.*?)\))( and .*)?", body["yql"]
        )
        if where is None:
            message = {"code": 8, "summary": "Error parsing YQL", "message": f"mismatched input in {body['yql']}"}
            return Reply(400, {"root": {"id": "toplevel", "relevance": 1.0, "errors": [message]}})
        team = body["team"] if where[3] else None
        if where[2] is None:
            found = shelf.find(body["query"], body["hits"], team)
        else:
            named = [body[name.strip().removeprefix("@")] for name in where[2].split(",")]
            found = [(one, 0.0) for one in shelf.fetch(named, team)]
        children = [
            {"id": f"id:pages:page::{one.id}", "relevance": score, "source": "pages",
             "fields": {"id": one.id, "title": one.title, "text": one.text}}
            for one, score in found
        ]  # fmt: skip
        root: dict[str, Any] = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(children)}}
        return {"root": {**root, "children": children} if children else root}

    return answer
