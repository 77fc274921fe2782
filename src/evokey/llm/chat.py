"""What the chat services share: options, prices, and the way from their reply to an answer or an error."""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evokey.errors import InvalidSettings, LLMFailed
from evokey.http.client import Provider, Service
from evokey.llm.request import Answering, estimated_prompt, estimated_tokens, make_completion, turns
from evokey.types import Completion, Message, Spent, digest

log = logging.getLogger(__name__)
MILLION = 1_000_000
Reply = Mapping[str, Any]


@dataclass
class Reading:
    """What is known of an answer so far."""

    pieces: list[str] = field(default_factory=list)
    reason: str | None = None
    """Why it ended, in the service's words; None while it has not."""
    refusal: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    started: float = field(default_factory=time.monotonic)


class Chat(ABC):
    """A service that takes messages over HTTP."""

    provider: ClassVar[Provider]
    path: ClassVar[str]
    cut: ClassVar[frozenset[str]]
    """Reasons that say: the answer reached its greatest length."""
    refused: ClassVar[frozenset[str]]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_env: str | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        total: float = 600.0,
        requests_per_minute: int | None = None,
        parallel: int = 4,
        prompt_price: float | None = None,
        answer_price: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        leave_out: Sequence[str] = (),
    ) -> None:
        """Prices are US dollars per million tokens. extra_body adds fields to each request, and leave_out takes those
        away that a model refuses ("temperature", "stream_options"). timeout is for an attempt, and total, in seconds
        too, for a call with all its attempts, or a stream."""
        name = self.provider.name
        if not isinstance(model, str) or not model:
            raise InvalidSettings(f"{name} needs the name of a model, not {model!r}")
        if (prompt_price is None) != (answer_price is None) or min(prompt_price or 0, answer_price or 0) < 0:
            raise InvalidSettings(f"{name} needs both prompt_price and answer_price, from 0 on, or neither")
        self.model = model
        self._extra, self._left_out = dict(extra_body or {}), frozenset(leave_out)
        varied = f"#{digest(json.dumps(self._extra, sort_keys=True))[:8]}" if self._extra else ""
        self.identity = f"{name}/{model}{varied}"
        self._prices = None if prompt_price is None or answer_price is None else (prompt_price, answer_price)
        self._uncounted = False
        self._service = Service(
            self.provider, base_url=base_url, key_env=key_env, timeout=timeout, retries=retries, total=total,
            requests_per_minute=requests_per_minute, parallel=parallel, failure=LLMFailed,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self._service.base_url!r})"

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        body, reading = self._fields(messages, max_tokens, temperature, stream=False), Reading()
        reply = self._service.post(self.path, body)
        if reply.get("error"):
            raise self._service.failure(f"answered with an error: {str(reply['error'])[:200]}")
        try:
            self._read(reply, reading)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            raise self._nonsense(reply) from None
        return self._answer(messages, reading)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Answering:
        body, reading = self._fields(messages, max_tokens, temperature, stream=True), Reading()
        return self._stream(messages, body, reading)

    def _stream(self, messages: Sequence[Message], body: Reply, reading: Reading) -> Answering:
        for event in self._service.stream(self.path, body):
            before = len(reading.pieces)
            try:
                self._read_event(event, reading)
            except (KeyError, IndexError, TypeError, AttributeError, ValueError):
                raise self._nonsense(event) from None
            yield from filter(None, reading.pieces[before:])
        if reading.reason is None:
            raise self._service.failure("ended in the middle of its answer. Try again.")
        return self._answer(messages, reading)

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        if self._prices is None:
            return None
        return (prompt_tokens * self._prices[0] + answer_tokens * self._prices[1]) / MILLION

    def close(self) -> None:
        self._service.close()

    @abstractmethod
    def _body(self, messages: list[dict[str, str]], max_tokens: int) -> dict[str, Any]:
        """The request, but for model and temperature."""

    @abstractmethod
    def _read(self, reply: Reply, reading: Reading) -> None: ...

    @abstractmethod
    def _read_event(self, event: Reply, reading: Reading) -> None: ...

    def _fields(
        self, messages: Sequence[Message], max_tokens: int, temperature: float, *, stream: bool
    ) -> dict[str, Any]:
        said = turns(messages, max_tokens, temperature)
        body = {"model": self.model, "temperature": temperature, **self._body(said, max_tokens)}
        if not stream:
            body.pop("stream_options", None)
        return {name: value for name, value in {**body, **self._extra}.items() if name not in self._left_out}

    def _answer(self, messages: Sequence[Message], reading: Reading) -> Completion:
        text = "".join(reading.pieces)
        if reading.refusal or reading.reason in self.refused:
            raise self._service.failure(f"refused to answer ({reading.refusal[:200] or reading.reason}).")
        prompt, answer = self._service.tokens(reading.prompt_tokens), self._service.tokens(reading.answer_tokens)
        if prompt is None or answer is None:
            prompt, answer = estimated_prompt(messages), estimated_tokens(text)
            self._warn_uncounted()
        seconds = time.monotonic() - reading.started
        spent = Spent(1, prompt, answer, self.price(prompt, answer) or 0.0, seconds)
        return make_completion(text, reading.model or self.identity, spent, finished=reading.reason not in self.cut)

    def _warn_uncounted(self) -> None:
        if not self._uncounted:
            log.warning("%s does not say how many tokens it used; they are estimated from the texts", self.identity)
        self._uncounted = True

    def _nonsense(self, reply: Reply) -> Exception:
        return self._service.failure(
            f"answered in a shape that is no chat answer: {str(dict(reply))[:200]}. Check base_url."
        )


def text_of(content: Any) -> str:
    """The text of a message, which may be absent or come in typed parts; parts that are no text are left out."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part["text"] for part in content if part["type"] == "text")


def word_of(value: Any) -> str:
    """A name or a reason, which may be absent."""
    if value is not None and not isinstance(value, str):
        raise TypeError("no text where a text is expected")
    return value or ""
