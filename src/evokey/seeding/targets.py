"""Which passages are asked about: a sample of the whole collection that grows with every run.

Documents come in the order of hashes of their numbers, so that the first few hundred passages are spread over all of
them; of a long document some passages are taken, then the other documents have their turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evokey.ledger.ledger import Ledger
from evokey.passages.reading import heading
from evokey.search.index import Index
from evokey.search.passages import passages_of
from evokey.types import Document, Numbers, Passage, digest

IN_TURN = 3
"""Passages of a document that are taken before other documents have their turn."""
SHORTEST, READ = 40, 2_000
"""Characters of a passage: one with fewer says too little, and more are not read."""


@dataclass(frozen=True, slots=True)
class Target:
    """A passage to ask about."""

    number: int
    document: Document
    passage: Passage

    @property
    def hash(self) -> str:
        return digest(self.passage.text)

    @property
    def text(self) -> str:
        """What the model reads: the passage under its headings."""
        return f"{heading(self.document, self.passage)}\n{self.passage.text}".strip()[:READ]


@dataclass(frozen=True, slots=True)
class Targets:
    index: Index
    ledger: Ledger

    def choose(self, limit: int | None, among: Numbers | None) -> list[tuple[int, int]]:
        """Passages that have not been asked about, each as the number of its document and its place there; at most so
        many, of all documents or among some."""
        numbers = self.index.live.tolist() if among is None else among.tolist()
        waiting, found = dict.fromkeys(sorted(numbers, key=_hash), 0), list[tuple[int, int]]()
        while waiting:
            for number, first in list(waiting.items()):
                places = self._new_places(number)
                found += [(number, place) for place in places[first : first + IN_TURN]]
                if limit is not None and len(found) >= limit:
                    return found[:limit]
                if len(places) > first + IN_TURN:
                    waiting[number] = first + IN_TURN
                else:
                    del waiting[number]
        return found

    def _new_places(self, number: int) -> list[int]:
        document = self.ledger.documents.fetch([number]).get(number)
        if document is None or len(document.text) < SHORTEST:
            return []
        known = self.ledger.seeded.of(document.id)
        texts = [one.text for one in passages_of(self.index.retrievers, number, document)]
        return [
            place for place, text in enumerate(texts) if len(text.strip()) >= SHORTEST and digest(text) not in known
        ]

    def fetch(self, places: Sequence[tuple[int, int]]) -> Iterator[Target]:
        """Those of the passages whose documents are still there."""
        documents = self.ledger.documents.fetch({number for number, _ in places})
        for number, place in places:
            document = documents.get(number)
            passages = [] if document is None else passages_of(self.index.retrievers, number, document)
            if document is not None and place < len(passages):
                yield Target(number, document, passages[place])


def _hash(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()
