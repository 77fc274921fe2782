"""A retriever of Haystack over a memory of evokey, a layer beside a search, or a client of its service."""

from haystack_integrations.components.retrievers.evokey.retriever import EvokeyRetriever

__all__ = ["EvokeyRetriever"]
