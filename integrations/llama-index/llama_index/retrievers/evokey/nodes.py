"""Nodes of LlamaIndex as documents of evokey, and back without a loss."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from evokey import Document

CONTENT = "_node_content"
"""The field of the metadata in which LlamaIndex keeps the rest of a node."""


def to_document(node: BaseNode) -> Document:
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return Document(node.node_id, text, metadata=node_to_metadata_dict(node, remove_text=True))


def to_node(document: Document, text: str | None = None) -> TextNode:
    """text: a part of the document's own, in its place."""
    shown = document.text if text is None else text
    if CONTENT in document.metadata:
        found = metadata_dict_to_node(dict(document.metadata), text=shown)
        assert isinstance(found, TextNode)
        return found
    title = {"title": document.title} if document.title else {}
    return TextNode(id_=document.id, text=shown, metadata={**title, **document.metadata})
