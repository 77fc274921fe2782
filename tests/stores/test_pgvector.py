"""Keys in pgvector with an index of many rows; what every store promises is in contract/test_store_contract.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Opener
from postgres_server import Server

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from test_store_contract import Ledger

import evokey
from evokey import registry
from evokey.encoders.given import Given
from evokey.errors import InvalidSettings, InvalidVector
from evokey.protocols import Space, Store
from evokey.scoring.block import Keys
from evokey.scoring.dense import DenseBlock, DenseQuestion


@pytest.fixture
def indexed(tmp_path: Path, server: Server) -> tuple[Store, Keys]:
    """4,000 rows, of which the index is asked."""
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((4_000, 24)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    keys = Keys(np.arange(1, 4_001), np.arange(1, 4_001), DenseBlock(vectors))
    options = {"name": "pgvector", "uri": server.url, "keys": server.fresh_name(), "exact_below": 50}
    store: Store = registry.build("store", options, space=Space(tmp_path / "keys", Given()))
    store.open(Ledger())
    store.follow(keys.covered, keys.covered.tolist(), ())
    store.write(keys)
    store.flush()
    return store, keys


def test_the_index_finds_nearly_all_and_scores_keep_their_bits(indexed: tuple[Store, Keys]) -> None:
    store, keys = indexed
    questions = [DenseQuestion(vector) for vector in keys.block.vectors[::400] * np.float32(0.5)]
    found = 0
    for question, one in zip(questions, store.snapshot.search(questions, 10), strict=True):
        wanted = keys.block.scores(question)
        best = set((np.argsort(-wanted)[:10] + 1).tolist())
        found += len(best & set(one.ranking.numbers.tolist()))
        assert one.ranking.scores.tobytes() == wanted[one.ranking.numbers - 1].tobytes()
    assert found >= 0.98 * 10 * len(questions)
    assert store.check() == []


def test_a_filter_of_the_index_goes_on_until_enough_is_found(indexed: tuple[Store, Keys]) -> None:
    store, keys = indexed
    question, few = DenseQuestion(keys.block.vectors[7]), np.arange(1, 4_001, 40)
    (found,) = store.snapshot.search([question], 10, within=few)
    wanted = keys.block.scores(question)[few - 1]
    assert len(found.ranking) == 10
    assert len(set(found.ranking.numbers.tolist()) & set(few[np.argsort(-wanted)[:10]].tolist())) >= 9
    (found,) = store.snapshot.search([question], 10, without=np.arange(1, 3_901))
    assert len(found.ranking) == 10 and found.ranking.numbers.min() > 3_900


def test_wrong_dimensions_are_refused_before_anything_is_stored(server: Server, shared: Opener) -> None:
    memory = shared(encoder="given")
    memory.add([evokey.Document("a", "a")], vectors=np.ones((1, 8)))
    with pytest.raises(InvalidVector, match="8 dimensions"):
        memory.add([evokey.Document("b", "b")], vectors=np.ones((1, 9)))
    assert (len(memory), memory.search("q", vector=np.ones(8))[0].id) == (1, "a")


def test_a_password_in_the_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="holds a password") as error:
        evokey.open(tmp_path / "kb", store={"name": "pgvector", "uri": "postgresql://ada:secret@db/x", "keys": "kb"})
    assert "secret" not in str(error.value)
