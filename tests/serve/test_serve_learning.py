"""The background learner evolves when that is due; the alarm sees an epoch that does harm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Opener
from serve.served import fill

import evokey
from evokey.serve import alarm, learning
from evokey.serve.alarm import Watched, watch
from evokey.serve.app import build
from evokey.serve.options import Learning, Options
from evokey.serve.service import Service

QUESTION = "get the thing onto my laptop"


@pytest.fixture
def clock() -> list[float]:
    return [1_000.0]


@pytest.fixture
def services() -> Iterator[list[Service]]:
    made: list[Service] = []
    yield made
    for one in made:
        one.stop()


def start(folder: Path, how: Learning, clock: list[float], made: list[Service]) -> tuple[Service, evokey.Memory]:
    """A service whose learner looks when the test says so."""
    service: Service = build(Options(at=folder, auth=False, learning=how)).state.service
    made.append(service)
    service.learning._now = lambda: clock[0]
    memory = service.collections.get("default")
    assert memory is not None
    service.learning.look("default", memory)
    return service, memory


def look(service: Service, memory: evokey.Memory) -> int:
    """The epoch after the learner has looked, and done what it began."""
    service.learning.look("default", memory)
    wait(service)
    return memory.epoch


def wait(service: Service) -> None:
    """Until its jobs are done."""
    deadline = time.monotonic() + 60
    while service.jobs.running("default"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_evolves_after_so_many_lessons(tmp_path: Path, clock: list[float], services: list[Service]) -> None:
    service, memory = start(fill(tmp_path / "kb"), Learning(lessons=2), clock, services)
    memory.feedback(QUESTION, relevant=["install.md"])
    assert look(service, memory) == 0
    memory.feedback("ask something", relevant=["search.md"])
    assert look(service, memory) == 1
    assert look(service, memory) == 1


def test_it_evolves_by_schedule_where_there_are_lessons(
    tmp_path: Path, clock: list[float], services: list[Service]
) -> None:
    service, memory = start(fill(tmp_path / "kb"), Learning(minutes=10), clock, services)
    clock[0] += 601
    assert look(service, memory) == 0
    memory.feedback(QUESTION, relevant=["install.md"])
    assert look(service, memory) == 1


def test_it_evolves_when_lessons_bring_little_that_is_new(
    tmp_path: Path, clock: list[float], services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "BATCH", 2)
    service, memory = start(fill(tmp_path / "kb"), Learning(saturation=True), clock, services)
    for number in range(2):
        memory.feedback(f"xylophone {number}", relevant=["install.md"])  # nothing finds it: all is new
    assert look(service, memory) == 0
    for number in range(6):
        memory.feedback(f"pip install {number}", relevant=["install.md"])  # found already
    assert look(service, memory) == 1


# ---- the alarm


@pytest.fixture
def memory(opened: Opener, commands: list[evokey.Document]) -> evokey.Memory:
    found = opened(encoder="bm25")
    found.add(commands)
    return found


def vote(memory: evokey.Memory, ups: int, downs: int, name: str) -> None:
    for number in range(ups + downs):
        query_id = memory.show(f"{name} {number}", [])
        memory.rate(query_id, number < ups)


def test_votes_that_fall_after_an_epoch_raise_an_alarm(memory: evokey.Memory) -> None:
    vote(memory, 80, 20, "before")
    memory.feedback("undo", relevant=["git-revert"])
    memory.evolve()
    watched = Watched.begin(memory, memory.epoch, time.time())
    vote(memory, 75, 25, "after")
    assert watch(memory, watched, time.time()) is None  # chance does that
    vote(memory, 10, 60, "later")
    told = watch(memory, watched, time.time())
    assert told is not None and (told.figure, told.epoch, told.before_epoch) == ("votes", 1, 0)


def test_searches_without_hits_that_rise_raise_an_alarm(memory: evokey.Memory) -> None:
    def search(found: int, empty: int) -> None:
        for number in range(found + empty):
            memory.show(f"question {number}", hits if number < found else [])

    hits = memory.search("history")
    search(95, 5)
    memory.feedback("undo", relevant=["git-revert"])
    memory.evolve()
    watched = Watched.begin(memory, memory.epoch, time.time())
    search(49, 0)
    assert watch(memory, watched, time.time()) is None
    search(45, 6)
    assert watch(memory, watched, time.time()) is None  # chance does that
    search(0, 20)
    told = watch(memory, watched, time.time())
    assert told is not None and (told.figure, told.epoch, told.before_epoch) == ("searches without hits", 1, 0)
    assert (told.before, round(told.after, 3)) == (0.95, round(94 / 120, 3))


def test_protected_queries_that_fall_raise_an_alarm(memory: evokey.Memory) -> None:
    memory.protect("history", ["git-log"])
    memory.feedback("undo", relevant=["git-revert"])
    memory.evolve()
    watched = Watched.begin(memory, memory.epoch, time.time())
    assert watch(memory, watched, time.time()) is None
    memory.add([{"id": f"new{n}", "text": "history history"} for n in range(20)])
    told = watch(memory, watched, time.time())
    assert told is not None and told.figure == "protected queries" and told.after < told.before


def test_an_alarm_rolls_back_if_asked(
    tmp_path: Path, clock: list[float], services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm, "LEAST", 5)
    how = Learning(lessons=1, rollback=True)
    service, memory = start(fill(tmp_path / "kb"), how, clock, services)
    vote(memory, 6, 0, "before")
    memory.feedback(QUESTION, relevant=["install.md"])
    assert look(service, memory) == 1
    vote(memory, 0, 6, "after")
    service.learning.look("default", memory)
    assert [one.kind for one in memory.epochs()] == ["untaught", "evolve", "rollback"]
    assert [one.figure for one in service.learning.alarms("default")] == ["votes"]


def test_an_epoch_of_another_process_is_watched(
    tmp_path: Path, clock: list[float], services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm, "LEAST", 5)
    service, memory = start(fill(tmp_path / "kb"), Learning(rollback=True), clock, services)
    with evokey.open(tmp_path / "kb") as other:
        vote(other, 6, 0, "before")
        other.feedback(QUESTION, relevant=["install.md"])
        other.evolve()
        service.learning.look("default", memory)
        vote(other, 0, 6, "after")
    assert service.learning.alarms("default") == [] and len(memory.epochs()) == 2
    service.learning.look("default", memory)
    assert [one.kind for one in memory.epochs()] == ["untaught", "evolve", "rollback"]
    assert [one.figure for one in service.learning.alarms("default")] == ["votes"]


def test_an_epoch_that_another_worker_was_asked_for_is_watched_by_the_one_that_leads(
    tmp_path: Path, clock: list[float], services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm, "LEAST", 5)
    leader, memory = start(fill(tmp_path / "kb"), Learning(), clock, services)
    worker: Service = build(Options(at=tmp_path / "kb", auth=False)).state.service
    services.append(worker)
    assert leader.learning._lead() and not worker.learning._lead()
    other = worker.collections.get("default")
    assert isinstance(other, evokey.Memory)
    vote(other, 6, 0, "before")
    other.feedback(QUESTION, relevant=["install.md"])
    worker.jobs.start("default", other)
    wait(worker)
    assert other.epoch == 1
    vote(other, 0, 6, "after")
    leader.learning.look("default", memory)
    assert [(one.figure, one.epoch) for one in leader.learning.alarms("default")] == [("votes", 1)]


def test_a_rollback_is_not_watched(
    tmp_path: Path, clock: list[float], services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm, "LEAST", 5)
    service, memory = start(fill(tmp_path / "kb"), Learning(rollback=True), clock, services)
    memory.feedback(QUESTION, relevant=["install.md"])
    memory.evolve()
    service.learning.look("default", memory)
    vote(memory, 6, 0, "before")
    memory.rollback(0)
    vote(memory, 0, 6, "after")
    service.learning.look("default", memory)
    assert service.learning.alarms("default") == [] and memory.epoch == 2


@pytest.mark.parametrize(("days", "alarms"), [(0.5, ["votes"]), (2, [])])
def test_a_service_that_starts_again_watches_an_epoch_of_the_last_day(
    tmp_path: Path,
    services: list[Service],
    monkeypatch: pytest.MonkeyPatch,
    days: float,
    alarms: list[str],
) -> None:
    monkeypatch.setattr(alarm, "LEAST", 5)
    with evokey.open(fill(tmp_path / "kb")) as memory:
        vote(memory, 6, 0, "before")
        memory.feedback(QUESTION, relevant=["install.md"])
        memory.evolve()
        vote(memory, 0, 6, "after")
    service, _ = start(tmp_path / "kb", Learning(), [time.time() + days * alarm.WINDOW], services)
    assert [one.figure for one in service.learning.alarms("default")] == alarms
