"""Faults of files: cut, flipped, missing, restored, of another version. The memory is at rest when they happen."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from world import Harm, Trial, program, rank, take

from evokey.errors import EvokeyError
from evokey.inspect import doctor
from evokey.settings import read_whole

ROOT = Path(__file__).parents[2]
EARLIER = ROOT / "tests" / "fixtures" / "earlier"
VERSION_BEFORE = "823b68d"
LEDGER = "ledger.sqlite"


def cut_key(trial: Trial) -> None:
    damage_keys(trial, cut)


def flip_key(trial: Trial) -> None:
    damage_keys(trial, flip)


def damage_keys(trial: Trial, harm: Callable[[Trial, Path], None]) -> None:
    """Keys are derived: nothing is lost, whatever happens to them."""
    for path in some(trial, [path for path in files(trial.folder) if "keys" in path.parts]):
        harm(trial, path)
    told = findings(trial)
    mend(trial, lambda: doctor.rebuild(trial.folder))
    trial.compare(trial.look(), iter([trial.untouched]))
    trial.errors += ["doctor"] * bool(told)


def damage_truth(trial: Trial) -> None:
    """The ledger, its count of commits, the settings, the manifest, leftovers of a writer."""
    names = [LEDGER] * 5 + ["ledger.commits", "evokey.toml", "evokey.toml", "manifest", "writer.json", "-wal", "-shm"]
    name = trial.chance.choice(names)
    path = next(trial.folder.rglob("segments.json")) if name == "manifest" else trial.folder / name
    if name in ("-wal", "-shm"):
        path = trial.folder / f"{LEDGER}{name}"
        path.write_bytes(trial.chance.randbytes(trial.chance.choice([0, 31, 100, 4096, 33_000])))
    elif name == "writer.json":
        path.write_bytes(b'{"pid": 1, "host": "elsewhere"}')
    content = path.read_bytes()
    trial.chance.choice([cut, flip, flip])(trial, path)
    while name == "evokey.toml" and says_otherwise(trial):
        path.write_bytes(content)
        flip(trial, path)
    told = findings(trial)
    mend(trial, lambda: restore(trial, path, name, content))
    try:
        seen = trial.look()
    except Harm as harm:
        if not told and harm.kind != "unsound":
            raise
        seen = None
    expected = trial.untouched
    if seen != expected:
        if not told:
            trial.compare(seen, iter([expected]))  # raises
        restore(trial, path, name, content)
        trial.compare(trial.look(), iter([expected]))
        trial.errors.append("doctor")
    trial.checked += expected.items


def says_otherwise(trial: Trial) -> bool:
    """Whether the settings became others that are as good: nobody could tell."""
    with suppress(EvokeyError):
        return read_whole(trial.folder) != read_whole(trial.base)
    return False


def restore(trial: Trial, path: Path, name: str, content: bytes) -> None:
    """As the error says: from a backup; the log beside a ledger goes first. A log that was never one has none."""
    for left in trial.folder.glob(f"{LEDGER}-*"):
        left.unlink()
    if name in (LEDGER, "-wal", "-shm"):
        shutil.copy2(trial.base / LEDGER, trial.folder / LEDGER)
    else:
        path.write_bytes(content)


def mend(trial: Trial, way_out: Callable[[], object]) -> None:
    """Open and use it; after an error, take the way out that it tells."""
    before = len(trial.errors)
    with trial.meets(), trial.open() as memory:
        rank(memory)
        memory.stats()
        memory.lessons()
        memory.epochs()
    if len(trial.errors) > before:
        with trial.meets():
            way_out()


def findings(trial: Trial) -> list[doctor.Finding]:
    with trial.meets():
        return doctor.examine(trial.folder)
    return [doctor.Finding("an error", "")]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def some(trial: Trial, among: list[Path]) -> list[Path]:
    return trial.chance.sample(among, trial.chance.choice([1, 1, 1, 2, 5]))


def cut(trial: Trial, path: Path) -> None:
    content = path.read_bytes()
    length = len(content)
    size = trial.chance.choice([0, 1, length // 2, length - 1, trial.chance.randrange(max(length, 1))])
    put(path, content[: max(0, min(size, length - 1))])


def flip(trial: Trial, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(trial.chance.choice([1, 1, 1, 3, 40])):
        if content:
            content[trial.chance.randrange(len(content))] ^= 1 << trial.chance.randrange(8)
    put(path, bytes(content))


def put(path: Path, content: bytes) -> None:
    """In the file's place; as a disk that rots does, without a trace in its time."""
    before = path.stat()
    path.unlink()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# ---- missing, and of the wrong kind


def missing(trial: Trial) -> None:
    """Files and folders that are gone, or in whose place something else is; and a directory that nobody may write."""
    if trial.place is not None and trial.chance.random() < 0.3:
        read_only(trial)
        return
    entries = sorted(path for path in trial.folder.rglob("*") if path.name != LEDGER)
    entries += [trial.folder / LEDGER] * 4
    path = trial.chance.choice(entries)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    how = trial.chance.choice(["gone", "gone", "folder", "link", "pipe"])
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("nowhere")
    elif how == "pipe":
        os.mkfifo(path)
    told = findings(trial)
    mend(trial, lambda: put_back(trial, path))
    seen = None
    with suppress(Harm):
        seen = trial.look()
    expected = trial.untouched
    if seen != expected and not (told or trial.errors):
        raise Harm("lost", f"{path.relative_to(trial.folder)} ({how}) is missed by nobody")
    if seen != expected:
        put_back(trial, path)
        trial.compare(trial.look(), iter([expected]))
    trial.checked += expected.items


def put_back(trial: Trial, path: Path) -> None:
    """What the errors say: restore from a backup."""
    shutil.rmtree(trial.folder)
    shutil.copytree(trial.base, trial.folder)


def read_only(trial: Trial) -> None:
    """On a file system that turned read-only before the memory is opened."""
    assert trial.place is not None
    steps = program(trial, 3)
    twin, done, memory = trial.twin(steps), 0, None
    remount(trial.place, "ro")
    try:
        with trial.meets():
            memory = trial.open()
            if rank(memory) != twin.ranked(0):
                raise Harm("wrong ranking", "on a read-only disk")
            for step in steps:
                memory = take(memory, step, trial.open)
                done += 1
        with trial.meets():
            if memory is not None:
                memory.close()
    finally:
        remount(trial.place, "rw")
    trial.compare(trial.look(), twin.after(done, done + 1))


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", place], check=True, capture_output=True)


# ---- restored


def restored(trial: Trial) -> None:
    """An older ledger beside newer keys, older keys beside a newer ledger, or the keys of another memory."""
    before, later, after = (program(trial, trial.chance.randint(1, 3)) for _ in range(3))
    if before:
        run(trial, before)
    old = trial.copy("old")
    run(trial, later)
    how = trial.chance.choice(["ledger", "ledger", "keys", "foreign keys"])
    truth = old if how == "ledger" else trial.copy("truth")
    if how == "ledger":
        for left in trial.folder.glob(f"{LEDGER}*"):
            left.unlink()
        shutil.copy(old / LEDGER, trial.folder)
    else:
        keys = old / "keys" if how == "keys" else other(trial) / "keys"
        shutil.rmtree(trial.folder / "keys")
        shutil.copytree(keys, trial.folder / "keys")
    if trial.chance.random() < 0.5:
        trial.errors += ["doctor"] * bool(findings(trial))
    steps = possible(trial, truth, after)
    done = 0
    with trial.meets():
        memory = trial.open()
        for step in steps:
            memory = take(memory, step, trial.open)
            done += 1
        memory.ledger.close() if trial.chance.random() < 0.3 else memory.close()  # as if it were killed
    seen = trial.look()
    trial.compare(seen, trial.twin(steps, truth).after(done))
    trial.compare_with_new_keys(seen)


def run(trial: Trial, steps: list[Any]) -> None:
    memory = trial.open()
    for step in steps:
        with suppress(EvokeyError):
            memory = take(memory, step, trial.open)
    memory.close()


def other(trial: Trial) -> Path:
    """A memory of the same settings and other documents."""
    folder = trial.copy("other", trial.base)
    with trial.open(folder) as memory:
        memory.delete(["d1", "d2"])
        memory.add([{"id": f"o{n}", "text": f"something else {n} castle"} for n in range(trial.chance.randint(1, 9))])
    return folder


def possible(trial: Trial, folder: Path, steps: list[Any]) -> list[Any]:
    """Those of the steps that a memory takes."""
    copy, found = trial.copy("possible", folder), []
    memory = trial.open(copy)
    for step in steps:
        with suppress(EvokeyError):
            memory = take(memory, step, lambda: trial.open(copy))
            found.append(step)
    memory.close()
    return found
