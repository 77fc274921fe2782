"""BM25 as a sparse encoder: the inner product of a query and a document is the BM25 score (Lucene's form).

Document side: count / (count + k1·(1 − b + b·length / average)). Query side: count · ln(1 + (N − df + ½) / (df + ½)).
A text becomes its counted stems; the store derives the weights, because they follow the documents that come and go.
Words are made by words.py, in any script, and stemmed by Snowball (stems.py); stop words are dropped in English
alone (idf makes the others light). How words are made has a number in the identity: keys of two analysers never mix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import Stemmer

from evokey.encoders.stems import UNSTEMMED, Stems, stemmer, stemmer_by_script
from evokey.encoders.words import split
from evokey.errors import InvalidSettings
from evokey.protocols import Bag, Cost
from evokey.types import Scores

ANALYSER = 2
"""The newest way to make words of a text."""
FIRST = re.compile(r"[^\W_]+")
"""Words as analyser 1 had them: they break at accents and vowel signs, and unspaced scripts are whole clauses."""
STOP_WORDS = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with what how why when which who does do can i my from has have had were been its than about "
        "would should could you your we our"
    ).split()
)


class BM25:
    kind: ClassVar[str] = "sparse"
    cost: ClassVar[Cost] = "nothing"

    def __init__(self, k1: float = 0.9, b: float = 0.4, language: str = "english", analyser: int = ANALYSER) -> None:
        """analyser: 1 is how words were made before 2; memories from then go on with it until they are re-encoded."""
        if not (k1 > 0 and 0 <= b <= 1):
            raise InvalidSettings(f"bm25 needs k1 > 0 and 0 ≤ b ≤ 1, not k1={k1}, b={b}")
        known = [*Stemmer.algorithms(), UNSTEMMED]
        if language not in known:
            raise InvalidSettings(f"bm25 has no language {language!r}; choose one of: {', '.join(sorted(known))}")
        if analyser not in (1, ANALYSER):
            raise InvalidSettings(f"bm25 has the analysers 1 and {ANALYSER}, not {analyser!r}")
        self.k1, self.b = k1, b
        self.identity = f"bm25/{language}/{analyser}"
        self._split = _split_as_first if analyser == 1 else partial(split, turkish=language == "turkish")
        stem = stemmer(language) if analyser == 1 else stemmer_by_script(language)
        self._stems = Stems(stem, STOP_WORDS if language in ("english", "porter") else frozenset())

    def documents(self, texts: Sequence[str]) -> list[Bag]:
        return [self._bag(text) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[Bag]:
        return [self._bag(text) for text in texts]

    def _bag(self, text: str) -> Bag:
        stems, bag = self._stems, dict[str, int]()
        for word in self._split(text):
            stem = stems[word]
            if stem is not None:
                bag[stem] = bag.get(stem, 0) + 1
        return bag

    def pivots(self, lengths: Scores, average: float) -> Scores:
        return self.k1 * (1 - self.b + self.b * lengths / max(average, 1e-9))

    def idf(self, documents: int, frequency: int) -> float:
        return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def _split_as_first(text: str) -> list[str]:
    return split(text) if text.isascii() else FIRST.findall(text.lower())
