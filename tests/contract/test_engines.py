"""A memory of vectors keeps its promises wherever its ledger and its keys are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener
from postgres_server import Server

import evokey
from evokey.errors import InvalidVector

Places = Callable[[], evokey.Memory]
"""Opens the same memory each time."""
VECTORS = np.eye(6, 8, dtype=np.float32)
DOCUMENTS = [evokey.Document(f"d{at}", f"text {at}", "", {"even": at % 2 == 0}) for at in range(6)]
ENGINES = ("directory", "ann", "milvus-lite", "pgvector", "postgresql")


@pytest.fixture(params=ENGINES)
def open_memory(request: pytest.FixtureRequest, opened: Opener, tmp_path: Path) -> Places:
    if request.param == "postgresql":
        shared: Opener = request.getfixturevalue("shared")
        return lambda: shared(encoder="given")
    server: Server | None = request.getfixturevalue("server") if request.param == "pgvector" else None
    stores: dict[str, Any] = {
        "directory": "flat",
        "ann": {"name": "ann", "build_at": 1},
        "milvus-lite": {"name": "milvus", "uri": str(tmp_path / "keys.db"), "consistency": "Strong"},
        "pgvector": server and {"name": "pgvector", "uri": server.url, "keys": server.fresh_name()},
    }
    return lambda: opened(encoder="given", store=stores[request.param])


def find(memory: evokey.Memory, at: int, **asked: Any) -> list[str]:
    return [hit.id for hit in memory.search("q", 2, vector=VECTORS[at], **asked)]


def test_vectors_of_another_dimension_are_refused_and_nothing_is_stored(open_memory: Places) -> None:
    memory = open_memory()
    memory.add(DOCUMENTS[:1], vectors=VECTORS[:1])
    with pytest.raises(InvalidVector, match="8 dimensions; 9 were given"):
        memory.add(DOCUMENTS[1:2], vectors=np.ones((1, 9)))
    with pytest.raises(InvalidVector, match="8 dimensions; 9 were given"):
        memory.search("q", vector=np.ones(9))
    assert (len(memory), find(memory, 0)) == (1, ["d0"])


def test_what_was_put_replaced_filtered_and_deleted_is_what_is_found_again(open_memory: Places) -> None:
    memory = open_memory()
    assert find(memory, 0) == []
    memory.add(DOCUMENTS, vectors=VECTORS)
    assert find(memory, 3)[0] == "d3"
    memory.add([evokey.Document("d3", "another text")], vectors=VECTORS[5:6])
    memory.delete(["d5"])
    assert find(memory, 5)[0] == "d3"
    assert find(memory, 2, where={"even": False})[0] == "d1"
    memory.close()
    again = open_memory()
    assert (len(again), find(again, 5)[0], find(again, 2)[0]) == (5, "d3", "d2")


def test_a_lesson_counts_and_is_forgotten(open_memory: Places) -> None:
    memory, between = open_memory(), VECTORS[0] + 0.9 * VECTORS[1]
    memory.add(DOCUMENTS, vectors=VECTORS)
    assert memory.search("asked", 1, vector=between)[0].id == "d0"
    memory.feedback("asked", relevant=["d1"], vector=between, actor="ada")
    assert memory.evolve().published
    assert memory.search("asked", 1, vector=between)[0].id == "d1"
    assert memory.forget(actor="ada").erased
    assert memory.search("asked", 1, vector=between)[0].id == "d0"
