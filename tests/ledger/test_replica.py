"""A replica answers searches, follows the primary, and writes nothing."""

from __future__ import annotations

import time

import pytest
from conftest import Opener, ranking
from postgres_server import Server

import evokey
from evokey.errors import StorageFailed


def test_a_replica_finds_what_the_primary_finds_and_cannot_be_taught(
    server: Server, shared: Opener, commands: list[evokey.Document]
) -> None:
    memory = shared()
    memory.add(commands)
    with server.replicate() as url, evokey.open(url, name=memory.place.name) as replica:
        assert ranking(replica, "show the history") == ranking(memory, "show the history")
        memory.feedback("my colleague broke everything", relevant=["git-revert"])
        assert memory.evolve().published
        deadline = time.monotonic() + 30
        while replica.search("who?") and replica.epoch != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ranking(replica, "my colleague broke everything") == ranking(memory, "my colleague broke everything")
        with pytest.raises(StorageFailed, match="write to the primary"):
            replica.feedback("q", relevant=["git-log"])
        replica.search("a question that is not noted")
    assert memory.traffic() == [] or "a question that is not noted" not in memory.traffic()
