"""Scores of traces → documents. A tracing tool has retrievals (a question and the ids it found) and scores of people
or judges.

A score says something of a document if it names it, by id or by its place among the results; if the retrieval found
one document alone; or, where it is high, if the answer cites documents. Any other score is about an answer or a list,
and is counted as such. A low score of an answer demotes nothing: what was wrong may be the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evokey.feedback.judged import Judged, Judgement
from evokey.feedback.reading import text_of

NO_RETRIEVAL = "a score of a trace without a retrieval"
NO_VALUE = "a score without a number"
NO_QUERY = "a score of a retrieval without a question"
NO_PLACE = "a score of a place where nothing was found"
SEVERAL = "a score of several documents at once"
LOW = "a low score of several documents at once"
FIELDS = ("id", "document_id", "doc_id", "_id", "source")
"""Where the metadata of a document has its id, if the document itself has none."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    span: str
    trace: str
    query: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    value: float | None
    span: str | None = None
    trace: str | None = None
    document: str | None = None
    """The id that it names."""
    place: int | None = None
    """Or the place among the results, from 0."""
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    retrievals: Sequence[Retrieval]
    scores: Sequence[Score]
    cited: Mapping[str, Sequence[str]]
    """Documents that the answer of a trace cites."""


def attribute(traces: Traces, threshold: float = 0.5) -> Judged:
    """threshold: from which value on a score is high."""
    by_span = {one.span: one for one in traces.retrievals}
    by_trace: dict[str, list[Retrieval]] = {}
    for one in traces.retrievals:
        by_trace.setdefault(one.trace, []).append(one)
    found, left_out = list[Judgement](), Counter[str]()
    for score in traces.scores:
        about = [by_span[score.span]] if score.span in by_span else by_trace.get(score.trace or "", [])
        said = _judge(score, about, traces.cited.get(score.trace or "", ()), threshold)
        if isinstance(said, str):
            left_out[said] += 1
        else:
            found += said
    return Judged(found, left_out)


def _judge(score: Score, about: Sequence[Retrieval], cited: Sequence[str], threshold: float) -> list[Judgement] | str:
    """What a score says, or the reason why it says nothing of a document."""
    if score.value is None:
        return NO_VALUE
    if not about:
        return NO_RETRIEVAL
    query = next((one.query for one in about if one.query), "")
    if not query:
        return NO_QUERY
    documents = list(dict.fromkeys(id for one in about for id in one.documents))
    high = score.value >= threshold
    named = [score.document] if score.document is not None else None
    if score.place is not None:
        if not (len(about) == 1 and 0 <= score.place < len(documents)):
            return NO_PLACE
        named = [about[0].documents[score.place]]
    if named is None and len(documents) == 1:
        named = documents
    if named is None and high:
        named = [id for id in cited if id in documents] or None
    if named is None:
        return SEVERAL if high else LOW
    return [Judgement(query, id, 1.0 if high else -1.0, score.actor) for id in named]


def ids_of(found: Any, field: str | None = None) -> tuple[str, ...]:
    """Ids of what a retriever returned: a list of documents, or an object with such a list. field: of the metadata."""
    if isinstance(found, Mapping):
        lists = (found.get(name) for name in ("documents", "output", "results", "hits", "nodes"))
        found = next((one for one in lists if isinstance(one, list)), [])
    return tuple(id for one in found if (id := id_of(one, field))) if isinstance(found, list) else ()


def id_of(document: Any, field: str | None = None) -> str:
    if not isinstance(document, Mapping):
        return ""
    inner = document.get("kwargs") or document.get("document") or document.get("node") or document
    inner = inner if isinstance(inner, Mapping) else document
    said = inner.get("metadata")
    metadata: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    own = () if field else (inner.get("id"), inner.get("id_"))
    found = (*own, *(metadata.get(name) for name in ((field,) if field else FIELDS)))
    return next((str(one) for one in found if isinstance(one, str | int) and str(one)), "")


def cited_in(output: Any) -> list[str]:
    """Ids that an answer cites, where the application records them as such."""
    if not isinstance(output, Mapping):
        return []
    listed: list[Any] = next(
        (output[name] for name in ("citations", "cited", "sources") if isinstance(output.get(name), list)), []
    )
    return [one if isinstance(one, str) else id_of(one) for one in listed]


def first_text(values: Iterable[Any]) -> str:
    return next((text for value in values if (text := text_of(value))), "")
