"""A memory of evokey that holds the vectors of an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

import evokey
from evokey.frameworks import Backend
from llama_index.retrievers.evokey.nodes import to_document, to_node

OPERATORS = {
    FilterOperator.EQ: "==", FilterOperator.NE: "!=", FilterOperator.GT: ">", FilterOperator.GTE: ">=",
    FilterOperator.LT: "<", FilterOperator.LTE: "<=", FilterOperator.IN: "in", FilterOperator.NIN: "not in",
    FilterOperator.ANY: "in", FilterOperator.CONTAINS: "==", FilterOperator.TEXT_MATCH: "contains",
}  # fmt: skip
"""evokey's operators: one that holds for a list holds for one of its items."""


class EvokeyVectorStore(BasePydanticVectorStore):
    """
    store = EvokeyVectorStore("kb")
    index = VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(vector_store=store))
    """

    stores_text: bool = True
    flat_metadata: bool = False
    _memory: evokey.Memory = PrivateAttr()

    def __init__(self, memory: evokey.Memory | str | Path) -> None:
        """memory: one with the encoder "given", or the directory of one, which is made on first use."""
        super().__init__()  # type: ignore[call-arg]
        self._memory = evokey.open(memory, encoder="given") if isinstance(memory, str | Path) else memory

    @classmethod
    def class_name(cls) -> str:
        return "EvokeyVectorStore"

    @property
    def client(self) -> evokey.Memory:
        return self._memory

    @property
    def _backend(self) -> Backend:
        return Backend(self._memory)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        if nodes:
            self._backend.add([to_document(one) for one in nodes], [one.get_embedding() for one in nodes])
        return [one.node_id for one in nodes]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        found = list(self._backend.documents(_where(filters)))
        return [to_node(one) for one in found if node_ids is None or one.id in set(node_ids)]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        self._backend.delete([one.id for one in self._backend.documents({"ref_doc_id": ref_doc_id})])

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        self._backend.delete([one.node_id for one in self.get_nodes(node_ids, filters)])

    def clear(self) -> None:
        self.delete_nodes()

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        if not query.query_str or query.query_embedding is None:
            raise ValueError("a search needs the text of the query and its embedding; an index passes both")
        where = _where(query.filters)
        limits = [{"field": "ref_doc_id", "operator": "in", "value": query.doc_ids}] if query.doc_ids else []
        if limits:
            where = {"operator": "AND", "conditions": [*limits, *([where] if where else [])]}
        hits = self._backend.search(query.query_str, query.similarity_top_k, where, query.query_embedding)
        return VectorStoreQueryResult(
            nodes=[to_node(one.document) for one in hits],
            similarities=[one.score for one in hits],
            ids=[one.id for one in hits],
        )


def _where(filters: MetadataFilters | None) -> dict[str, Any] | None:
    if filters is None or not filters.filters:
        return None
    conditions = [_condition(one) for one in filters.filters]
    if filters.condition is FilterCondition.NOT:
        return {"operator": "NOT", "conditions": [{"operator": "OR", "conditions": conditions}]}
    return {"operator": "OR" if filters.condition is FilterCondition.OR else "AND", "conditions": conditions}


def _condition(one: MetadataFilter | MetadataFilters) -> dict[str, Any]:
    if isinstance(one, MetadataFilters):
        return _where(one) or {"operator": "AND", "conditions": []}
    if one.operator is FilterOperator.IS_EMPTY:
        return {"field": one.key, "operator": "==", "value": None}
    if one.operator is FilterOperator.ALL and isinstance(one.value, list):
        parts = [{"field": one.key, "operator": "==", "value": value} for value in one.value]
        return {"operator": "AND", "conditions": parts}
    if one.operator not in OPERATORS:
        raise ValueError(f"evokey has no operator {one.operator.value!r}; it has {', '.join(OPERATORS)}")
    return {"field": one.key, "operator": OPERATORS[one.operator], "value": one.value}
