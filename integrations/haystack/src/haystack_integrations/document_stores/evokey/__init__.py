"""A document store of Haystack that is a memory of evokey."""

from haystack_integrations.document_stores.evokey.document_store import EvokeyDocumentStore

__all__ = ["EvokeyDocumentStore"]
