"""Spans for OpenTelemetry, with its conventions for retrieval. Off unless asked for: a span holds the query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evokey.errors import InvalidSettings
from evokey.types import Hit

SYSTEM = "evokey"


class Tracer:
    def __init__(self, *, on: bool) -> None:
        self._tracer: Any = None
        if on:
            try:
                from opentelemetry import trace
            except ModuleNotFoundError as error:
                raise InvalidSettings("--tracing needs OpenTelemetry: pip install 'evokey[otel]'") from error
            self._tracer = trace.get_tracer("evokey.serve")

    @contextmanager
    def retrieval(self, collection: str, query: str, k: int) -> Iterator[Span]:
        """A span around one search. Where the spans go is configured by OpenTelemetry's own environment variables."""
        if self._tracer is None:
            yield Span(None)
            return
        with self._tracer.start_as_current_span(f"retrieval {collection}") as span:
            span.set_attribute("gen_ai.operation.name", "retrieval")
            span.set_attribute("gen_ai.provider.name", SYSTEM)
            span.set_attribute("gen_ai.data_source.id", collection)
            span.set_attribute("gen_ai.request.top_k", k)
            span.set_attribute("gen_ai.retrieval.query.text", query)
            yield Span(span)


class Span:
    def __init__(self, span: Any) -> None:
        self._span = span

    def note(self, hits: Sequence[Hit]) -> None:
        if self._span is not None:
            told = [{"id": hit.id, "score": hit.score} for hit in hits]
            self._span.set_attribute("gen_ai.retrieval.documents", json.dumps(told))
