"""A collection of Qdrant, from a folder or a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qdrant_client import QdrantClient

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record, need_name, split_fields

PAGE = 1_000
METRICS = {"cosine": "cosine", "dot": "dot", "euclid": "l2", "manhattan": "manhattan"}


class Qdrant:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._client = QdrantClient(url=place.path) if "://" in place.path else QdrantClient(path=place.path)
        self._name = need_name(place, [one.name for one in self._client.get_collections().collections], "collection")
        vectors: Any = self._client.get_collection(self._name).config.params.vectors
        if isinstance(vectors, dict):  # several vectors for each point, by name
            if place.vector not in vectors:
                raise InvalidInput(f"{self._name} has the vectors {', '.join(vectors)}; name one of them with --vector")
            vectors = vectors[place.vector]
        self.metric = METRICS[str(vectors.distance.value).lower()]

    def records(self) -> Iterator[Record]:
        after: Any = None
        while True:
            points, after = self._client.scroll(
                self._name, limit=PAGE, offset=after, with_payload=True, with_vectors=True
            )
            for one in points:
                held: Any = one.vector
                vector = held[self._place.vector] if isinstance(held, dict) else held
                fields = dict(one.payload or {})
                id = str(fields.pop(self._place.id)) if self._place.id else str(one.id)
                text, metadata = split_fields(fields, self._place.text)
                yield Record(id, text, vector, metadata)
            if after is None:
                self._client.close()
                return
