"""OpenAI's embeddings, and those of every server that speaks as OpenAI does: base_url says where it is.

The key is in OPENAI_API_KEY for OpenAI itself; another server gets a key when key_env names the variable that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evokey.encoders.remote import Limits, Remote
from evokey.http.client import Provider


class OpenAI(Remote):
    provider: ClassVar[Provider] = Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
    path: ClassVar[str] = "embeddings"
    limits: ClassVar[Limits] = Limits(texts=2048, tokens=300_000)
    known: ClassVar[Mapping[str, int]] = {
        "text-embedding-3-small": 1536,
        "text-embedding-3-large": 3072,
        "text-embedding-ada-002": 1536,
    }

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        dimensions: int | None = None,
        batch_size: int = 256,
        max_tokens: int = 8191,
        price: float = 0.0,
        revision: str | None = None,
        **service: Any,
    ) -> None:
        super().__init__(model, dimensions, batch_size, max_tokens, price, revision, **service)

    def _body(self, texts: Sequence[str], side: str) -> dict[str, Any]:
        asked = {} if self.dimensions is None else {"dimensions": self.dimensions}
        return {"model": self.model, "input": list(texts), "encoding_format": "base64", **asked}

    def _rows(self, answer: Mapping[str, Any], count: int) -> Sequence[Any]:
        return [entry.get("embedding") for entry in self.service.in_order(answer.get("data"), count)]

    def _tokens(self, answer: Mapping[str, Any]) -> Any:
        usage = answer.get("usage")
        return usage.get("prompt_tokens") or usage.get("total_tokens") if isinstance(usage, dict) else None
