"""The title; of a document without one its first sentence, so that it can still be found."""

from __future__ import annotations

from collections.abc import Sequence

from evokey.errors import InvalidSettings
from evokey.keys.sentences import first, spans
from evokey.protocols import Corpus
from evokey.types import Document, KeyText


class Title:
    def __init__(self, tokens: int = 40) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise InvalidSettings(
                f"title keys: tokens, the most that is taken of a text without a title, is a whole number from 1 on, "
                f"not {tokens!r}"
            )
        self.tokens = tokens

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        row = name(document, self.tokens)
        return [row] if row.text else []


def name(document: Document, tokens: int) -> KeyText:
    """The title, or so much of the first sentence as stands for one."""
    if document.title.strip():
        return KeyText(document.title.strip())
    for start, end in spans(document.text):
        sentence = " ".join(document.text[start : min(end, start + 40 * tokens)].split())
        return KeyText(first(sentence.lstrip("# ") or sentence, tokens), start, end)
    return KeyText("")
