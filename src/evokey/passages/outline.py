"""The headings (or sections) of a document as an outline: which path of headings a place lies under, and what the part
under a name is."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evokey.keys.structure import Block, blocks
from evokey.once import cached_property
from evokey.types import Document

BETWEEN = " > "
"""Between the headings of a path."""
NEAR = 5
"""Names that an error proposes."""
LONGEST_TITLE = 200
"""Characters of a heading that its path keeps."""
MOST_NAMES, LONGEST_NAME = 1_000, 80
"""Names that an error compares, and characters of each: comparing takes the square of their length."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A heading, and the part of the text under it."""

    start: int
    text_start: int
    """Where its text begins, behind the heading itself."""
    end: int
    path: str
    """The headings above, and its own."""

    @property
    def title(self) -> str:
        return self.path.rpartition(BETWEEN)[2]


@dataclass(frozen=True)
class Outline:
    entries: Sequence[Entry]
    """In the order of the text."""

    @classmethod
    def of(cls, document: Document) -> Outline:
        if document.sections:
            return cls([Entry(one.start, one.start, one.end, one.where) for one in document.sections])
        return cls(_headings(document))

    @cached_property
    def _starts(self) -> list[int]:
        return [one.start for one in self.entries]

    def path(self, start: int) -> str:
        """The headings that the text at a place is under; those that stand at the place itself are among them."""
        place, last = bisect_right(self._starts, start) - 1, len(self.entries) - 1
        if place < 0:
            return ""
        while place < last and self.entries[place + 1].start <= max(start, self.entries[place].text_start):
            place += 1  # a heading right below another
        found = self.entries[place]
        return found.path if start < found.end or start == found.start else ""

    def find(self, name: str) -> Entry | None:
        """The part that a name means: the path of its headings, the same as an anchor, or the anchor of its own heading
        (of several with one heading the first)."""
        for called in (lambda one: one.path, lambda one: slug(one.path), lambda one: slug(one.title)):
            for one in self.entries:
                if called(one) == name:
                    return one
        return None


def _headings(document: Document) -> list[Entry]:
    title = " ".join(document.title.split()).lower()
    above: list[tuple[Block, str]] = []
    found: list[tuple[Block, str]] = []
    for block in blocks(document.text):
        if block.kind != "heading":
            continue
        above = [one for one in above if one[0].level < block.level]
        own = block.title[:LONGEST_TITLE]
        hidden = block.level == 1 and own.lower() == title  # the document's own title: it says nothing inside of it
        path = BETWEEN.join([*(one[1] for one in above if one[1]), *([] if hidden else [own])])
        above.append((block, "" if hidden else own))
        found.append((block, path))
    ends = _ends([block for block, _ in found], len(document.text))
    return [
        Entry(block.start, _skip_blank(document.text, block.end), end, path)
        for (block, path), end in zip(found, ends, strict=True)
    ]


def _ends(headings: Sequence[Block], last: int) -> list[int]:
    """Where the part under each heading ends: before the next of its level or above."""
    ends, later = [last] * len(headings), list[int]()
    for place in range(len(headings) - 1, -1, -1):
        while later and headings[later[-1]].level > headings[place].level:
            later.pop()
        if later:
            ends[place] = headings[later[-1]].start
        later.append(place)
    return ends


def _skip_blank(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def slug(text: str) -> str:
    """A name as in a link to a heading: "How to install?" is how-to-install."""
    return "-".join(_WORD.findall(text.casefold()))


def unique(names: Iterable[str]) -> Iterator[str]:
    """Each name, with a number behind it if it was there before: "Install", "Install (2)"."""
    seen, counts = set[str](), dict[str, int]()
    for name in names:
        found, count = name, counts.get(name, 1)
        while found in seen:
            count += 1
            found = f"{name} ({count})"
        counts[name] = count
        seen.add(found)
        yield found


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """The known names that are most like one."""
    folded = {slug(one)[:LONGEST_NAME]: one for one in known[:MOST_NAMES]}
    close = difflib.get_close_matches(slug(name)[:LONGEST_NAME], list(folded), NEAR, cutoff=0.3)
    return [folded[one] for one in close] or list(known[:NEAR])
