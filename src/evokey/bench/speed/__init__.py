"""Speed and cost, part by part. Every part runs in a process of its own, on one thread.

| part      | measures                                                                                          |
|-----------|---------------------------------------------------------------------------------------------------|
| dense     | search beside faiss's flat index; add and feedback rates, bytes of a document, time to open       |
| bm25      | the same beside bm25s and tantivy                                                                 |
| hybrid    | add rate, bytes of a document and time to open of the default                                     |
| growth    | evolve over the same lessons, among a tenth, all and ten times the documents                      |
| rivals    | evolve against NUDGE-N's fit, on a set and among all the documents                                |
| expansion | query-time expansion by a language model against plain search                                     |
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evokey.errors import InvalidInput

PARTS = ("dense", "bm25", "hybrid", "growth", "rivals", "expansion")
K = 10
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
REFUSED = 2
NAMING = ("encoder", "documents")


def measure(
    parts: Sequence[str], documents: int, data: Path | None = None, llm: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Every part with what it found, as it comes. The number of threads is set before numpy is there to read it."""
    if unknown := [part for part in parts if part not in PARTS]:
        raise InvalidInput(f"there is no part {unknown[0]!r}; choose of: {', '.join(PARTS)}")
    if data is not None and not any(data.glob("*/corpus.jsonl")):
        raise InvalidInput(f"{data} holds no sets in BEIR layout; nothing was measured")
    told = {"documents": documents, "data": None if data is None else str(data), "llm": llm}
    for part in parts:
        command = [sys.executable, "-m", f"{__name__}.part", json.dumps({"part": part, **told})]
        alone = {**os.environ, **dict.fromkeys(THREADS, "1")}
        done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
        if done.returncode == REFUSED:
            raise InvalidInput(f"{part}: {done.stderr.strip()}")
        if done.returncode:
            raise InvalidInput(f"{part} failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        yield part, json.loads(done.stdout)


def read_known(path: Path | None, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is told, and the parts that a file has that was told the same: of this machine, with as many documents."""
    try:
        before = json.loads(path.read_text("utf-8")) if path is not None else {}
    except (FileNotFoundError, ValueError):
        before = {}
    same = isinstance(before, dict) and _setting(before) == _setting(told)
    return {**(before if same else {}), **told}


def _setting(found: Mapping[str, Any]) -> list[Any]:
    """The machine, however busy, and the size of the task."""
    return [{**found.get("machine", {}), "load": None}, found.get("documents"), found.get("k")]


def describe_all(found: Mapping[str, Any]) -> list[str]:
    """What was measured, a line for each figure."""
    return [f"{name:60} {shown}" for name, shown in _leaves("", found)]


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}  {key}".strip(), inner)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for row in value:
            head = ", ".join(str(row[key]) for key in ("encoder", "documents") if key in row)
            yield from _leaves(
                f"{name} ({head})", {key: row[key] for key in row if key not in ("encoder", "documents")}
            )
    else:
        yield name, f"{value:,.3f}" if isinstance(value, float) else str(value)
