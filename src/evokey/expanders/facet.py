"""Facets: the sides of a topic, each with the words that documents on it use. A unit is a facet."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse
from evokey.expanders.base import LLMExpander
from evokey.expanders.units import normal
from evokey.types import Unit


class Facet(LLMExpander):
    name: ClassVar[str] = "facet"
    search: ClassVar[str] = "concat"
    tokens: ClassVar[int] = 2048

    def units(self, answer: str, query: str) -> list[Unit]:
        found = [(name, _once(name, keywords)) for name, keywords in parse.facets(parse.answer(answer))]
        return [Unit(f"{name}: {', '.join(words)}" if name else ", ".join(words)) for name, words in found if words[1:]]


def _once(name: str, keywords: list[str]) -> list[str]:
    """Each keyword once, and none that only says the name again; a facet needs two."""
    once = {normal(keyword): keyword for keyword in reversed(keywords)}
    return [keyword for said, keyword in reversed(once.items()) if said and said != normal(name)]
