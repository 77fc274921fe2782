"""OpenSearch User Behavior Insights (UBI 1.3): queries with the ids they returned, and events such as clicks.

A click is no verdict by itself: what stands first is clicked because it stands first. So clicks become verdicts only
where a document got clearly more of them than its places let one expect (verifiers/clicks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evokey.feedback.judged import Judged, Judgement
from evokey.feedback.reading import Record
from evokey.verifiers.clicks import PositionBias, Showing, over_expected

CLICKS = frozenset({"click", "click_through"})
RESULTS = ("query_response_hit_ids", "query_response_objects_ids", "query_response_object_ids")
"""The list of results, as UBI 1.3 and its forerunners name it."""
NO_QUERY = "a click whose query_id is in no query"
NO_TEXT = "a query without a text"
NO_RESULTS = "a query without the ids of its results, and without impressions"
NOT_SHOWN = "a click on what was not among the results of its query"
REPEATED = "a search that a client made again"
OTHER = "an event that is no click"


def read(records: Iterable[Record], bias: PositionBias | None = None, rate: float = 0.02) -> Judged:
    """bias: how likely a rank is looked at; None: as often as it is clicked in these events. rate: of the documents
    that are called right, the share that may be so by chance."""
    queries, events = list[Record](), list[Record]()
    for one in records:
        if "action_name" in one:
            events.append(one)
        elif "user_query" in one:
            queries.append(one)
    judged = Judged()
    log = _showings(queries, events, judged)
    for (query, document), _ in over_expected(log, bias=bias, rate=rate).items():
        judged.found.append(Judgement(query, document, 1.0))
    return judged


def _showings(queries: list[Record], events: list[Record], judged: Judged) -> list[Showing]:
    shown = _results(queries, events)
    clicked: dict[str, set[str]] = {id: set() for id in shown}
    known = {str(one.get("query_id")) for one in queries}
    for event in events:
        if event["action_name"] not in CLICKS:
            judged.left_out[OTHER] += event["action_name"] != "impression"
            continue
        id, names = str(event.get("query_id")), _objects(event)
        document = next((name for name in names if name in shown.get(id, ())), None)
        if document is not None:
            clicked[id].add(document)
        elif id not in known:
            judged.left_out[NO_QUERY] += 1
        elif shown.get(id):
            judged.left_out[NOT_SHOWN] += 1
    judged.left_out += type(judged.left_out)()  # drops zeros
    return _once_a_client(queries, shown, clicked, judged)


def _once_a_client(
    queries: list[Record], shown: Mapping[str, list[str]], clicked: Mapping[str, set[str]], judged: Judged
) -> list[Showing]:
    """A client counts once for each question: somebody who asks it a hundred times is one voice."""
    heard, log = set[tuple[str, str]](), list[Showing]()
    for one in queries:
        id, text, client = str(one.get("query_id")), str(one.get("user_query") or "").strip(), one.get("client_id")
        if not text:
            judged.left_out[NO_TEXT] += 1
        elif not shown.get(id):
            judged.left_out[NO_RESULTS] += 1
        elif client and (str(client), text) in heard:
            judged.left_out[REPEATED] += 1
        else:
            heard.add((str(client), text))
            log.append(Showing(text, tuple(shown[id]), frozenset(clicked[id])))
    return log


def _results(queries: list[Record], events: list[Record]) -> dict[str, list[str]]:
    """What each query showed, best first: as it says, or else as impressions say."""
    found = {str(one.get("query_id")): _listed_results(one) for one in queries}
    seen: dict[str, dict[int, str]] = {}
    for event in events:
        id, place, names = str(event.get("query_id")), _ordinal(event), _objects(event)
        if event["action_name"] == "impression" and place is not None and names and not found.get(id):
            seen.setdefault(id, {})[place] = names[0]
    return found | {id: [places[rank] for rank in sorted(places)] for id, places in seen.items() if id in found}


def _listed_results(query: Record) -> list[str]:
    listed: list[Any] = next((query[name] for name in RESULTS if isinstance(query.get(name), list)), [])
    return list(dict.fromkeys(str(id) for id in listed))


def _attributes(event: Record, name: str) -> Mapping[str, Any]:
    inner = (event.get("event_attributes") or {}).get(name)
    return inner if isinstance(inner, Mapping) else {}


def _objects(event: Record) -> list[str]:
    """Ids of what an event is about: the application's, and the engine's own."""
    named = _attributes(event, "object")
    return [str(named[key]) for key in ("object_id", "internal_id") if named.get(key) not in (None, "")]


def _ordinal(event: Record) -> int | None:
    place = _attributes(event, "position").get("ordinal")
    return place if isinstance(place, int) else None
