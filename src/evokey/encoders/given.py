"""Vectors made elsewhere and handed in by the caller: add(documents, vectors=…), search(query, vector=…).

The texts of lessons are remembered with the vectors that came with them; nothing else can be encoded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from evokey.errors import InvalidVector
from evokey.protocols import Cost
from evokey.types import Vectors


class Given:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "nothing"

    def __init__(self) -> None:
        self.identity = "given"
        self.known: dict[str, Vectors] = {}

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        for text in texts:
            if text not in self.known:
                raise InvalidVector(
                    f"this memory takes its vectors from the caller (encoder 'given'), and none came for "
                    f"{text[:60]!r}. Pass vector=… beside it."
                )
        return np.stack([self.known[text] for text in texts])
