"""LangChain's own suites, unmodified: langchain-tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import own_folders  # noqa: F401
from frameworks.behind import DOCUMENTS, KINDS, QUESTION, behind
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from langchain_evokey import EvokeyRetriever, EvokeyVectorStore


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        store = EvokeyVectorStore(tmp_path / "kb", embedding=self.get_embeddings())
        yield store
        store.close()


class TestVectorStoreWithoutEmbedding(VectorStoreIntegrationTests):
    """A dense memory of WordLlama: every document has a similarity to every question."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        import evokey

        with evokey.open(tmp_path / "kb", encoder="wordllama") as memory:
            yield EvokeyVectorStore(memory)


@pytest.mark.usefixtures("memory")
class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(params=KINDS)
    def memory(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
        with behind(request.param, tmp_path / "kb") as self._memory:
            yield self._memory

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return EvokeyRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self._memory}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION + " " + DOCUMENTS[0].text
