"""Short documents whole, long ones in parts: the key of a short document is that of `full`, a long one has a row for
each part of its structure.

Parts are made as by `chunks`, with two differences. Sections that came with the document (pages, definitions in source
code) are its structure, where there are some. A code block or a table is a part of its own and is not cut, unless it is
several times as long as a part: then it is cut between lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evokey.errors import InvalidSettings
from evokey.keys.chunks import Chunks, Piece
from evokey.keys.full import Full
from evokey.keys.sentences import size
from evokey.keys.structure import Block, structure
from evokey.protocols import Corpus
from evokey.types import Document, KeyText

UNCUT = 4
"""A code block or a table of at most so many times the tokens of a part is not cut."""


class Auto(Chunks):
    def __init__(self, whole: int = 2_560, tokens: int = 180, overlap: int = 30) -> None:
        """whole: tokens up to which a document is one row."""
        super().__init__(tokens, overlap)
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < tokens:
            raise InvalidSettings(f"auto keys: whole is a whole number from tokens ({tokens}) on, not {whole!r}")
        self.whole = whole

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        whole = Full().rows(document, corpus)
        if not document.text.strip() or size(whole[0].text) <= self.whole:
            return whole
        return self.split(document)

    def _structure(self, document: Document) -> Iterator[Block]:
        return structure(document)

    def _pieces(self, text: str, block: Block, tokens: int) -> Iterator[Piece]:
        if block.kind == "section":
            return
        if block.kind == "whole" and (length := size(text[block.start : block.end])) <= UNCUT * self.tokens:
            yield Piece(block.start, block.end, length)
        else:
            yield from super()._pieces(text, block, tokens)
