"""What a model reads of a document that is longer than its share of the context: the passage that answers, and as much
of what stands around it as fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evokey.keys.sentences import Span, spans
from evokey.passages.outline import BETWEEN
from evokey.types import Document, Hit, Passage

LONGEST_TOKEN = 12
"""Characters around a passage that are looked at, for each token or character that there is room for."""
READ = 2_000
"""Characters that a reranker reads, unless it says otherwise: those of 512 tokens, beside the query."""
Measure = Callable[[str], int]
"""How long a text is."""


def widen(document: Document, passage: Passage, room: int, measure: Measure = len) -> Span:
    """The part of the text from the first to the last neighbouring sentence that fits beside the passage; the passage
    alone where nothing else does."""
    text, start, end = document.text, passage.start, passage.end
    left = room - measure(passage.text)
    far = max(left, 0) * LONGEST_TOKEN
    first = max(0, start - far)
    after = [end + stop for _, stop in spans(text[end : end + far])]
    before = [first + begin for begin, _ in spans(text[first:start])][::-1]
    while after or before:  # one behind, one ahead, until neither fits
        for some in (after, before):
            if not some:
                continue
            place = some.pop(0)
            cost = measure(text[end:place] if some is after else text[place:start])
            if cost > left:
                some.clear()
                continue
            left -= cost
            start, end = (start, place) if some is after else (place, end)
    return start, end


def heading(document: Document, passage: Passage) -> str:
    """Title of the document and headings of the passage, for a reader who sees nothing else of it."""
    own = "" if passage.where.startswith("part ") else passage.where
    return BETWEEN.join(part for part in (document.title.strip(), own) if part)


def excerpt(hit: Hit, characters: int) -> Document:
    """The document, of which a long one has only its passage and what stands around that."""
    document = hit.document
    if len(document.title) + len(document.text) < characters:
        return document
    title = heading(document, hit.passage)[: characters // 4]
    start, end = widen(document, hit.passage, characters - len(title) - 1)
    return replace(document, text=document.text[start:end][: characters - len(title) - 1], title=title, sections=())


def reading_limit(reranker: object) -> int:
    """Characters of a document that a reranker reads."""
    return int(getattr(reranker, "longest", READ))
