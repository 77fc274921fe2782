"""A table of PostgreSQL with a column of pgvector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record, need_name, split_fields

TABLES = (
    "SELECT DISTINCT table_name FROM information_schema.columns WHERE udt_name = 'vector' AND table_schema = 'public'"
)
PAGE = 1_000


class PgVectorTable:
    metric = "l2"
    """A search may name another one; where the vectors are of one length, all rank alike."""

    def __init__(self, place: Place) -> None:
        try:
            with psycopg.connect(place.path) as connection:
                names = [name for (name,) in connection.execute(TABLES).fetchall()]
        except psycopg.OperationalError as error:
            raise InvalidInput(f"the database does not answer: {error}") from error
        self._place, self._name = place, need_name(place, names, "table with vectors")

    def records(self) -> Iterator[Record]:
        vector, id = self._place.vector or "embedding", self._place.id or "id"
        asked = sql.SQL("SELECT *, {}::text AS evokey_vector FROM {} ORDER BY {}").format(
            *map(sql.Identifier, (vector, self._name, id))
        )
        with (
            psycopg.connect(self._place.path) as connection,
            connection.cursor("evokey_import", row_factory=dict_row) as cursor,
        ):
            cursor.itersize = PAGE
            for fields in cursor.execute(asked):
                values = np.fromstring(fields.pop("evokey_vector").strip("[]"), np.float32, sep=",")
                fields.pop(vector)
                named = str(fields.pop(id))
                text, metadata = split_fields(fields, self._place.text)
                yield Record(named, text, values.tolist(), metadata)
