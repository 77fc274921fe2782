"""A collection of Milvus: a file (Milvus Lite) or a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pymilvus import DataType, MilvusClient

from evokey.importing.records import Place, Record, need_name, split_fields

PAGE = 1_000
METRICS = {"COSINE": "cosine", "IP": "dot", "L2": "l2"}


class Milvus:
    def __init__(self, place: Place) -> None:
        self._place, self._client = place, MilvusClient(place.path)
        self._name = need_name(place, self._client.list_collections(), "collection")
        fields: list[Any] = self._client.describe_collection(self._name)["fields"]
        self._key = next(one["name"] for one in fields if one.get("is_primary"))
        dense = [one["name"] for one in fields if one["type"] == DataType.FLOAT_VECTOR]
        self._vector = place.vector or dense[0]
        found: list[str] = self._client.list_indexes(self._name, field_name=self._vector)
        described = self._client.describe_index(self._name, found[0]) if found else {}
        self.metric = METRICS.get(str(described.get("metric_type", "L2")), "another metric")

    def records(self) -> Iterator[Record]:
        self._client.load_collection(self._name)
        pages = self._client.query_iterator(self._name, batch_size=PAGE, output_fields=["*"])
        while page := pages.next():
            for one in page:
                fields = dict(one)
                vector, id = fields.pop(self._vector), str(fields.pop(self._key))
                text, metadata = split_fields(fields, self._place.text)
                yield Record(id, text, vector, metadata)
        pages.close()
        self._client.close()
