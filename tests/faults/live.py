"""Faults while a memory is at work: kills, interrupts, full disks, others who write."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from boundaries import NOWHERE, Boundaries, install
from world import QUERIES, Harm, Rankings, Step, Trial, Twin, examine, program, rank, take

import evokey
from evokey.errors import MemoryBusy

SOURCE = str(Path(evokey.__file__).parent)
PATIENCE = 30.0
"""Seconds after which somebody waits for good."""


def live(trial: Trial, steps: Sequence[Step], acknowledge: Callable[[], object]) -> None:
    """Open, take all steps, close; what returns is acknowledged."""
    memory = trial.open()
    try:
        for step in steps:
            memory = take(memory, step, trial.open)
            acknowledge()
    finally:
        memory.close()


# ---- kill


def kill(trial: Trial) -> None:
    """SIGKILL before or after some write, sync or rename; unsynced bytes may be torn."""
    steps = program(trial, trial.chance.randint(1, 5))
    die_at = trial.chance.randrange(400)
    done, passed = fork_and_live(trial, steps, die_at)
    if passed is not None:  # it came to its end: somewhere in its midst, then
        trial.__post_init__()
        done, passed = fork_and_live(trial, steps, die_at % passed)
    if passed is not None:
        raise Harm("not injected", "the process was not killed")
    trial.errors.append("SIGKILL")
    seen = trial.look()
    trial.compare(seen, trial.twin(steps).after(done, done + 1))
    trial.compare_with_new_keys(seen)


def fork_and_live(trial: Trial, steps: Sequence[Step], die_at: int) -> tuple[int, int | None]:
    """Steps that were acknowledged; and the places that were passed, if it was not killed."""
    notes = trial.home / "notes"
    notes.write_bytes(b"")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            handle = os.open(notes, os.O_WRONLY | os.O_APPEND)
            write = os.write
            install(at := Boundaries(die_at))
            live(trial, steps, lambda: write(handle, b"."))
            at.die_at = NOWHERE
            write(handle, f"|{len(at.seen)}".encode())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    done, _, passed = notes.read_text().partition("|")
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise Harm("raw error", "the process failed before it was killed")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        raise Harm("crash", f"signal {os.WTERMSIG(status)}")
    return len(done), int(passed) if passed else None


# ---- interrupt


def interrupt(trial: Trial) -> None:
    """Ctrl-C at some moment of some step, from opening to closing; the memory then goes on."""
    steps = program(trial, trial.chance.randint(1, 4))
    hit = trial.chance.randrange(-1, len(steps) + 1)
    twin, acknowledged = trial.twin(steps), max(hit, 0)
    passed = watch(trial.copy("count"), trial, steps, hit, moment=-1)
    moment = trial.chance.randint(1, max(passed, 1))
    watch(trial.folder, trial, steps, hit, moment)
    trial.compare(trial.look(), twin.after(*settled(trial, twin, acknowledged)))


def settled(trial: Trial, twin: Twin, acknowledged: int) -> tuple[int, ...]:
    """How many steps may have happened: what the process itself saw afterwards decides."""
    found = trial.seen_live
    options = tuple(n for n in (acknowledged, acknowledged + 1) if found is None or twin.ranked(n) == found)
    if not options:
        raise Harm(
            "wrong ranking", f"after the fault the open memory finds {found}, wanted {twin.ranked(acknowledged)}"
        )
    return options


def watch(folder: Path, trial: Trial, steps: Sequence[Step], hit: int, moment: int) -> int:
    """Take the steps up to one that is interrupted at a moment; −1 is opening, the last is closing. Then look, from
    another thread: a lock that was left would stop it. Returns the moments that the step came to."""
    profile, memory = Profile(moment), None
    opening = lambda: trial.open(folder)  # noqa: E731
    with trial.meets(), profile if hit == -1 else Nothing():
        memory = opening()
    if memory is None:
        return profile.seen
    if hit == -1 and profile.seen < moment:
        memory.close()
        return profile.seen
    for step in steps[: max(hit, 0)]:
        memory = take(memory, step, opening)
    with trial.meets(), profile if hit >= 0 else Nothing():
        if 0 <= hit < len(steps):
            memory = take(memory, steps[hit], opening)
        else:
            memory.close()
    if moment > 0:
        trial.seen_live = None if memory._closed else ask_in_thread(memory)
    memory.close()
    return profile.seen


def ask_in_thread(memory: evokey.Memory) -> Rankings:
    found: list[Any] = []

    def look() -> None:
        try:
            found.append(rank(memory))
        except Exception as error:  # noqa: BLE001  told below
            found.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not found:
        raise Harm("wedged", "a search after the fault waits for good")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


class Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Profile:
    """Raises where Python would run the handler of a signal: a function of ours is entered, or a call returns to it."""

    def __init__(self, moment: int) -> None:
        self.moment, self.seen = moment, 0

    def __enter__(self) -> None:
        sys.setprofile(self._look)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(SOURCE) or code.co_name == "__del__":
            return
        self.seen += 1
        if self.seen == self.moment:
            sys.setprofile(None)
            raise KeyboardInterrupt


# ---- full disk


def full_disk(trial: Trial) -> None:
    """A file system of a few megabytes has no room left, at once or soon; later there is room again."""
    steps = program(trial, trial.chance.randint(2, 6))
    early = trial.chance.random() < 0.25
    memory = None if early else trial.open()
    twin, done = trial.twin(steps), 0
    ballast = Ballast(trial.folder.parent)
    ballast.fill(trial.chance.choice([0, 1, 2, 4, 8, 16, 32, 64]) * 4096)
    try:
        with trial.meets():
            memory = memory or trial.open()
            for step in steps:
                memory = take(memory, step, trial.open)
                done += 1
        trial.seen_live = None
        with trial.meets():
            trial.seen_live = None if memory is None or memory._closed else ask_in_thread(memory)
        if memory is not None and trial.chance.random() < 0.5:
            with trial.meets():
                memory.close()
    finally:
        ballast.free()
    with trial.meets():
        if memory is not None:
            memory.close()
    trial.compare(trial.look(), twin.after(*settled(trial, twin, done)))


class Ballast:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "ballast"

    def fill(self, spare: int) -> None:
        found = os.statvfs(self._file.parent)
        with self._file.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - spare, 1))

    def free(self) -> None:
        self._file.unlink()


# ---- others


def others(trial: Trial) -> None:
    """A reader searches all the time, a second writer tries to write, a backup is made: while one process writes."""
    steps = program(trial, trial.chance.randint(3, 6))
    twin = trial.twin(steps)
    allowed = [twin.ranked(count)[::2] for count in range(len(steps) + 1)]
    stop, seen = threading.Event(), list[Any]()
    reader, second = trial.open(), trial.open()

    def search() -> None:
        try:
            while not stop.is_set():
                for at, one in enumerate(ranked_by(reader)):
                    if not any(one == state[at] for state in allowed):
                        seen.append(Harm("wrong ranking", f"a reader sees {one}"))
        except BaseException as error:  # noqa: BLE001  told below
            seen.append(error)

    def ranked_by(memory: evokey.Memory) -> Rankings:
        return [[(hit.id, hit.score) for hit in memory.search(**one)] for one in QUERIES]

    thread = threading.Thread(target=search, daemon=True)
    writer, done = trial.open(), 0
    thread.start()
    try:
        for step in steps:
            with trial.meets():
                writer = take(writer, step, trial.open)
            done += 1
            if writer.ledger.locked and trial.chance.random() < 0.7:
                busy(trial, second)
        if trial.chance.random() < 0.3:
            with trial.meets():
                reader.backup(trial.home / "backup")
    finally:
        stop.set()
        thread.join(PATIENCE)
    if thread.is_alive():
        raise Harm("wedged", "a reader waits for good")
    for one in seen:
        if isinstance(one, Harm):
            raise one
        with trial.meets():
            raise one
    trial.chance.choice([writer.close, writer.ledger.close])()  # the second as if it were killed
    if trial.chance.random() < 0.5 and rank(second) != twin.ranked(done):
        raise Harm("wrong ranking", "a second process, after the first has ended")
    reader.close()
    second.close()
    expected = list(twin.after(done))
    trial.compare(trial.look(), iter(expected))
    if (trial.home / "backup").exists():
        trial.compare(examine(trial.open, trial.home / "backup"), iter(expected))


def busy(trial: Trial, second: evokey.Memory) -> None:
    try:
        second.add([{"id": "second", "text": "written by a second process"}])
    except MemoryBusy:
        trial.errors.append("MemoryBusy")
    else:
        raise Harm("lost", "two processes write at once")
