"""Voyage AI's embeddings. It cuts texts that are longer than a model reads. The key is in VOYAGE_API_KEY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evokey.encoders.remote import Limits, Remote
from evokey.http.client import Provider


class Voyage(Remote):
    provider: ClassVar[Provider] = Provider("voyage", "https://api.voyageai.com/v1", "VOYAGE_API_KEY")
    path: ClassVar[str] = "embeddings"
    limits: ClassVar[Limits] = Limits(texts=1000, tokens=120_000)
    known: ClassVar[Mapping[str, int]] = {
        "voyage-2": 1024,
        "voyage-large-2": 1536,
        "voyage-code-2": 1536,
        "voyage-law-2": 1024,
        "voyage-finance-2": 1024,
        "voyage-multilingual-2": 1024,
        "voyage-3": 1024,
        "voyage-3-lite": 512,
        "voyage-3-large": 1024,
        "voyage-3.5": 1024,
        "voyage-3.5-lite": 1024,
        "voyage-code-3": 1024,
    }

    def __init__(
        self,
        model: str = "voyage-2",
        dimensions: int | None = None,
        batch_size: int = 128,
        max_tokens: int = 32_000,
        price: float = 0.0,
        revision: str | None = None,
        **service: Any,
    ) -> None:
        super().__init__(model, dimensions, batch_size, max_tokens, price, revision, **service)

    def _body(self, texts: Sequence[str], side: str) -> dict[str, Any]:
        asked = {} if self.dimensions is None else {"output_dimension": self.dimensions}
        return {"model": self.model, "input": list(texts), "input_type": side, "truncation": True, **asked}

    def _rows(self, answer: Mapping[str, Any], count: int) -> Sequence[Any]:
        return [entry.get("embedding") for entry in self.service.in_order(answer.get("data"), count)]

    def _tokens(self, answer: Mapping[str, Any]) -> Any:
        usage = answer.get("usage")
        return usage.get("total_tokens") if isinstance(usage, dict) else None
