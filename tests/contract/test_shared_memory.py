"""A memory in PostgreSQL keeps what a memory in a directory promises: the same tests on the other ledger, and that what
one process writes, all others find."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
import test_memory
import test_memory_contract
from conftest import Always, Opener, ranking
from parts import Parts
from parts import parts as parts  # the fixture
from postgres_server import Server
from test_memory import *  # noqa: F403 - the same promises

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import ConnectionLost, InvalidInput, InvalidSettings, NotAMemory, StorageFailed
from evokey.ledger.postgres import lock
from evokey.ledger.postgres.dialect import PostgresDialect
from evokey.memory import open_shared
from evokey.postgres import listening
from evokey.postgres.address import Address

for name in [
    name for name, test in vars(test_memory).items() if name.startswith("test") and "tmp_path" in test.__annotations__
]:
    del globals()[name]  # those are about directories


@pytest.fixture
def opened(shared: Opener) -> Opener:
    return shared


LIVES = [
    ("hybrid", "full", "guarded"),
    ("hybrid", "chunks", test_memory_contract.LENSED),
    ("wordllama", "chunks", "guarded"),
    ("bm25", "full", "paper"),
]


@pytest.mark.parametrize(("name", "keys", "policy"), LIVES)
def test_the_life_of_a_memory(
    parts: Parts, opened: Opener, always: Always, tmp_path: Path, name: str, keys: str, policy: str
) -> None:
    test_memory_contract.test_the_life_of_a_memory(parts, opened, always, tmp_path, name, keys, policy)


def test_the_life_of_a_memory_of_given_vectors(opened: Opener, always: Always) -> None:
    test_memory_contract.test_the_life_of_a_memory_of_given_vectors(opened, always, "full", "guarded")


def test_it_learns_the_same_to_the_bit_as_in_a_directory(
    opened: Opener, tmp_path: Path, commands: list[evokey.Document]
) -> None:
    with evokey.open(tmp_path / "kb") as own:
        memories = (own, opened())
        for memory in memories:
            memory.add(commands)
            memory.feedback("my colleague broke everything", relevant=["git-revert"], units=["undo it"], actor="ada")
            memory.feedback("who wrote this line", relevant={"git-blame": 2.0}, irrelevant=["git-log"])
            assert memory.evolve().published
        for query in ("my colleague broke everything", "who wrote this", "a clean tree", "history"):
            for epoch in (0, 1):
                first, second = (ranking(memory, query, epoch=epoch) for memory in memories)
                assert first == second
            for where in ({"tool": "git"}, {"tool": ["git", "svn"]}, {"tool": {"exists": False}}):
                first, second = (ranking(memory, query, where=where) for memory in memories)
                assert first == second


# ---- several processes

OTHER = """
import sys, evokey
memory = evokey.open(sys.argv[1], name=sys.argv[2])
for line in sys.stdin:
    what, _, said = line.strip().partition(" ")
    if what == "search":
        print(",".join(hit.id for hit in memory.search(said, 3)), memory.epoch, flush=True)
    elif what == "teach":
        query, _, document = said.rpartition(" ")
        memory.feedback(query, relevant=[document])
        print(memory.evolve().published, flush=True)
    elif what == "add":
        print(memory.add([evokey.Document(said, f"text about {said}")]), flush=True)
"""


class Other:
    """A process of its own with the same memory."""

    def __init__(self, address: Address) -> None:
        command = [sys.executable, "-c", OTHER, address.url, address.name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, said: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{said}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture
def other(opened: Opener) -> Iterator[Other]:
    process = Other(opened().place)
    yield process
    process.process.kill()
    process.process.communicate()


def test_what_one_process_writes_every_other_finds_at_its_next_search(
    opened: Opener, other: Other, commands: list[evokey.Document]
) -> None:
    memory = opened()
    assert other.ask("search history") == "0"
    memory.add(commands)
    assert other.ask("search show the history").startswith("git-log")
    memory.feedback("my colleague broke everything", relevant=["git-revert"])
    assert memory.evolve().published
    assert other.ask("search my colleague broke everything").endswith(" 1")
    assert other.ask("teach the boss broke it git-reset") == "True"
    assert (memory.search("the boss broke it", 1)[0].id, memory.epoch) == ("git-reset", 2)
    assert other.ask("add zebra") == "1"
    assert memory.search("zebra", 1)[0].id == "zebra"
    memory.delete(["zebra"])
    assert "zebra" not in other.ask("search zebra")


def test_where_news_are_not_heard_they_are_asked_for(
    opened: Opener, other: Other, commands: list[evokey.Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening.Listener, "_proves", lambda *_: False)  # as behind PgBouncer in transaction mode
    memory = opened()
    other.ask("add zebra")
    assert any(memory.search("zebra", 1) for _ in range(100) if not time.sleep(0.05))


def test_numbers_go_in_the_order_of_commits_whoever_writes(opened: Opener, other: Other) -> None:
    memory = opened()
    for at in range(5):
        memory.add([evokey.Document(f"here{at}", "here")])
        other.ask(f"add there{at}")
    assert memory.index.live.tolist() == sorted(memory.index.live.tolist()) and len(memory) == 10


# ---- the address


def test_credentials_are_shown_nowhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    address = Address("postgresql://ada:secret@127.0.0.1:1/db?password=secret", "kb")
    with pytest.raises(ConnectionLost) as error:
        evokey.open(address)
    told = [repr(address), str(address), str(error.value), repr(error.value.__cause__), caplog.text]
    with pytest.raises(InvalidSettings) as wrong:
        evokey.open("postgresql://ada:se%cret@127.0.0.1/db", name="kb")
    assert not any("secret" in one or "se%cret" in one for one in [*told, str(wrong.value)])
    assert wrong.value.__cause__ is None and wrong.value.__suppress_context__


def test_a_name_is_needed_and_must_be_one(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="without its name"):
        evokey.open(server.url)
    for name in ("", "Kb", "a" * 49, 'x"; DROP SCHEMA public; --', "kb~"):
        with pytest.raises(InvalidSettings, match="the name of a memory"):
            evokey.open(server.url, name=name)
    with pytest.raises(InvalidSettings, match="is a directory"):
        evokey.open(tmp_path / "kb", name="kb")
    with pytest.raises(NotAMemory):
        open_shared(Address(server.url, "nobody-made-it"), make=False)


def test_settings_are_those_of_the_database_and_hold_no_url(opened: Opener, server: Server) -> None:
    memory = opened(encoder="wordllama", keys="title")
    assert opened().settings == memory.settings
    assert memory.stats().bytes > 100_000  # of its tables
    with pytest.raises(InvalidSettings, match="was made with wordllama/title"):
        opened(encoder="bm25")
    assert "postgresql" not in (memory.folder / "evokey.toml").read_text()


def test_an_encoder_that_costs_something_needs_a_store_that_all_share(opened: Opener) -> None:
    with pytest.raises(InvalidSettings, match=r"make its keys again on every machine.*pgvector"):
        opened(encoder="splade")


WRONG = [
    (evokey.Document("a", "zero \0 byte"), r"document 'a': its text has the character NUL.*remove it"),
    (evokey.Document("a", "a", "\0"), r"document 'a': its title has the character NUL"),
    (evokey.Document("a", "a", "", {"by": {"name": "\0"}}), r"document 'a': its metadata field 'by.name' has the char"),
    (evokey.Document("é" * 1_301, "a"), r"its id has 2,602 bytes, more than the 2,600 that PostgreSQL can index"),
    (evokey.Document("a", "a", "", {"f" * 1_001: 1}), r"metadata field 'f+… .* has 1,001 bytes, more than the 1,000"),
]


def test_what_postgresql_cannot_store_is_an_error_with_its_reason(opened: Opener) -> None:
    memory = opened()
    fine = evokey.Document("fine", "a text")
    for wrong, said in WRONG:
        with pytest.raises(InvalidInput, match=said):
            memory.add([fine, wrong])
    assert len(memory) == 0
    memory.add([evokey.Document("a", "a text", "", {"long": "x" * 5_000, "field": "y" * 500})])
    assert [hit.id for hit in memory.search("text", where={"long": "x" * 5_000})] == ["a"]
    assert memory.search("text", where={"long": "x" * 4_999}) == []
    with pytest.raises(InvalidInput, match=r"the name of the actor has the character NUL.*remove it"):
        memory.feedback("a question", relevant=["a"], actor="a\0da")
    with pytest.raises(InvalidInput, match=r"the query has the character NUL.*remove it"):
        memory.feedback("a\0 question", relevant=["a"])
    query = "long " * 19_000
    memory.feedback(query, relevant=["a"])
    assert memory.forget(query=query).erased


@pytest.mark.parametrize("values", [[-2.5, -1, 0, 0.5, 1, 2**53, 2**53 + 1, 10**18, 1e300], ["", "a", "ab", "b", "é"]])
def test_facts_are_texts_in_the_order_of_their_values(values: list[Any]) -> None:
    dialect = PostgresDialect()
    found = [dialect.fact(value).encode() for value in values]
    assert found == sorted(set(found))
    assert [dialect.read_fact(dialect.fact(value)) for value in values] == [
        float(value) if not isinstance(value, str) else value for value in values
    ]
    assert dialect.fact(True) == dialect.fact(1.0) and dialect.fact(-0.0) == dialect.fact(0)


# ---- who may write


def test_who_may_only_read_searches_and_is_told_so_when_writing(opened: Opener, server: Server) -> None:
    memory = opened()
    memory.add([evokey.Document("a", "owls at night")])
    sign = "&" if "?" in server.url else "?"
    url = f"{server.url}{sign}options=-c%20default_transaction_read_only%3Don"
    with evokey.open(url, name=memory.place.name) as reader:
        assert reader.search("owls", 1)[0].id == "a"
        for write in (lambda: reader.add([evokey.Document("b", "b")]), lambda: reader.feedback("q", relevant=["a"])):
            with pytest.raises(StorageFailed, match="write to the primary"):
                write()
        memory.add([evokey.Document("c", "mice by day")])
        assert reader.search("mice", 1)[0].id == "c"
    with pytest.raises(NotAMemory):
        evokey.open(url, name=server.fresh_name())


def test_lessons_come_in_while_another_process_evolves(opened: Opener, commands: list[evokey.Document]) -> None:
    memory, teacher = opened(), opened()
    memory.add(commands)
    with memory.ledger.exclusive():
        assert teacher.feedback("who broke it", relevant=["git-blame"]).number == 1
        teacher.add([evokey.Document("late", "came late")])
    assert memory.stats().lessons == 1


def test_two_do_not_publish_at_once(
    opened: Opener, commands: list[evokey.Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WAITS_FOR_VERB", 200)
    memory, second = opened(), opened()
    memory.add(commands)
    with memory.ledger.exclusive(), pytest.raises(evokey.EvokeyError, match="another process"):
        second.evolve()
    assert not second.evolve().published


def test_a_lock_that_was_lost_is_noticed_before_the_commit(opened: Opener, server: Server) -> None:
    memory = opened()
    memory.add([evokey.Document("a", "owls")])
    with pytest.raises(ConnectionLost, match="held the lock"), memory.ledger.exclusive():
        with psycopg.connect(server.url, autocommit=True) as connection:
            holding = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 2"
            connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({holding}) held")
        memory.ledger.protected.put("q", {"a": 1.0})
    assert memory.protected_queries() == {}


class Costly(WordLlamaEncoder):
    """An encoder whose every text is counted."""

    cost = "time"
    asked: ClassVar[list[str]] = []

    def queries(self, texts: Any) -> Any:
        self.asked.extend(texts)
        return super().queries(texts)


def test_a_taught_text_is_paid_for_once_by_all_and_erased_for_all(
    opened: Opener, server: Server, commands: list[evokey.Document]
) -> None:
    memory = opened(encoder=Costly(), store="pgvector")
    memory.add(commands)
    memory.feedback("who broke it", relevant=["git-blame"], actor="ada")
    assert memory.evolve().published
    Costly.asked.clear()
    other = opened(encoder=Costly())
    assert other.search("who broke it", 1)[0].id == "git-blame"
    assert Costly.asked.count("who broke it") == 1  # as it is asked now; what was taught is in the database
    assert memory.forget(actor="ada").erased
    other.forget(traffic=True)
    memory.forget(traffic=True)
    with psycopg.connect(server.url) as connection:
        count = connection.execute(f'SELECT count(*) FROM "{memory.place.schema}".encoded').fetchone()
    assert count == (0,)
