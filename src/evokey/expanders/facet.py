"""Facets: the sides of a topic, each with the words that documents on it use. A unit is a facet."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse
from evokey.expanders.base import LLMExpander
from evokey.types import Unit


class Facet(LLMExpander):
    name: ClassVar[str] = "facet"
    search: ClassVar[str] = "concat"
    tokens: ClassVar[int] = 2048

    def units(self, answer: str, query: str) -> list[Unit]:
        found = parse.facets(parse.answer(answer))
        return [Unit(f"{name}: {_once(keywords)}" if name else _once(keywords)) for name, keywords in found]


def _once(keywords: list[str]) -> str:
    return ", ".join(dict.fromkeys(keywords))
