"""What all language models share: a request and its name, an answer and its checks, and what tokens cost."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol, runtime_checkable

from evokey.errors import InvalidInput, LLMFailed
from evokey.protocols import LLM
from evokey.types import Completion, Message, Spent, digest

ROLES = ("system", "user", "assistant")
Answering = Generator[str, None, Completion]
"""A stream that, once it ends, hands over the whole answer as its value: `completion = yield from …`."""


@runtime_checkable
class Priced(Protocol):
    """A model that knows what its tokens cost, in US dollars; None where nobody said."""

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None: ...


def turns(messages: Sequence[Message], max_tokens: int, temperature: float) -> list[dict[str, str]]:
    """The messages as every chat interface takes them, or an error that says what is wrong with the request."""
    if not messages:
        raise InvalidInput("a language model needs at least one message")
    for message in messages:
        if message.role not in ROLES:
            raise InvalidInput(f"a message has one of the roles {', '.join(ROLES)}, not {message.role!r}")
        if not message.text.strip():
            raise InvalidInput(f"a {message.role} message is empty; leave it out")
        if _whole(message.text) != message.text:
            raise InvalidInput(f"a {message.role} message is not valid Unicode: {message.text[:60]!r}")
    if max_tokens < 1:
        raise InvalidInput(f"max_tokens is at least 1, not {max_tokens}")
    if not (math.isfinite(temperature) and temperature >= 0):
        raise InvalidInput(f"temperature is 0 or above, not {temperature}")
    return [{"role": message.role, "content": message.text} for message in messages]


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def name_of(identity: str, messages: Sequence[Message], max_tokens: int, temperature: float) -> str:
    """One name for one request: the same model, messages and parameters, and nothing else, give the same name."""
    said = [list(turn.values()) for turn in turns(messages, max_tokens, temperature)]
    return digest(json.dumps([identity, said, max_tokens, float(temperature)], ensure_ascii=False))


def estimated_tokens(text: str) -> int:
    """Tokens of a text where nobody counts them: a token is about four letters of English, fewer of other scripts."""
    return math.ceil(sum(0.25 if letter.isascii() else 0.75 for letter in text))


def estimated_prompt(messages: Sequence[Message]) -> int:
    """Tokens of a request; each message brings a few of its own."""
    return sum(estimated_tokens(message.text) + 4 for message in messages)


def make_completion(text: str, model: str, spent: Spent, *, finished: bool) -> Completion:
    """The answer, or an error where it says nothing. Halves of characters, which no file takes, become "?"."""
    text = _whole(text)
    if not text.strip():
        why = f"its {spent.answer_tokens} tokens were spent before it; raise max_tokens" if not finished else "it ended"
        raise LLMFailed(f"{model} answered nothing ({why})")
    return Completion(text, model, spent, finished)


def drain(stream: Answering) -> Completion:
    """The whole answer of a stream."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            completion: Completion = end.value
            return completion


def passed_on(llm: LLM, messages: Sequence[Message], max_tokens: int, temperature: float) -> Answering:
    """Another model's stream, with the whole answer at its end also where that model does not hand it over."""
    pieces: list[str] = []
    stream: Iterator[str] = llm.stream(messages, max_tokens=max_tokens, temperature=temperature)
    while True:
        try:
            piece = next(stream)
        except StopIteration as end:
            if isinstance(end.value, Completion):
                return end.value
            break
        pieces.append(piece)
        yield piece
    text = "".join(pieces)
    prompt, answer = estimated_prompt(messages), estimated_tokens(text)
    return Completion(text, llm.identity, Spent(1, prompt, answer, price_of(llm, prompt, answer) or 0.0))


def price_of(llm: LLM, prompt_tokens: int, answer_tokens: int) -> float | None:
    return llm.price(prompt_tokens, answer_tokens) if isinstance(llm, Priced) else None
