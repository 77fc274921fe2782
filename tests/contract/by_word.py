"""Late interaction at no cost: a vector for each word of a text, WordLlama's. What it finds can be worked out by hand.

Signs that are no words have no vector, as tokens that a model does not know have none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np

from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.protocols import Cost
from evokey.types import Vectors

WORD = re.compile(r"[^\W_]+")


class ByWord:
    kind: ClassVar[str] = "multi"
    cost: ClassVar[Cost] = "time"
    identity = "by-word/256"

    def documents(self, texts: Sequence[str]) -> list[Vectors]:
        return [vectors(text) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[Vectors]:
        return [vectors(text) for text in texts]


@cache
def vectors(text: str) -> Vectors:
    words = WORD.findall(text.lower())
    return WordLlamaEncoder().documents(words) if words else np.zeros((0, 256), np.float32)
