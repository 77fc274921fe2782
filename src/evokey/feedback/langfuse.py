"""Langfuse: scores (GET /api/public/v3/scores or v2) joined with observations, and traces with their output.

A retrieval is an observation of the type RETRIEVER, or one whose output is a list of documents with ids. A score
names a document by its metadata: {"document": id}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from evokey.feedback.judged import Judged
from evokey.feedback.reading import Record, number_of
from evokey.feedback.traces import Retrieval, Score, Traces, attribute, cited_in, first_text, ids_of


def read(
    records: Iterable[Record], name: str | None = None, threshold: float = 0.5, field: str | None = None
) -> Judged:
    """name: of the scores that count; None: all of them."""
    scores, retrievals, cited, asked = list[Score](), list[Retrieval](), dict[str, list[str]](), dict[str, str]()
    for one in _flatten(records):
        if _is_score(one):
            scores += [_score(one)] if name is None or one.get("name") == name else []
        elif "traceId" in one:
            retrievals += _retrieval(one, field)
        else:
            asked[str(one.get("id"))] = first_text([one.get("input")])
            cited[str(one.get("id"))] = cited_in(one.get("output")) or cited_in(one.get("metadata"))
    found = [
        one if one.query else Retrieval(one.span, one.trace, asked.get(one.trace, ""), one.documents)
        for one in retrievals
    ]
    return attribute(Traces(found, scores, cited), threshold)


def _flatten(records: Iterable[Record]) -> Iterator[Record]:
    """A trace with all its details has its observations and scores in it."""
    for one in records:
        for inner in ("observations", "scores"):
            parts = one.get(inner)
            yield from (part for part in (parts if isinstance(parts, list) else ()) if isinstance(part, Mapping))
        yield one


def _is_score(record: Record) -> bool:
    return "value" in record and "name" in record


def _score(record: Record) -> Score:
    metadata = record.get("metadata") if isinstance(record.get("metadata"), Mapping) else {}
    subject = record.get("subject") if isinstance(record.get("subject"), Mapping) else {}
    kind, about = (subject or {}).get("kind"), (subject or {}).get("id")
    named = (metadata or {}).get("document")
    return Score(
        number_of(record.get("value")),
        record.get("observationId") or (about if kind == "observation" else None),
        record.get("traceId") or (subject or {}).get("traceId") or (about if kind == "trace" else None),
        None if named is None else str(named),
        None,
        record.get("authorUserId") or None,
    )


def _retrieval(record: Record, field: str | None) -> list[Retrieval]:
    documents = ids_of(record.get("output"), field)
    if record.get("type") != "RETRIEVER" and not documents:
        return []
    return [Retrieval(str(record.get("id")), str(record["traceId"]), first_text([record.get("input")]), documents)]
