"""A vector store of LlamaIndex that learns from feedback."""

from llama_index.vector_stores.evokey.base import EvokeyVectorStore

__all__ = ["EvokeyVectorStore"]
