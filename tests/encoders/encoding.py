"""A process of its own that encodes through a cache: python encoding.py FILE FIRST LAST [slow].

It prints a line for each text, and at its end the number of texts that were encoded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from evokey.encoders.cached import Cached
from evokey.protocols import Cost
from evokey.types import Vectors


class Slow:
    """A vector of a text's own letters, one text at a time."""

    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "time"
    identity = "slow/8"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.calls: list[list[str]] = []

    def documents(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        time.sleep(self.seconds)
        rows = np.array([[hash_of(text, place) for place in range(8)] for text in texts], np.float32).reshape(-1, 8)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return -self.documents(texts)


def hash_of(text: str, place: int) -> float:
    return 1 + sum(ord(letter) * (place + 3) ** number for number, letter in enumerate(text)) % 97


def main(path: str, first: str, last: str, seconds: str) -> None:
    cached = Cached.around(Slow(float(seconds)), Path(path))
    for number in range(int(first), int(last)):
        cached.documents([f"text {number}"])
        print(number, flush=True)  # noqa: T201
    print(cached.misses)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
