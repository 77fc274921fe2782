"""PDF by PDFium: the text layer, page by page. There is no OCR: a scanned page has no text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pypdfium2

from evokey.ingest.content import Content
from evokey.types import Section

SEVERAL = 4
"""Pages from which on a line that most of them begin or end with is taken for a running head."""
DIGITS = re.compile(r"\d+")
BETWEEN = "\n\n"
NO_TEXT = "its pages have no text, only images; evokey has no OCR: run one first, for example ocrmypdf"


def read(data: bytes, path: Path) -> Content:
    document = pypdfium2.PdfDocument(data)
    try:
        pages = [_clean(text) for text in _pages(document)]
        about = {name: str(value).strip() for name, value in document.get_metadata_dict(skip_empty=True).items()}
    finally:
        document.close()
    if not any(pages):
        raise ValueError(NO_TEXT)
    text, sections = _join(_without_running_heads(pages))
    metadata: dict[str, str | int] = {"pages": len(pages)}
    if about.get("Author"):
        metadata["author"] = about["Author"]
    return Content(text, about.get("Title", ""), metadata, sections)


def _pages(document: pypdfium2.PdfDocument) -> Iterator[str]:
    for number in range(len(document)):
        page = document[number]
        try:
            found = page.get_textpage()
            yield found.get_text_range()
            found.close()
        finally:
            page.close()


def _clean(text: str) -> str:
    """Lines, without spaces around them; a word that was divided at the end of a line is whole again."""
    text = text.replace("\r\n", "\n").replace("\ufffe\n", "").replace("\x02\n", "").replace("\ufffe", "-")
    lines = (" ".join("".join(sign for sign in line if sign.isprintable()).split()) for line in text.split("\n"))
    return "\n".join(lines).strip("\n")


def _without_running_heads(pages: list[str]) -> list[str]:
    """Pages without the line at the top or at the bottom that most of them have, page numbers aside."""
    if sum(map(bool, pages)) < SEVERAL:
        return pages
    lines = [page.split("\n") for page in pages]
    for at in (0, -1):
        counts = Counter(DIGITS.sub("0", page[at]) for page in lines if page and page[at])
        repeated = {line for line, count in counts.items() if count > len(pages) / 2}
        lines = [
            (page[1:] if at == 0 else page[:-1]) if page and DIGITS.sub("0", page[at]) in repeated else page
            for page in lines
        ]
    return ["\n".join(page).strip("\n") for page in lines]


def _join(pages: list[str]) -> tuple[str, tuple[Section, ...]]:
    parts, sections, at = [], [], 0
    for number, page in enumerate(pages, 1):
        if page:
            sections.append(Section(at, at + len(page), f"p. {number}"))
            parts.append(page)
            at += len(page) + len(BETWEEN)
    return BETWEEN.join(parts), tuple(sections)
