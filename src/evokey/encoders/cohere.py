"""Cohere's embeddings. It cuts texts that are longer than a model reads. The key is in COHERE_API_KEY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evokey.encoders.remote import Limits, Remote
from evokey.http.client import Provider


class Cohere(Remote):
    provider: ClassVar[Provider] = Provider("cohere", "https://api.cohere.com/v2", "COHERE_API_KEY")
    path: ClassVar[str] = "embed"
    limits: ClassVar[Limits] = Limits(texts=96, tokens=1_000_000)
    known: ClassVar[Mapping[str, int]] = {
        "embed-english-v3.0": 1024,
        "embed-multilingual-v3.0": 1024,
        "embed-english-light-v3.0": 384,
        "embed-multilingual-light-v3.0": 384,
        "embed-v4.0": 1536,
    }

    def __init__(
        self,
        model: str = "embed-english-v3.0",
        dimensions: int | None = None,
        batch_size: int = 96,
        max_tokens: int = 8192,
        price: float = 0.0,
        revision: str | None = None,
        **service: Any,
    ) -> None:
        super().__init__(model, dimensions, batch_size, max_tokens, price, revision, **service)

    def _body(self, texts: Sequence[str], side: str) -> dict[str, Any]:
        asked = {} if self.dimensions is None else {"output_dimension": self.dimensions}
        return {
            "model": self.model,
            "texts": list(texts),
            "input_type": f"search_{side}",
            "embedding_types": ["float"],
            "truncate": "END",
            **asked,
        }

    def _rows(self, answer: Mapping[str, Any], count: int) -> Sequence[Any]:
        """Cohere's vectors carry no index: they come in the order of the texts."""
        kinds = answer.get("embeddings")
        rows = kinds.get("float") if isinstance(kinds, dict) else None
        if not isinstance(rows, list):
            raise self.service.failure("sent an answer without embeddings of type float. Check model and base_url.")
        return rows

    def _tokens(self, answer: Mapping[str, Any]) -> Any:
        meta = answer.get("meta")
        billed = meta.get("billed_units") if isinstance(meta, dict) else None
        return billed.get("input_tokens") if isinstance(billed, dict) else None
