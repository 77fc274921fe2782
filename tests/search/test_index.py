"""A search reads one state of everything: keys, documents, epoch and what it has learned; and one rule says when what
was composed is stale."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from conftest import Opener

import evokey
from evokey.search.index import Ground
from evokey.search.view import Overlays
from evokey.types import Ranking

QUERY = "my colleague broke everything yesterday"


def bits(ranking: Ranking) -> tuple[list[int], bytes]:
    return ranking.numbers.tolist(), ranking.scores.tobytes()


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"]], ids=str)
def test_a_view_stays_as_it_is_whatever_is_written_meanwhile(
    opened: Opener, commands: list[evokey.Document], encoder: str
) -> None:
    memory = opened(encoder=encoder)
    memory.add(commands)
    memory.feedback(QUERY, relevant=["git-revert"])
    memory.evolve()
    view = memory.index.view()
    before, untaught = bits(view.rank(QUERY, 5)), bits(view.untaught.rank(QUERY, 5))
    memory.delete(["git-revert", "git-log"])
    memory.add([{"id": "new", "text": f"{QUERY} {QUERY}"}])
    memory.forget(query=QUERY)
    assert (bits(view.rank(QUERY, 5)), bits(view.untaught.rank(QUERY, 5))) == (before, untaught)
    now = memory.index.view()
    assert bits(now.rank(QUERY, 5)) != before and now.rank(QUERY, 1).numbers.tolist() == [len(commands) + 1]


def test_a_search_during_a_change_finds_what_was_before_or_what_is_after(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    """Keys of two retrievers change one after the other: no ranking is of old keys of one and new keys of the other."""
    memory = opened()
    memory.add(commands)
    extra = {"id": "extra", "text": f"{QUERY} once more"}

    def ranked() -> tuple[tuple[str, float], ...]:
        return tuple((hit.id, hit.score) for hit in memory.search(QUERY, k=20))

    without = ranked()
    memory.add([extra])
    allowed, stop = {without, ranked()}, threading.Event()

    def change() -> None:
        while not stop.is_set():
            memory.delete(["extra"])
            memory.add([extra])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        found = {ranked() for _ in range(60)}
    finally:
        stop.set()
        thread.join()
    assert {tuple(id for id, _ in one) for one in found} <= {tuple(id for id, _ in one) for one in allowed}
    assert found <= allowed


def test_overlays_hold_as_long_as_their_ground_is_the_same() -> None:
    plain, weighed = Overlays({}, {}), Overlays({}, {}, weighed=True)
    ground = Ground(1, 2, 3, 40)
    later = replace(ground, newest=41)
    assert ground.holds(plain, ground) and ground.holds(weighed, ground)
    assert ground.holds(plain, later) and not ground.holds(weighed, later)
    for name in ("redacted", "spoken", "regrouped"):
        assert not ground.holds(plain, replace(ground, **{name: 9}))


def test_documents_that_come_leave_what_was_composed_unless_it_follows_from_them(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened(encoder="bm25")
    memory.add(commands)
    memory.feedback(QUERY, relevant=["git-revert"])
    memory.evolve()
    composed = memory.index.view().overlays
    memory.add([{"id": "new", "text": "another text"}])
    assert memory.index.view().overlays is composed
    memory.delete(["new"])
    assert memory.index.view().overlays is not composed
