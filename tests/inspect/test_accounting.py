"""The account of what was learned: shares, displacements within their bounds, hubs, by hand and on real data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Dataset, Opener
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import evokey
from evokey.evolution.folds import fold_of
from evokey.inspect.accounting import Account, concentration, report
from evokey.inspect.displacement import by_mass
from evokey.inspect.figure import plot
from evokey.inspect.hubness import Hub, Point, skewness
from evokey.types import Choice, Epoch


def at(degrees: float) -> list[float]:
    return [float(np.cos(np.radians(degrees))), float(np.sin(np.radians(degrees)))]


def fan(memory: evokey.Memory) -> None:
    """Twelve documents, five degrees apart."""
    documents = [evokey.Document(f"d{place}", f"at {5 * place} degrees", f"D{place}") for place in range(12)]
    memory.add(documents, vectors=[at(5 * place) for place in range(12)])


def publish(memory: evokey.Memory, choice: Choice) -> None:
    """An epoch with this choice, without asking whether it helps."""
    with memory.ledger.write():
        memory.ledger.epochs.append(
            Epoch(0, "evolve", memory.ledger.lessons.last, {"given": choice}, {"given": 1.0}, 0.0, {})
        )


def test_shares_tell_whether_one_dominates() -> None:
    one = concentration({"ann": 3, "bob": 1})
    assert (one.credits, one.count, one.gini) == (4, 2, pytest.approx(0.25))
    assert one.effective == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert [(share.name, share.share) for share in one.largest] == [("ann", 0.75), ("bob", 0.25)]
    equal = concentration(dict.fromkeys("abcdefghij", 7))
    assert (equal.effective, equal.gini) == (pytest.approx(10), pytest.approx(0))
    assert concentration({None: 5}).largest[0].name is None
    nothing = concentration({})
    assert (nothing.credits, nothing.effective, nothing.gini, list(nothing.shares)) == (0, 0, 0, [])


def test_skewness_is_the_third_standardised_moment() -> None:
    assert skewness(np.array([0.0, 0.0, 0.0, 4.0])) == pytest.approx(6 / 3**1.5)
    assert skewness(np.array([2.0, 2.0])) == skewness(np.zeros(0)) == 0


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0, 8),
)
def test_no_vector_turns_a_unit_vector_farther_than_the_bounds(
    key: list[float], towards: list[float], step: float
) -> None:
    k, v = np.array(key), np.array(towards)
    if np.linalg.norm(k) < 0.01 or np.linalg.norm(v) < 0.01:
        return
    k, v = k / np.linalg.norm(k), v / max(1.0, float(np.linalg.norm(v)))
    moved = k + step * v
    if np.linalg.norm(moved) < 1e-6:
        return
    turned = 1 - k @ moved / np.linalg.norm(moved)
    assert turned <= by_mass(np.array(step * np.linalg.norm(v))) + 1e-9
    assert turned <= 1 - k @ v / np.linalg.norm(v) + 1e-9


def test_the_bound_by_mass_is_reached_by_the_tangent() -> None:
    k, m = np.array([1.0, 0.0]), 0.6
    tangent = m * np.array([-m, np.sqrt(1 - m * m)])
    turned = 1 - (k + tangent)[0] / np.linalg.norm(k + tangent)
    assert turned == pytest.approx(by_mass(np.array(m))) == pytest.approx(0.2)
    assert by_mass(np.array([0.0, 1.0, 1.5])).tolist() == [0, 1, 2]


def test_a_key_moved_by_hand_is_accounted_with_its_bounds(opened: Opener) -> None:
    memory = opened(encoder="given")
    fan(memory)
    for actor in ("ann", "bob"):
        memory.feedback("straight up", relevant=["d0"], actor=actor, vector=at(90))
    memory.feedback("straight up", relevant=["d1"], actor="ann", vector=at(90))
    memory.feedback("straight up", relevant=["d1"], actor="bob", vector=at(90))
    memory.feedback("straight up", relevant={"d1": 0}, actor="bob", vector=at(90))
    publish(memory, Choice(step=0.5))
    account = report(memory)
    # Both documents have mass 1 and so the median is 1: α = 1/2, and keys move by λα = 1/4 straight up.
    (found,) = account.displacements
    moved = 1 - 1 / np.hypot(1, 0.25)
    assert (found.kind, found.documents, found.within) == ("dense", 2, True)
    assert found.moved[1] == pytest.approx(moved, abs=1e-6)
    assert found.bounds == pytest.approx([1 - np.sqrt(1 - 0.25**2)] * 2, abs=1e-6)
    assert found.bound == pytest.approx(1 - np.sqrt(0.75))
    assert [(one.document, one.taught) for one in account.pupils] == [("d0", 1), ("d1", 1)]
    assert account.pupils[0].moved == {"given": pytest.approx(moved, abs=1e-6)}
    # bob took his verdict on d1 back.
    assert [(one.name, one.share) for one in account.actors.largest] == [("ann", 2 / 3), ("bob", 1 / 3)]
    assert (account.queries.count, account.queries.effective) == (1, 1)
    assert [(one.name, one.share) for one in account.credited.largest] == [("d0", 2 / 3), ("d1", 1 / 3)]


def test_a_large_step_is_bound_by_the_direction_of_what_was_taught(opened: Opener) -> None:
    memory = opened(encoder="given")
    fan(memory)
    memory.feedback("half up", relevant=["d0"], vector=at(45))
    publish(memory, Choice(step=8.0))
    (found,) = report(memory).displacements
    assert found.bound == 2
    assert found.bounds == pytest.approx([1 - np.cos(np.pi / 4)], abs=1e-6)
    assert 0.15 < found.moved[0] < found.bounds[0]


def test_hubs_are_counted_before_and_after(opened: Opener) -> None:
    memory = opened(encoder="given")
    fan(memory)
    memory.feedback("level", relevant=["d11"], actor="ann", vector=at(0))
    assert memory.evolve().published
    account = report(memory)
    # Untaught, d0 to d9 are found. d11 then comes with its recall row, and d9 goes.
    hubs = account.taught
    assert set(hubs.points) == {
        Point(1, 1, False, 9), Point(1, 0, False, 1), Point(0, 1, True, 1), Point(0, 0, False, 1),
    }  # fmt: skip
    assert (hubs.queries, hubs.largest_before, hubs.largest_after) == (1, 1, 1)
    assert hubs.never_before == hubs.never_after == pytest.approx(2 / 12)
    share = 10 / 12
    assert hubs.skewness_after == pytest.approx((1 - 2 * share) / np.sqrt(share * (1 - share)))
    assert hubs.hubs[0] in [Hub(f"d{place}", f"D{place}", 1, 1, 0) for place in range(9)]
    assert account.neutral.queries == 0  # titles have no vector here
    assert account.displacements[0].choice.step == 1 and account.displacements[0].largest < 0.1


def test_a_memory_that_learned_nothing_has_an_empty_account(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[demo]")
    for name, documents in (("empty", []), ("untaught", commands)):
        memory = opened(name)
        memory.add(documents)
        account = report(memory)
        assert (account.epoch, account.touched, account.documents) == (0, 0, len(documents))
        assert (account.actors.count, list(account.pupils), account.taught.queries) == (0, [], 0)
        assert account.neutral.queries == len(documents)
        assert account.neutral.skewness_before == account.neutral.skewness_after
        plot(account, tmp_path / f"{name}.png")


@pytest.fixture(scope="module")
def halved(dataset: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Half of SciFact's queries taught, one actor teaching most of it."""
    data: Dataset = dataset("scifact")
    half = [query for query in sorted(data.judged) if fold_of(query) % 2 == 0]
    with evokey.open(tmp_path_factory.mktemp("account") / "kb") as memory:
        memory.add(data.documents)
        lessons = [
            {"query": query, "relevant": data.judged[query], "actor": "bob" if place % 4 == 0 else "ann"}
            for place, query in enumerate(half)
        ]
        memory.feedback_many(lessons)
        assert memory.evolve().published
        yield memory, lessons, report(memory)


def test_a_real_memory_is_accounted_as_its_lessons_say(halved: tuple[evokey.Memory, list[Any], Account]) -> None:
    _, lessons, account = halved
    given_by = Counter(lesson["actor"] for lesson in lessons for _ in lesson["relevant"])
    assert account.actors.credits == account.queries.credits == account.credited.credits == given_by.total()
    assert {one.name: one.share for one in account.actors.largest} == {
        name: count / given_by.total() for name, count in given_by.items()
    }
    assert 1 < account.actors.effective < 1.8
    assert account.touched == len({id for lesson in lessons for id in lesson["relevant"]})
    assert account.pupils[0].taught == max(Counter(id for one in lessons for id in one["relevant"]).values())
    json.dumps(account.to_dict())


def test_real_keys_move_within_their_bounds(halved: tuple[evokey.Memory, list[Any], Account]) -> None:
    memory, _, account = halved
    said = {change.document: change.moved_after for change in memory.diff(0, account.epoch).documents}
    for one in account.displacements:
        assert one.within
        assert 0 < one.largest <= one.bound
        assert sorted(moved[one.retriever] for moved in said.values()) == pytest.approx(list(one.moved), abs=1e-6)
    assert {one.kind for one in account.displacements} == {"dense", "sparse"}


def test_real_hubs_are_those_that_search_finds(halved: tuple[evokey.Memory, list[Any], Account]) -> None:
    memory, lessons, account = halved
    for epoch, skew in ((0, account.taught.skewness_before), (account.epoch, account.taught.skewness_after)):
        found = Counter(hit.id for lesson in lessons for hit in memory.search(lesson["query"], epoch=epoch))
        counts = [*found.values(), *[0] * (account.documents - len(found))]
        assert skew == pytest.approx(stats.skew(counts))
    assert account.neutral.queries == 400
    assert sum(point.documents for point in account.together.points) == account.documents
    assert abs(account.neutral.skewness_after - account.neutral.skewness_before) < 0.2


def test_the_figure_is_drawn(halved: tuple[evokey.Memory, list[Any], Account], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[demo]")
    plot(halved[2], tmp_path / "account.png")
    assert (tmp_path / "account.png").read_bytes().startswith(b"\x89PNG")
    plot(halved[2], tmp_path / "account.pdf")
    assert (tmp_path / "account.pdf").stat().st_size > 10_000
