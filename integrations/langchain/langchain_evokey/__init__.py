"""evokey for LangChain: a retriever and a vector store that learn from feedback."""

from langchain_evokey.feedback import EvokeyFeedback
from langchain_evokey.retriever import EvokeyRetriever
from langchain_evokey.vectorstore import EvokeyVectorStore

__all__ = ["EvokeyFeedback", "EvokeyRetriever", "EvokeyVectorStore"]
