"""A language model that writes what a test says for each passage: told by a word of the passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evokey.errors import LLMFailed
from evokey.types import Completion, Message, Spent


class Writer:
    identity = "writer/1"

    def __init__(self, replies: Mapping[str, str | Exception], otherwise: str = "I cannot say.") -> None:
        self.replies, self.otherwise = replies, otherwise
        self.asked: list[str] = []
        self.fail_after: int | None = None

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        asked = messages[-1].text
        self.asked.append(asked)
        if self.fail_after is not None and len(self.asked) > self.fail_after:
            raise LLMFailed("the writer is gone")
        reply = next((reply for word, reply in self.replies.items() if word in asked), self.otherwise)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, self.identity, Spent(1, 100, 20, 0.001, 0.1))

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        yield self.complete(messages, max_tokens=max_tokens, temperature=temperature).text

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        return 0.001


class Museum(Writer):
    """The writer of test_seeding, for settings that name it."""

    def __init__(self) -> None:
        from test_seeding import QUESTIONS

        super().__init__(QUESTIONS)
