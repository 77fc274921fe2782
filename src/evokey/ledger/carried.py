"""Lessons outlive a small edit: a verdict is about a text, and where most of it is still in the document, it holds.

When a text that verdicts are about leaves the ledger, its signature stays. Every later text of the same document is
compared with it, never with the version before: many small edits cannot carry a lesson to another text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evokey.ledger.database import Database
from evokey.ledger.signature import THERE, Signature
from evokey.types import Document

HOLDS = (
    "JOIN documents d ON d.id = v.document AND (d.hash = v.hash OR EXISTS "
    "(SELECT 1 FROM carried c WHERE c.number = d.number AND c.hash = v.hash))"
)
"""A verdict whose document is here, with the text it was given for, or most of it."""


class Carried:
    def __init__(self, database: Database) -> None:
        self._db = database

    def sign(self, numbers: Iterable[int]) -> None:
        """Documents are about to leave: keep the signatures of texts that verdicts are about."""
        sql = (
            "SELECT DISTINCT d.hash, d.title, d.text FROM documents d JOIN verdicts v "
            "ON v.document = d.id AND v.hash = d.hash WHERE d.number IN {}"
        )
        rows = [(hash, _sign(title, text).to_bytes()) for hash, title, text in self._db.find(sql, numbers)]
        self._db.put("signatures", rows)

    def carry(self, documents: Sequence[tuple[int, Document]]) -> None:
        """New documents, with their numbers: note which earlier texts, that verdicts are about, they still contain."""
        new = {document.id: (number, document) for number, document in documents}
        sql = (
            "SELECT DISTINCT v.document, v.hash, s.signature FROM verdicts v JOIN signatures s ON s.hash = v.hash "
            "WHERE v.document IN {}"
        )
        found = []
        for id, hash, signature in self._db.find(sql, list(new)):
            number, document = new[id]
            now = _sign(document.title, document.text)
            if hash != document.hash and Signature.from_bytes(signature).share_in(now) >= THERE:
                found.append((number, hash))
        self._db.put("carried", found)

    def forget(self) -> None:
        """Drop what belongs to no verdict any more."""
        for table in ("signatures", "carried"):
            self._db.run(f"DELETE FROM {table} WHERE hash NOT IN (SELECT hash FROM verdicts)")

    def count(self, among: Sequence[int] | None = None) -> int:
        """Verdicts that were given for an earlier text of their document and still hold; or those on some documents."""
        sql = f"SELECT count(*) FROM verdicts v {HOLDS} WHERE d.hash != v.hash"
        if among is None:
            return int(self._db.one(sql)[0])
        return int(self._db.one(f"{sql} AND d.number {self._db.dialect.in_list}", (self._db.dialect.list(among),))[0])


def _sign(title: str, text: str) -> Signature:
    return Signature.of(f"{title}\n{text}")
