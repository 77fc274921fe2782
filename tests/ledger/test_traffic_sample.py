"""A sample of what was searched: bounded, a function of the set of queries, and forgotten on demand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Opener

import evokey
from evokey.errors import InvalidSettings
from evokey.evolution.policy import Proposal, TrainingData
from evokey.ledger.sqlite.database import SQLite
from evokey.ledger.traffic import Traffic

QUERIES = [f"how do I undo commit {number}" for number in range(200)]


def sampled(folder: Path, queries: list[str], size: int, every: int) -> list[str]:
    folder.mkdir()
    with SQLite(folder) as database:
        traffic = Traffic(database, size)
        for at, query in enumerate(queries):
            traffic.note(query)
            if at % every == 0:
                traffic.keep()
        traffic.keep()
        return traffic.queries()


def test_the_sample_depends_on_which_queries_were_searched_and_on_nothing_else(tmp_path: Path) -> None:
    other = random.Random(1).sample(QUERIES, len(QUERIES)) + QUERIES[:50]
    first = sampled(tmp_path / "a", QUERIES, 20, every=7)
    assert len(first) == 20
    assert first == sampled(tmp_path / "b", other, 20, every=300)
    assert first[:5] == sampled(tmp_path / "c", other, 5, every=1)


def test_searches_are_noted_and_written_with_the_next_lesson(opened: Opener) -> None:
    memory = opened("a", encoder="bm25")
    memory.add([{"id": "d", "text": "to undo a commit, revert it"}])
    for query in QUERIES[:3]:
        memory.search(query)
    assert memory.traffic() == []
    memory.feedback(QUERIES[0], relevant=["d"])
    assert sorted(memory.traffic()) == sorted(QUERIES[:3])
    memory.search(QUERIES[3])
    memory.close()
    assert sorted(opened("a").traffic()) == sorted(QUERIES[:4])


def test_a_memory_that_only_reads_keeps_nothing(opened: Opener) -> None:
    with opened("a", encoder="bm25") as memory:
        memory.add([{"id": "d", "text": "to undo a commit, revert it"}])
    with opened("a") as reader:
        reader.search(QUERIES[0])
    assert opened("a").traffic() == []


def holds(folder: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("asked", [{"query": QUERIES[1]}, {"traffic": True}, {"actor": "ada"}])
def test_what_is_forgotten_leaves_the_sample_and_the_files(
    opened: Opener, tmp_path: Path, asked: dict[str, object]
) -> None:
    memory = opened("a", encoder="bm25")
    memory.add([{"id": "d", "text": "to revert something"}])
    for query in QUERIES[:2]:
        memory.search(query)
    memory.feedback(QUERIES[1], relevant=["d"], actor="ada")
    memory.evolve()
    memory.search(QUERIES[1])
    memory.forget(**asked)  # type: ignore[arg-type]
    memory.close()
    left = opened("a")
    assert left.traffic() == ([] if "traffic" in asked else QUERIES[:1])
    taught = "traffic" in asked
    left.close()
    assert holds(tmp_path / "a", QUERIES[1]) == taught
    assert holds(tmp_path / "a", QUERIES[0]) != taught


def test_traffic_is_off_by_setting(opened: Opener, tmp_path: Path) -> None:
    memory = opened("a", encoder="bm25", traffic=0)
    memory.add([{"id": "d", "text": "to undo a commit, revert it"}])
    memory.search(QUERIES[0])
    memory.evolve()
    memory.close()
    assert opened("a").traffic() == []
    assert "traffic = 0" in (tmp_path / "a" / "evokey.toml").read_text()
    for wrong in (-1, True, "many"):
        with pytest.raises(InvalidSettings, match="traffic is how many"):
            evokey.open(tmp_path / "b", traffic=wrong)  # type: ignore[arg-type]


def test_taught_queries_are_not_shown_as_traffic(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened("a", encoder="bm25", policy="guarded")
    memory.add([{"id": str(n), "text": f"undo number {n}"} for n in range(30)])
    for query in QUERIES[:10]:
        memory.search(query)
    memory.feedback(QUERIES[0], relevant=["1"])
    shown: list[Sequence[str]] = []
    propose = memory.policy.propose

    def watched(data: TrainingData) -> Proposal:
        shown.append(data.traffic)
        assert all(len(data.pools["bm25"][query]) for query in data.traffic)
        return propose(data)

    monkeypatch.setattr(memory.policy, "propose", watched)
    memory.evolve()
    assert sorted(shown[0]) == sorted(QUERIES[1:10])
