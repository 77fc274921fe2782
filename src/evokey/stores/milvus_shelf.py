"""A shelf in Milvus: a collection of its own for vectors that are written once. A note that is written last says that
all of them are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from pymilvus import DataType

from evokey.stores.milvus_collection import BATCH, NOTE, Collection, cut, explain
from evokey.types import Numbers, Scores, Vectors

MOST = 16_384
"""Rows that one search may find (a limit of Milvus)."""


class MilvusShelf:
    def __init__(self, collection: Collection, name: str) -> None:
        """collection: the keys that it lies beside."""
        self.uri, self._beside, self._name = collection.uri, collection, f"{prefix(collection)}{name}"

    def repeat(self, work: Callable[[], Any]) -> Any:
        return self._beside.repeat(work, self._name)

    @explain
    def count(self) -> int:
        client = self._beside.client
        if not client.has_collection(self._name):
            return -1
        noted = client.query(self._name, ids=[NOTE], output_fields=["rows"], consistency_level="Strong")
        return int(noted[0]["rows"]) if noted else -1

    @explain
    def write(self, pieces: Iterable[Vectors]) -> None:
        client, rows, dimension = self._beside.client, 0, 0
        if client.has_collection(self._name):
            client.drop_collection(self._name)
        for vectors in pieces:
            if not rows:
                dimension = vectors.shape[1]
                self._create(dimension)
            for start in range(0, len(vectors), BATCH):
                some = vectors[start : start + BATCH]
                client.insert(self._name, [{"row": rows + at, "vector": one} for at, one in enumerate(some)])
                rows += len(some)
        client.flush(self._name)
        client.insert(self._name, [{"row": NOTE, "vector": np.zeros(dimension, np.float32), "rows": rows}])

    def _create(self, dimension: int) -> None:
        client = self._beside.client
        schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        index = client.prepare_index_params()
        index.add_index("vector", index_type="FLAT", metric_type="IP", params={})
        client.create_collection(self._name, schema=schema, index_params=index, consistency_level=self._beside.level)

    @explain
    def near(self, vector: Vectors, count: int) -> tuple[Numbers, Scores, float]:
        limit = min(count + 1, MOST)  # the note may be among them
        found = self._beside.client.search(
            self._name,
            [vector.tolist()],
            limit=limit,
            anns_field="vector",
            output_fields=["row"],
            search_params={"metric_type": "IP", "params": {}},
            consistency_level=self._beside.level,
        )[0]
        rows = np.array([hit["entity"]["row"] for hit in found], np.int64)
        scores = np.array([hit["distance"] for hit in found], np.float64)
        bound = float(scores[-1]) if len(found) == limit else -np.inf
        return rows[rows != NOTE], scores[rows != NOTE], bound

    @explain
    def fetch(self, rows: Numbers) -> Vectors:
        found: dict[int, Any] = {}
        for some in cut(rows.tolist(), BATCH):
            answers = self._beside.client.query(
                self._name, ids=some, output_fields=["row", "vector"], consistency_level=self._beside.level
            )
            found |= {one["row"]: one["vector"] for one in answers}
        return np.array([found[row] for row in rows.tolist()], np.float32)


def prefix(collection: Collection) -> str:
    """What the shelves beside a collection are called by."""
    return f"{collection.alias}_shelf_"


@explain
def _list(collection: Collection) -> list[str]:
    form = re.compile(rf"{re.escape(prefix(collection))}(\w+)")
    return [said[1] for name in collection.client.list_collections() if (said := form.fullmatch(name))]


@explain
def _drop(collection: Collection, name: str) -> None:
    collection.client.drop_collection(f"{prefix(collection)}{name}")


def list_shelves(collection: Collection) -> list[str]:
    found: list[str] = _list(collection)
    return found


def drop_shelf(collection: Collection, name: str) -> None:
    _drop(collection, name)
