"""Title and abstract. The abstract is, in this order:

1. the one that came with the document (its metadata field),
2. the section of the text under a heading "Abstract",
3. the lead, if the text begins as prose: most of its beginning is whole sentences, as in news and scientific texts,
4. else, as for lists, tables and dialogue, a summary: the sentences nearest to the text's TF-IDF centroid, taken
   greedily, none with hardly a word, none that repeats one already taken, in the order of the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from evokey.encoders.words import MARKS, split
from evokey.errors import InvalidSettings
from evokey.keys.sentences import first, lead, size, spans
from evokey.keys.words import STOP_WORDS, idf
from evokey.protocols import Corpus
from evokey.types import Document, KeyText

LONGEST = 512
"""Tokens of an abstract that somebody wrote: a heading taken for one by mistake must not bring the whole text."""
MOST = 2_000
"""Sentences of which a summary is made."""
WHOLE = 5
"""Tokens from which on a sentence may be a whole one."""
TELLING = 3
"""Words, other than stop words, of a sentence that tells something."""
SAME = 0.6
"""Two sentences of this cosine say the same."""

_HEADING = re.compile(
    r"^[ \t]*(?:\#{1,6}[ \t]*)?(?:\d+\.?[ \t]+)?(?:\*\*|__)?abstract(?:\*\*|__)?[ \t]*+"
    r"(?P<inline>[:.—–-](?:\*\*|__)?[ \t]*(?=\S))?(?(inline)|[:.]?[ \t\r]*(?:\n[ \t\r]*)+)",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_HEADING = re.compile(
    r"^[ \t]*(?:\#{1,6}[ \t]|\*\*[^*\n]+\*\*[ \t]*$"
    r"|(?:(?:\d+|[IVX]+)\.?[ \t]+)?(?:introduction|background|keywords?|key words|index terms|contents)\b[ \t]*"
    r"(?:$|[:.—–]))",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_LISTED = re.compile(rf"[-*+•·#>|`~]|\(?\w{{1,3}}[.)]\s|[^\W\d_][\w{MARKS}.' -]{{0,30}}:\s")


class Abstract:
    def __init__(self, tokens: int = 90) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 8:
            raise InvalidSettings(
                f"abstract keys: tokens, the most of a lead or summary, is a whole number from 8 on, not {tokens!r}"
            )
        self.tokens = tokens

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        row = self._abstract(document, corpus)
        text = " ".join(filter(None, (document.title.strip(), row.text)))
        return [replace(row, text=text, where=document.title.strip())] if text else []

    def _abstract(self, document: Document, corpus: Corpus) -> KeyText:
        if document.abstract.strip():
            return KeyText(document.abstract.strip())
        section = _section(document.text)
        if section is not None:
            return section
        body = _body(document)
        if not _prose(body, self.tokens):
            return KeyText(_summary(body, self.tokens, corpus))
        before = len(document.text) - len(body)
        text, end = lead(body, self.tokens)
        return KeyText(text, before, before + end) if text else KeyText("")


def _section(text: str) -> KeyText | None:
    heading = _HEADING.search(text)
    if not heading:
        return None
    over = (_BLANK_LINE if heading["inline"] else _NEXT_HEADING).search(text, heading.end())
    section = text[heading.end() : over.start() if over else len(text)]
    start = heading.end() + len(section) - len(section.lstrip())
    found = first(section.strip(), LONGEST)
    return KeyText(found, start, start + len(found)) if found else None


def _body(document: Document) -> str:
    """The text without the title, where it begins with it."""
    text, title = document.text.lstrip(), document.title.strip()
    return text[len(title) :].lstrip() if title and text.lower().startswith(title.lower()) else text


def _prose(text: str, tokens: int) -> bool:
    """Whether most of the beginning, twice the length of a lead, is whole sentences."""
    seen = whole = 0
    for start, end in spans(text):
        sentence = text[start : min(end, start + 40 * tokens)]
        length = size(sentence)
        seen += length
        whole += length if length >= WHOLE and not _LISTED.match(sentence) else 0
        if seen >= 2 * tokens:
            break
    return seen <= tokens or whole >= 0.6 * seen


def _summary(text: str, tokens: int, corpus: Corpus) -> str:
    found = [text[start:end] for (start, end), _ in zip(spans(text), range(MOST), strict=False)]
    bags = [_weigh(sentence, corpus) for sentence in found]
    squares = [_square(bag) for bag in bags]
    centroid: Counter[str] = Counter()
    for bag in bags:
        centroid.update(bag)
    whole = _square(centroid)  # once: of a long text it has as many words as all sentences together
    near = [_cosine(bag, centroid, square * whole) for bag, square in zip(bags, squares, strict=True)]
    taken: list[int] = []
    room = tokens
    for number in sorted(range(len(found)), key=lambda number: (-near[number], number)):
        length = size(found[number])
        if (
            len(bags[number]) >= TELLING
            and length <= room
            and all(_cosine(bags[number], bags[other], squares[number] * squares[other]) < SAME for other in taken)
        ):
            taken.append(number)
            room -= length
    return " ".join(" ".join(found[number].split()) for number in sorted(taken)) or lead(text, tokens)[0]


def _weigh(sentence: str, corpus: Corpus) -> Counter[str]:
    counts = Counter(word for word in split(sentence) if word not in STOP_WORDS)
    return Counter({word: count * idf(word, corpus) for word, count in counts.items()})


def _cosine(one: Counter[str], other: Counter[str], squares: float) -> float:
    """By the product of their squared lengths."""
    product = sum(weight * other[word] for word, weight in one.items())
    return product / math.sqrt(squares) if product else 0.0


def _square(bag: Counter[str]) -> float:
    return sum(weight * weight for weight in bag.values())
