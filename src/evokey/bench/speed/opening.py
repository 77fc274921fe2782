"""Opening a memory in a process of its own: seconds once it is warm, and the bytes it takes.

python -m evokey.bench.speed.opening FOLDER
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from evokey import memory as memory_
from evokey.bench.speed.texts import DIMENSIONS
from evokey.types import Document

STATUS = Path("/proc/self/status")


def time_opening(folder: Path, documents: int) -> dict[str, Any]:
    """Seconds to open, and what a document takes, in memory (where the system tells) and on disk."""
    command = [sys.executable, "-m", __name__, str(folder)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ledger = sum(path.stat().st_size for path in folder.glob("ledger.sqlite*"))
    keys = sum(path.stat().st_size for path in (folder / "keys").rglob("*") if path.is_file())
    return {
        "open_seconds": told["open_seconds"],
        "memory_bytes_per_document": told["bytes"] and told["bytes"] / documents,
        "memory_private_bytes_per_document": told["private"] and told["private"] / documents,
        "disk_bytes_per_document": {"ledger": ledger / documents, "keys": keys / documents},
    }


def measure(folder: Path) -> dict[str, Any]:
    seconds = []
    vector = None if not (folder / "keys" / "given").exists() else np.ones(DIMENSIONS)
    encoder = None if vector is None else "given"
    if not (folder / "keys" / "wordllama").exists() and vector is None:
        encoder = "bm25"
    with tempfile.TemporaryDirectory() as small, memory_.open(Path(small) / "kb", encoder=encoder) as memory:
        # everything imported and every model loaded first
        memory.add([Document("one", "some words")], vectors=None if vector is None else [vector])
        memory.search("some words", vector=vector)
    before = resident()
    for _ in range(5):
        began = time.perf_counter()
        memory = memory_.open(folder)
        seconds.append(time.perf_counter() - began)
        memory.close()
    with memory_.open(folder) as memory:
        for _ in range(3):
            memory.search("what are the effects of some words on the others", vector=vector)
        after = resident()
    total, private = ([later - earlier for later, earlier in zip(after, before, strict=True)]) or (None, None)
    return {"open_seconds": statistics.median(seconds), "bytes": total, "private": private}


def resident() -> list[int]:
    """Bytes in memory: all, and those that are not of a mapped file. Nothing where the system does not tell."""
    if not STATUS.exists():
        return []
    told = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return [1024 * int(told[name].split()[0]) for name in ("VmRSS", "RssAnon")]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]))))
