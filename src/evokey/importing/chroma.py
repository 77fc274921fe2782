"""A collection of Chroma, from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record, need_name

PAGE = 1_000
METRICS = {"cosine": "cosine", "ip": "dot", "l2": "l2"}


class Chroma:
    def __init__(self, place: Place) -> None:
        if not (Path(place.path) / "chroma.sqlite3").exists():
            raise InvalidInput(f"{place.path} is no folder of Chroma: it has no chroma.sqlite3")
        client = chromadb.PersistentClient(place.path, chromadb.Settings(anonymized_telemetry=False))
        name = need_name(place, [one.name for one in client.list_collections()], "collection")
        self._collection = client.get_collection(name, embedding_function=None)
        described: Any = self._collection.configuration_json
        space = (described.get("hnsw") or described.get("spann") or {}).get("space", "l2")
        self.metric = METRICS.get(space, space)

    def records(self) -> Iterator[Record]:
        offset = 0
        wanted: Any = ["documents", "metadatas", "embeddings"]
        while True:
            page: Any = self._collection.get(include=wanted, limit=PAGE, offset=offset)
            if not page["ids"]:
                return
            for row, id in enumerate(page["ids"]):
                text, metadata = page["documents"][row], page["metadatas"][row]
                yield Record(id, text or "", page["embeddings"][row], metadata or {})
            offset += len(page["ids"])
