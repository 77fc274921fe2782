"""Read damaged files of every kind: none may hang, crash or take unbounded memory, and each error names its file.

    python tests/faults/fuzz_files.py [--each N] [--seed N]     makes benchmarks/results/fuzz-files.json

Seeds are small sound files of each kind, and real ones of this machine (/usr/share/doc and the installed packages).
Each is damaged in one to three ways: bits flipped, cut off, a part doubled, removed, moved or replaced by noise, by
long runs of one sign or by a part of another file. Of Word files (archives), a part inside is damaged as often as the
archive.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx

sys.path.insert(0, str(Path(__file__).parents[1]))
from ingest.small_pdf import pdf

from evokey.cli.records import read_documents
from evokey.errors import InvalidDocument
from evokey.ingest import ChildReader, File
from evokey.ingest.kinds import KINDS

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "fuzz-files.json"
ENDINGS = (
    {"jsonl": ".jsonl", "csv": ".csv"} | {kind: ending for ending, kind in reversed(KINDS.items())} | {"code": ".py"}
)
SECONDS, MEMORY = 20.0, 1_000_000_000
LARGEST_SEED, REAL = 100_000, 30
Damage = Callable[[bytes, random.Random, bytes], bytes]


def flip(data: bytes, chance: random.Random, other: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(max(1, len(found) // 500)):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(data))
    return start, min(len(data), start + chance.randrange(1, max(2, len(data) // 3)))


def cut(data: bytes, chance: random.Random, other: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def double(data: bytes, chance: random.Random, other: bytes) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.choice([1, 2, 200 if end - start < 500 else 3]) + data[end:]


def remove(data: bytes, chance: random.Random, other: bytes) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def move(data: bytes, chance: random.Random, other: bytes) -> bytes:
    start, end = _span(data, chance)
    rest = data[:start] + data[end:]
    at = chance.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def noise(data: bytes, chance: random.Random, other: bytes) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + chance.randbytes(end - start) + data[end:]


def run(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """A long run of signs that open something."""
    sign = chance.choice(
        [b"(", b"[", b"{", b"<div>", b"<table><tr><td>", b"*", b"`", b"|", b"#", b"\n", b"\t", b"\0", b"-"]
    )
    at = chance.randrange(len(data) + 1)
    return data[:at] + sign * chance.choice([100, 5_000, 50_000]) + data[at:]


def graft(data: bytes, chance: random.Random, other: bytes) -> bytes:
    (start, end), (first, last) = _span(data, chance), _span(other, chance)
    return data[:start] + other[first:last] + data[end:]


DAMAGES: tuple[Damage, ...] = (flip, cut, double, remove, move, noise, run, graft)


def damage(data: bytes, chance: random.Random, other: bytes) -> tuple[bytes, list[str]]:
    how = [chance.choice(DAMAGES) for _ in range(chance.randrange(1, 4))]
    for one in how:
        data = one(data, chance, other) if data else data
    return data, [one.__name__ for one in how]


def damage_archive(data: bytes, chance: random.Random, other: bytes) -> tuple[bytes, list[str]]:
    """A part inside of an archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        victim, how = chance.choice(old.namelist()), list[str]()
        for name in old.namelist():
            body = old.read(name)
            if name == victim and body:
                body, how = damage(body, chance, other)
            new.writestr(name, body)
    return made.getvalue(), ["inside", *how]


def sound_files() -> dict[str, list[bytes]]:
    """Small files of each kind, made here."""
    word = docx.Document()
    word.add_heading("The House", 0)
    word.add_paragraph("It is old, and warm.")
    word.add_table(rows=2, cols=2).rows[0].cells[0].text = "room"
    saved = io.BytesIO()
    word.save(saved)
    cells = [{"cell_type": "markdown", "source": ["# Sums"]}, {"cell_type": "code", "source": "1 + 1", "outputs": []}]
    return {
        "jsonl": [b'{"id": "a", "text": "words", "metadata": {"n": [1, 2]}}\n' * 20],
        "csv": [b'id,text,year\na,"words, more",2020\nb,other,1999\n' * 10],
        "text": ["Le café est fermé. ".encode("cp1252") * 20, "plain words\n".encode("utf-16")],
        "markdown": [
            b"---\ntitle: x\ntags: [a, b]\n---\n# Guide\n\n```sh\nls\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |\n"
        ],
        "docx": [saved.getvalue()],
        "notebook": [json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}).encode()],
        "rst": [b"Title\n=====\n\n.. note:: mind\n\n- one\n- two\n\n==== ===\na    b\n==== ===\n1    2\n==== ===\n"],
        "html": [
            b"<html lang=en><body><main><h1>T</h1><p>x</p><table><tr><td>1</td></tr></table></main></body></html>"
        ],
        "code": [b'"""Doc."""\n\n\nclass A:\n    def f(self) -> int:\n        return 1\n'],
        "pdf": [
            pdf(*(f"A line of page {n}.\nAnd one more." for n in range(many)), title="R") for many in (1, 2, 9, 40)
        ],
    }


def real_files(chance: random.Random) -> dict[str, list[bytes]]:
    """Files of this machine."""
    found: dict[str, list[Path]] = {}
    for root in (Path("/usr/share/doc"), Path(sysconfig.get_paths()["purelib"])):
        for path in root.rglob("*"):
            kind = KINDS.get(path.suffix.lower())
            if kind and path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED:
                found.setdefault(kind, []).append(path)
    return {
        kind: [path.read_bytes() for path in chance.sample(sorted(paths), min(REAL, len(paths)))]
        for kind, paths in found.items()
    }


def seeds(chance: random.Random, *, real: bool) -> dict[str, list[bytes]]:
    found = sound_files()
    for kind, files in (real_files(chance) if real else {}).items():
        found[kind] += files
    return found


def read(file: File, child: ChildReader) -> str:
    """What came of a file; an error that does not name it is a finding of its own."""
    try:
        for _ in read_documents(file, child):
            pass
    except InvalidDocument as error:
        if "its reader ended" in str(error):
            return "ended"
        return "refused" if str(file.path) in str(error) else "unnamed"
    return "read"


def _is_sound(folder: Path, kind: str, data: bytes, child: ChildReader) -> bool:
    """Whether it is read undamaged; a PDF of images only is not."""
    path = folder / f"seed{ENDINGS[kind]}"
    path.write_bytes(data)
    return read(File(path, path.name), child) == "read"


def fuzz(folder: Path, each: int, seed: int, *, real: bool) -> dict[str, Any]:
    chance = random.Random(seed)
    sound = seeds(chance, real=real)
    with ChildReader(SECONDS, MEMORY) as child:
        sound = {
            kind: [data for data in files if _is_sound(folder, kind, data, child)] for kind, files in sound.items()
        }
    everything = [data for files in sound.values() for data in files if data]
    kinds: dict[str, Any] = {}
    with ChildReader(SECONDS, MEMORY) as child:
        for kind, files in sound.items():
            outcomes, slowest, worst = Counter[str](), 0.0, list[str]()
            for number in range(each):
                data, other = chance.choice(files), chance.choice(everything)
                inside = kind == "docx" and chance.random() < 0.5
                made, how = (damage_archive if inside else damage)(data, chance, other)
                path = folder / f"{kind}-{number}{ENDINGS[kind]}"
                path.write_bytes(made)
                start = time.perf_counter()
                outcome = read(File(path, path.name), child)
                taken = time.perf_counter() - start
                outcomes[outcome] += 1
                slowest, worst = (taken, how) if taken > slowest else (slowest, worst)
                path.unlink()
            kinds[kind] = {**outcomes, "seeds": len(files), "slowest_s": round(slowest, 2), "slowest_damage": worst}
            sys.stdout.write(f"{kind} {kinds[kind]}\n")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "files": each * len(kinds), "seed": seed, "kinds": kinds, "bounds": {"seconds": SECONDS, "memory": MEMORY},
        "unnamed_errors": sum(one.get("unnamed", 0) for one in kinds.values()),
        "largest_memory_mb": {"program": used[0] // 1024, "reader": used[1] // 1024},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz(Path(folder), given.each, given.seed, real=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write(f"{ {name: found[name] for name in ('files', 'unnamed_errors', 'largest_memory_mb')} }\n")


if __name__ == "__main__":
    main()
