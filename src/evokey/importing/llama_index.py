"""The folder that an index of LlamaIndex is persisted in (SimpleVectorStore)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record

VECTORS, DOCUMENTS = "default__vector_store.json", "docstore.json"


class LlamaIndex:
    metric = "cosine"

    def __init__(self, place: Place) -> None:
        self._folder = Path(place.path)
        for name in (VECTORS, DOCUMENTS):
            if not (self._folder / name).exists():
                raise InvalidInput(f"{self._folder} has no {name}, which storage_context.persist writes")

    def records(self) -> Iterator[Record]:
        vectors, stored = (json.loads((self._folder / name).read_text("utf-8")) for name in (VECTORS, DOCUMENTS))
        for id, vector in vectors["embedding_dict"].items():
            fields = _data(stored["docstore/data"][id])
            yield Record(id, fields["text"], vector, fields.get("metadata") or {})


def _data(node: dict[str, Any]) -> dict[str, Any]:
    found: Any = node["__data__"]
    data: dict[str, Any] = json.loads(found) if isinstance(found, str) else found
    return data
