"""What is to be forgotten, as each place that keeps a query or an answer is told it; and how a file erases for good."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

LOOKED_AT = 200
"""Characters of a query that are looked for in another text, which may quote only its beginning."""
PATIENCE = 5.0
"""Seconds for which a file that is in use is waited for."""


@dataclass(frozen=True, slots=True)
class Erasure:
    queries: tuple[str, ...] = ()
    """Queries that neither a lesson nor a protected query uses any more."""
    units: tuple[str, ...] = ()
    """The same of expansion units."""
    query: str | None = None
    actor: str | None = None
    document: str | None = None
    """What was asked to be forgotten: all that matches each of these."""

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self.queries, *self.units)

    def covers(self, query: str, actor: str | None, documents: Iterable[str]) -> bool:
        """Whether something that was said of documents, for a query, by somebody, is to be forgotten."""
        if query in self.queries:
            return True
        if self.actor is self.document is None:
            return False
        return (
            self.query in (None, query)
            and self.actor in (None, actor)
            and (self.document is None or self.document in documents)
        )

    def quoted_in(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts quotes one of the queries, in any case and with any marks between words."""
        return any(
            _quotes(text, folded, query) for text in texts for folded in [_folded(text)] for query in self.queries
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, written: str) -> Erasure:
        found: dict[str, Any] = json.loads(written)
        return cls(tuple(found.pop("queries")), tuple(found.pop("units")), **found)


class Place(Protocol):
    """What keeps queries or answers."""

    def forget(self, erasure: Erasure) -> None:
        """Erase it; or raise OSError or sqlite3.Error where that is not possible now."""
        ...


def scrub(connection: sqlite3.Connection, path: Path) -> None:
    """After rows were deleted: leave no copy of them in the free space of a file, nor in its write-ahead log."""
    connection.execute("VACUUM")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise sqlite3.OperationalError(f"{path} is being read by another process")


def _folded(text: str) -> str:
    """The words of a text, whatever stands between them."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()
    return f" {' '.join(words)} " if words else ""


def _quotes(text: str, folded: str, query: str) -> bool:
    wanted = _folded(query[:LOOKED_AT])
    if not wanted:
        return query in text
    return (wanted.rstrip() if len(query) > LOOKED_AT else wanted) in folded
