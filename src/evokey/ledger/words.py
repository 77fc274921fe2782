"""How the living documents use words: counted when a key builder first asks, and followed from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evokey.encoders.words import split
from evokey.ledger.documents import Documents, Position

BATCH = 2_000


class Words:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._counted: Counter[str] = Counter()
        self._at: Position | None = None
        self._total = 0
        self.stale = True
        """Whether documents came or went since the count."""

    @property
    def documents(self) -> int:
        self._follow()
        return self._total

    def frequency(self, word: str) -> int:
        """Of a word; of several at once, or of a text without spaces, that of its rarest part."""
        self._follow()
        return min((self._counted[part] for part in split(word)), default=0)

    def restart(self) -> None:
        """Count all again at the next question: what was counted was not committed."""
        self._at, self.stale = None, True

    def _follow(self) -> None:
        if not self.stale:
            return
        position = self._documents.position()
        if self._at is None or self._at.removals != position.removals:
            self._counted.clear()
            self._total = 0
            self._count(self._documents.live().tolist())
        else:
            self._count(self._documents.changes(self._at)[0])
        self._at, self.stale = position, False

    def _count(self, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), BATCH):
            for document in self._documents.fetch(numbers[start : start + BATCH]).values():
                self._counted.update(set(split(f"{document.title} {document.text}")))
                self._total += 1
