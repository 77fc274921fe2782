"""Parts that cost money, without a service: an encoder, and a model that marks what it says with what it was asked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from evokey.protocols import Cost
from evokey.registry import COMPONENTS, Component
from evokey.types import Completion, Message, Spent, Vectors

SECRET = re.compile(r"zq[a-z0-9]{8}")
"""A word by which a text that will be forgotten is found again."""


def mark(secret: str) -> str:
    """What the model makes of such a word: it does not quote it."""
    return f"mk{hashlib.sha256(secret.encode()).hexdigest()[:12]}"


class PaidEncoder:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "money"
    identity = "paid/32"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([_vector(text) for text in texts]) if texts else np.zeros((0, 32), np.float32)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self.documents(texts)


def _vector(text: str) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    vector = np.random.default_rng(seed).normal(size=32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class MarkingModel:
    identity = "marking/1"

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        asked = SECRET.findall(" ".join(message.text for message in messages)) or ["nothing"]
        said = (
            f"A passage on {mark(asked[-1])} that is long enough to stand for an answer [1]. It says no more than that."
        )
        return Completion(said, self.identity, Spent(1, 100, 10, 0.5, 0.1))

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        yield self.complete(messages, max_tokens=max_tokens, temperature=temperature).text


def register() -> None:
    COMPONENTS["encoder"]["paid"] = Component(f"{__name__}:PaidEncoder")
    COMPONENTS["llm"]["marking"] = Component(f"{__name__}:MarkingModel")
