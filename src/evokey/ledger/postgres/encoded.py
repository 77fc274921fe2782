"""Taught texts that an encoder was paid for, in the database: paid for once, whichever machine asks, and erased once.

Like the file of encoders/cached.py, it holds no text, but hashes and vectors; and it is no truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokey.errors import StorageFailed
from evokey.postgres.connections import Connections

Key = tuple[bytes, bytes]
"""Hash of the text, and hash of the side and the encoder."""


class EncodedTexts:
    def __init__(self, connections: Connections) -> None:
        self._connections, self._table = connections, f'"{connections.address.schema}".encoded'
        self.path = f"{connections.address}"
        """What messages call it."""

    def read(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        wanted = "SELECT * FROM unnest(%s::bytea[], %s::bytea[])"
        sql = f"SELECT text, maker, value FROM {self._table} WHERE (text, maker) IN ({wanted})"
        rows = self._connections.ask(sql, ([key[0] for key in keys], [key[1] for key in keys]))
        return {(text, maker): value for text, maker, value in rows}

    def write(self, values: Mapping[Key, bytes]) -> dict[Key, bytes]:
        """Keep what nobody kept before; what comes back is what is kept. On a replica, nothing is."""
        if not values:
            return {}
        rows = [(*key, value) for key, value in values.items()]
        columns = [list(part) for part in zip(*rows, strict=True)]
        new = "SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[])"
        try:
            self._connections.ask(f"INSERT INTO {self._table} {new} ON CONFLICT DO NOTHING", columns)
        except StorageFailed:
            return dict(values)
        return {**values, **self.read(list(values))}

    def erase(self, texts: Sequence[bytes]) -> None:
        self._connections.ask(f"DELETE FROM {self._table} WHERE text = ANY(%s::bytea[])", (list(texts),))

    def close(self) -> None:
        """The connections are the ledger's."""
