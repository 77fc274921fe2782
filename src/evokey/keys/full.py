"""The whole document: title and text."""

from __future__ import annotations

from collections.abc import Sequence

from evokey.protocols import Corpus
from evokey.types import Document, KeyText


class Full:
    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        text = f"{document.title} {document.text}".strip()
        passage = (0, len(document.text)) if document.text.strip() else (None, None)
        return [KeyText(text, *passage)] if text else []
