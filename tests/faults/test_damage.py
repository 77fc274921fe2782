"""Damage that is there when a memory opens is an error or is made good. It kills no process and ranks nothing wrongly,
with and without the compiled scan. Processes are children here: a death would take the tests along."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import evokey

LIVE = """
import sys, logging
from evokey.scoring import compiled
from evokey.stores import sparse as sparse_store
sparse_store.LARGE = 1
if sys.argv[2] == "compiled":
    assert compiled.load()
import evokey
from evokey.errors import EvokeyError
for folder in sys.argv[3:]:
    try:
        with evokey.open(folder) as memory:
            for epoch in (None, 0):
                rankings = [memory.search(f"word{n} common", epoch=epoch) for n in range(0, 60, 7)]
                print(hash(tuple((hit.id, hit.score) for hits in rankings for hit in hits)), flush=True)
            print(memory.stats().documents, flush=True)
    except EvokeyError as error:
        print(type(error).__name__, "doctor" in str(error), flush=True)
"""
SCANS = ["plain", *(["compiled"] if find_spec("numba") else [])]
VALUES = (-1, 7, 2**31 - 1, -(2**31), 60_000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "kb"
    with evokey.open(folder) as memory:
        memory.add([{"id": str(n), "text": f"word{n} word{n % 9} common " * (1 + n % 3)} for n in range(60)])
        for n in range(4):
            memory.feedback(f"question {n} of nobody", relevant=[str(n)])
        memory.evolve()
    return folder


def lived(scan: str, *folders: Path) -> list[str]:
    """What each memory gave, three lines a memory; or one, of an error."""
    command = [sys.executable, "-c", LIVE, "0", scan, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONHASHSEED": "0", **ENV})
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-3000:])
    return done.stdout.splitlines()


ENV = {"PYTHONPATH": str(Path(evokey.__file__).parents[1])}


def arrays(folder: Path) -> list[Path]:
    return sorted((folder / "keys").rglob("*.npy"))


@pytest.mark.parametrize("scan", SCANS)
def test_damaged_arrays_are_found_at_open_and_made_again(whole: Path, tmp_path: Path, scan: str) -> None:
    expected, damaged = lived(scan, whole), []
    for path in arrays(whole):
        for place in (140, -3):
            copy = tmp_path / f"{path.parent.parent.name}-{path.stem}{place}"
            shutil.copytree(whole, copy)
            target = copy / path.relative_to(whole)
            wrong = bytearray(target.read_bytes())
            wrong[place] ^= 0x40
            target.write_bytes(bytes(wrong))
            damaged.append(copy)
    assert lived(scan, *damaged) == expected * len(damaged)


@pytest.mark.parametrize("scan", SCANS)
def test_arrays_that_were_never_right_lead_nowhere(whole: Path, tmp_path: Path, scan: str) -> None:
    """Checksums and all: as in a memory that somebody hands you."""
    expected, forged = lived(scan, whole), []
    for path in arrays(whole):
        array = np.load(path)
        if array.dtype.kind not in "iu" or path.stem in ("terms", "owners", "covered"):
            continue
        for value in VALUES:
            copy = tmp_path / f"{path.parent.parent.name}-{path.stem}{value}"
            shutil.copytree(whole, copy)
            target = copy / path.relative_to(whole)
            wrong = array.copy()
            wrong[len(wrong) // 2] = np.array(value, np.int64).astype(array.dtype)
            np.save(target, wrong)
            sums = json.loads((target.parent / "checksums.json").read_bytes())
            sums[path.stem] = zlib.crc32(target.read_bytes())
            (target.parent / "checksums.json").write_text(json.dumps(sums))
            forged.append(copy)
    lines = lived(scan, *forged)
    assert len(lines) == 3 * len(forged)
    assert set(lines[2::3]) == {expected[2]}


@pytest.mark.parametrize("scan", SCANS)
def test_cut_files_kill_nobody(whole: Path, tmp_path: Path, scan: str) -> None:
    cut = []
    names = [path for path in whole.rglob("*") if path.is_file() and path.name not in ("writer.lock", "evokey.toml")]
    for path in names:
        for share in (0, 0.5):
            copy = tmp_path / f"{len(cut)}-{path.name}"
            shutil.copytree(whole, copy)
            target = copy / path.relative_to(whole)
            target.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
            cut.append(copy)
    lines = lived(scan, *cut)
    errors = [line for line in lines if line[:1].isalpha()]
    assert set(errors) <= {"DamagedLedger True", "NotAMemory True", "MissingLedger False"}
    assert len(lines) - len(errors) == 3 * (len(cut) - len(errors))
