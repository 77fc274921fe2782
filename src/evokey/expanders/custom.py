"""The user's own rewriter: a prompt file with a place for {{query}}. Prose or JSON, the answer is taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from evokey.expanders import parse, units
from evokey.expanders.base import LLMExpander
from evokey.expanders.units import LONGEST, MOST
from evokey.llm.prompts import written
from evokey.protocols import LLM
from evokey.types import Unit


class CustomRewriter(LLMExpander):
    """Without a prompt of one's own, it asks for a thorough rewriting."""

    name: ClassVar[str] = "custom-rewriter"

    def __init__(
        self,
        llm: LLM,
        *,
        prompt: str | Path | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        units: int = MOST,
        longest: int = LONGEST,
    ) -> None:
        super().__init__(
            llm,
            max_tokens=max_tokens,
            temperature=temperature,
            units=units,
            longest=longest,
            prompt=written(prompt) if prompt is not None else None,
        )

    def units(self, answer: str, query: str) -> list[Unit]:
        text = parse.answer(answer)
        if parse.loose_json(text) is not None:
            return [Unit(entry) for entry in parse.items(text)]
        return units.passage(parse.passage(text), self.longest)
