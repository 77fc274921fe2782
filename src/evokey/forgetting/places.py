"""Every place outside of the ledger that keeps queries or answers of a memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from evokey.encoders.cached import FILE as ENCODED
from evokey.erasure import PATIENCE, Erasure, Place, scrub
from evokey.ledger.ledger import Ledger
from evokey.llm import cached, recorded
from evokey.registry import name_and_options
from evokey.search.index import Index
from evokey.search.retriever import TAUGHT, Retriever
from evokey.search.shelving import clear_forgotten
from evokey.settings import HUMAN, Settings
from evokey.tuning.revisions import sweep
from evokey.verifiers import human


class Keeper(Protocol):
    """Has taught texts encoded, under its name."""

    @property
    def name(self) -> str: ...

    def forget(self, texts: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class TaughtTexts:
    """Texts of lessons that retrievers keep encoded, in files under the memory's directory."""

    folder: Path
    retrievers: Sequence[Keeper]

    def forget(self, erasure: Erasure) -> None:
        for one in self.retrievers:
            one.forget(erasure.texts)
        living = {self.folder / "keys" / one.name / TAUGHT for one in self.retrievers}
        for path in sorted({*self.folder.rglob(TAUGHT), *self.folder.rglob(ENCODED)}):
            if path.name == TAUGHT and path not in living:  # of an encoder that the memory had before
                _remove(path)
                continue
            with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
                scrub(connection, path)


@dataclass(frozen=True)
class Weights:
    """Encoders that were trained on lessons, and their keys."""

    folder: Path
    ledger: Ledger

    def forget(self, erasure: Erasure) -> None:
        """All that no epoch names: what was forgotten had a part in it, or it was never published."""
        sweep(self.folder, self.ledger.epochs.revisions)


@dataclass(frozen=True)
class Shelves:
    """Overlays that stores keep: taught texts as vectors, and keys that these have moved."""

    index: Index
    ledger: Ledger

    def forget(self, erasure: Erasure) -> None:
        """All from before it was forgotten."""
        clear_forgotten(self.index.originals, self.ledger.epochs.redacted)


@dataclass(frozen=True)
class KeptFile:
    """A file of a part of the memory that keeps queries or answers."""

    path: Path
    erase: Callable[[Path, Erasure], None]

    def forget(self, erasure: Erasure) -> None:
        if self.path.exists():
            self.erase(self.path, erasure)


def places(settings: Settings, folder: Path, retrievers: Sequence[Retriever]) -> list[Place]:
    """Every place outside of the ledger to which a memory of these settings writes queries or answers."""
    files: dict[Path, Callable[[Path, Erasure], None]] = {folder / HUMAN: human.forget}
    for kind, name, options in _parts(settings):
        path = Path(options.get("at", "")).expanduser()
        if (kind, name) == ("llm", "recorded") and options.get("mode") != "record" and not _inside(path, folder):
            continue  # a recording that is only replayed belongs to whoever made it
        if (kind, name) in KEEPERS and "at" in options:
            files[path] = KEEPERS[kind, name]
    return [TaughtTexts(folder, retrievers), *(KeptFile(path, erase) for path, erase in files.items())]


KEEPERS: Mapping[tuple[str, str], Callable[[Path, Erasure], None]] = {
    ("llm", "cached"): cached.forget,
    ("llm", "recorded"): recorded.forget,
    ("verifier", "human"): human.forget,
}
"""The parts that keep queries or answers in a file of their own, which is their option `at`."""
KINDS = {"llm": "llm", "verifier": "verifier", "retrieval": "verifier", "generation": "verifier", "judge": "verifier"}
"""Options that hold a part, and the kind of the part."""


def _parts(settings: Settings) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The kind, the name and the options of each part, and of parts inside parts."""
    named_ = {"llm": settings.llm, "verifier": settings.verifier, "expander": settings.expander}
    named_ |= {"generator": settings.generator, "reranker": settings.reranker}
    for kind, described in named_.items():
        if described is not None:
            yield from _within(kind, described)


def _within(kind: str, described: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    if isinstance(described, list | tuple):
        for one in described:
            yield from _within(kind, one)
    if not isinstance(described, Mapping) or "name" not in described:
        return
    name, options = name_and_options(described)
    yield kind, name, options
    for option, value in options.items():
        yield from _within(KINDS.get(option, kind), value)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
