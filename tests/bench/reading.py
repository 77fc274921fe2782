"""A language model that reads: it writes the passage that a query hopes for, and answers with what it was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evokey.types import Completion, Message


class Reading:
    identity = "reading"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.graded: list[str] = []

    @staticmethod
    def grade(gold: str, answer: str) -> int:
        """Right and wrong are easily told apart here."""
        return 90 if gold == answer else 10

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        text = messages[-1].text
        if graded := re.search(r"<correct>\n(.*?)\n</correct>\n\n<answer>\n(.*?)\n</answer>", text, re.DOTALL):
            self.graded.append(text)
            return Completion(f"<score>{self.grade(*graded.groups())}</score>", self.identity)
        self.asked.append(text)
        if shown := re.findall(r"(?m)^\[1\] (.*)$", text):
            return Completion(f"{shown[0].strip()} [1]", self.identity)
        number = re.search(r"(?:ask|beg)(\d+)", text)
        assert number is not None
        return Completion(f"<expansion>Something about leaf{number[1]}.</expansion>", self.identity)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        yield self.complete(messages).text
