"""What is forgotten leaves no byte in the files of a database, but for its own write-ahead log, which is not ours."""

from __future__ import annotations

from pathlib import Path

import psycopg
from conftest import Opener
from postgres_server import Server

import evokey

SECRETS = ("quetzalcoatlus migration", "northropi wingspan", "pterosaur-expert", "azhdarchid unit")


def places(server: Server) -> dict[str, list[str]]:
    """Files of the database in which each secret is, once all pages are written; the write-ahead log left out."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("CHECKPOINT")
        connection.execute("CHECKPOINT")  # files that were replaced go with the second
    found: dict[str, list[str]] = {secret: [] for secret in SECRETS}
    for path in sorted(server.folder.rglob("*")):
        if path.is_file() and "pg_wal" not in path.parts:
            content = read(path)
            for secret in SECRETS:
                if secret.encode() in content:
                    found[secret].append(str(path.relative_to(server.folder)))
    return found


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_no_live_or_dead_tuple_has_what_was_forgotten(
    server: Server, shared: Opener, commands: list[evokey.Document]
) -> None:
    memory, reader = shared(), shared()
    memory.add(commands)
    for query, documents, units in (
        (SECRETS[0], ["git-log"], [SECRETS[3]]),
        (SECRETS[1], ["git-clone"], []),
        ("who broke it", ["git-blame"], []),
    ):
        actor = SECRETS[2] if query != "who broke it" else "ada"
        memory.feedback(query, relevant=documents, units=units, actor=actor)
    for query in SECRETS[:2]:
        reader.search(query)
        memory.search(query)
    memory.evolve()
    memory.protect(SECRETS[1], relevant=["git-clone"])
    memory.feedback(SECRETS[0], relevant=["git-merge"], actor=SECRETS[2])
    memory.evolve()
    before = places(server)
    assert all(before.values())  # else nothing is tested
    memory.protect(SECRETS[1], relevant=[])
    assert memory.forget(actor=SECRETS[2]).erased
    for query in SECRETS[:2]:
        assert memory.forget(query=query).erased
    assert places(server) == {secret: [] for secret in SECRETS}
    assert [one.query for one in memory.lessons()] == ["who broke it"]
    reader.feedback("what a clone is", relevant=["git-clone"])  # it had searched what was forgotten meanwhile
    assert places(server) == {secret: [] for secret in SECRETS}
    assert reader.search("who broke it", 1) and reader.epoch == memory.epoch


def test_a_reader_of_an_earlier_state_holds_up_erasing_and_nothing_else(
    server: Server, shared: Opener, commands: list[evokey.Document]
) -> None:
    memory, reader = shared(), shared()
    memory.add(commands)
    memory.feedback(SECRETS[0], relevant=["git-log"])
    with reader.ledger.read():
        assert len(reader.lessons()) == 1
        with psycopg.connect(server.url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT 1 FROM pg_class").fetchone()  # whoever it is: a state is held
            found = memory.forget(query=SECRETS[0])
            assert (found.lessons, found.erased) == (1, False) and "reading" in str(found.pending)
    memory._forgetter._tried = 0.0
    memory.feedback("who broke it", relevant=["git-blame"])
    assert memory.stats().erasing is None
    assert places(server)[SECRETS[0]] == []
