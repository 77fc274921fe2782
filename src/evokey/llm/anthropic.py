"""Anthropic's Messages interface. What the system says goes beside the messages; what the model thinks is left out."""

from __future__ import annotations

from typing import Any, ClassVar

from evokey.errors import InvalidInput
from evokey.http.client import Provider
from evokey.llm.chat import Chat, Reading, Reply, text_of, word_of

CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""Tokens of the prompt that Anthropic counts apart."""


class Anthropic(Chat):
    provider: ClassVar = Provider(
        "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "x-api-key",
        {"anthropic-version": "2023-06-01"},
    )  # fmt: skip
    path: ClassVar = "messages"
    cut: ClassVar = frozenset({"max_tokens", "model_context_window_exceeded"})
    refused: ClassVar = frozenset({"refusal"})

    def _body(self, messages: list[dict[str, str]], max_tokens: int) -> dict[str, Any]:
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        rest = [message for message in messages if message["role"] != "system"]
        if not rest:
            raise InvalidInput("anthropic needs a user message beside the system message")
        return {"messages": rest, "max_tokens": max_tokens, **({"system": system} if system else {})}

    def _read(self, reply: Reply, reading: Reading) -> None:
        reading.pieces.append(text_of(reply["content"]))
        reading.reason, reading.model = word_of(reply.get("stop_reason")) or None, word_of(reply.get("model"))
        self._count(reply.get("usage") or {}, reading)

    def _read_event(self, event: Reply, reading: Reading) -> None:
        match event["type"]:
            case "message_start":
                reading.model = word_of(event["message"].get("model"))
                self._count(event["message"].get("usage") or {}, reading)
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                reading.pieces.append(text_of(event["delta"]["text"]))
            case "message_delta":
                reading.reason = word_of(event["delta"].get("stop_reason")) or reading.reason
                self._count(event.get("usage") or {}, reading)

    def _count(self, usage: Reply, reading: Reading) -> None:
        """Later counts replace earlier ones; the end of a stream counts the answer alone."""
        count = self._service.tokens
        fresh = count(usage.get("input_tokens"))
        if fresh is not None:
            reading.prompt_tokens = fresh + sum(count(usage.get(name)) or 0 for name in CACHED)
        reading.answer_tokens = count(usage.get("output_tokens")) or reading.answer_tokens
