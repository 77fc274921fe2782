"""A document → its passages: slices of its text, each with a name of its own.

The passages of a document are the rows of its keys, where it has several; else windows of its text, cut as keys of the
kind `auto` are. A short document is one passage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evokey.errors import UnknownPassage
from evokey.keys.auto import Auto
from evokey.keys.sentences import Span, size
from evokey.passages.outline import BETWEEN, Outline, nearest, slug, unique
from evokey.types import Document, KeyText, Passage

WINDOW = Auto()


def windows(document: Document) -> list[Passage]:
    """The passages of a document whose keys name none."""
    text = document.text
    if not text.strip() or size(text) <= WINDOW.tokens:
        return passages(document, [(0, len(text))])
    return passages(document, spans(WINDOW.split(document)) or [(0, len(text))])


def spans(rows: Sequence[KeyText]) -> list[Span]:
    """The parts of the text that rows stand for; none where one of them stands for none."""
    found = [(row.start, row.end) for row in rows if row.start is not None and row.end is not None]
    return found if len(found) == len(rows) else []


def passages(document: Document, places: Sequence[Span]) -> list[Passage]:
    """Parts of the text, named."""
    outline = Outline.of(document)
    paths = [outline.path(start) or f"part {number}" for number, (start, _) in enumerate(places, 1)]
    names = list(unique(paths)) if len(places) > 1 else [""] * len(places)
    return [
        Passage(document.text[start:end], start, end, where, anchor)
        for (start, end), where, anchor in zip(places, names, _anchors(names), strict=True)
    ]


def _anchors(names: Sequence[str]) -> Iterator[str]:
    """Of each name that of its last heading, or of the whole path where another has that."""
    seen = {""}
    for name in names:
        tried = [slug(name.rpartition(BETWEEN)[2]), slug(name)]
        found = next((one for one in tried if one not in seen), None)
        count = 2
        while found is None:
            again = f"{tried[1] or 'part'}-{count}"
            found, count = (None if again in seen else again), count + 1
        seen.add(found)
        yield found if name else ""


def find_overlaps(places: Sequence[Span], wanted: Sequence[Span]) -> list[int]:
    """Which of the places lie in the wanted parts by half at least; where none does, those that hold most of them."""
    common = [max((min(end, stop) - max(start, first) for first, stop in wanted), default=0) for start, end in places]
    inside = [at for at, (start, end) in enumerate(places) if common[at] > 0 and 2 * common[at] >= end - start]
    most = max(common, default=0)
    return inside or [at for at, share in enumerate(common) if share == most > 0]


def resolve(document: Document, name: str, known: Sequence[Passage]) -> Passage:
    """The part of a document that a name means: a heading with all that is below it, a page, or one of the known
    passages."""
    outline = Outline.of(document)
    entry = outline.find(name) or outline.find(slug(name))
    if entry is not None and entry.path:
        anchor = slug(entry.title) if outline.find(slug(entry.title)) is entry else slug(entry.path)
        return Passage(document.text[entry.start : entry.end], entry.start, entry.end, entry.path, anchor)
    for one in known:
        if one.where and name in (one.where, one.anchor):
            return one
    names = list(dict.fromkeys([*(one.path for one in outline.entries), *(one.where for one in known)]))
    raise unknown(document, name, [one for one in names if one])


def unknown(document: Document, name: str, names: Sequence[str]) -> UnknownPassage:
    if not names:
        return UnknownPassage(
            f"document {document.id!r} has no passage {name!r}: it is one passage, without headings or pages; "
            f"name the document alone: {document.id!r}"
        )
    close = ", ".join(repr(f"{document.id}#{slug(one)}") for one in nearest(name, names))
    return UnknownPassage(
        f"document {document.id!r} has no passage {name!r}; a passage is named by its heading or page behind '#', "
        f"such as {close}. Or name the document alone: {document.id!r}"
    )
