"""The best documents for a query."""

from __future__ import annotations

from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.core.errors import SerializationError
from haystack.document_stores.types import FilterPolicy, apply_filter_policy

from evokey import Layer
from evokey.frameworks import Backend
from haystack_integrations.document_stores.evokey import EvokeyDocumentStore
from haystack_integrations.document_stores.evokey.document_store import retrieve


@component
class EvokeyRetriever:
    """
    retriever = EvokeyRetriever(EvokeyDocumentStore("kb"), top_k=5)
    retriever.run(query="how do I undo a commit?")["documents"]
    """

    def __init__(
        self,
        document_store: EvokeyDocumentStore | Layer,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """document_store: or a layer beside a search; its filters are then the arguments of that search."""
        if top_k <= 0:
            raise ValueError(f"top_k must be greater than 0, but got {top_k}")
        self.document_store, self.filters, self.top_k = document_store, filters, top_k
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        if not isinstance(self.document_store, EvokeyDocumentStore):
            raise SerializationError(
                "a layer has a search function of your own, which cannot be written down: make the retriever in code"
            )
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            filter_policy=self.filter_policy.value,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        parameters = data["init_parameters"]
        parameters["document_store"] = EvokeyDocumentStore.from_dict(parameters["document_store"])
        parameters["filter_policy"] = FilterPolicy.from_str(parameters["filter_policy"])
        found: Self = default_from_dict(cls, data)
        return found

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
    ) -> dict[str, list[Document]]:
        """query_embedding: where the memory has the embeddings of the documents."""
        wanted = self.top_k if top_k is None else top_k
        if isinstance(self.document_store, Layer):
            limits = self.filters if filters is None else filters
            return {"documents": retrieve(Backend(self.document_store), query, wanted, limits, None)}
        where = apply_filter_policy(self.filter_policy, self.filters, filters)
        return {"documents": self.document_store.search(query, wanted, where, query_embedding)}
