"""The search that is not ours: asked once for a search, and asked for leave before any id is added to its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evokey.errors import InvalidInput
from evokey.layer.results import read_documents, read_results
from evokey.types import Document, Hit

DEPTH = 100
"""How many results are asked for where something was learned about a question: so many take part in the fusion."""
Search = Callable[..., Any]
"""query, k and the caller's own keyword arguments → results (results.py)."""
Allowed = Callable[..., Iterable[Any]]
"""ids and the caller's own keyword arguments → those of them that exist and that the caller may see: ids, or whole
results with texts."""


@dataclass(frozen=True, slots=True)
class Engine:
    search: Search | None
    allowed: Allowed | None = None

    def ask(self, query: str, k: int, filters: Mapping[str, Any]) -> list[Hit]:
        """Its first k results. Its errors are its own."""
        if self.search is None:
            raise InvalidInput(
                "this layer was opened without its search function, so nothing can be searched: open it in Python with "
                "evokey.beside(search, at=…)"
            )
        return read_results(self.search(query, k, **filters), k)

    def allow(self, ids: Sequence[str], filters: Mapping[str, Any]) -> dict[str, Document]:
        """Those of the ids that may be added to the results. A caller with filters may see less than all, and without
        `allowed` nobody can say what: then nothing is added."""
        if not ids or (self.allowed is None and filters):
            return {}
        if self.allowed is None:
            return {id: Document(id, "") for id in ids}
        wanted = set(ids)
        found = read_documents(self.allowed(list(ids), **filters))
        return {one.id: one for one in found if one.id in wanted}

    def limits(self, filters: Mapping[str, Any]) -> bool:
        """Whether a caller may be shown less than all."""
        return self.allowed is not None or bool(filters)
