"""The compiled scan finds what numpy finds, to the last bit; it is loaded when it pays, and missed by nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Opener, ranking
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from evokey.encoders.bm25 import BM25
from evokey.keys.full import Full
from evokey.protocols import Space
from evokey.scoring import compiled
from evokey.scoring.block import Found, Keys
from evokey.scoring.sparse import SparseBlock, SparseQuestion
from evokey.search.gate import SIGNALS, WIDE_OPEN
from evokey.search.overlay import Overlay, Touched
from evokey.search.retriever import SparseRetriever, search
from evokey.stores import sparse as store_
from evokey.stores.sparse import CompiledScan, SparseRows, SparseStore
from evokey.types import Choice, Numbers

WORDS = "ant bee cat dog eel fox gnu hen".split()
bags = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(Counter)
asked = st.dictionaries(st.sampled_from([*WORDS, "unicorn"]), st.integers(1, 3), max_size=6)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    pytest.importorskip("numba", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[fast]")
    assert compiled.load()


def filled(batches: list[list[Counter[str]]], dead: set[int], wide: bool, each: int = 1) -> SparseRetriever:
    """A retriever with a segment of each batch. Numbers fall from batch to batch, so rows are not in their order. Of
    several rows each, a document has one row at least."""
    store, high = SparseStore(Space(None, BM25())), sum(map(len, batches))
    for batch in batches:
        high -= len(batch)
        numbers = np.arange(high, high + len(batch), dtype=np.int64)
        owners = high + np.arange(len(batch), dtype=np.int64) // each
        block = SparseBlock.of(batch)
        if wide:
            wider = {"starts": np.int64, "rows": np.int64, "codes": np.uint32}
            arrays = block.inverted.arrays()
            inverted = {name: array.astype(wider.get(name, array.dtype)) for name, array in arrays.items()}
            block = SparseBlock(block.terms, block.counts, inverted)
        store._mergeable = lambda first, second: False  # type: ignore[method-assign]
        store.write(Keys(numbers, owners, block))
    store.follow(np.arange(high), (), sorted(dead))
    return SparseRetriever("bm25", BM25(), Full(), None, store)


def state(retriever: SparseRetriever) -> SparseRows:
    assert isinstance(retriever.base, SparseRows)
    return retriever.base


def found(retriever: SparseRetriever, overlay: Overlay, question: SparseQuestion, k: int) -> Found:
    return retriever.base.search([question], k, without=overlay.documents)[0]


@settings(max_examples=300, deadline=None)
@example(
    [[Counter("abc"), Counter("ab")] * 4_500], {2_047}, {"a": 1}, [3, 1_365], 10, False, 3
)  # rows of one document in two windows
@example([[Counter("abc")] * 9_000], {8_191}, {"a": 1}, [3, 4_096], 10, False, 1)  # several windows, all alike
@example([[*[Counter("b")] * 40, Counter("ab")] * 150] * 2, {81}, {"a": 2, "b": 1}, [40, 163], 9, False, 1)  # few, many
@example(
    [[*[Counter("b")] * 40, Counter("ac")] * 150] * 2, {81}, {"a": 1, "c": 1}, [40, 163], 700, True, 1
)  # few in each
@given(
    st.lists(st.lists(bags, min_size=1, max_size=80), min_size=1, max_size=3),
    st.sets(st.integers(0, 60), max_size=20),
    asked,
    st.lists(st.integers(0, 300), max_size=20, unique=True).map(sorted),
    st.integers(1, 30),
    st.booleans(),
    st.integers(1, 4),
)
def test_it_finds_what_numpy_finds_to_the_last_bit(
    batches: list[list[Counter[str]]],
    dead: set[int],
    query: dict[str, int],
    skipped: list[int],
    k: int,
    wide: bool,
    each: int,
) -> None:
    """Also where documents have several rows each."""
    retriever = filled(batches, dead, wide, each)
    question, living = retriever.weigh(query, {"unicorn": 2}), state(retriever)
    assert compiled._best is not None and living.compiled is not None
    skip: Numbers = np.array(skipped, np.int64)
    for among in (None, np.arange(0, 50, 2)):
        plain, fast = living.plain_scan(question), CompiledScan(living, question, compiled._best)
        expected, best = plain.top(k, skip, among), fast.top(k, skip, among)
        assert best.numbers.tolist() == expected.numbers.tolist()
        assert best.scores.tobytes() == expected.scores.tobytes()
        for numbers in (skip, skip[::2].copy()):
            rows, same = plain.rows_of(numbers), fast.rows_of(numbers)
            assert (None if rows is None else rows.tobytes()) == (None if same is None else same.tobytes())


def taught(shares: list[dict[int, float]], texts: int, backwards: bool) -> sparse.csr_array:
    """Evidence, in or out of order, with the zeros that were said."""
    rows = [
        sorted({text % texts: alpha for text, alpha in share.items()}.items(), reverse=backwards) for share in shares
    ]
    columns = np.array([text for row in rows for text, _ in row], np.int32)
    alphas = np.array([alpha for row in rows for _, alpha in row], np.float64)
    return sparse.csr_array((alphas, columns, np.cumsum([0, *map(len, rows)])), shape=(len(rows), texts))


shared = st.lists(st.dictionaries(st.integers(0, 19), st.floats(-1, 1), max_size=4), min_size=1, max_size=30)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(bags, min_size=1, max_size=40), min_size=1, max_size=2),
    st.lists(bags, min_size=1, max_size=20),
    asked,
    shared,
    st.none() | shared,
    st.sampled_from([0.0, 0.25, 1.0, 8.0]),
    st.sampled_from([None, 0.0, 0.3]),
    st.integers(1, 12),
    st.sets(st.integers(0, 30), max_size=3),
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_was_taught_joins_the_rest_the_same_to_the_last_bit(
    batches: list[list[Counter[str]]],
    texts: list[Counter[str]],
    query: dict[str, int],
    shares: list[dict[int, float]],
    pushed: list[dict[int, float]] | None,
    step: float,
    penalty: float | None,
    k: int,
    dead: set[int],
    backwards: bool,
    each: int,
    gated: bool,
) -> None:
    """Every other document is touched; some of them have no row, some nothing to learn from, some several rows; what
    was taught counts fully, or by a gate."""
    retriever = filled(batches, dead, False, each)
    numbers = np.arange(0, 2 * len(shares), 2)
    if each > 1:  # where documents have several rows, those that have gone are not touched
        numbers = numbers[retriever.base.sizes(numbers) > 0]
        assume(len(numbers))
        shares = (shares * 90)[: int(retriever.base.sizes(numbers).sum())]
    evidence = taught(shares, len(texts), backwards)
    against = None if pushed is None else taught((pushed * 90)[: len(shares)], len(texts), False)
    touched = Touched.of(numbers, np.ones(len(numbers), np.int64) if each == 1 else retriever.base.sizes(numbers))
    norms, choice = 1 + np.arange(len(shares)) % 3 / 2, Choice(step=step, penalty=penalty)
    if gated:
        choice = replace(choice, sharpness=1.0, gate_weights=(-1.0, *[0.0] * SIGNALS))
    base = SparseBlock.of([{}] * len(shares))  # never asked: the store has them at hand
    overlay = Overlay(touched, base, (), SparseBlock.of(texts), evidence, norms, choice, {}, against=against)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_, "LARGE", 1)
        question = retriever.weigh(query, {"unicorn": 2})
        best = found(retriever, overlay, question, k)
        joined = overlay._rank_in_one_go(question, best, k, overlay.open(question, best.ranking))
        fast = search(retriever, question, k, overlay)
        patch.setattr(compiled, "_joined", None)
        plain = search(retriever, question, k, overlay)
    unordered = against is None and not evidence.has_sorted_indices
    pushed_and_recalled = against is not None and penalty is not None
    apart = unordered or pushed_and_recalled or (gated and overlay.touched.several)
    assert (joined is None) == (min(question.weights, default=0) < 0 or apart)
    assert fast.numbers.tolist() == plain.numbers.tolist()
    assert fast.scores.tobytes() == plain.scores.tobytes()


def test_weights_below_zero_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_, "LARGE", 1)
    retriever = filled([[Counter("ab"), Counter("b")]], set(), False)
    question, rows = retriever.weigh({"a": 1, "b": 1}, {}), state(retriever)
    against = replace(question, weights=(1.0, -0.5))
    assert isinstance(rows.scan(question), CompiledScan)
    assert not isinstance(rows.scan(against), CompiledScan)
    assert rows.scan(against).top(2, np.zeros(0, np.int64), None).numbers.tolist() == [0]


@pytest.mark.parametrize("several", [False, True])
def test_a_memory_gives_the_same_with_it_and_without(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    keys = {"name": "chunks", "tokens": 16, "overlap": 0} if several else "full"
    memory, chance = opened(encoder="bm25", keys=keys), np.random.default_rng(3)
    sizes = [(1 + n % 7) * (6 if several else 1) for n in range(3000)]
    memory.add([{"id": str(n), "text": " ".join(chance.choice(WORDS, size))} for n, size in enumerate(sizes)])
    memory.delete([str(n) for n in range(0, 3000, 13)])
    for number in range(1, 60, 7):
        memory.feedback(f"ant bee word{number}", relevant=[str(number)])
    memory.evolve()
    assert memory.stats().documents_touched
    queries = ["ant", "ant bee word8", "fox gnu hen", "nothing of this", "cat cat word15 dog"]
    before = [ranking(memory, query, k=k, epoch=epoch) for query in queries for k in (1, 10) for epoch in (0, None)]
    monkeypatch.setattr(store_, "LARGE", 1)
    memory.close()
    again = opened()
    after = [ranking(again, query, k=k, epoch=epoch) for query in queries for k in (1, 10) for epoch in (0, None)]
    view = again.index.view()
    retriever, overlay = view.retrievers[0], view.overlays.of["bm25"]
    assert isinstance(retriever, SparseRetriever)
    assert state(retriever).several is several
    question = retriever.weigh({"ant": 1}, {})
    assert isinstance(state(retriever).scan(question), CompiledScan)
    assert overlay._rank_in_one_go(question, found(retriever, overlay, question, 3), 3, WIDE_OPEN) is not None
    assert after == before


def test_it_is_loaded_once_searches_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_best", None)
    monkeypatch.setattr(compiled, "_asked", 0)
    assert [compiled.best() for _ in range(compiled.AFTER - 1)] == [None] * (compiled.AFTER - 1)
    assert "evokey-compile" not in {thread.name for thread in threading.enumerate()}
    compiled.best()
    for thread in threading.enumerate():
        if thread.name == "evokey-compile":
            thread.join()
    assert compiled.best() is not None


def test_without_numba_nothing_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_best", None)
    monkeypatch.setattr(compiled, "_asked", 0)
    monkeypatch.delitem(sys.modules, "evokey.scoring.kernel")
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not compiled.load()
    assert [compiled.best() for _ in range(2 * compiled.AFTER)] == [None] * 2 * compiled.AFTER


def test_a_program_ends_while_it_is_being_compiled() -> None:
    program = (
        "import threading\nfrom evokey.scoring import compiled\n"
        "compiled.load = threading.Event().wait\n"
        "for _ in range(compiled.AFTER): compiled.best()\n"
        "assert any(one.name == 'evokey-compile' for one in threading.enumerate())\n"
    )
    source = str(Path(compiled.__file__).parents[2])
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env={**os.environ, "PYTHONPATH": source})
