"""Pseudo-relevance feedback: the query's first documents are taken for right, and speak for it.

form="terms" is RM3: words are weighed by how often they stand in the first documents, those documents by their rank,
and the result is mixed with the query's own words; the heaviest become units, in order. form="passages" takes the
leads of the documents themselves: dense retrievers that blend them do vector feedback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from evokey.encoders.bm25 import STOP_WORDS
from evokey.encoders.words import split
from evokey.errors import ExpansionFailed, InvalidSettings
from evokey.expanders.base import check, one_of
from evokey.expanders.units import LONGEST, handfuls, shorten, tidy
from evokey.keys.sentences import lead
from evokey.protocols import Look
from evokey.types import Document, Expansion, Unit

LEAD = 64
"""Tokens of a document's lead."""


class PRF:
    name: ClassVar[str] = "prf"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(self, *, documents: int = 10, terms: int = 20, weight: float = 0.5, form: str = "terms") -> None:
        check(self.name, documents=documents, terms=terms)
        one_of(self.name, "form", form, ("terms", "passages"))
        if not 0 < weight <= 1:
            raise InvalidSettings(f"expander 'prf' needs 0 < weight ≤ 1, the feedback's share, not {weight!r}")
        self._documents, self._terms, self._weight, self._form = documents, terms, weight, form
        self.identity = f"{self.name}/{form}/{documents}/{terms}/{weight:g}"

    def expand(self, query: str, look: Look) -> Expansion:
        found = [one for one in look(query, self._documents)[: self._documents] if f"{one.title}{one.text}".strip()]
        if not found:
            raise ExpansionFailed(f"prf: {query[:60]!r} finds no document to take terms from")
        pieces = self._leads(found) if self._form == "passages" else self._words(query, found)
        kept = tidy(pieces, query, most=max(self._documents, self._terms))
        if not kept:
            raise ExpansionFailed(
                f"prf: the documents found for {query[:60]!r} contain nothing that the query does not"
            )
        return Expansion(query, kept, self.name, self.search)

    def _leads(self, documents: Sequence[Document]) -> list[Unit]:
        leads = [lead(f"{one.title}. {one.text}" if one.title else one.text, LEAD)[0] for one in documents]
        return [Unit(shorten(text, LONGEST)) for text in leads]

    def _words(self, query: str, documents: Sequence[Document]) -> list[Unit]:
        """The heaviest words of the mixture. The query's own take their places in it and are not repeated."""
        asked = _model(query)
        share = {rank: 1 / rank for rank in range(1, len(documents) + 1)}
        mixed = {word: (1 - self._weight) * p for word, p in asked.items()}
        for rank, one in enumerate(documents, 1):
            part = self._weight * share[rank] / sum(share.values())
            for word, p in _model(f"{one.title} {one.text}").items():
                mixed[word] = mixed.get(word, 0.0) + part * p
        heaviest = sorted(mixed, key=lambda word: (-mixed[word], word))[: self._terms]
        return handfuls(word for word in heaviest if word not in asked)


def _model(text: str) -> dict[str, float]:
    """How likely a text's next word is this one; stop words and single signs say nothing."""
    counts = Counter(word for word in split(text) if word not in STOP_WORDS and len(word) > 1)
    return {word: count / counts.total() for word, count in counts.items()}
