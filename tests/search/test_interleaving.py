"""Interleaving: both rankings have the same chance, and each hit says who brought it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from conftest import Opener

from evokey.search.interleaving import Team, credit, find_orders, interleave
from evokey.types import Document, Hit


def hits(names: Iterable[str]) -> list[Hit]:
    return [Hit(name, 1.0, Document(name, name)) for name in names]


def test_each_ranking_brings_half_and_no_document_comes_twice() -> None:
    chance = np.random.default_rng(0)
    for _ in range(50):
        merged = interleave(Team(1, hits("abcdef")), Team(2, hits("cbxyza")), 6, chance)
        ids = [hit.id for hit in merged]
        brought = [hit.epoch for hit in merged]
        assert len(set(ids)) == 6 and abs(brought.count(1) - brought.count(2)) <= 1


def test_what_both_have_next_is_nobodys() -> None:
    merged = interleave(Team(1, hits("abcd")), Team(2, hits("abxd")), 5, np.random.default_rng(0))
    assert [(hit.id, hit.epoch) for hit in merged[:2]] == [("a", None), ("b", None)]
    assert {(hit.id, hit.epoch) for hit in merged[2:4]} == {("c", 1), ("x", 2)}


def test_who_comes_first_is_decided_by_chance() -> None:
    chance = np.random.default_rng(0)
    first = [interleave(Team(1, hits("ab")), Team(2, hits("xy")), 2, chance)[0].epoch for _ in range(1_000)]
    assert 450 < first.count(1) < 550


def test_a_search_compares_two_epochs(opened: Opener, commands: list[Document]) -> None:
    memory = opened(encoder="bm25")
    memory.add(commands)
    memory.feedback("undo", relevant=["git-revert"])
    memory.evolve()
    found = memory.search("undo", compare=0)
    assert {hit.epoch for hit in found} == {memory.epoch}  # the untaught index finds nothing
    assert {hit.epoch for hit in memory.search("history", compare=0)} == {None}  # both find the same


def test_who_clicks_by_place_alone_favours_nobody() -> None:
    """Whatever the places: the credit at each place is 0 on the mean over what chance shows."""
    mine, theirs = tuple("gabcdefhij"), tuple("abcdefghij")  # one document is lifted from the seventh place
    chance, places = np.random.default_rng(3), np.zeros(10)
    for _ in range(4_000):
        shown = tuple(hit.id for hit in interleave(Team(1, hits(mine)), Team(2, hits(theirs)), 10, chance))
        said = credit(mine, theirs, shown)
        places += [said[id] for id in shown]
    assert np.abs(places / 4_000).max() < 0.02
    assert np.abs(list(said.values())).max() > 0.1


def test_a_click_speaks_for_the_ranking_that_has_the_document_higher() -> None:
    mine, theirs = tuple("abcd"), tuple("bacd")
    assert credit(mine, theirs, tuple("abcd"))["a"] > 0 > credit(mine, theirs, tuple("bacd"))["b"]
    assert credit(mine, theirs, tuple("abcd"))["c"] == credit(mine, mine, mine)["a"] == 0
    swapped = credit(theirs, mine, tuple("abcd"))
    assert {id: -said for id, said in credit(mine, theirs, tuple("abcd")).items()} == swapped


def test_the_orders_are_those_that_interleaving_shows_as_often_as_it_does() -> None:
    mine, theirs, chance = tuple("abcde"), tuple("bxacy"), np.random.default_rng(5)
    likely = {order: share for share, order in find_orders(mine, theirs, ())}
    seen = Counter(
        tuple(hit.id for hit in interleave(Team(1, hits(mine)), Team(2, hits(theirs)), 10, chance))
        for _ in range(4_000)
    )
    assert seen.keys() == likely.keys() and sum(likely.values()) == 1
    assert all(abs(seen[order] / 4_000 - share) < 0.04 for order, share in likely.items())
