"""Teach, evolve, better, forget: through LlamaIndex's own interface."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import own_folders  # noqa: F401
from frameworks.behind import ANSWER, DOCUMENTS, KINDS, QUESTION, RIGHT, WRONG, behind, embed
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

import evokey
from llama_index.retrievers.evokey import EvokeyFeedback, EvokeyRetriever
from llama_index.vector_stores.evokey import EvokeyVectorStore


class Words(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]


NODES = [
    TextNode(
        id_=one.id,
        text=one.text,
        metadata={**one.metadata, "tags": ["git", f"n{one.metadata['n']}"]},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"page-{one.metadata['n']}")},
    )
    for one in DOCUMENTS
]


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with behind(request.param, tmp_path / "kb") as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EvokeyVectorStore]:
    store = EvokeyVectorStore(tmp_path / "vectors")
    yield store
    store.client.close()


def engine_over(memory: Any) -> RetrieverQueryEngine:
    Settings.llm = MockLLM()  # without one, LlamaIndex looks for OpenAI's
    return RetrieverQueryEngine.from_args(EvokeyRetriever(memory, similarity_top_k=4), response_mode="no_text")


def index_in(store: EvokeyVectorStore) -> VectorStoreIndex:
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex([one.model_copy(deep=True) for one in NODES], storage_context=context, embed_model=Words())


def first(memory: Any) -> str:
    return str(EvokeyRetriever(memory).retrieve(QUESTION)[0].node.node_id)


def test_a_vote_on_a_response_is_learned_and_forgotten(memory: Any) -> None:
    assert first(memory) == WRONG
    sources = engine_over(memory).query(QUESTION).source_nodes
    EvokeyFeedback(memory).rate(QUESTION, Response(ANSWER, source_nodes=sources), up=True)
    memory.evolve()
    assert first(memory) == RIGHT
    memory.forget(query=QUESTION)
    assert first(memory) == WRONG


def test_a_vote_down_teaches_nothing_by_itself(memory: Any) -> None:
    EvokeyFeedback(memory).rate(QUESTION, engine_over(memory).query(QUESTION), up=False, reason="bad answer")
    assert memory.lessons() == []


def test_an_index_in_a_vector_store_learns_and_forgets(store: EvokeyVectorStore) -> None:
    retriever = index_in(store).as_retriever(similarity_top_k=4)
    untaught = [one.node.node_id for one in retriever.retrieve(QUESTION)]
    assert untaught[0] == WRONG
    EvokeyFeedback(store.client).teach(QUESTION, [RIGHT], actor="ada", embedding=embed([QUESTION])[0])
    assert store.client.evolve().published
    found = retriever.retrieve(QUESTION)
    assert found[0].node.node_id == RIGHT and found[0].node.ref_doc_id == "page-1"
    store.client.forget(actor="ada")
    assert [one.node.node_id for one in retriever.retrieve(QUESTION)] == untaught


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([MetadataFilter(key="n", value=2, operator=FilterOperator.LTE)], {1, 2}),
        ([MetadataFilter(key="n", value=[1, 4], operator=FilterOperator.NIN)], {2, 3}),
        ([MetadataFilter(key="tags", value=["n1", "n2"], operator=FilterOperator.ANY)], {1, 2}),
        ([MetadataFilter(key="tags", value=["git", "n3"], operator=FilterOperator.ALL)], {3}),
        ([MetadataFilter(key="tags", value="n4", operator=FilterOperator.CONTAINS)], {4}),
        ([MetadataFilter(key="missing", value=None, operator=FilterOperator.IS_EMPTY)], {1, 2, 3, 4}),
        ([MetadataFilters(filters=[MetadataFilter(key="n", value=1)], condition=FilterCondition.NOT)], {2, 3, 4}),
    ],
)
def test_filters_are_those_of_llama_index(store: EvokeyVectorStore, filters: list[Any], found: set[int]) -> None:
    retriever = index_in(store).as_retriever(similarity_top_k=4, filters=MetadataFilters(filters=filters))
    assert {one.node.metadata["n"] for one in retriever.retrieve(QUESTION)} == found


def test_nodes_come_back_as_they_were_and_are_deleted(store: EvokeyVectorStore) -> None:
    index = index_in(store)
    assert [one.to_dict() for one in store.get_nodes()] == [one.to_dict() for one in NODES]
    index.delete_ref_doc("page-2")
    store.delete_nodes(["git-log"])
    assert [one.node_id for one in store.get_nodes()] == ["git-revert", "git-blame"]
    store.clear()
    assert store.get_nodes() == []


def test_the_version_is_that_of_evokey() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == evokey.__version__
