"""OpenAI's chat interface, and all that speak it: vLLM, Ollama, llama.cpp's server, LM Studio and many providers.

base_url goes up to and including /v1. What a model thinks is left out where the server sends it apart.
"""

from __future__ import annotations

from typing import Any, ClassVar

from evokey.http.client import Provider
from evokey.llm.chat import Chat, Reading, Reply, text_of, word_of


class OpenAI(Chat):
    provider: ClassVar = Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
    path: ClassVar = "chat/completions"
    cut: ClassVar = frozenset({"length", "max_tokens"})
    refused: ClassVar = frozenset({"content_filter", "refusal", "safety"})

    def _body(self, messages: list[dict[str, str]], max_tokens: int) -> dict[str, Any]:
        # OpenAI's newer models refuse the old name, and most other servers do not know the new one.
        limit = "max_completion_tokens" if self._service.base_url == self.provider.home else "max_tokens"
        return {"messages": messages, limit: max_tokens, "stream_options": {"include_usage": True}}

    def _read(self, reply: Reply, reading: Reading) -> None:
        choice = reply["choices"][0]
        self._take(reply, choice, choice["message"], reading)

    def _read_event(self, event: Reply, reading: Reading) -> None:
        choices = event.get("choices") or [{}]
        self._take(event, choices[0], choices[0].get("delta") or {}, reading)

    def _take(self, reply: Reply, choice: Reply, message: Reply, reading: Reading) -> None:
        reading.pieces.append(text_of(message.get("content")))
        reading.refusal += word_of(message.get("refusal"))
        reading.reason = word_of(choice.get("finish_reason")) or reading.reason
        reading.model = reading.model or word_of(reply.get("model"))
        usage = reply.get("usage")
        if usage:
            reading.prompt_tokens = usage.get("prompt_tokens")
            reading.answer_tokens = usage.get("completion_tokens")
