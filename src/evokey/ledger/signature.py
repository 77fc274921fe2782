"""Whether a text is still there after an edit, told from a signature of the text as it was.

A signature is a MinHash: every two words in a row fall into one of 256 bins by their hash, and each bin keeps one byte
of its smallest. From the bins that agree follows how much of the old text the new one contains. One byte of a hash
fits every 256th pair of words, so no word can be read from the signature of a text that is gone; somebody who guesses
the whole text can see that the guess is right, as with any hash of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evokey.encoders.words import split

BINS = 256
EMPTY = 256
"""In the place of the byte, of a bin into which nothing fell."""
THERE = 0.7
"""The share of a taught text that an edited one must contain. Small edits of real texts leave more, and the most
similar other document of the same collection nearly always has less (benchmarks/results/edits.json)."""


@dataclass(frozen=True)
class Signature:
    size: int
    """Different pairs of words."""
    bins: NDArray[np.uint16]

    @classmethod
    def of(cls, text: str) -> Signature:
        words = split(text)
        pairs = {f"{one} {other}" for one, other in pairwise(["", *words, ""])} if words else set()
        hashes = np.frombuffer(b"".join(map(_hash, pairs)), np.uint64)
        places, order = (hashes % BINS).astype(np.int64), np.argsort(hashes)[::-1]
        bins = np.full(BINS, EMPTY, np.uint16)
        bins[places[order]] = (hashes[order] >> np.uint64(8)) % np.uint64(256)  # of a bin, the smallest comes last
        return cls(len(pairs), bins)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Signature:
        return cls(int.from_bytes(stored[:4], "little"), np.frombuffer(stored[4:], "<u2"))

    def to_bytes(self) -> bytes:
        return self.size.to_bytes(4, "little") + self.bins.astype("<u2").tobytes()

    def share_in(self, other: Signature) -> float:
        """How much of this text the other one contains, from 0 to 1, estimated."""
        some = (self.bins != EMPTY) | (other.bins != EMPTY)
        if not self.size or not other.size:
            return float(self.size == other.size)
        equal = float(((self.bins == other.bins) & some).sum()) / float(some.sum())
        alike = max(0.0, (equal - 1 / 256) / (1 - 1 / 256))  # one in 256 bins agrees by chance
        common = alike * (self.size + other.size) / (1 + alike)
        return min(1.0, common / self.size)


def _hash(pair: str) -> bytes:
    return hashlib.blake2b(pair.encode(), digest_size=8).digest()
