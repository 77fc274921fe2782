"""Large overlays on shelves of the store: the same rankings, to the bit, and nothing of them is left that should not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LENS, Always, Opener, ranking
from milvus_server import MilvusProcess
from pymilvus import MilvusClient

import evokey
from evokey import Choice
from evokey.errors import InvalidSettings, StoreFailed
from evokey.search import shelved
from evokey.search.shelved import OnDemand, Shelved
from evokey.stores.milvus_shelf import MilvusShelf

COUNT, DIMENSIONS, LESSONS = 400, 16, 90
Found = list[list[tuple[str, float]]]


def unit(seed: int, count: int) -> Any:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS, TAUGHT, ASKED = unit(1, COUNT), unit(2, LESSONS), unit(3, 30)
DOCUMENTS = [{"id": f"d{n}", "text": f"text {n}", "metadata": {"third": n % 3}} for n in range(COUNT)]
QUESTIONS = np.concatenate([ASKED, TAUGHT[:20], (TAUGHT[20:30] + ASKED[:10]) / 2])
GATE = (-1.0, 4.0, 0.5, -0.5, 1.0, 0.3, 2.0, 0.5, -0.4)
CHOICES = {
    "moved keys and rows": Choice(0.5, 1.0, 0.0, 0.2),
    "moved keys alone": Choice(0.5, 2.0, 0.0, None),
    "rows alone": Choice(penalty=0.1),
    "with a gate": Choice(0.5, 1.0, 0.0, 0.2, gate_weights=GATE),
    "demoted": Choice(0.5, 1.0, 0.0, 0.2, demotion=0.4, gate_weights=GATE),
    "through a lens": LENS,
}


@pytest.fixture
def lite(tmp_path: Path) -> dict[str, Any]:
    return {"name": "milvus", "uri": str(tmp_path / "keys.db"), "consistency": "Strong", "shelve_from": 1}


def filled(opened: Opener, name: str, **settings: Any) -> evokey.Memory:
    memory = opened(name, encoder="given", **settings)
    memory.add(DOCUMENTS, vectors=VECTORS)
    return memory


def teach(memory: evokey.Memory, start: int = 0, end: int = LESSONS) -> None:
    memory.feedback_many(
        [
            {
                "query": f"question {n}",
                "relevant": [f"d{n * 3 % COUNT}", f"d{n * 7 % 50}"],
                "irrelevant": [f"d{n * 5 % 20 + 380}"],
                "vector": TAUGHT[n],
                "actor": "ada" if n % 2 else "bob",
            }
            for n in range(start, end)
        ]
    )


def found(memory: evokey.Memory, **asked: Any) -> Found:
    return [ranking(memory, "asked", vector=vector, **asked) for vector in QUESTIONS]


def shelved_by(memory: evokey.Memory, epoch: int | None = None) -> Shelved | None:
    (overlay,) = memory.index.view(epoch).overlays.of.values()
    return overlay.shelved


def shelves(store: dict[str, Any]) -> list[str]:
    client = MilvusClient(store["uri"])
    names = [name for name in client.list_collections() if "_shelf_" in name]
    client.close()
    return names


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_a_shelf_gives_the_rankings_of_the_overlay_itself_to_the_bit(
    opened: Opener, lite: dict[str, Any], always: Always, choice: Choice
) -> None:
    always(choice)
    there, own = filled(opened, "there", store=lite), filled(opened, "own")
    for memory in (there, own):
        teach(memory)
        assert memory.evolve().published
    one = shelved_by(there)
    assert one is not None and one.whole and shelved_by(own) is None
    for asked in ({}, {"k": 40}, {"where": {"third": 1}}, {"where": {"third": [0, 2]}, "k": 30}):
        assert found(there, **asked) == found(own, **asked)
    (overlay,) = there.index.view().overlays.of.values()
    assert [isinstance(block, OnDemand) and block.held for block in (overlay.base, overlay.texts)] == [False, False]
    assert [view.after for view in there.explain("d3", "question 1", vector=TAUGHT[1]).views] == [
        view.after for view in own.explain("d3", "question 1", vector=TAUGHT[1]).views
    ]
