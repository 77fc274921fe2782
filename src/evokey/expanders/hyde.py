"""HyDE: the model writes the passage that the searcher hopes to find; its sentences lie where documents lie."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse, units
from evokey.expanders.base import LLMExpander
from evokey.types import Unit


class HyDE(LLMExpander):
    name: ClassVar[str] = "hyde"

    def units(self, answer: str, query: str) -> list[Unit]:
        return units.passage(parse.passage(parse.answer(answer)), self.longest)
