"""What people type at a prompt: "a phrase" that a document must have, and -word (or -"a phrase") that it must not.

What is compared are words as they stand in title and text, whatever their case and the form of their signs; not stems.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evokey.encoders.words import UNSPACED, fold
from evokey.errors import InvalidQuery
from evokey.types import Document

_OPERATOR = re.compile(r'(?<!\S)(-?)"([^"]+)"|(?<!\S)-([^\W_][^\s"]*)')
_UNSPACED = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Operators:
    """A query as it is ranked, and what documents must and must not say."""

    query: str
    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]

    @property
    def accepts(self) -> Callable[[Document], bool] | None:
        """Whether a document says what it must; None where it need not."""
        if not self.wanted and not self.unwanted:
            return None
        wanted, unwanted = ([_pattern(phrase) for phrase in some] for some in (self.wanted, self.unwanted))

        def accept(document: Document) -> bool:
            text = _plain(f"{document.title}\n{document.text}")
            return all(one.search(text) for one in wanted) and not any(one.search(text) for one in unwanted)

        return accept


def parse(query: str) -> Operators:
    wanted, unwanted, kept = list[str](), list[str](), list[str]()
    at = 0
    for found in _OPERATOR.finditer(query):
        minus, phrase, word = found.groups()
        said = _plain(phrase or word)
        kept.append(query[at : found.start()])
        if minus or word:
            unwanted.append(said)
        else:
            wanted.append(said)
            kept.append(phrase)
        at = found.end()
    if at == 0:
        return Operators(query, (), ())
    left = " ".join("".join([*kept, query[at:]]).split())
    if not left:
        raise InvalidQuery(f"{query[:80]!r} says only what is not wanted; say beside it what to look for")
    return Operators(left, tuple(filter(None, wanted)), tuple(filter(None, unwanted)))


def _plain(text: str) -> str:
    return " ".join(fold(text).split())


def _pattern(phrase: str) -> re.Pattern[str]:
    """The phrase between borders of words, where its script has these."""
    before = "" if _UNSPACED.match(phrase[0]) else r"(?<![^\W_])"
    after = "" if _UNSPACED.match(phrase[-1]) else r"(?![^\W_])"
    return re.compile(before + re.escape(phrase) + after)
