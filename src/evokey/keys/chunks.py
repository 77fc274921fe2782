"""The text in chunks, each a row of its own and each able to stand alone: title and headings, then a part of the text.

A chunk is whole sentences up to so many tokens, the last of the one before repeated as overlap. A Markdown heading
begins a new chunk. Code blocks and tables stay whole where they fit, else they are cut between lines. Only a sentence
or a line that alone is longer than a chunk is cut inside. Every part is a slice of the text, nothing is left out.
Tokens are estimated (sentences.size). A text that fits into one chunk is the same key as with `full`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evokey.errors import InvalidSettings
from evokey.keys.full import Full
from evokey.keys.sentences import Span, cut, first, size, spans
from evokey.keys.structure import TITLED, Block, blocks
from evokey.protocols import Corpus
from evokey.types import Document, KeyText

MOST = 2_000
"""Headings of a document above which they begin no chunks of their own: those would be a line each."""

LONGEST = 8
"""Characters of a heading that are looked at, for each token it may have: a token and its space have at most seven."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is not cut any further."""

    start: int
    end: int
    size: int
    heading: str = ""


@dataclass(slots=True)
class _Chunk:
    prefix: str
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0
    new: bool = False
    """Whether it says something that no chunk before it says, headings aside."""

    def __post_init__(self) -> None:
        self.size = size(self.prefix) + sum(piece.size for piece in self.pieces)

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.size += piece.size
        self.new = self.new or not piece.heading

    def row(self, source: str) -> KeyText:
        start, end = self.pieces[0].start, self.pieces[-1].end
        body = source[start:end]
        return KeyText(f"{self.prefix}\n{body}" if self.prefix else body, start, end, self.prefix)


class Chunks:
    def __init__(self, tokens: int = 180, overlap: int = 30) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 16:
            raise InvalidSettings(f"chunks keys: tokens is a whole number from 16 on, not {tokens!r}")
        if isinstance(overlap, bool) or not isinstance(overlap, int) or not 0 <= overlap <= tokens // 2:
            raise InvalidSettings(
                f"chunks keys: overlap is a whole number from 0 to half of tokens ({tokens // 2}), not {overlap!r}"
            )
        self.tokens, self.overlap = tokens, overlap

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        whole = Full().rows(document, corpus)
        if not document.text.strip() or size(whole[0].text) <= self.tokens:
            return whole
        return self.split(document)

    def split(self, document: Document) -> list[KeyText]:
        """Its parts, however short it is."""
        found = list(self._structure(document))
        apart = sum(block.kind in TITLED for block in found) <= MOST
        chunks = self._chunks(" ".join(document.title.split()), document.text, found, apart)
        return [chunk.row(document.text) for chunk in chunks]

    def _structure(self, document: Document) -> Iterator[Block]:
        return blocks(document.text)

    def _chunks(self, title: str, text: str, blocks: Sequence[Block], apart: bool) -> Iterator[_Chunk]:
        path: list[Block] = []
        prefix = self._prefix(title, path)
        chunk = _Chunk(prefix)
        room = self.tokens - chunk.size
        for block in blocks:
            if block.kind in TITLED:
                path = [one for one in path if one.level < block.level]
                if chunk.new and apart:
                    yield chunk
                    chunk = _Chunk(self._prefix(title, path))
                path.append(block)
                prefix = self._prefix(title, path)
                room = self.tokens - size(prefix)
                if block.kind == "section" and not chunk.pieces:  # its title is no part of the text
                    chunk = _Chunk(prefix)
            for piece in self._pieces(text, block, room):
                if chunk.pieces and chunk.size + piece.size > self.tokens:
                    if chunk.new or not all(one.heading in prefix for one in chunk.pieces):
                        yield chunk
                    chunk = _Chunk(prefix, self._overlap(chunk, room - piece.size))
                chunk.add(piece)
        if chunk.pieces:
            yield chunk

    def _prefix(self, title: str, path: Sequence[Block]) -> str:
        """Title and headings, in at most a third of a chunk: the outer headings give way first."""
        most = self.tokens // 3
        title, *headings = (part[: LONGEST * most] for part in (title, *(block.title for block in path)))
        parts = [part for part in (title, *(one for one in headings if one.lower() != title.lower())) if part]
        while len(parts) > 1 and size(" > ".join(parts)) > most:
            del parts[1]
        return first(" > ".join(parts), most)

    def _overlap(self, chunk: _Chunk, room: int) -> list[Piece]:
        """The last pieces of a chunk that the next one repeats."""
        room = min(room, self.overlap)
        carried: list[Piece] = []
        for piece in reversed(chunk.pieces):
            room -= piece.size
            if room < 0 or piece.heading:
                break
            carried.append(piece)
        return carried[::-1]

    def _pieces(self, text: str, block: Block, tokens: int) -> Iterator[Piece]:
        most = tokens if block.kind != "heading" else self.tokens - self.tokens // 3
        for start, end in _parts(text, block, most):
            part = text[start:end]
            length = size(part)
            if length <= most:
                yield Piece(start, end, length, block.title)
                continue
            for a, b in cut(part, most):
                yield Piece(start + a, start + b, size(part[a:b]), block.title)


def _parts(text: str, block: Block, tokens: int) -> Iterator[Span]:
    whole = text[block.start : block.end]
    if block.kind == "prose":
        yield from ((block.start + a, block.start + b) for a, b in spans(whole))
    elif block.kind == "heading" or size(whole) <= tokens:
        yield block.start, block.end
    else:
        yield from ((block.start + line.start(), block.start + line.end()) for line in re.finditer(r"\S.*", whole))
