"""Older lessons lose weight if newer questions are better off by that, and only then."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import evokey

DAY = 86_400.0
TOPICS, WORDINGS = 24, 4
STRANGE = [f"strange{number}" for number in range(40)]
"""Words that only questions have: lessons teach what they mean."""


class World:
    """Each topic has two documents with the same words. People ask for one of them, and half a year later for the
    other, if what is right changes."""

    def __init__(self, memory: evokey.Memory, *, changes: bool) -> None:
        self.memory, self.changes, self.lot = memory, changes, random.Random(1)
        documents = [
            {"id": f"{kind}{topic}", "text": f"rule number{topic} of the house, {kind} edition"}
            for topic in range(TOPICS)
            for kind in ("first", "second")
        ]
        memory.add(documents)
        self.said = {topic: self.lot.sample(STRANGE, 3) for topic in range(TOPICS)}

    def ask(self, topic: int) -> str:
        return " ".join([*self.lot.sample(self.said[topic], 2), f"number{topic}", *self.lot.sample(STRANGE, 1)])

    def teach(self, kind: str) -> None:
        for topic in range(TOPICS):
            for _ in range(WORDINGS):
                self.memory.feedback(self.ask(topic), relevant=[f"{kind if self.changes else 'first'}{topic}"])

    def quality(self, kind: str) -> float:
        """How often a new question of each topic finds the right one of the two first."""
        right = [kind if self.changes else "first"] * TOPICS
        firsts = [self.memory.search(self.ask(topic), k=1)[0].id for topic in range(TOPICS)]
        return sum(found == f"{name}{topic}" for topic, (found, name) in enumerate(zip(firsts, right, strict=True)))


@pytest.mark.parametrize("changes", [False, True])
def test_old_lessons_lose_weight_where_what_is_right_has_changed(tmp_path: Path, changes: bool) -> None:
    clock = [0.0]
    with evokey.open(tmp_path / "kb", encoder="bm25", now=lambda: clock[0]) as memory:
        world = World(memory, changes=changes)
        world.teach("first")
        memory.evolve()
        clock[0] = 180 * DAY
        world.teach("second")
        report = memory.evolve()
        assert report.published
        assert bool(report.choice["bm25"].half_life) == changes
        assert world.quality("second") >= 0.9 * TOPICS


def test_lessons_of_one_day_are_not_aged(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25", now=lambda: 0.0) as memory:
        world = World(memory, changes=True)
        world.teach("first")
        world.teach("second")
        assert not any(one.half_life for one in memory.evolve().choice.values())
