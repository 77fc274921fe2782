"""Files of exports: JSON in its usual wrappings, JSON lines, and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evokey import checks, ingest
from evokey.errors import InvalidInput

Record = Mapping[str, Any]
WRAPPINGS = ("data", "hits", "runs", "feedback", "scores", "observations", "traces", "spans", "annotations")
"""Fields in which an answer of an API has its list."""


def read_records(paths: Sequence[Path]) -> Iterator[Record]:
    """All records of some files: JSON lines, a list, or an API's answer with a list in it."""
    for path in paths:
        yield from _records(path)


def _records(path: Path) -> Iterator[Record]:
    try:
        whole = checks.json_value(read_text(path))
    except InvalidInput:
        yield from (_unwrap(record) for _, record in ingest.records(path))
        return
    yield from (_unwrap(one) for one in _as_list(whole) if isinstance(one, Mapping))


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    while isinstance(value, Mapping):
        inner = next((value[name] for name in WRAPPINGS if isinstance(value.get(name), list | Mapping)), None)
        if isinstance(inner, list):
            return inner
        if inner is None:
            return [value]
        value = inner
    return []


def _unwrap(record: Record) -> Record:
    """A hit of OpenSearch, or a line of a dump, has the record in _source."""
    inner = record.get("_source")
    return inner if isinstance(inner, Mapping) else record


def read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error


def read_table(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV or TSV file with a head."""
    text = read_text(path)
    separator = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [{(name or "").strip().lower(): value or "" for name, value in row.items()} for row in rows]
    except (csv.Error, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path} is no table with a head: {error}") from error


def text_of(value: Any) -> str:
    """A text, or the text in an input that is an object."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        names = ("query", "question", "input", "text", "value")
        return next((value[name].strip() for name in names if isinstance(value.get(name), str)), "")
    return ""


def number_of(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None
