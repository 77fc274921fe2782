"""Clarification: what a short or ambiguous query most likely means, said in full."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse
from evokey.expanders.base import LLMExpander
from evokey.types import Unit


class Clarify(LLMExpander):
    name: ClassVar[str] = "clarify"
    tokens: ClassVar[int] = 768

    def units(self, answer: str, query: str) -> list[Unit]:
        return [Unit(text) for text in parse.items(parse.answer(answer))]
