"""Postings that tell a count and a length by one code say what they said without."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evokey.encoders.bm25 import BM25
from evokey.scoring.inverted import Inverted
from evokey.scoring.sparse import SparseBlock

bags = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(Counter)


def same(one: Inverted, other: Inverted) -> bool:
    """Whether the postings of all terms weigh the same, to the last bit."""
    encoder = BM25()
    for pivoted in (True, False):
        weighed = [
            [
                one.posting(at, encoder.pivots(one.lengths, 3.0) if pivoted else None)
                for at in range(len(one.starts) - 1)
            ]
            for one in (one, other)
        ]
        for first, second in zip(*weighed, strict=True):
            if [part.tobytes() for part in first] != [part.tobytes() for part in second]:
                return False
    return len(one.starts) == len(other.starts)


@settings(max_examples=100, deadline=None)
@given(st.lists(bags, max_size=30), st.booleans())
def test_codes_say_what_counts_and_lengths_say(texts: list[Counter[str]], whole: bool) -> None:
    block = SparseBlock.of([dict(bag) if whole else {word: n / 2 for word, n in bag.items()} for bag in texts])
    columns = block.counts.tocsc()
    plain = Inverted(columns.indptr, columns.indices, None, columns.data, block.lengths)
    found = block.inverted
    assert same(found, plain)
    half = any(count % 2 for bag in texts for count in bag.values())
    assert (found.codes is None) == (not whole and half)
    pivots = BM25().pivots(block.lengths, 3.0)
    shares = found.shares(BM25(), 3.0)
    if shares is not None and found.codes is not None:
        counts = columns.data.astype(np.float64)
        assert shares[found.codes].tobytes() == (counts / (counts + pivots[columns.indices])).tobytes()


@given(st.lists(bags, max_size=30))
def test_they_are_written_and_read_with_codes_or_without(texts: list[Counter[str]]) -> None:
    block = SparseBlock.of(texts)
    arrays = block.arrays()
    assert arrays["inverted_codes"].dtype == np.uint16
    assert same(SparseBlock.from_arrays(arrays).inverted, block.inverted)
    columns = block.counts.tocsc()
    before = {name: one for name, one in arrays.items() if "code" not in name}
    older = SparseBlock.from_arrays({**before, "inverted_counts": columns.data})
    assert same(older.inverted, block.inverted)
    assert older.inverted.codes is not None


def test_where_there_are_more_pairs_than_two_bytes_tell_codes_are_wider() -> None:
    size = 70_000
    rows, counts = np.arange(size, dtype=np.int32), np.arange(1, size + 1, dtype=np.float32)
    starts, lengths = np.array([0, size], np.int32), counts.astype(np.float64) % 50 + 1
    found = Inverted.of(starts, rows, counts, lengths)
    assert found.codes is not None
    assert found.codes.dtype == np.uint32
    assert same(found, Inverted(starts, rows, None, counts, lengths))
    for strange in (-counts, 1e6 * counts, counts + np.float32(0.5)):
        assert Inverted.of(starts, rows, strange, lengths).codes is None
    apart = Inverted.of(starts, rows, counts, counts.astype(np.float64))
    assert apart.codes is None, "a table of all that could be would be larger than the postings"
    assert same(apart, Inverted(starts, rows, None, counts, counts.astype(np.float64)))
