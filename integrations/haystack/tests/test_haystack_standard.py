"""Haystack's own suite for document stores, unmodified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import own_folders  # noqa: F401
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DocumentStore
from haystack.testing.document_store import CountDocumentsByFilterTest, DocumentStoreBaseExtendedTests

from haystack_integrations.document_stores.evokey import EvokeyDocumentStore


class TestDocumentStore(DocumentStoreBaseExtendedTests, CountDocumentsByFilterTest):
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[EvokeyDocumentStore]:
        store = EvokeyDocumentStore(str(tmp_path / "kb"), encoder="bm25")
        yield store
        store.close()

    def test_write_documents(self, document_store: DocumentStore) -> None:
        """What happens without a policy is for each store to say; the suite leaves this test to it."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
