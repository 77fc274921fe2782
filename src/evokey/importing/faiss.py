"""An index file of faiss. It holds vectors and numbers alone: the texts come from a JSONL file, one for each vector, in
the order of the index; where the index has ids of its own (IDMap), by these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record, split_fields

METRICS = {faiss.METRIC_INNER_PRODUCT: "dot", faiss.METRIC_L2: "l2"}
BLOCK = 1_000


class Faiss:
    def __init__(self, place: Place) -> None:
        if not Path(place.path).is_file():
            raise InvalidInput(f"{place.path} is no file; give the file that faiss.write_index wrote")
        if place.texts is None:
            raise InvalidInput("an index of faiss has no texts; name a JSONL file with id and text: --texts FILE")
        self._place, self._vectors = place, Vectors(place.path)
        self.metric = self._vectors.metric

    def records(self) -> Iterator[Record]:
        rows = [json.loads(line) for line in Path(self._place.texts or "").read_text("utf-8").splitlines() if line]
        if self._vectors.ids is None and len(rows) != len(self._vectors):
            raise InvalidInput(f"{self._place.texts} has {len(rows)} texts, the index {len(self._vectors)} vectors")
        name = self._place.id or "id"
        known = {str(row.get(name, at)): row for at, row in enumerate(rows)}
        for at, vector in self._vectors:
            fields = dict(rows[at] if self._vectors.ids is None else _find(known, str(self._vectors.ids[at])))
            id = str(fields.pop(name, at))
            text, metadata = split_fields(fields, self._place.text)
            yield Record(id, text, vector, metadata)


class Vectors:
    """The vectors of an index file, in its order."""

    ids: Any
    """Of an index that has its own; else None."""

    def __init__(self, path: str) -> None:
        index: Any = faiss.read_index(path)
        self._outer, self.ids = index, None  # what is inside lives as long as what is around it
        if isinstance(index, faiss.IndexIDMap | faiss.IndexIDMap2):  # reconstruct ends the process there
            self.ids, index = faiss.vector_to_array(index.id_map), faiss.downcast_index(index.index)
        if hasattr(index, "make_direct_map"):
            index.make_direct_map()
        self._index, self.metric = index, METRICS.get(index.metric_type, "another metric")

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for start in range(0, len(self), BLOCK):
            block = np.asarray(self._index.reconstruct_n(start, min(BLOCK, len(self) - start)))
            yield from enumerate(block, start)


def _find(known: Mapping[str, Mapping[str, Any]], id: str) -> Mapping[str, Any]:
    if id not in known:
        raise InvalidInput(f"the index has a vector with the id {id}, and no text has it")
    return known[id]
