"""Which file a document was read from. Documents that were handed in by id have no source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evokey.ledger.database import Database


class Sources:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, ids: Iterable[str], paths: Mapping[str, str]) -> None:
        """Note where documents came from; one without a path is nobody's file from now on."""
        with self._db.write():
            self._db.run_many("DELETE FROM sources WHERE document = ?", [(id,) for id in ids])
            self._db.run_many("INSERT INTO sources VALUES (?,?)", list(paths.items()))

    def paths(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Of those ids that are in the memory, the path that each came from."""
        sql = "SELECT d.id, s.path FROM documents d LEFT JOIN sources s ON s.document = d.id WHERE d.id IN {}"
        return dict(self._db.find(sql, dict.fromkeys(ids)))

    def ids(self, paths: Iterable[str]) -> dict[str, str]:
        """Of those paths that a document came from, its id."""
        return dict(self._db.find("SELECT path, document FROM sources WHERE path IN {}", dict.fromkeys(paths)))
