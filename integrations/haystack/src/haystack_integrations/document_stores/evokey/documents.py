"""Documents of Haystack as documents of evokey, and back without a loss."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from haystack import Document

import evokey

OWN = "_haystack"
"""A field of the metadata: what only Haystack knows of a document, as one text that filters see nothing in."""


def to_evokey(document: Document) -> evokey.Document:
    own = document.to_dict(flatten=False)
    embedding = own.pop("embedding")
    if embedding is not None:
        own["embedding"] = base64.b64encode(np.asarray(embedding, "<f8").tobytes()).decode()
    kept = {name: value for name, value in own.items() if name not in ("id", "content", "meta", "score")}
    kept = {name: value for name, value in kept.items() if value is not None}
    if document.content is None:
        kept["content"] = None
    more = {OWN: json.dumps(kept)} if kept else {}
    return evokey.Document(document.id, document.content or "", metadata={**document.meta, **more})


def to_haystack(document: evokey.Document, score: float | None = None) -> Document:
    meta = dict(document.metadata)
    kept: dict[str, Any] = json.loads(meta.pop(OWN, "{}"))
    if "embedding" in kept:
        kept["embedding"] = np.frombuffer(base64.b64decode(kept["embedding"]), "<f8").tolist()
    if document.title:
        meta = {"title": document.title, **meta}
    return Document.from_dict({"content": document.text, **kept, "id": document.id, "meta": meta, "score": score})
