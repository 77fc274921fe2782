"""The database goes away in the middle of what a memory does, and comes back: the memory is whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener, ranking
from postgres_server import Server

import evokey
from evokey.errors import ConnectionLost
from evokey.inspect.migrate import migrate
from evokey.ledger import copying, repeating
from evokey.postgres import connections
from evokey.postgres.address import Address

WORDS = "owl mouse star gas night day dust bird hunt tree river stone cloud light".split()
DOCUMENTS = [
    evokey.Document(f"d{at}", f"{WORDS[at % 14]} and {WORDS[at * 5 % 14]} near {WORDS[at * 11 % 14]} {at}")
    for at in range(300)
]
LESSONS: list[dict[str, Any]] = [
    {"query": f"what {WORDS[at % 14]} says {at}", "relevant": [f"d{at}"]} for at in range(24)
]


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server of its own: it is killed."""
    with Server.start() as server:
        yield server


@pytest.fixture
def opened(mortal: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    monkeypatch.setattr(connections, "PATIENCE", 120.0)  # a busy machine takes long to start a server again
    monkeypatch.setattr(repeating, "PATIENCE", 120.0)
    with ExitStack() as stack:
        yield mortal.opener(stack)


class Doing:
    """Something in another thread, with its outcome."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.value: Any = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.error = error

    def wait(self) -> Any:
        self._thread.join(150)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.value


def kill_and_restart(server: Server, after: float) -> None:
    time.sleep(after)
    server.kill()
    server.restart()


def whole(memory: evokey.Memory, twin: evokey.Memory) -> None:
    """It says what a memory says that nothing has happened to."""
    assert memory.stats().documents_without_keys == 0
    for lesson in LESSONS:
        assert ranking(memory, lesson["query"]) == ranking(twin, lesson["query"])


@pytest.mark.parametrize("after", [0.02, 0.3])
def test_the_server_is_killed_in_the_middle_of_an_add(
    mortal: Server, opened: Opener, tmp_path: Path, after: float
) -> None:
    memory = opened()
    doing = Doing(lambda: memory.add(DOCUMENTS))
    kill_and_restart(mortal, after)
    assert doing.wait() == len(DOCUMENTS) == len(memory)
    with evokey.open(tmp_path / "twin") as twin:
        twin.add(DOCUMENTS)
        whole(memory, twin)


def test_the_server_is_killed_in_the_middle_of_an_evolve(mortal: Server, opened: Opener, tmp_path: Path) -> None:
    memory = opened()
    with evokey.open(tmp_path / "twin") as twin:
        for one in (memory, twin):
            one.add(DOCUMENTS)
            one.feedback_many(LESSONS)
        doing = Doing(memory.evolve)
        kill_and_restart(mortal, 0.2)
        report, expected = doing.wait(), twin.evolve()
        assert (report.published, report.choice) == (expected.published, expected.choice)
        assert [one.kind for one in memory.epochs()] == ["untaught", "evolve"]
        whole(memory, twin)
        whole(opened(), twin)


def test_the_server_is_killed_in_the_middle_of_a_migration(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address(mortal.url, mortal.fresh_name())
    with evokey.open(tmp_path / "kb") as memory:
        memory.add(DOCUMENTS)
        memory.feedback_many(LESSONS)
        memory.evolve()
    monkeypatch.setattr(copying, "PIECE", 5)
    doing = Doing(lambda: migrate(tmp_path / "kb", address))
    kill_and_restart(mortal, 0.8)
    try:
        doing.wait()
    except ConnectionLost:
        migrate(tmp_path / "kb", address)
    with evokey.open(address) as shared, evokey.open(tmp_path / "kb") as memory:
        whole(shared, memory)
        assert shared.lessons() == memory.lessons() and shared.epochs() == memory.epochs()


def test_no_lesson_is_lost_or_taught_twice_while_the_server_dies_again_and_again(
    mortal: Server, opened: Opener
) -> None:
    memory, taught, ending = opened(), list[str](), threading.Event()
    memory.add(DOCUMENTS[:50])

    def teach() -> None:
        while not ending.is_set():
            query = f"lesson {len(taught)}"
            memory.feedback(query, relevant=[f"d{len(taught) % 50}"])
            taught.append(query)

    doing = Doing(teach)
    for pause in (0.3, 0.45, 0.6):
        kill_and_restart(mortal, pause)
    time.sleep(0.3)
    ending.set()
    doing.wait()
    assert [one.query for one in memory.lessons()] == taught


def test_searches_wait_for_a_server_that_comes_back_and_say_so_if_it_does_not(
    mortal: Server, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    memory.add(DOCUMENTS[:20])
    wanted = ranking(memory, "owl")
    mortal.kill()
    doing = Doing(lambda: ranking(memory, "owl"))
    time.sleep(0.3)
    mortal.restart()
    assert doing.wait() == wanted
    monkeypatch.setattr(memory.ledger.database.connections, "patience", 0.3)
    monkeypatch.setattr(repeating, "PATIENCE", 0.3)
    mortal.kill()
    try:
        with pytest.raises(ConnectionLost, match="Nothing was changed; try again"):
            memory.feedback("q", relevant=["d1"])
    finally:
        mortal.restart()
    assert memory.lessons() == [] and ranking(memory, "owl") == wanted
