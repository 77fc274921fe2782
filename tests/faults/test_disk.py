"""Disks that are full, read-only or wrong, and two writers at once. What needs root to mount is skipped without it."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from scenarios import ASKED, documents, lesson
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import EncoderMismatch, MemoryBusy, StorageFailed
from evokey.stores.embedded import EmbeddedStore
from evokey.stores.segments import find_damage

FULL = (StorageFailed,)
SPARE = 40 * 1024
"""Room for the ledger to grow a little, and not for the keys."""
Rankings = list[list[tuple[str, float]]]


def rankings(memory: evokey.Memory) -> Rankings:
    return [[(hit.id, hit.score) for hit in memory.search(**asked)] for asked in ASKED]


def filled(folder: Path, encoder: str | None = "bm25") -> Rankings:
    with evokey.open(folder, encoder=encoder) as memory:
        memory.add(documents(0, 20))
        memory.feedback(**lesson(1))
        memory.feedback(**lesson(2, actor="ann"))
        memory.evolve()
        return rankings(memory)


def mounted(*arguments: str | Path) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"SKIPPED FOR WANT OF ROOT: mount says {done.stderr.strip()}")


# ---- full


class Tmpfs:
    """A file system of two megabytes, and a ballast that takes what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, spare: int = 0) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(bytes(4096))
            file.truncate(file.tell() - spare)

    def free(self) -> None:
        self._ballast.unlink()


class Limit:
    """No file of this process may be written beyond its first bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, spare: int = 0) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 + spare, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.fixture(params=["tmpfs", "limit"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tmpfs | Limit]:
    if request.param == "limit":
        limit = Limit(tmp_path)
        yield limit
        limit.free()
        return
    (tmp_path / "disk").mkdir()
    mounted("-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path / "disk")
    yield Tmpfs(tmp_path / "disk")
    gc.collect()  # the traceback of an error may still refer to a memory and its mapped keys
    subprocess.run(["umount", tmp_path / "disk"], check=True)


def add(memory: evokey.Memory, number: int) -> None:
    memory.add(documents(100 + number, 101 + number))


def replace(memory: evokey.Memory, number: int) -> None:
    memory.add(documents(number % 20, number % 20 + 1, f"again {number}"))


def delete(memory: evokey.Memory, number: int) -> None:
    memory.delete([f"d{number}"])


def feedback(memory: evokey.Memory, number: int) -> None:
    memory.feedback(f"question {number}", relevant=["d3"])


def evolve(memory: evokey.Memory, number: int) -> None:
    memory.feedback(f"question {number}", relevant=["d3"])
    memory.evolve()


def forget(memory: evokey.Memory, number: int) -> None:
    memory.forget(query=lesson(1 + number)["query"])


@contextmanager
def kept_open(folder: Path) -> Iterator[evokey.Memory]:
    memory = evokey.open(folder, now=lambda: 0.0)
    try:
        yield memory
    finally:
        memory.close()


@pytest.mark.parametrize("verb", [add, replace, delete, feedback, evolve, forget])
def test_a_full_disk_stops_a_verb_and_loses_nothing(
    disk: Tmpfs | Limit, tmp_path: Path, verb: Callable[[evokey.Memory, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedStore, "persist_at", 10**9)
    filled(disk.folder / "kb")
    filled(tmp_path / "fresh")
    with kept_open(disk.folder / "kb") as memory, kept_open(tmp_path / "fresh") as fresh:
        memory.add(documents(50, 51))
        fresh.add(documents(50, 51))
        disk.fill()
        done = until_it_fails(memory, verb)
        found = rankings(memory)
        disk.free()
        for number in range(done):
            verb(fresh, number)
        halfway = len(fresh.ledger.lessons), rankings(fresh)
        if verb is evolve and len(memory.ledger.lessons) > len(
            fresh.ledger.lessons
        ):  # its feedback had been acknowledged
            feedback(fresh, done)
            halfway = len(fresh.ledger.lessons), rankings(fresh)
        assert (len(memory.ledger.lessons), found) == halfway
        verb(memory, done)
        verb(fresh, done)
        assert rankings(memory) == rankings(fresh)
        expected = rankings(fresh)
    with evokey.open(disk.folder / "kb") as memory:
        assert rankings(memory) == expected


def until_it_fails(memory: evokey.Memory, verb: Callable[[evokey.Memory, int], None]) -> int:
    """How often a verb was acknowledged before the disk had no more room."""
    for number in range(19):
        try:
            verb(memory, number)
        except FULL:
            return number
    pytest.skip(f"{verb.__name__} needs no room here")


def test_a_disk_that_fills_while_keys_are_saved_loses_only_keys(disk: Tmpfs | Limit) -> None:
    filled(disk.folder / "kb")
    memory = evokey.open(disk.folder / "kb")
    memory.add(documents(20, 60))
    before = rankings(memory)
    disk.fill()
    with contextlib.suppress(*FULL):
        memory.close()
    assert list((disk.folder / "kb" / "keys").rglob("*.tmp")) == []
    disk.free()
    with evokey.open(disk.folder / "kb") as again:
        assert rankings(again) == before
        assert again.add(documents(60, 61)) == 1


def test_an_add_whose_keys_find_no_room_happened_whole_or_not_at_all(
    disk: Tmpfs | Limit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedStore, "persist_at", 1)
    filled(disk.folder / "kb")
    filled(tmp_path / "fresh")
    with evokey.open(disk.folder / "kb") as memory, evokey.open(tmp_path / "fresh") as fresh:
        add(memory, 0)
        add(fresh, 0)
        before = rankings(fresh)
        add(fresh, 1)
        disk.fill(spare=SPARE)
        with contextlib.suppress(*FULL):  # keys may fail to be written without a word: they are derived
            add(memory, 1)
        assert rankings(memory) in (before, rankings(fresh))
        disk.free()
        add(memory, 1)
        assert rankings(memory) == rankings(fresh)
    with evokey.open(disk.folder / "kb") as memory, evokey.open(tmp_path / "fresh") as fresh:
        assert rankings(memory) == rankings(fresh)


def test_a_memory_on_a_full_disk_is_searched_or_says_why_not(disk: Tmpfs | Limit) -> None:
    before = filled(disk.folder / "kb")
    disk.fill()
    try:
        with evokey.open(disk.folder / "kb") as memory:
            assert rankings(memory) == before
    except FULL as error:
        assert str(disk.folder / "kb") in str(error)
    disk.free()
    with evokey.open(disk.folder / "kb") as memory:
        assert rankings(memory) == before


# ---- read-only


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A view of the memory `kb` that nobody can write through."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "view").mkdir()
    mounted("--bind", tmp_path / "kb", tmp_path / "view")
    mounted("-o", "remount,ro,bind", tmp_path / "view")
    yield tmp_path / "view"
    gc.collect()
    subprocess.run(["umount", tmp_path / "view"], check=True)


def test_a_read_only_memory_that_is_open_elsewhere_is_searched_and_not_written(read_only: Path) -> None:
    before = filled(read_only.with_name("kb"))
    with evokey.open(read_only.with_name("kb")), evokey.open(read_only) as memory:
        assert rankings(memory) == before
        with pytest.raises(OSError, match=r"writer\.lock"):
            memory.add(documents(60, 61))
        assert rankings(memory) == before


def test_a_read_only_memory_is_searched_or_named_in_the_error(read_only: Path) -> None:
    before = filled(read_only.with_name("kb"))
    try:
        with evokey.open(read_only) as memory:
            assert rankings(memory) == before
    except StorageFailed as error:
        assert f"{read_only} cannot be written to" in str(error)


# ---- damaged


def derived(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "keys").rglob("*") if path.is_file())


def test_a_derived_file_that_was_cut_is_made_again(tmp_path: Path) -> None:
    before = filled(tmp_path / "kb", encoder=None)
    for path in derived(tmp_path / "kb"):
        whole = path.read_bytes()
        for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
            path.unlink()
            path.write_bytes(whole[: min(size, len(whole) - 1)])
            with evokey.open(tmp_path / "kb") as memory:
                assert rankings(memory) == before, (path.name, size)
        path.unlink()
        path.write_bytes(whole)


def flipped(whole: bytes) -> Iterator[tuple[int, bytes]]:
    """A bit of every eleventh byte of the head, and of some bytes all over the rest."""
    for at in sorted({*range(0, min(128, len(whole)), 11), *range(21, len(whole), max(1, len(whole) // 7))}):
        yield at, whole[:at] + bytes([whole[at] ^ 1 << at % 7]) + whole[at + 1 :]


def test_a_flipped_bit_is_found_by_the_checksums_or_does_no_harm(tmp_path: Path) -> None:
    before = filled(tmp_path / "kb", encoder=None)
    for path in derived(tmp_path / "kb"):
        keys = tmp_path / "kb" / "keys" / path.relative_to(tmp_path / "kb" / "keys").parts[0]
        whole = path.read_bytes()
        for at, wrong in flipped(whole):
            path.unlink()
            path.write_bytes(wrong)
            assert find_damage(keys) or ranked_right(tmp_path / "kb", before), (path.name, at)
        path.unlink()
        path.write_bytes(whole)
    assert find_damage(tmp_path / "kb" / "keys" / "bm25") == []


def ranked_right(folder: Path, before: Rankings) -> bool:
    try:
        with evokey.open(folder) as memory:
            return rankings(memory) == before
    except EncoderMismatch:  # the name of the encoder was hit: refused, not mixed
        return True


@pytest.mark.parametrize("name", ["owners", "covered", "terms"])
def test_damage_that_would_stop_a_memory_from_opening_is_mended(tmp_path: Path, name: str) -> None:
    before = filled(tmp_path / "kb")
    path = next((tmp_path / "kb" / "keys").rglob(f"{name}.npy"))
    whole = path.read_bytes()
    for at, wrong in flipped(whole):
        path.unlink()
        path.write_bytes(wrong)
        with evokey.open(tmp_path / "kb") as memory:
            assert rankings(memory) == before, at


def test_settings_are_on_disk_before_they_have_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    sync, rename = os.fsync, os.replace

    def fsync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        sync(handle)

    def replace(source: Path, target: Path) -> None:
        assert Path(source).stat().st_ino in synced, f"{target} may be empty after a power failure"
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    filled(tmp_path / "kb")


# ---- two writers

WRITER = """
import sys, time, evokey
from evokey.errors import MemoryBusy
folder, mine = sys.argv[1:]
for number in range(8):
    while True:
        try:
            with evokey.open(folder, encoder="bm25") as memory:
                memory.add([{"id": f"{mine}{number}", "text": f"{mine} wrote number {number}"}])
                memory.feedback(f"what did {mine} say {number}", relevant=[f"{mine}{number}"])
            break
        except MemoryBusy:
            time.sleep(0.01)
"""
HOLDER = """
import sys, time, evokey
memory = evokey.open(sys.argv[1], encoder="bm25")
memory.add([{"id": "held", "text": "held by the first writer"}])
print("writing", flush=True)
time.sleep(60)
"""


def test_two_processes_that_write_in_turns_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "kb")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("ann", "bob")]
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    with evokey.open(tmp_path / "kb") as memory:
        assert {memory.get(f"{name}{number}").id for name in ("ann", "bob") for number in range(8)}
        assert (len(memory), memory.stats().lessons) == (16, 16)


def test_a_killed_writer_holds_nobody_up(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "kb")], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    with evokey.open(tmp_path / "kb") as memory:
        with pytest.raises(MemoryBusy, match=f"process {writer.pid} on"):
            memory.add(documents(0, 1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert memory.add(documents(0, 1)) == 1
        assert memory.search("first writer")[0].id == "held"


@pytest.mark.parametrize("command", ["init", "add", "feedback", "evolve"])
def test_a_full_disk_is_one_line_on_the_command_line(disk: Tmpfs | Limit, command: str) -> None:
    folder, more = disk.folder / "kb", disk.folder / "more.jsonl"
    more.write_text("".join(json.dumps({"id": f"m{n}", "text": f"more {n} " * 500}) + "\n" for n in range(40)))
    if command != "init":
        filled(folder)
        (folder / "ledger.commits").unlink()
    given = {
        "init": ["init"],
        "add": ["add", str(more)],
        "feedback": ["feedback", "what is this " * 500, "-r", "d3"],
        "evolve": ["evolve"],
    }
    disk.fill()
    try:
        done = CliRunner().invoke(app, [*given[command], "--at", str(folder), "--json"])
    finally:
        disk.free()
    if done.exit_code:
        assert isinstance(done.exception, SystemExit), done.exception
        assert json.loads(done.stdout)["error"] == "StorageFailed"
    assert command == "evolve" or done.exit_code == 1


def test_keys_that_cannot_be_saved_are_an_error_where_saving_was_asked_for(disk: Tmpfs | Limit) -> None:
    filled(disk.folder / "kb")
    with evokey.open(disk.folder / "kb") as memory:
        memory.add(documents(20, 40))
        disk.fill()
        try:
            with pytest.raises(StorageFailed, match="cannot be written"):
                memory.save()
        finally:
            disk.free()
        memory.save()


def test_a_memory_whose_settings_find_no_room_is_an_error_and_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("evokey.settings.opening.write_synced", full)
        with pytest.raises(StorageFailed, match="No space left"):
            evokey.open(tmp_path / "kb", encoder="bm25")
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        assert memory.add(documents(0, 1)) == 1
