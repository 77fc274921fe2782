"""A language model that says what it is told to, in order, the last for ever; an error is raised instead of said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evokey import registry
from evokey.protocols import LLM, Expander
from evokey.types import Completion, Message, Spent


class Scripted:
    identity = "scripted/1"

    def __init__(self, *answers: str | Exception, finished: bool = True) -> None:
        self.answers = list(answers)
        self.finished = finished
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        self.asked.append(messages[-1].text)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, self.identity, Spent(1, 100, 10, 0.5, 0.1), self.finished)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        yield self.complete(messages, max_tokens=max_tokens, temperature=temperature).text


def make(name: str, llm: LLM | None = None, **options: Any) -> Expander:
    """An expander by its name; one that asks a language model gets this one."""
    made: Expander = registry.build("expander", {"name": name, **options}, llm=llm)
    return made
