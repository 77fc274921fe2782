"""Which file a document was read from. Documents that were handed in by id have no source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evokey.ledger.documents import BATCH
from evokey.ledger.sqlite import Database


class Sources:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, ids: Iterable[str], paths: Mapping[str, str]) -> None:
        """Note where documents came from; one without a path is nobody's file from now on."""
        with self._db.write() as connection:
            connection.executemany("DELETE FROM sources WHERE document = ?", [(id,) for id in ids])
            connection.executemany("INSERT INTO sources VALUES (?,?)", paths.items())

    def paths(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Of those ids that are in the memory, the path that each came from."""
        sql = "SELECT d.id, s.path FROM documents d LEFT JOIN sources s ON s.document = d.id WHERE d.id IN"
        return dict(self._rows(sql, ids))

    def ids(self, paths: Iterable[str]) -> dict[str, str]:
        """Of those paths that a document came from, its id."""
        return dict(self._rows("SELECT path, document FROM sources WHERE path IN", paths))

    def _rows(self, sql: str, values: Iterable[str]) -> Iterator[Any]:
        wanted = list(dict.fromkeys(values))
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            yield from self._db.all(f"{sql} ({','.join('?' * len(batch))})", batch)
