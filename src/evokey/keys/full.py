"""The whole document: title and text."""

from __future__ import annotations

from collections.abc import Sequence

from evokey.protocols import Corpus
from evokey.types import Document


class Full:
    def texts(self, document: Document, corpus: Corpus) -> Sequence[str]:
        text = f"{document.title} {document.text}".strip()
        return [text] if text else []
