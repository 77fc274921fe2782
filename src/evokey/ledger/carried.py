"""Lessons outlive a small edit: a verdict is about a text, and where most of it is still in the document, it holds.

The text of a verdict is that of the passages it names, any of them, or else the whole document. When it leaves the
ledger, its signature stays. Every later text of the same document is compared with it, never with the version before:
many small edits cannot carry a lesson to another text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evokey.ledger import signature
from evokey.ledger.database import Database
from evokey.ledger.signature import Signature
from evokey.types import Document

WHOLE = -1
"""In the place of start and stop, of a text that is a whole document."""
NAMED = "SELECT 1 FROM passages p WHERE p.lesson = v.lesson AND p.document = v.document"
CARRIED = (
    "SELECT 1 FROM carried c WHERE c.number = d.number AND c.hash = v.hash AND CASE c.start "
    f"WHEN {WHOLE} THEN NOT EXISTS ({NAMED}) ELSE EXISTS ({NAMED} AND p.start = c.start AND p.stop = c.stop) END"
)
HOLDS = f"JOIN documents d ON d.id = v.document AND (d.hash = v.hash OR EXISTS ({CARRIED}))"
"""A verdict whose document is here, with the text it was given for, or most of it."""


class Carried:
    def __init__(self, database: Database) -> None:
        self._db = database

    def sign(self, numbers: Iterable[int]) -> None:
        """Documents are about to leave: keep the signatures of texts that verdicts are about."""
        sql = (
            "SELECT DISTINCT d.hash, d.title, d.text, p.start, p.stop FROM documents d "
            "JOIN verdicts v ON v.document = d.id AND v.hash = d.hash "
            "LEFT JOIN passages p ON p.lesson = v.lesson AND p.document = v.document WHERE d.number IN {}"
        )
        rows = []
        for hash, title, text, start, stop in self._db.find(sql, numbers):
            whole = start is None
            signed = Signature.of(_whole(title, text) if whole else text[start:stop]).to_bytes()
            rows.append((hash, *((WHOLE, WHOLE) if whole else (start, stop)), signed))
        self._db.put("signatures", rows)

    def carry(self, documents: Sequence[tuple[int, Document]]) -> None:
        """New documents, with their numbers: note which earlier texts, that verdicts are about, they still contain."""
        new = {document.id: (number, document) for number, document in documents}
        sql = (
            "SELECT DISTINCT v.document, v.hash, s.start, s.stop, s.signature FROM verdicts v "
            "JOIN signatures s ON s.hash = v.hash WHERE v.document IN {}"
        )
        found = []
        for id, hash, start, stop, signed in self._db.find(sql, list(new)):
            number, document = new[id]
            text = _whole(document.title, document.text) if start == WHOLE else document.text
            if hash != document.hash and Signature.from_bytes(signed).share_in(text) >= signature.THERE:
                found.append((number, hash, start, stop))
        self._db.put("carried", found)

    def forget(self) -> None:
        """Drop what belongs to no verdict any more."""
        named = "SELECT v.hash, coalesce(p.start, {0}), coalesce(p.stop, {0}) FROM verdicts v LEFT JOIN passages p ON "
        named += "p.lesson = v.lesson AND p.document = v.document"
        for table in ("signatures", "carried"):
            self._db.run(f"DELETE FROM {table} WHERE (hash, start, stop) NOT IN ({named.format(WHOLE)})")

    def count(self, among: Sequence[int] | None = None) -> int:
        """Verdicts that were given for an earlier text of their document and still hold; or those on some documents."""
        sql = f"SELECT count(*) FROM verdicts v {HOLDS} WHERE d.hash != v.hash"
        if among is None:
            return int(self._db.one(sql)[0])
        return int(
            self._db.one(f"{sql} AND d.number {self._db.dialect.in_numbers}", (self._db.dialect.list(among),))[0]
        )


def _whole(title: str, text: str) -> str:
    return f"{title}\n{text}"
