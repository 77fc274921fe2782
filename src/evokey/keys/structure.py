"""The structure that a text shows by itself, line by line: headings, code blocks and tables, and prose between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from evokey.keys import markdown
from evokey.types import Document

TITLED = ("heading", "section")
"""Blocks that begin something with a title."""
PAGE = "p. "
"""How the name of a page begins."""
_UNDERLINE = re.compile(r" {0,3}(?:={3,}|-{3,})[ \t\r]*$")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: a heading, a code block or table (whole), or prose; or, of no length, the place
    where a section begins."""

    kind: str
    start: int
    end: int
    level: int = 0
    title: str = ""


def structure(document: Document) -> Iterator[Block]:
    """The blocks of a document: by its sections, where it came with some, else by what its text shows."""
    if not document.sections:
        yield from blocks(document.text)
    elif all(one.where.startswith(PAGE) for one in document.sections):  # a page ends no sentence and begins no part
        untitled = (Block("prose", one.start, one.end) for one in blocks(document.text) if one.kind == "heading")
        others = (one for one in blocks(document.text) if one.kind != "heading")
        yield from sorted((*untitled, *others), key=lambda one: one.start)
    else:
        yield from _sections(document)


def _sections(document: Document) -> Iterator[Block]:
    """Each section as one block behind its title, and what lies between them without one."""
    at = 0
    for one in document.sections:
        yield from _section(document.text, at, one.start, "")
        yield from _section(document.text, one.start, one.end, one.where)
        at = one.end
    yield from _section(document.text, at, len(document.text), "")


def _section(text: str, start: int, end: int, title: str) -> Iterator[Block]:
    if text[start:end].strip():
        yield Block("section", start, start, 1, title)
        yield Block("whole", start, end)


def blocks(text: str) -> Iterator[Block]:
    for (kind, _), lines in groupby(_lines(text), key=lambda line: (line.kind, line.level)):
        if kind == "heading":
            yield from lines
            continue
        several = list(lines)
        yield Block(kind, several[0].start, several[-1].end)


def _lines(text: str) -> Iterator[Block]:
    """Each line with its kind; the lines of one code block bear one number as their level."""
    lines = text.split("\n")
    mark, number, start, after_blank = "", 0, 0, True
    underlined = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        end = start + len(line)
        level, title = markdown.heading(line)
        if underlined:
            underlined = False
        elif mark:
            yield Block("whole", start, end, number)
            mark = markdown.fence(line, mark)
        elif mark := markdown.fence(line, ""):
            number += 1
            yield Block("whole", start, end, number)
        elif level:
            yield Block("heading", start, end, level, " ".join(title.split()))
        elif after_blank and _UNDERLINE.match(below) and _plain(line):
            underlined = True
            yield Block("heading", start, end + 1 + len(below), 1 if "=" in below else 2, " ".join(line.split()))
        elif line.lstrip().startswith("|"):
            yield Block("whole", start, end)
        else:
            yield Block("prose", start, end)
        start, after_blank = end + 1, not line.strip()


def _plain(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("-", "*", "+", ">", "=", "|"))
