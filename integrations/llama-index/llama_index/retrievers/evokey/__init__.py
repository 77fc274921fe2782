"""A retriever of LlamaIndex over evokey, and what turns verdicts of users into lessons."""

from llama_index.retrievers.evokey.base import EvokeyFeedback, EvokeyRetriever

__all__ = ["EvokeyFeedback", "EvokeyRetriever"]
