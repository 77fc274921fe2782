"""Passages for which a language model has written questions, kept or not: it is not asked for them again.

A passage is known by its document and the hash of its text. Forgetting the synthetic lessons, or a document, makes its
passages new again; forgetting one question does not: the model would only write it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from evokey.erasure import Erasure
from evokey.ledger.database import Database
from evokey.types import SYNTHETIC


class Seeded:
    def __init__(self, database: Database) -> None:
        self._db = database

    def __len__(self) -> int:
        return int(self._db.one("SELECT count(*) FROM seeded")[0])

    def put(self, passages: Iterable[tuple[str, str]]) -> None:
        """Note passages, each by its document (id) and the hash of its text."""
        self._db.run_many("INSERT INTO seeded VALUES (?,?) ON CONFLICT DO NOTHING", list(passages))

    def of(self, document: str) -> frozenset[str]:
        """Hashes of the passages of a document that are done."""
        rows = self._db.all("SELECT hash FROM seeded WHERE document = ?", (document,))
        return frozenset(row[0] for row in rows)

    def forget(self, wanted: Erasure) -> None:
        if wanted.query is not None or wanted.actor not in (None, SYNTHETIC):
            return
        if wanted.document is not None:
            self._db.run("DELETE FROM seeded WHERE document = ?", (wanted.document,))
        elif wanted.actor == SYNTHETIC:
            self._db.run("DELETE FROM seeded")
