"""BM25 as a sparse encoder: the inner product of a query and a document is the BM25 score (Lucene's form).

Document side: count / (count + k1·(1 − b + b·length / average)). Query side: count · ln(1 + (N − df + ½) / (df + ½)).
A text becomes its counted stems; the store derives the weights, because they follow the documents that come and go.
Stemming is Snowball's, in any of its languages; stop words are dropped in English alone (idf makes the others light).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import Stemmer

from evokey.errors import InvalidSettings
from evokey.protocols import Bag, Cost
from evokey.types import Scores

UNSTEMMED = "none"
WORDS = 100_000
"""Words whose stems are kept."""
WORD = re.compile(r"[^\W_]+")
PLAIN = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
"""What each character of a plain (ASCII) text becomes, before that is split: the same words in half the time."""
STOP_WORDS = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with what how why when which who does do can i my from has have had were been its than about "
        "would should could you your we our"
    ).split()
)


class Stems(dict[str, str | None]):
    """Word → its stem, None for a stop word: worked out once, and kept for so many words."""

    def __init__(self, stem: Callable[[str], str], stop_words: frozenset[str]) -> None:
        super().__init__()
        self._stem, self._stop_words = stem, stop_words

    def __missing__(self, word: str) -> str | None:
        if len(self) >= WORDS:
            self.clear()
        found = self[word] = None if word in self._stop_words else self._stem(word)
        return found


class BM25:
    kind: ClassVar[str] = "sparse"
    cost: ClassVar[Cost] = "nothing"

    def __init__(self, k1: float = 0.9, b: float = 0.4, language: str = "english") -> None:
        if not (k1 > 0 and 0 <= b <= 1):
            raise InvalidSettings(f"bm25 needs k1 > 0 and 0 ≤ b ≤ 1, not k1={k1}, b={b}")
        known = [*Stemmer.algorithms(), UNSTEMMED]
        if language not in known:
            raise InvalidSettings(f"bm25 knows no language {language!r}; choose one of: {', '.join(sorted(known))}")
        self.k1, self.b = k1, b
        self.identity = f"bm25/{language}/1"
        stem = str if language == UNSTEMMED else Stemmer.Stemmer(language, 0).stemWord
        self._stems = Stems(stem, STOP_WORDS if language in ("english", "porter") else frozenset())

    def documents(self, texts: Sequence[str]) -> list[Bag]:
        return [self._bag(text) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[Bag]:
        return [self._bag(text) for text in texts]

    def _bag(self, text: str) -> Bag:
        stems, bag = self._stems, dict[str, int]()
        plain = text.isascii()
        for word in text.encode().translate(PLAIN).decode().split() if plain else WORD.findall(text.lower()):
            stem = stems[word]
            if stem is not None:
                bag[stem] = bag.get(stem, 0) + 1
        return bag

    def pivots(self, lengths: Scores, average: float) -> Scores:
        return self.k1 * (1 - self.b + self.b * lengths / max(average, 1e-9))

    def idf(self, documents: int, frequency: int) -> float:
        return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
