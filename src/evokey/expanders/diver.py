"""DIVER: the model sees what its last wording found and writes a better one, several rounds.

The wordings of all rounds are units, the last one's first: they are different ways to the same need. A round that fails
ends the refining; what the rounds before it found stays.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from evokey.errors import ExpansionFailed
from evokey.expanders import parse, units
from evokey.expanders.base import LLMExpander, Told, check
from evokey.expanders.units import LONGEST, MOST, shorten, tidy
from evokey.llm.prompts import Prompt
from evokey.protocols import LLM, Look
from evokey.types import Document, Expansion, Spent, Unit

log = logging.getLogger(__name__)


class Diver(LLMExpander):
    name: ClassVar[str] = "diver"

    def __init__(
        self,
        llm: LLM,
        *,
        rounds: int = 2,
        documents: int = 5,
        passage: int = 800,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        units: int = MOST,
        longest: int = LONGEST,
        prompt: Prompt | str | Path | None = None,
    ) -> None:
        super().__init__(
            llm, max_tokens=max_tokens, temperature=temperature, units=units, longest=longest, prompt=prompt
        )
        check(self.name, rounds=rounds, documents=documents, passage=passage)
        self.rounds, self.documents, self.passage = rounds, documents, passage

    def units(self, answer: str, query: str) -> list[Unit]:
        return units.passage(parse.passage(parse.answer(answer)), self.longest)

    def expand(self, query: str, look: Look) -> Expansion:
        told: list[Told] = []
        wording = query
        for number in range(self.rounds):
            found = self._passages(look(wording, self.documents))
            try:
                told.append(self.ask(query, wording=wording, passages=found))
            except ExpansionFailed as error:
                if not told:
                    raise
                log.warning("diver stops after round %d of %d: %s", number, self.rounds, error)
                break
            wording = " ".join(unit.text for unit in told[-1].units)
        latest = [unit for round in reversed(told) for unit in round.units]
        kept = tidy(latest, query, most=self.most, longest=self.longest)
        return self.expansion(query, kept, sum((round.spent for round in told), Spent()), told[-1].model)

    def _passages(self, documents: Sequence[Document]) -> str:
        texts = [shorten(f"{one.title} {one.text}", self.passage) for one in documents[: self.documents]]
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1)) or "(nothing was found)"
