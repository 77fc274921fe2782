"""The compiled scan. Importing this takes numba, and compiles unless that was done before.

Rows are scored a window at a time (as Lucene does): the scores of a window stay in the fastest memory, and no array of
all scores is made. A row's sum runs over the terms in their order, as everywhere else. Weights are not below zero, so a
row is noted once, as it rises to the bar: the score it takes to be among the best. Indexes are unsigned, because
Python's counting from the end costs a check at every access.

Where documents have several rows, a row of a document that is among the best already takes its place, or is dropped:
among the best, a document is once, with its best row.

Long lists are not passed over for rows that cannot reach the bar (as MaxScore does): with the bar of a hundred thousand
documents, what that spares is what looking the other rows up takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import float64, int32, int64, types, uint16, uint32, uint64

WINDOW, ONE = 4096, uint64(1)
FEW = 1024
"""Postings in a window, up to which scores are wiped one by one."""
ABOVE = float(np.nextafter(0.0, 1.0))


def _read(kind: Any) -> Any:
    return types.Array(kind, 1, "C", readonly=True)


def _signature(index: Any, code: Any) -> Any:
    lists = (_read(index), _read(index), _read(code), _read(float64), _read(int64))
    asked = (_read(int64), int64, _read(float64))
    barred = (_read(int64), float64[::1], int64, int64)
    return int64(*lists, *asked, *barred, int64[::1], float64[::1], int64, int64)


def _joining(index: Any, code: Any) -> Any:
    texts = (_read(index), _read(index), _read(code), _read(float64), int64)
    evidence = (_read(int64), _read(int64), _read(float64))
    asked = (_read(int64), _read(float64))
    moved = (_read(int64), _read(float64), float64, float64, _read(float64), float64, float64)
    return int64(*texts, *evidence, *asked, *moved, int64[::1], float64[::1], int64, int64)


def _compile(signature: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For each width of indexes and of codes."""
    signatures = [signature(index, code) for index in (int64, int32) for code in (uint32, uint16)]

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(signatures, cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError:  # nowhere to keep what was compiled
            return numba.njit(signatures, nogil=True, error_model="numpy")(function)

    return compiled


@numba.njit(inline="always")
def _insert(number, score, numbers, found, size, several):  # type: ignore[no-untyped-def]
    """A row, put where it belongs among the best so far; how many there are then. several: other rows of its document
    may be among these."""
    k = len(found)
    if size == k and (score < found[k - 1] or (score == found[k - 1] and number > numbers[k - 1])):
        return size
    place, grown = min(size, k - 1), min(size + 1, k)
    if several:
        for at in range(size):
            if numbers[at] == number:
                if score <= found[at]:
                    return size
                place, grown = at, size
                break
    while place > 0 and (found[place - 1] < score or (found[place - 1] == score and numbers[place - 1] > number)):
        found[place], numbers[place] = found[place - 1], numbers[place - 1]
        place -= 1
    found[place], numbers[place] = score, number
    return grown


# fmt: off
@_compile(_signature)
def best(  # type: ignore[no-untyped-def]
    starts, rows, codes, shares, owners, places, segment, weights,
    barred, kept, out, end, numbers, found, size, several,
):
    """The best rows of a segment outside `barred` (from `out` to `end`), added to the `size` best already in numbers
    and found, in order; how many there are then. What the barred rows score goes to `kept`. several: whether a document
    may have more than one row."""
    k, terms, bar = len(found), len(weights), ABOVE
    if size == k:
        bar = found[k - 1]
    scores, reached = np.zeros(WINDOW), np.empty(WINDOW, np.uint16)
    first, at, last = np.zeros(terms, np.uint64), np.zeros(terms, np.uint64), np.zeros(terms, np.uint64)
    for term in range(terms):
        place = places[term * (len(places) // terms) + segment]
        if place >= 0:
            at[term], last[term] = starts[place], starts[place + 1]
    for base in range(0, len(owners), WINDOW):
        limit, begin, scored, risen = base + WINDOW, uint64(base), uint64(0), uint64(0)
        for term in range(terms):
            i, stop, weight = at[term], last[term], weights[term]
            first[term] = i
            while i < stop and rows[i] < limit:
                row = uint64(rows[i]) - begin
                before = scores[row]
                score = before + weight * shares[codes[i]]
                scores[row] = score
                if score >= bar and before < bar:
                    reached[risen] = row
                    risen += ONE
                i += ONE
            scored += i - at[term]
            at[term] = i
        while out < end and barred[out] < limit:
            kept[out] = scores[barred[out] - base]
            scores[barred[out] - base] = 0.0
            out += 1
        for j in range(risen):
            row = uint64(reached[j])
            if scores[row] >= bar:
                size = _insert(owners[begin + row], scores[row], numbers, found, size, several)
        if size == k:
            bar = found[k - 1]
        if scored < FEW:
            for term in range(terms):
                for i in range(first[term], at[term]):
                    scores[uint64(rows[i]) - begin] = 0.0
        else:
            scores[:] = 0.0
    return size


@_compile(_joining)
def joined(  # type: ignore[no-untyped-def]
    starts, rows, codes, shares, texts, firsts, speaks_for, alphas,
    places, weights, touched, base, step, apart, norms, less, share, numbers, found, size, several,
):
    """Rows of touched documents (each with its document) by their moved keys and their recall rows, added to the `size`
    best already in numbers and found, in order; how many there are then. Taught texts are scored, and the rows that
    each speaks for (a column of the evidence: firsts, speaks_for, alphas) take their share of what is beyond `apart`,
    or are recalled by it, for so much less. share: how much of what is beyond their untaught score counts. several:
    whether a document may have more than one row."""
    likeness, pulls, recalled = np.zeros(texts), np.zeros(len(touched)), np.zeros(len(touched))
    for term in range(len(places)):
        if places[term] >= 0:
            for i in range(starts[places[term]], starts[places[term] + 1]):
                likeness[rows[i]] += weights[term] * shares[codes[i]]
    for text in range(texts):
        if likeness[text] != 0.0:
            for i in range(firsts[text], firsts[text + 1]):
                if likeness[text] > apart:
                    pulls[speaks_for[i]] += alphas[i] * (likeness[text] - apart)
                recalled[speaks_for[i]] = max(recalled[speaks_for[i]], likeness[text])
    for at in range(len(touched)):
        if base[at] > 0.0 or pulls[at] > 0.0 or recalled[at] > less:
            score = base[at]
            if step != 0.0:
                score = (base[at] + step * pulls[at]) / norms[at]
            score = max(score, recalled[at] - less)
            if share != 1.0:
                score = base[at] + share * (score - base[at])
            if score >= ABOVE:
                size = _insert(touched[at], score, numbers, found, size, several)
    return size


# fmt: on
