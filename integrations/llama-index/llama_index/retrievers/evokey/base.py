"""The retriever, and feedback on what it brought."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from evokey import Layer, Lesson, Memory
from evokey.client import Client
from evokey.frameworks import Backend, Retrieved
from evokey.types import Rating
from llama_index.retrievers.evokey.nodes import to_node


class EvokeyRetriever(BaseRetriever):
    """The best documents of a memory, of a layer beside a search, or of a client.

    retriever = EvokeyRetriever(evokey.open("kb"), similarity_top_k=5)
    engine = RetrieverQueryEngine.from_args(retriever)
    """

    def __init__(
        self,
        memory: Memory | Layer | Client,
        similarity_top_k: int = 10,
        where: Mapping[str, Any] | None = None,
        passages: bool = False,
    ) -> None:
        """where: a filter on metadata (of a layer: arguments for its search). passages: a node's text is the passage of
        the document that answers."""
        self._backend, self._top_k, self._where, self._passages = Backend(memory), similarity_top_k, where, passages
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._backend.search(query_bundle.query_str, self._top_k, self._where, query_bundle.embedding)
        query_id = getattr(hits, "query_id", None)
        found = []
        for hit in hits:
            node = to_node(hit.document, hit.passage.text if self._passages else None)
            if query_id is not None:
                node.metadata["evokey_query_id"] = query_id
                node.excluded_embed_metadata_keys.append("evokey_query_id")
                node.excluded_llm_metadata_keys.append("evokey_query_id")
            found.append(NodeWithScore(node=node, score=hit.score))
        return found


class EvokeyFeedback:
    """Verdicts of users on what a query engine answered.

    response = engine.query(question)
    EvokeyFeedback(memory).rate(question, response, up=True)
    """

    def __init__(self, memory: Memory | Layer | Client) -> None:
        self._backend = Backend(memory)

    def rate(
        self,
        query: str,
        response: Response,
        up: bool,
        cited: Iterable[str] | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Rating | None:
        """A vote. Up credits the nodes (ids) in `cited`, or else those that the sentences of the response match; down
        asks people (evokey review) and changes nothing by itself."""
        nodes = [one.node for one in response.source_nodes]
        texts = {one.node_id: one.get_content(metadata_mode=MetadataMode.NONE) for one in nodes}
        named = (one.metadata.get("evokey_query_id") for one in nodes)
        retrieved = Retrieved(query, texts, next(named, None))
        credited = retrieved.credit(response.response or "") if cited is None else list(cited)
        return self._backend.rate(retrieved, up, credited, reason, actor)

    def teach(
        self,
        query: str,
        relevant: Iterable[str] | Mapping[str, float] = (),
        irrelevant: Iterable[str] = (),
        actor: str | None = None,
        embedding: list[float] | None = None,
    ) -> Lesson:
        """Which nodes (ids) were right for a query, and which were wrong. embedding: of the query, where the memory has
        the vectors of an index."""
        return self._backend.teach(query, relevant, irrelevant, actor, embedding)
