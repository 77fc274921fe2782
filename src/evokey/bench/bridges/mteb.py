"""MTEB: a memory as a model that its retrieval tasks can evaluate.

A task hands over its documents, and the memory indexes them in a folder of its own. Untaught, this measures the
retriever; `teach` is called with the memory after indexing, so that what is learned can be measured on the task too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mteb.models.model_meta import ModelMeta

from evokey import memory as memory_
from evokey.memory import Memory
from evokey.types import Document

ADDED = 2_000


class Model:
    """`mteb.evaluate(Model("mine", "memories", encoder="bm25"), tasks)`. Settings are those of evokey.open; each task
    gets a memory of its own in the folder."""

    def __init__(
        self, name: str, folder: str | Path, *, teach: Callable[[Memory], None] | None = None, **settings: Any
    ) -> None:
        self._name, self._folder, self._teach, self._settings = name, Path(folder), teach, settings
        self._memory: Memory | None = None
        self._tasks = 0

    @property
    def mteb_model_meta(self) -> ModelMeta:
        return ModelMeta.create_empty({"name": f"evokey/{self._name}", "revision": "1"})

    def index(self, corpus: Any, **task: Any) -> None:
        self.close()
        self._tasks += 1
        self._memory = memory_.open(self._folder / f"{self._name}-{self._tasks}", **self._settings)
        for start in range(0, len(corpus), ADDED):
            rows = corpus.select(range(start, min(start + ADDED, len(corpus))))
            self._memory.add([Document(str(row["id"]), row["text"], row.get("title") or "") for row in rows])
        if self._teach is not None:
            self._teach(self._memory)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def search(self, queries: Any, *, top_k: int, **task: Any) -> dict[str, dict[str, float]]:
        assert self._memory is not None, "MTEB indexes before it searches"
        return {
            str(row["id"]): {hit.id: float(hit.score) for hit in self._memory.search(row["text"], top_k)}
            for row in queries
        }
