"""What every store promises, whichever engine keeps the keys: each of evokey's own is set up in setups.py. A package
with a store of its own imports these tests, and overrides the fixtures `kind` and `make`. Where a store is not exact,
scores may differ by so little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_word import ByWord
from setups import SETUPS, Setup

from evokey.encoders.bm25 import BM25
from evokey.encoders.given import Given
from evokey.protocols import Space, Store
from evokey.scoring.block import Keys
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.scoring.late import LateBlock, LateQuestion
from evokey.scoring.sparse import SparseBlock, SparseQuestion

Make = Callable[[], Store]
"""A store of the same space each time, as another process would open it."""
NUMBERS = np.arange(3, 43)
"""Documents: of two rows each fourth, and without a row each tenth."""
WORDS = "ant bee cat dog eel fox gnu hen".split()


class Ledger:
    """Whose documents these are."""

    writer = "me"

    def __init__(self, *, owner: bool = True) -> None:
        self._owner = owner

    def owns(self, writer: str, newest: int) -> bool:
        return self._owner


@pytest.fixture(params=SETUPS)
def setup(request: pytest.FixtureRequest) -> Setup:
    return SETUPS[request.param]


@pytest.fixture
def kind(setup: Setup) -> str:
    return setup.kind


@pytest.fixture
def space(kind: str, tmp_path: Path) -> Space:
    encoders: dict[str, Any] = {"dense": Given, "sparse": BM25, "multi": ByWord}
    return Space(tmp_path / "keys", encoders[kind]())


@pytest.fixture
def make(setup: Setup, space: Space, request: pytest.FixtureRequest) -> Iterator[Make]:
    with setup.serve(space, request) as make:
        yield make


@pytest.fixture
def keys(kind: str) -> Keys:
    chance = np.random.default_rng(7)
    owners = np.array([number for number in NUMBERS if number % 10 for _ in range(1 + (number % 4 == 0))])
    units = [_units(chance, int(chance.integers(1, 5))) for _ in owners]
    if kind == "dense":
        return Keys(NUMBERS, owners, DenseBlock(np.concatenate([some[:1] for some in units])))
    if kind == "multi":
        return Keys(NUMBERS, owners, LateBlock.of(units))
    bags = [{word: int(chance.integers(1, 4)) for word in chance.choice(WORDS, 3, replace=False)} for _ in owners]
    return Keys(NUMBERS, owners, SparseBlock.of(bags))


def _units(chance: np.random.Generator, count: int) -> Any:
    vectors = chance.standard_normal((count, 6)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def store(make: Make, keys: Keys) -> Iterator[Store]:
    """With all keys, written in two parts."""
    found = opened(make, keys.covered)
    for part in (keys.covered < 20, keys.covered >= 20):
        found.write(keys.take(part))
    yield found


def opened(make: Make, live: Any, ledger: Ledger | None = None) -> Store:
    found = make()
    found.open(ledger or Ledger())
    found.follow(live, live.tolist(), ())
    return found


def question(store: Store, kind: str) -> Any:
    chance = np.random.default_rng(5)
    if kind == "dense":
        return DenseQuestion(_units(chance, 1)[0])
    if kind == "multi":
        return LateQuestion(_units(chance, 3))
    counts, terms, encoder = store.snapshot.counts, ("bee", "eel", "gnu", "unicorn"), BM25()
    idf = [encoder.idf(counts.rows, frequency) if frequency else 0.0 for frequency in counts.frequencies(terms)]
    return SparseQuestion(terms, tuple(idf), encoder, counts.average, (1.0,) * 4, tuple(idf), 1.0)


def expected(keys: Keys, asked: Any) -> dict[int, float]:
    """Documents by the best of their rows, as the block scores it; those that are found at all."""
    found: dict[int, float] = {}
    for number, score in zip(keys.owners.tolist(), keys.block.scores(asked).tolist(), strict=True):
        found[number] = max(score, found.get(number, -np.inf))
    return {number: score for number, score in found.items() if score > keys.block.floor}


def check(store: Store, found: Any, wanted: dict[int, float], k: int) -> None:
    best = sorted(wanted, key=lambda number: (-wanted[number], number))[:k]
    assert found.numbers.tolist() == best
    tolerance = 0.0 if store.exact else 1e-6
    assert found.scores.tolist() == pytest.approx([wanted[number] for number in best], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_search_finds_the_best_documents_each_by_its_best_row(store: Store, keys: Keys, kind: str, k: int) -> None:
    asked = question(store, kind)
    found, again = store.snapshot.search([asked, asked], k)
    check(store, found.ranking, expected(keys, asked), k)
    assert again.ranking.numbers.tolist() == found.ranking.numbers.tolist()


def test_documents_can_be_left_out_and_others_asked_for_alone(store: Store, keys: Keys, kind: str) -> None:
    asked, without, within = question(store, kind), np.array([4, 5, 12, 21]), np.arange(0, 60, 3)
    wanted = expected(keys, asked)
    (found,) = store.snapshot.search([asked], 9, without=without)
    check(store, found.ranking, {number: score for number, score in wanted.items() if number not in without}, 9)
    if found.base is not None:
        assert found.base.tobytes() == store.snapshot.fetch(without).block.likeness(asked).tobytes()
    (found,) = store.snapshot.search([asked], 9, without=without, within=within)
    both = {number: score for number, score in wanted.items() if number in within and number not in without}
    check(store, found.ranking, both, 9)
    (found,) = store.snapshot.search([asked], 9, within=np.zeros(0, np.int64))
    assert not len(found.ranking)


def test_keys_are_fetched_in_the_order_asked_as_they_were_written(store: Store, keys: Keys, kind: str) -> None:
    asked, numbers = question(store, kind), np.array([21, 8, 10, 99, 4])
    found = store.snapshot.fetch(numbers)
    assert found.covered.tolist() == [21, 8, 10, 4]
    assert found.owners.tolist() == [21, 8, 8, 4, 4]
    assert (found.documents.tolist(), found.sizes.tolist()) == ([21, 8, 4], [1, 2, 2])
    rows = np.concatenate([np.flatnonzero(keys.owners == number) for number in (21, 8, 4)])
    assert found.block.scores(asked).tobytes() == keys.block.take(rows).scores(asked).tobytes()
    nothing = store.snapshot.fetch(np.array([99]))
    assert (len(nothing.covered), len(nothing.owners), len(nothing.block)) == (0, 0, 0)


def test_it_says_how_many_rows_a_document_has_and_which_keys_are_missing(store: Store) -> None:
    assert store.snapshot.sizes(np.array([3, 4, 10, 0, 99])).tolist() == [1, 2, 0, -1, -1]
    assert len(store.snapshot) == sum(number % 10 > 0 for number in NUMBERS)
    assert not len(store.snapshot.sizes(np.zeros(0, np.int64)))


def test_writing_twice_is_writing_once(store: Store, keys: Keys, kind: str) -> None:
    asked = question(store, kind)
    store.write(keys)
    store.write(keys.take(keys.covered < 9))
    assert store.snapshot.sizes(NUMBERS).tolist() == [0 if n % 10 == 0 else 1 + (n % 4 == 0) for n in NUMBERS]
    check(store, store.snapshot.search([asked], 9)[0].ranking, expected(keys, asked), 9)


def test_what_was_removed_is_not_found_nor_counted_and_its_keys_are_missing(
    store: Store, keys: Keys, kind: str
) -> None:
    gone = [4, 7, 21]
    kept = keys.take(~np.isin(keys.covered, gone))
    store.follow(kept.covered, (), gone)
    asked = question(store, kind)
    check(store, store.snapshot.search([asked], 100)[0].ranking, expected(kept, asked), 100)
    assert store.snapshot.sizes(np.array(gone)).tolist() == [-1] * 3
    assert store.snapshot.fetch(np.array([4, 8])).covered.tolist() == [8]
    assert len(store.snapshot) == len(kept.documents)


def test_who_opens_it_again_finds_the_same(store: Store, make: Make, keys: Keys, kind: str) -> None:
    store.flush()
    again = opened(make, keys.covered)
    asked = question(again, kind)
    check(again, again.snapshot.search([asked], 9)[0].ranking, expected(keys, asked), 9)
    assert again.check() == []


def test_keys_that_were_made_for_another_ledger_are_not_used(store: Store, make: Make, keys: Keys) -> None:
    store.flush()
    again = opened(make, keys.covered, Ledger(owner=False))
    assert not len(again.snapshot) and (again.snapshot.sizes(keys.covered) == -1).all()
    again.write(keys)
    assert len(again.snapshot) == len(keys.documents)


def test_after_a_drop_all_keys_are_missing_and_can_be_written_again(store: Store, keys: Keys) -> None:
    store.drop()
    assert not len(store.snapshot) and store.snapshot.sizes(NUMBERS).tolist() == [-1] * len(NUMBERS)
    store.write(keys)
    assert len(store.snapshot) == len(keys.documents)


def test_the_version_tells_whether_keys_are_the_same(store: Store, keys: Keys) -> None:
    before = store.snapshot.version
    assert store.snapshot.version == before
    store.follow(keys.covered[1:], (), [int(keys.covered[0])])
    assert store.snapshot.version != before
    hash(before)


def test_a_snapshot_stays_as_it_is_unless_the_store_has_none(store: Store, keys: Keys, kind: str) -> None:
    asked, before = question(store, kind), store.snapshot
    store.follow(keys.covered[:9], (), keys.covered[9:].tolist())
    if before is not store:
        check(store, before.search([asked], 9)[0].ranking, expected(keys, asked), 9)
    assert len(store.snapshot) < len(keys.documents)


def test_it_says_which_kinds_it_takes_and_the_dimension_of_dense_keys(store: Store, make: Make, kind: str) -> None:
    assert kind in store.kinds
    assert kind != "dense" or store.snapshot.dimension == 6


def test_an_empty_store_finds_nothing(make: Make, keys: Keys, kind: str) -> None:
    store = opened(make, keys.covered)
    (found,) = store.snapshot.search([question(store, kind)], 5)
    assert not len(found.ranking) and not len(store.snapshot)
    if kind == "sparse":
        assert (store.snapshot.counts.rows, store.snapshot.counts.average) == (0, 0.0)


def test_sparse_rows_are_counted(store: Store, keys: Keys, kind: str) -> None:
    if kind != "sparse":
        return
    counts = store.snapshot.counts
    assert (counts.rows, counts.average) == (len(keys.block), pytest.approx(keys.block.lengths.mean()))
    held = [int((keys.block.counts[:, [keys.block.place[word]]].toarray() > 0).sum()) for word in WORDS]
    assert list(counts.frequencies([*WORDS, "unicorn"])) == [*held, 0]


def test_another_reader_sees_what_was_written_and_what_was_removed(make: Make, keys: Keys, kind: str) -> None:
    first, later = keys.covered[keys.covered < 20], keys.covered[keys.covered >= 20]
    writer, reader = opened(make, first), opened(make, first)
    writer.write(keys.take(keys.covered < 20))
    writer.flush()
    reader.follow(first, first.tolist(), ())
    asked = question(reader, kind)
    known = keys.take(keys.covered < 20)
    check(reader, reader.snapshot.search([asked], 9)[0].ranking, expected(known, asked), 9)
    writer.follow(keys.covered, later.tolist(), ())
    writer.write(keys.take(keys.covered >= 20))
    writer.flush()
    kept = keys.take(keys.covered != first[0])
    for one in (writer, reader):
        one.follow(kept.covered, later.tolist() if one is reader else (), [int(first[0])])
    asked = question(reader, kind)
    assert (reader.snapshot.sizes(kept.covered) >= 0).all()
    check(reader, reader.snapshot.search([asked], 9)[0].ranking, expected(kept, asked), 9)


def test_a_single_document_is_found(make: Make, keys: Keys, kind: str) -> None:
    alone = keys.take(keys.covered == 21)
    store = opened(make, alone.covered)
    store.write(alone)
    store.flush()
    asked = question(store, kind)
    check(store, store.snapshot.search([asked], 5)[0].ranking, expected(alone, asked), 5)
    (found,) = store.snapshot.search([asked], 5, without=alone.covered)
    assert not len(found.ranking)
