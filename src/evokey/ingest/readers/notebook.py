"""Jupyter notebooks: Markdown cells as they are, code and its printed output in fences; no images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evokey.ingest.content import Content
from evokey.ingest.encoding import decode
from evokey.ingest.markup import MarkdownWriter
from evokey.keys import markdown

LONGEST_OUTPUT = 4_000
"""Characters of one cell's output that are read: logs say little."""


def read(data: bytes, path: Path) -> Content:
    found = json.loads(decode(data)[0])
    if not isinstance(found, Mapping) or not isinstance(_cells(found), list):
        raise ValueError("it has no list of cells")
    language = _language(found)
    writer = MarkdownWriter()
    for cell in _cells(found):
        if isinstance(cell, Mapping):
            _write(cell, language, writer)
    text = writer.text
    return Content(text, markdown.title(text), {"code": language} if language else {})


def _cells(found: Mapping[str, Any]) -> Any:
    """Since version 4 at the top, before that in worksheets."""
    if "cells" in found:
        return found["cells"]
    sheets = found.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets if isinstance(sheet, Mapping) for cell in sheet.get("cells") or ()]


def _language(found: Mapping[str, Any]) -> str:
    about = found.get("metadata")
    for name, part in (("kernelspec", "language"), ("language_info", "name")):
        inner = about.get(name) if isinstance(about, Mapping) else None
        said = inner.get(part) if isinstance(inner, Mapping) else None
        if isinstance(said, str):
            return said[:40]
    return ""


def _write(cell: Mapping[str, Any], language: str, writer: MarkdownWriter) -> None:
    source = _joined(cell.get("source", cell.get("input")))
    if cell.get("cell_type") == "code":
        writer.code(source, language)
        for output in _outputs(cell):
            writer.code(output[:LONGEST_OUTPUT])
    elif cell.get("cell_type") == "heading":
        level = cell.get("level")
        writer.heading(level if isinstance(level, int) else 1, source)
    elif source.strip():
        writer.blocks.append(source.strip("\n"))


def _outputs(cell: Mapping[str, Any]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            shown = output.get("data")
            plain = shown.get("text/plain") if isinstance(shown, Mapping) else None
            yield _joined(output.get("text", plain))


def _joined(said: Any) -> str:
    if isinstance(said, list):
        return "".join(one for one in said if isinstance(one, str))
    return said if isinstance(said, str) else ""
