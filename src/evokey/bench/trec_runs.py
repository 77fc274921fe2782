"""Rankings as run files in TREC's format: query Q0 document rank score tag."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

Scored = Sequence[tuple[str, float]]
"""Documents with their scores, best first."""


def write(path: Path, rankings: Mapping[str, Scored], tag: str) -> None:
    """The whole file, or nothing. Scores fall strictly, so that tools which sort by score keep the order of ranks."""
    name = re.sub(r"\s+", "_", tag)
    lines = [
        f"{_token(query)} Q0 {_token(id)} {rank} {score!r} {name}\n"
        for query, found in rankings.items()
        for rank, (id, score) in enumerate(_fall(found), 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text("".join(lines), "utf-8")
    part.replace(path)


def read(path: Path) -> dict[str, dict[str, float]]:
    """Query → document → score, in the order of the ranks."""
    found: dict[str, dict[str, float]] = {}
    for line in path.read_text("utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        found.setdefault(query, {})[document] = float(score)
    return found


def _fall(found: Scored) -> list[tuple[str, float]]:
    fallen: list[tuple[str, float]] = []
    for id, score in found:
        last = fallen[-1][1] if fallen else math.inf
        fallen.append((id, float(score) if score < last else math.nextafter(last, -math.inf)))
    return fallen


def _token(id: str) -> str:
    """Fields are separated by white space, so an id has none."""
    return re.sub(r"\s", "_", id)
