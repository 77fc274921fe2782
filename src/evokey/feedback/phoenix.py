"""Arize Phoenix: spans (GET /v1/projects/…/spans) with annotations of documents and of spans.

A document annotation has span_id and document_position, and its score in `result`, or beside them as in the rows of a
dataframe. A span of kind RETRIEVER has OpenInference attributes, flat ("retrieval.documents.0.document.id") or nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evokey.feedback.judged import Judged
from evokey.feedback.reading import Record, number_of, text_of
from evokey.feedback.traces import Retrieval, Score, Traces, attribute, id_of

LABELS = {
    "relevant": 1.0,
    "irrelevant": 0.0,
    "unrelated": 0.0,
    "not relevant": 0.0,
    "thumbs-up": 1.0,
    "thumbs-down": 0.0,
}


def read(
    records: Iterable[Record], name: str | None = None, threshold: float = 0.5, field: str | None = None
) -> Judged:
    """name: of the annotations that count; None: all of them."""
    spans, notes = list[Record](), list[Record]()
    for one in records:
        if isinstance(one.get("context"), Mapping):
            spans.append(one)
        elif _span(one) and (name is None or one.get("name", one.get("annotation_name")) == name):
            notes.append(one)
    retrievals = [_retrieval(one, field) for one in spans if _kind(one) == "RETRIEVER"]
    traces = {one["context"].get("span_id"): str(one["context"].get("trace_id")) for one in spans}
    scores = [_score(one, traces) for one in notes]
    return attribute(Traces(retrievals, scores, {}), threshold)


def _kind(span: Record) -> str:
    return str(span.get("span_kind") or _at(span, "openinference.span.kind") or "").upper()


def _at(span: Record, path: str) -> Any:
    """An attribute by its dotted name, whether attributes are flat or nested."""
    found: Any = span.get("attributes") or {}
    if isinstance(found, Mapping) and path in found:
        return found[path]
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _retrieval(span: Record, field: str | None) -> Retrieval:
    listed = _at(span, "retrieval.documents")
    documents = [id_of(one, field) for one in listed] if isinstance(listed, list) else _flat(span, field)
    context, query = span["context"], text_of(_at(span, "input.value"))
    return Retrieval(str(context.get("span_id")), str(context.get("trace_id")), query, tuple(documents))


def _flat(span: Record, field: str | None) -> list[str]:
    attributes, found = span.get("attributes") or {}, list[str]()
    while any(key.startswith(f"retrieval.documents.{len(found)}.document.") for key in attributes):
        before = f"retrieval.documents.{len(found)}.document."
        parts = {key.removeprefix(before): value for key, value in attributes.items() if key.startswith(before)}
        found.append(id_of(parts, field))
    return found


def _span(note: Record) -> str:
    return str(note.get("span_id") or note.get("context.span_id") or "")


def _score(note: Record, traces: Mapping[Any, str]) -> Score:
    inner = note.get("result")
    result = inner if isinstance(inner, Mapping) else note
    value = number_of(result.get("score"))
    if value is None:
        value = LABELS.get(str(result.get("label")).lower())
    place = note.get("document_position")
    return Score(
        value, _span(note), traces.get(_span(note)), None, place if isinstance(place, int) else None,
        note.get("user_id") or None,
    )  # fmt: skip
