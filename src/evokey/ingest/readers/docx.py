"""Word files by python-docx: headings by their styles, paragraphs, lists and tables in the order of the page."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.table import Table
from docx.text.paragraph import Paragraph

from evokey.ingest.content import Content
from evokey.ingest.markup import MarkdownWriter

DEEPEST = 8
"""Tables inside one another that are read."""


def read(data: bytes, path: Path) -> Content:
    document = docx.Document(io.BytesIO(data))
    writer = MarkdownWriter()
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph):
            _write(block, writer)
        else:
            writer.table(_rows(block, DEEPEST))
    about = document.core_properties
    metadata = {"author": about.author} if about.author and about.author != "python-docx" else {}
    metadata |= {"language": about.language} if about.language else {}
    return Content(writer.text, about.title or writer.title, metadata)


def _write(paragraph: Paragraph, writer: MarkdownWriter) -> None:
    style = (paragraph.style.name if paragraph.style is not None else "") or ""
    kind, _, level = style.rpartition(" ")
    if style == "Title":
        writer.heading(1, paragraph.text)
    elif kind == "Heading" and level.isdigit():
        writer.heading(int(level), paragraph.text)
    else:
        writer.paragraph(paragraph.text, "- " if style.startswith("List") else "")


def _rows(table: Table, depth: int) -> Iterator[list[str]]:
    for row in table.rows:
        cells = []
        for cell in dict.fromkeys(row.cells):  # a cell over several columns comes several times
            inner = [" ".join(line) for one in cell.tables for line in _rows(one, depth - 1)] if depth > 1 else []
            cells.append(" ".join([cell.text, *inner]))
        yield cells
