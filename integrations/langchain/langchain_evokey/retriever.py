"""A retriever over a memory, a layer beside a search, or a client of the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from evokey import Layer, Memory
from evokey.client import Client
from evokey.frameworks import Backend
from langchain_evokey.documents import hit_to_langchain


class EvokeyRetriever(BaseRetriever):
    """The k best documents. Each has its score in its metadata (`evokey_score`), and of a client the `evokey_query_id`
    by which it can be rated.

        retriever = EvokeyRetriever(memory=evokey.open("kb"), k=5)
        retriever.invoke("how do I undo a commit?")
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory | Layer | Client
    k: int = 10
    where: dict[str, Any] | None = None
    """A filter on metadata (of a layer: arguments for its search)."""
    passages: bool = False
    """The content is the passage of each document that answers, and not all of its text."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        filters = {**(self.where or {}), **(where or {})}
        hits = Backend(self.memory).search(query, self.k if k is None else k, filters)
        query_id = getattr(hits, "query_id", None)
        return [hit_to_langchain(hit, query_id, passage=self.passages) for hit in hits]
