"""An interrupt (Ctrl-C) at any moment leaves a memory that goes on: nothing locked, nothing half done, nothing stale.

Python runs the handler of a signal where a function is entered and where a call into C returns. A profile function sees
just these moments; it raises at each in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import FrameType

import pytest
from conftest import Opener

import evokey
from evokey.ledger.sqlite.database import SQLite

SOURCE = Path(evokey.__file__).parent
WATCHED = {str(path) for path in [*(SOURCE / "ledger").glob("*.py"), *map(SOURCE.joinpath, ("memory.py", "index.py"))]}
NEVER = -1
PATIENCE = 60.0
"""Seconds after which somebody waits for good."""


def interrupted(moment: int, work: Callable[[], object]) -> int:
    """Work that is interrupted at one of its moments; how many of them it came to."""
    seen = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal seen
        if event not in ("call", "c_return") or frame.f_code.co_filename not in WATCHED:
            return
        if frame.f_code.co_name != "__del__":  # Python itself swallows what is raised there
            seen += 1
            if seen == moment:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return seen


def at_every_moment(work: Callable[[int], object], check: Callable[[int], object], step: int = 1) -> None:
    """Interrupt, then check from another thread: a lock that was left would stop it."""
    moments = interrupted(NEVER, lambda: work(0))
    assert moments > 20
    for moment in range(1, moments, step):
        interrupted(moment, lambda at=moment: work(at))  # type: ignore[misc]
        with ThreadPool(1) as threads:
            threads.apply_async(check, (moment,)).get(PATIENCE)


@pytest.mark.parametrize("verb", ["add", "delete", "feedback", "protect", "feedback_many"])
def test_a_verb_that_is_interrupted_happened_or_not_and_the_next_is_done_for_good(opened: Opener, verb: str) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": f"{n}", "text": f"word{n} common"} for n in range(400)])

    def work(at: int) -> None:
        given = {
            "add": lambda: memory.add([{"id": f"new{at}", "text": f"fresh{at} common"}]),
            "delete": lambda: memory.delete([f"{at % 400}"]) if at < 400 else None,
            "feedback": lambda: memory.feedback(f"question {at}", relevant=["399"]),
            "protect": lambda: memory.protect(f"protected {at}", ["399"]),
            "feedback_many": lambda: memory.feedback_many([{"query": f"many {at}", "relevant": ["399"]}] * 2),
        }
        given[verb]()

    def check(at: int) -> None:
        memory.add([{"id": "after", "text": f"after{at} common"}])
        assert [hit.id for hit in memory.search(f"after{at}", k=1)] == ["after"]
        with SQLite(memory._folder) as another:
            assert another.one("SELECT text FROM documents WHERE id = 'after'")[0] == f"after{at} common"
            many = another.one("SELECT count(*) FROM lessons WHERE query = ?", (f"many {at}",))[0]
            assert many in (0, 2)

    at_every_moment(work, check, step=3)


def test_a_reader_that_is_interrupted_sees_what_is_written_later(opened: Opener) -> None:
    writer, reader = opened(encoder="bm25"), opened()

    def work(at: int) -> None:
        writer.add([{"id": "before", "text": f"before{at}"}])
        reader.search("before")

    def check(at: int) -> None:
        writer.add([{"id": "after", "text": f"after{at}"}])
        assert [hit.id for hit in reader.search(f"after{at}", k=1)] == ["after"]

    at_every_moment(work, check, step=2)


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT", "BEGIN"])
def test_an_interrupt_while_sqlite_works_leaves_no_transaction_open(
    opened: Opener, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(encoder="bm25")
    database = memory.ledger._database
    name = "_reader" if statement == "BEGIN" else "_writer"
    real = getattr(database, name)

    class Interrupted:
        def execute(self, sql: str, *values: object) -> object:
            found = real.execute(sql, *values)
            if sql == statement:
                raise KeyboardInterrupt
            return found

        def __getattr__(self, wanted: str) -> object:
            return getattr(real, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(database, name, Interrupted())
        with pytest.raises(KeyboardInterrupt):
            memory.add([{"id": "a", "text": "ant"}])
    assert not real.in_transaction
    memory.add([{"id": "b", "text": "bee"}])
    with SQLite(memory._folder) as another:
        assert another.one("SELECT count(*) FROM documents WHERE id = 'b'")[0] == 1


def test_a_memory_that_is_interrupted_while_it_closes_lets_others_write(tmp_path: Path) -> None:
    def written(moment: int) -> int:
        memory = evokey.open(tmp_path / "kb", encoder="bm25")
        memory.add([{"id": str(moment), "text": "common"}])
        moments = interrupted(moment, memory.close)
        memory.close()  # as a context manager would, or the next line of a program
        with evokey.open(tmp_path / "kb") as next_one:
            assert next_one.add([{"id": "next", "text": f"next{moment}"}]) == 1
        return moments

    for moment in range(1, written(NEVER)):
        written(moment)
