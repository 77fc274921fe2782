"""Documents of evokey as documents of LangChain, and back."""

from __future__ import annotations

from langchain_core.documents import Document as LangChainDocument

from evokey import Document, Hit


def to_langchain(document: Document) -> LangChainDocument:
    title = {"title": document.title} if document.title else {}
    return LangChainDocument(id=document.id, page_content=document.text, metadata={**title, **document.metadata})


def hit_to_langchain(hit: Hit, query_id: str | None = None, *, passage: bool = False) -> LangChainDocument:
    """With its score, and what a vote on it is given to."""
    found = to_langchain(hit.document)
    found.metadata |= {"evokey_score": hit.score}
    if query_id is not None:
        found.metadata |= {"evokey_query_id": query_id}
    if passage:
        found.page_content = hit.passage.text
        found.metadata |= {"passage": hit.passage.where}
    return found
