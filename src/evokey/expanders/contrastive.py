"""Contrast: terms of the documents that are sought, and terms of those that only look alike.

The unwanted terms are negative units: they steer the expanded query away, and never reach a key.
"""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse
from evokey.expanders.base import LLMExpander
from evokey.expanders.units import handfuls, normal
from evokey.types import Unit


class Contrastive(LLMExpander):
    name: ClassVar[str] = "contrastive"
    tokens: ClassVar[int] = 2048

    def units(self, answer: str, query: str) -> list[Unit]:
        wanted, unwanted = parse.poles(parse.answer(answer))
        claimed = {normal(term) for term in wanted} | set(normal(query).split())
        against = [term for term in unwanted if normal(term) not in claimed]
        return [*handfuls(wanted, query=query), *handfuls(against, positive=False, query=query)]
