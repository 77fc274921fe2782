"""A memory of evokey, or a collection of its service, as a document store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils import Secret, deserialize_secrets_inplace

import evokey
from evokey.client import Client
from evokey.errors import InvalidFilter
from evokey.frameworks import Backend
from haystack_integrations.document_stores.evokey.documents import to_evokey, to_haystack
from haystack_integrations.document_stores.evokey.filters import check_filters


class EvokeyDocumentStore:
    """
    store = EvokeyDocumentStore("kb")  # a directory, made on first use
    store = EvokeyDocumentStore(url="http://127.0.0.1:8321", key=Secret.from_env_var("EVOKEY_KEY"))  # a service

    With encoder="given" the memory has the embeddings of the documents. Otherwise it makes keys of their texts, and
    embeddings are only kept with the documents.
    """

    def __init__(
        self,
        path: str | None = None,
        encoder: str | dict[str, Any] | list[str] | None = None,
        url: str | None = None,
        key: Secret | None = None,
        collection: str = "default",
    ) -> None:
        """encoder: of a new memory, as in evokey.open."""
        if (path is None) == (url is None):
            raise ValueError("a store is a directory (path) or a collection of a service (url): give one of them")
        self.path, self.encoder, self.url, self.key, self.collection = path, encoder, url, key, collection
        self._open: evokey.Memory | Client | None = None

    @property
    def memory(self) -> evokey.Memory | Client:
        """Opened on first use: it has feedback, evolve, forget, and all the rest."""
        if self._open is None:
            if self.url is not None:
                self._open = Client(self.url, None if self.key is None else self.key.resolve_value(), self.collection)
            else:
                self._open = evokey.open(self.path or "", encoder=self.encoder)
        return self._open

    @property
    def backend(self) -> Backend:
        return Backend(self.memory)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def to_dict(self) -> dict[str, Any]:
        key = None if self.key is None else self.key.to_dict()
        return default_to_dict(
            self, path=self.path, encoder=self.encoder, url=self.url, key=key, collection=self.collection
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        deserialize_secrets_inplace(data["init_parameters"], keys=["key"])
        found: Self = default_from_dict(cls, data)
        return found

    # ---- documents

    def count_documents(self) -> int:
        return len(self.memory)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """The documents that meet the filters, in the order they came."""
        with _filter_errors():
            return [to_haystack(one) for one in self.backend.documents(check_filters(filters))]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Without a policy, a document that is there already is an error."""
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise ValueError("write_documents takes a list of documents")
        wanted = {one.id: one for one in documents}
        if policy is not DuplicatePolicy.OVERWRITE:
            known = {one.id for one in self.backend.get(wanted)}
            if known and policy is not DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"documents are there already: {', '.join(sorted(known)[:3])}")
            wanted = {id: one for id, one in wanted.items() if id not in known}
        given = self.encoder == "given"
        vectors = [one.embedding for one in wanted.values()] if given and wanted else None
        self.backend.add([to_evokey(one) for one in wanted.values()], vectors)
        return len(documents) if policy is DuplicatePolicy.OVERWRITE else len(wanted)

    def delete_documents(self, document_ids: list[str]) -> None:
        """What they were taught waits, in case they come back."""
        self.backend.delete(document_ids)

    def delete_all_documents(self) -> None:
        self.delete_by_filter({})

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        return self.backend.delete([one.id for one in self.filter_documents(filters)])

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Change the metadata of the documents that meet the filters; how many they are."""
        found = [replace(one, meta={**one.meta, **meta}) for one in self.filter_documents(filters)]
        self.write_documents(found, DuplicatePolicy.OVERWRITE)
        return len(found)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        return len(self.filter_documents(filters))

    # ---- searching

    def search(
        self, query: str, top_k: int, filters: dict[str, Any] | None = None, query_embedding: list[float] | None = None
    ) -> list[Document]:
        """The best documents, with their scores; of a service, with the `evokey_query_id` by which they are rated."""
        with _filter_errors():
            return retrieve(self.backend, query, top_k, check_filters(filters), query_embedding)


def retrieve(
    backend: Backend, query: str, top_k: int, filters: dict[str, Any] | None, query_embedding: list[float] | None
) -> list[Document]:
    hits = backend.search(query, top_k, filters, query_embedding)
    query_id = getattr(hits, "query_id", None)
    found = [to_haystack(hit.document, hit.score) for hit in hits]
    return [replace(one, meta={**one.meta, "evokey_query_id": query_id}) for one in found] if query_id else found


@contextmanager
def _filter_errors() -> Iterator[None]:
    try:
        yield
    except InvalidFilter as error:
        raise FilterError(str(error)) from error
