"""The user's own rewriter: a prompt with a place for {{query}}. Prose or JSON, the answer is taken apart."""

from __future__ import annotations

from typing import ClassVar

from evokey.expanders import parse, units
from evokey.expanders.base import LLMExpander
from evokey.types import Unit


class CustomRewriter(LLMExpander):
    """Without a prompt of one's own, it asks for a thorough rewriting."""

    name: ClassVar[str] = "custom-rewriter"

    def units(self, answer: str, query: str) -> list[Unit]:
        text = parse.answer(answer)
        if parse.loose_json(text) is not None:
            return [Unit(entry) for entry in parse.items(text)]
        return units.passage(parse.passage(text), self.longest)
