"""Postings as they lie in memory and on disk: for each term, the rows that hold it, and how often.

Where counts are whole numbers, one code tells how often a row has a term and how long the row is. There are few such
pairs: a posting takes six bytes, and what a pair weighs is worked out once, not at every posting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evokey.scoring.block import Arrays
from evokey.scoring.soundness import check_lists, check_places, check_rising, check_values
from evokey.types import Numbers, Scores

STEP = 1 << 22
"""Postings coded in one go; numbers up to which they are coded; and pairs that could be, up to which they are counted,
however few the postings."""


class Weighting(Protocol):
    """What terms weigh, in rows and in questions."""

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        """A row's term weighs count / (count + pivot), the pivot growing with the row's length; None: just count."""
        ...

    def idf(self, documents: int, frequency: int) -> float:
        """What a query term weighs that so many of the documents hold."""
        ...


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

    def shares(self, encoder: Weighting, average: float) -> Scores | None:
        """What a term weighs in a row, by code; None where there are none, or the length of a row is all the same."""
        pivots = None if self.codes is None else encoder.pivots(self.lengths, average)
        return None if pivots is None else self.counts / (self.counts + pivots)

    def arrays(self) -> Arrays:
        lists = {"starts": self.starts, "rows": self.rows}
        if self.codes is None:
            return {**lists, "counts": self.counts}
        return {**lists, "codes": self.codes, "coded_counts": self.counts, "coded_lengths": self.lengths}

    @classmethod
    def check(cls, arrays: Arrays, terms: int, rows: int) -> None:
        starts, held = arrays["starts"], arrays["rows"]
        check_lists(starts, terms, len(held))
        check_places(held, len(held), rows)
        check_rising(held, starts)
        if starts.dtype != held.dtype:
            raise ValueError("starts and rows are of different widths")
        if "codes" not in arrays:
            check_values(arrays["counts"], len(held), np.float32)
            return
        check_places(arrays["codes"], len(held), len(arrays["coded_counts"]))
        check_values(arrays["coded_counts"], len(arrays["coded_counts"]), np.float32)
        check_values(arrays["coded_lengths"], len(arrays["coded_counts"]), np.float64)

    @classmethod
    def from_arrays(cls, arrays: Arrays, lengths: Scores) -> Self:
        """lengths: of each row. What was written without codes gets them, if it can."""
        lists = arrays["starts"], arrays["rows"]
        if "codes" in arrays:
            return cls(*lists, arrays["codes"], arrays["coded_counts"], arrays["coded_lengths"])
        return cls.of(*lists, arrays["counts"], lengths)


def _coded(
    rows: NDArray[Any], counts: NDArray[np.float32], lengths: Scores
) -> tuple[NDArray[Any], NDArray[np.float32], Scores] | None:
    """The code of each posting, and the count and the length of each code, those first that are met most."""
    least, most = counts.min(initial=0), max(counts.max(initial=0), lengths.max(initial=0))
    if least < 0 or most > STEP or not np.array_equal(whole := counts.astype(np.int32), counts):
        return None
    long = lengths.astype(np.int64)
    (often, how_often), (far, how_far) = _different(whole), _different(long)
    size = len(often) * len(far)
    if size > max(STEP, len(rows)):
        return None
    of_row = how_far[long] * len(often)
    steps = [slice(at, at + max(STEP, size)) for at in range(0, len(rows), max(STEP, size))]

    def pairs(some: slice) -> Numbers:
        return np.asarray(of_row[rows[some]] + how_often[whole[some]])

    met = np.zeros(size, np.int64)
    for some in steps:
        met += np.bincount(pairs(some), minlength=size)
    used = np.flatnonzero(met)
    used = used[np.argsort(-met[used], kind="stable")]
    names = np.zeros(size, np.uint16 if len(used) <= 1 << 16 else np.uint32)
    names[used] = np.arange(len(used))
    codes = np.empty(len(rows), names.dtype)
    for some in steps:
        codes[some] = names[pairs(some)]
    at_far, at_often = np.divmod(used, max(len(often), 1))
    return codes, often[at_often].astype(np.float32), far[at_far].astype(np.float64)


def _different(values: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The different whole numbers among these; and for each number up to the greatest, which of them it is."""
    found = np.flatnonzero(np.bincount(values))
    which = np.zeros(int(found.max(initial=0)) + 1, np.int64)
    which[found] = np.arange(len(found))
    return found, which
