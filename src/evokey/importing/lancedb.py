"""A table of LanceDB, from its folder or URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lancedb
import numpy as np

from evokey.importing.records import Place, Record, need_name, split_fields


class LanceDB:
    metric = "l2"
    """A search may name another one; where the vectors are of one length, all rank alike."""

    def __init__(self, place: Place) -> None:
        database = lancedb.connect(place.path)
        self._table = database.open_table(need_name(place, list(database.list_tables().tables), "table"))
        self._place = place

    def records(self) -> Iterator[Record]:
        vector, id = self._place.vector or "vector", self._place.id or "id"
        for batch in self._table.to_arrow().to_batches():
            for row, fields in enumerate(batch.drop_columns([vector]).to_pylist()):
                named = str(fields.pop(id))
                text, metadata = split_fields(fields, self._place.text)
                yield Record(named, text, _values(batch.column(vector)[row]), metadata)


def _values(scalar: Any) -> Any:
    return np.asarray(scalar.values.to_numpy(zero_copy_only=False))
