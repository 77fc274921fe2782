"""LangSmith: feedback (client.list_feedback) joined with runs (client.list_runs).

A retrieval is a run of the type retriever: inputs {"query": …}, outputs {"documents": […]}. Feedback names a document
by its `extra` or its source's metadata: {"document": id}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evokey.feedback.judged import Judged
from evokey.feedback.reading import Record, number_of
from evokey.feedback.traces import Retrieval, Score, Traces, attribute, cited_in, first_text, ids_of


def read(
    records: Iterable[Record], name: str | None = None, threshold: float = 0.5, field: str | None = None
) -> Judged:
    """name: the key of the feedback that counts; None: all of it."""
    runs, said = list[Record](), list[Record]()
    for one in records:
        if "run_type" in one:
            runs.append(one)
        elif "key" in one and (name is None or one.get("key") == name):
            said.append(one)
    traces = {str(one.get("id")): str(one.get("trace_id") or one.get("id")) for one in runs}
    retrievals = [_retrieval(one, field) for one in runs if one["run_type"] == "retriever"]
    cited: dict[str, list[str]] = {}
    for one in runs:
        if not one.get("parent_run_id"):
            cited[traces[str(one.get("id"))]] = cited_in(one.get("outputs"))
    return attribute(Traces(retrievals, [_score(one, traces) for one in said], cited), threshold)


def _retrieval(run: Record, field: str | None) -> Retrieval:
    trace = str(run.get("trace_id") or run.get("id"))
    return Retrieval(str(run.get("id")), trace, first_text([run.get("inputs")]), ids_of(run.get("outputs"), field))


def _score(record: Record, traces: Mapping[str, str]) -> Score:
    source = record.get("feedback_source") if isinstance(record.get("feedback_source"), Mapping) else {}
    places = (record.get("extra"), (source or {}).get("metadata"))
    named = next((one["document"] for one in places if isinstance(one, Mapping) and one.get("document")), None)
    run = str(record.get("run_id") or record.get("trace_id"))
    value = number_of(record.get("score"))
    return Score(
        number_of(record.get("value")) if value is None else value,
        run,
        str(record.get("trace_id") or traces.get(run) or run),
        None if named is None else str(named),
        None,
        str(user) if (user := (source or {}).get("user_id")) else None,
    )
