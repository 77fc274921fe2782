"""Whether a text is still there after an edit, told from a signature of the text as it was.

A signature is a MinHash of one bit: every two words in a row fall into one of 128 bins by their hash, and each bin
keeps one bit of its smallest. From the bins that agree follows how much of the old text is in the new one, or in that
part of it which is most like the old one. It takes 36 bytes, and is meant to tell little: of a short text four to five
bits for each word, of a long one far less, so that many texts fit it. Somebody who guesses the whole text can see that
the guess fits, as with any hash of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evokey.encoders.words import split

BINS = 128
EMPTY = 2
"""In the place of the bit, of a bin into which nothing fell."""
THERE = 0.7
"""The share of a taught text that an edited one must contain. Small edits of real texts leave more, and the most
similar other document of the same collection nearly always has less (benchmarks/results/edits.json)."""
LONGER = 2
"""A text of more than so many times the size is looked at part by part: in all of it, a short text would not show."""
MOST_PARTS = 20_000
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Signature:
    size: int
    """Different pairs of words."""
    bins: NDArray[np.uint8]

    @classmethod
    def of(cls, text: str) -> Signature:
        return cls._of_hashes(_hashes(text))

    @classmethod
    def _of_hashes(cls, pairs: Hashes) -> Signature:
        hashes = np.unique(pairs)[::-1]
        bins = np.full(BINS, EMPTY, np.uint8)
        bins[hashes % np.uint64(BINS)] = (hashes >> np.uint64(8)) & np.uint64(1)  # of a bin, the smallest comes last
        return cls(len(hashes), bins)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Signature:
        some, bits = np.unpackbits(np.frombuffer(stored[4:], np.uint8)).reshape(2, BINS)
        return cls(int.from_bytes(stored[:4], "little"), np.where(some, bits, EMPTY).astype(np.uint8))

    def to_bytes(self) -> bytes:
        told = np.packbits(self.bins != EMPTY).tobytes() + np.packbits(self.bins == 1).tobytes()
        return self.size.to_bytes(4, "little") + told

    def share_in(self, text: str) -> float:
        """How much of this text the other one contains, from 0 to 1, estimated."""
        pairs = _hashes(text)
        if len(pairs) <= LONGER * self.size or not self.size:
            return self._share(Signature._of_hashes(pairs))
        width = self.size + self.size // 2 + 1
        step = max(1, self.size // 4, len(pairs) // MOST_PARTS)
        parts = (pairs[start : start + width] for start in range(0, len(pairs) - self.size + 1, step))
        return max(self._share(Signature._of_hashes(part)) for part in parts)

    def _share(self, other: Signature) -> float:
        if not self.size or not other.size:
            return float(self.size == other.size)
        some, both = (self.bins != EMPTY) | (other.bins != EMPTY), (self.bins != EMPTY) & (other.bins != EMPTY)
        equal = int((self.bins[both] == other.bins[both]).sum())
        alike = max(0.0, (2 * equal - int(both.sum())) / int(some.sum()))  # half of the bits agree by chance
        common = alike * (self.size + other.size) / (1 + alike)
        return min(1.0, common / self.size)


def _hashes(text: str) -> Hashes:
    """Of each two words in a row."""
    words = split(text)
    pairs = (f"{one} {other}" for one, other in pairwise(["", *words, ""])) if words else ()
    return np.frombuffer(b"".join(hashlib.blake2b(one.encode(), digest_size=8).digest() for one in pairs), np.uint64)
