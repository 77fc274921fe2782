"""Which file a document was read from. Documents that were handed in by id have no source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import astuple

from evokey.ledger.database import Database
from evokey.types import Source

COLUMNS = "document, path, size, modified, hash, reader"


class Sources:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, ids: Iterable[str], sources: Mapping[str, Source]) -> None:
        """Note where documents came from; one without a source is nobody's file from now on."""
        with self._db.write():
            self._db.run_many("DELETE FROM sources WHERE document = ?", [(id,) for id in ids])
            self._db.run_many(
                "INSERT INTO sources(document, path, size, modified, hash, reader) VALUES (?,?,?,?,?,?)",
                [(id, *astuple(one)) for id, one in sources.items()],
            )

    def note(self, sources: Mapping[str, Source]) -> None:
        """Files of documents that have not changed may have another time."""
        with self._db.write():
            self._db.run_many(
                "UPDATE sources SET size = ?, modified = ?, hash = ?, reader = ? WHERE document = ? AND path = ?",
                [(one.size, one.modified, one.hash, one.reader, id, one.path) for id, one in sources.items()],
            )

    def paths(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Of those ids that are in the memory, the path that each came from."""
        sql = "SELECT d.id, s.path FROM documents d LEFT JOIN sources s ON s.document = d.id WHERE d.id IN {}"
        return dict(self._db.find(sql, dict.fromkeys(ids)))

    def at(self, paths: Iterable[str]) -> dict[str, tuple[str, Source]]:
        """Of those paths that a document came from, its id, and the file as it was then."""
        rows = self._db.find(f"SELECT {COLUMNS} FROM sources WHERE path IN {{}}", dict.fromkeys(paths))
        return {path: (id, Source(path, *rest)) for id, path, *rest in rows}

    def below(self, folder: str) -> dict[str, str]:
        """Ids of the documents that came from files below a folder, by path."""
        first, last = folder + os.sep, folder + chr(ord(os.sep) + 1)
        rows = self._db.all("SELECT path, document FROM sources WHERE path > ? AND path < ?", (first, last))
        return dict(rows)
