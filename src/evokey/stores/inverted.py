"""Postings as they lie in memory and on disk: for each term, the rows that hold it, and how often.

Where counts are whole numbers, one code tells how often a row has a term and how long the row is. There are few such
pairs: a posting takes six bytes, and what a pair weighs is worked out once, not at every posting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evokey.protocols import SparseEncoder
from evokey.stores.segments import Arrays
from evokey.types import Numbers, Scores

MOST = 1 << 24
"""Pairs that could be, up to which they are counted."""


@dataclass(frozen=True, slots=True)
class Inverted:
    starts: NDArray[Any]
    """Where the postings of each term start, and the end."""
    rows: NDArray[Any]
    codes: NDArray[Any] | None
    counts: NDArray[np.float32]
    """Of each code; of each posting, where there are no codes."""
    lengths: Scores
    """Of each code; of each row, where there are no codes."""

    @classmethod
    def of(cls, starts: NDArray[Any], rows: NDArray[Any], counts: NDArray[np.float32], lengths: Scores) -> Self:
        """From the count of each posting and the length of each row."""
        return cls(starts, rows, *(_coded(rows, counts, lengths) or (None, counts, lengths)))

    def posting(self, at: int, pivots: Scores | None) -> tuple[Numbers, Scores]:
        """The rows that hold a term, and what it weighs in each; pivots: those of `lengths`."""
        first, last = self.starts[at : at + 2].tolist()
        rows = self.rows[first:last].astype(np.int64, copy=False)
        codes = None if self.codes is None else self.codes[first:last]
        counts = self.counts[first:last] if codes is None else self.counts[codes]
        if pivots is None:
            return rows, counts.astype(np.float64)
        weights = pivots[rows if codes is None else codes]
        weights += counts
        return rows, np.divide(counts, weights, out=weights)

    def frequency(self, at: int) -> int:
        """How many rows hold a term."""
        return int(self.starts.item(at + 1) - self.starts.item(at))

    def shares(self, encoder: SparseEncoder, average: float) -> Scores | None:
        """What a term weighs in a row, by code; None where there are none, or the length of a row is all the same."""
        pivots = None if self.codes is None else encoder.pivots(self.lengths, average)
        return None if pivots is None else self.counts / (self.counts + pivots)

    def arrays(self) -> Arrays:
        lists = {"starts": self.starts, "rows": self.rows, "counts": self.counts}
        return lists if self.codes is None else {**lists, "codes": self.codes, "lengths": self.lengths}

    @classmethod
    def from_arrays(cls, arrays: Arrays, lengths: Scores) -> Self:
        """lengths: of each row. What was written without codes gets them, if it can."""
        lists = arrays["starts"], arrays["rows"]
        if "codes" in arrays:
            return cls(*lists, arrays["codes"], arrays["counts"], arrays["lengths"])
        return cls.of(*lists, arrays["counts"], lengths)


def _coded(
    rows: NDArray[Any], counts: NDArray[np.float32], lengths: Scores
) -> tuple[NDArray[Any], NDArray[np.float32], Scores] | None:
    """The code of each posting, and the count and the length of each code, those first that are met most."""
    whole = counts.astype(np.int32)
    if not np.array_equal(whole, counts):
        return None
    (few, which), (long, how_long) = _different(whole), _different(lengths.astype(np.int64))
    if len(few) * len(long) > MOST:
        return None
    pairs = how_long[rows] * len(few) + which
    often = np.bincount(pairs)
    used = np.flatnonzero(often)
    used = used[np.argsort(-often[used], kind="stable")]
    codes = np.zeros(len(often), np.uint16 if len(used) <= 1 << 16 else np.uint32)
    codes[used] = np.arange(len(used))
    at_long, at_few = np.divmod(used, max(len(few), 1))
    return codes[pairs], few[at_few].astype(np.float32), long[at_long].astype(np.float64)


def _different(values: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The different whole numbers among these, and which of them each is."""
    found = np.flatnonzero(np.bincount(values))
    which = np.zeros(int(found.max(initial=0)) + 1, np.int64)
    which[found] = np.arange(len(found))
    return found, which[values]
