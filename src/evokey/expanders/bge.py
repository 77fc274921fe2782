"""BGE-Reasoner-Rewriter: a 7B model (cfli/reasoner-rewriter-qwen2.5-7b-0821, made from Qwen2.5-7B-Instruct) that turns
a query into a long, reasoned text for retrieval.

Its interface is a task and an input under headings, thoughts in <think>, the text in <response>; sampled at temperature
0.6. Its makers search with five samples of each query: rewrites=5 does the same. Any other capable model can be asked
in this form too. Serve the model behind an OpenAI-compatible address, or as GGUF, and name it as the language model.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from evokey.errors import ExpansionFailed
from evokey.expanders import parse, units
from evokey.expanders.base import LLMExpander, Told, check
from evokey.expanders.units import LONGEST, MOST, tidy
from evokey.llm.prompts import Prompt
from evokey.protocols import LLM, Look
from evokey.types import Expansion, Spent, Unit

TASK = "Write a detailed passage that explains and answers the query, with the terms that relevant documents contain."


class BGERewriter(LLMExpander):
    name: ClassVar[str] = "bge-rewriter"
    tokens: ClassVar[int] = 4096

    def __init__(
        self,
        llm: LLM,
        *,
        task: str = TASK,
        rewrites: int = 1,
        max_tokens: int | None = None,
        temperature: float = 0.6,
        units: int = MOST,
        longest: int = LONGEST,
        prompt: Prompt | str | Path | None = None,
    ) -> None:
        super().__init__(
            llm, max_tokens=max_tokens, temperature=temperature, units=units, longest=longest, prompt=prompt
        )
        check(self.name, rewrites=rewrites)
        self.task, self.rewrites = task, rewrites

    def units(self, answer: str, query: str) -> list[Unit]:
        return units.passage(parse.passage(parse.answer(answer, "response")), self.longest)

    def expand(self, query: str, look: Look) -> Expansion:
        told: list[Told] = []
        failed: ExpansionFailed | None = None
        for _ in range(self.rewrites):
            try:
                told.append(self.ask(query, task=self.task))
            except ExpansionFailed as error:
                failed = error
        if not told and failed is not None:
            raise failed
        share = max(self.most // len(told), 1)
        pieces = [unit for one in told for unit in one.units[:share]] + [unit for one in told for unit in one.units]
        kept = tidy(pieces, query, most=self.most, longest=self.longest)
        return self.expansion(query, kept, sum((one.spent for one in told), Spent()), told[-1].model)
