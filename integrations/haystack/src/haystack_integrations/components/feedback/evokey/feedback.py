"""Verdicts on documents, and votes on answers."""

from __future__ import annotations

from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict

from evokey import Layer
from evokey.frameworks import Backend, Retrieved
from haystack_integrations.document_stores.evokey import EvokeyDocumentStore


class _WithStore:
    def __init__(self, document_store: EvokeyDocumentStore | Layer) -> None:
        self.document_store = document_store

    @property
    def _backend(self) -> Backend:
        store = self.document_store
        return Backend(store) if isinstance(store, Layer) else store.backend

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(self, document_store=self.document_store.to_dict())  # type: ignore[union-attr]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        parameters = data["init_parameters"]
        parameters["document_store"] = EvokeyDocumentStore.from_dict(parameters["document_store"])
        found: Self = default_from_dict(cls, data)
        return found


@component
class EvokeyTeacher(_WithStore):
    """Records which documents (ids) were right for a query, and which were wrong. Nothing is learned until
    `document_store.memory.evolve()`."""

    @component.output_types(lesson=int)
    def run(
        self,
        query: str,
        relevant: list[str],
        irrelevant: list[str] | None = None,
        actor: str | None = None,
        query_embedding: list[float] | None = None,
    ) -> dict[str, int]:
        """The number of the lesson."""
        lesson = self._backend.teach(query, relevant, irrelevant or (), actor, query_embedding)
        return {"lesson": lesson.number}


@component
class EvokeyRater(_WithStore):
    """Records a vote on an answer. Up credits the documents that `cited` names, or else those that the sentences of the
    answer match; down asks people (evokey review) and changes nothing by itself."""

    @component.output_types(credited=list[str])
    def run(
        self,
        query: str,
        documents: list[Document],
        answer: str,
        up: bool,
        cited: list[str] | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> dict[str, list[str]]:
        """The ids of the documents that were credited."""
        texts = {one.id: one.content or "" for one in documents}
        named = (one.meta.get("evokey_query_id") for one in documents)
        retrieved = Retrieved(query, texts, next(named, None))
        credited = retrieved.credit(answer) if cited is None else cited
        self._backend.rate(retrieved, up, credited, reason, actor)
        return {"credited": credited if up else []}
