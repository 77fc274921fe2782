"""Decomposition: smaller queries, each for one piece of the answer. Each retrieves alone and the rankings are fused."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse
from evokey.expanders.base import LLMExpander
from evokey.types import Unit


class Decomposition(LLMExpander):
    name: ClassVar[str] = "decomposition"
    search: ClassVar[str] = "fuse"

    def units(self, answer: str, query: str) -> list[Unit]:
        return [Unit(text) for text in parse.items(parse.answer(answer))]
