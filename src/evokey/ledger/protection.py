"""Protected queries in the ledger, with the documents that must not rank worse than in the untaught index.

Their table is called `pins`: the name is older than the word.
"""

from __future__ import annotations

from collections.abc import Mapping

from evokey.ledger.database import Database


class ProtectedQueries:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, query: str, grades: Mapping[str, float]) -> None:
        """Protect a query, replacing what was protected before; without documents, stop protecting it."""
        self._db.dialect.check_texts({"the query": query})
        with self._db.write():
            self._db.run("DELETE FROM pins WHERE query = ?", (query,))
            rows = [(query, document, grade) for document, grade in grades.items()]
            self._db.run_many("INSERT INTO pins VALUES (?,?,?)", rows)

    def all(self) -> dict[str, dict[str, float]]:
        """Query → document id → grade."""
        found: dict[str, dict[str, float]] = {}
        for query, document, grade in self._db.all("SELECT query, document, grade FROM pins ORDER BY query, document"):
            found.setdefault(query, {})[document] = grade
        return found

    def by_number(self) -> dict[str, dict[int, float]]:
        """The same with document numbers; documents that are gone are left out."""
        rows = self._db.all(
            "SELECT p.query, d.number, p.grade FROM pins p JOIN documents d ON d.id = p.document AND p.grade > 0 "
            "ORDER BY p.query, d.number"
        )
        found: dict[str, dict[int, float]] = {}
        for query, number, grade in rows:
            found.setdefault(query, {})[number] = grade
        return found
