"""A reranker behind HTTP: POST {base_url}/rerank, as Cohere, Jina, vLLM and many others speak it, or as TEI does.

format "cohere" sends {"model", "query", "documents", "top_n"} and reads results with index and relevance_score;
format "tei" sends {"query", "texts"} and reads a list with index and score. Other options are those of Service.
A search waits for its reranker, so a call is short here, and a server that has failed is not asked again for a while.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from evokey.errors import InvalidSettings
from evokey.http.client import UNKEPT, Provider, Service
from evokey.types import Document, Scores, Spent

COHERE = Provider("rerank endpoint", "https://api.cohere.com/v2", "COHERE_API_KEY")
MOST = {"cohere": 1000, "tei": 32}
"""Documents of one request: what Cohere takes at most, and TEI unless told otherwise."""
LIMITS = {"timeout": 15.0, "retries": 1, "total": 20.0, "rest": 30.0}
"""Of Service, unless the settings say otherwise."""


class Endpoint:
    provider: ClassVar[Provider] = COHERE

    def __init__(
        self,
        model: str = "rerank-v3.5",
        format: Literal["cohere", "tei"] = "cohere",
        batch_size: int | None = None,
        longest: int = 16_000,
        revision: str | None = None,
        **service: Any,
    ) -> None:
        """longest: characters of a document that are sent; revision stands in the identity for the place."""
        if format not in MOST:
            raise InvalidSettings(f"a rerank endpoint has format 'cohere' or 'tei', not {format!r}")
        if longest < 1 or (batch_size is not None and batch_size < 1):
            raise InvalidSettings(
                f"a rerank endpoint needs longest ≥ 1 and batch_size ≥ 1, "
                f"not longest={longest}, batch_size={batch_size}"
            )
        self.service = Service(self.provider, **{**LIMITS, **service})
        if format == "tei" and self.service.at_home:
            raise InvalidSettings("a rerank endpoint of format 'tei' needs base_url, the address of that server")
        self.model, self._format, self.longest = model, format, longest
        self._batch_size = batch_size or MOST[format]
        self.identity = f"endpoint/{model}@{revision or self.service.place}"
        self.spent = Spent()
        self._counting = threading.Lock()

    def __repr__(self) -> str:
        return f"Endpoint({self.identity})"

    def scores(self, query: str, documents: Sequence[Document]) -> Scores:
        texts = [f"{document.title}\n{document.text}".strip()[: self.longest] for document in documents]
        batches = [texts[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]
        made = self.service.together(lambda batch: self._asked(query, batch), batches)
        return np.array([score for batch in made for score in batch], np.float64)

    def _asked(self, query: str, texts: Sequence[str]) -> list[float]:
        begun = time.perf_counter()
        if self._format == "tei":
            answer = self.service.ask("rerank", {"query": query, "texts": texts, "truncate": True})
            entries, name = answer, "score"
        else:
            body = {"model": self.model, "query": query, "documents": texts, "top_n": len(texts)}
            answer = self.service.post("rerank", body)
            entries, name = answer.get("results"), "relevance_score"
        with self._counting:
            self.spent += Spent(1, self._tokens(answer), 0, 0.0, time.perf_counter() - begun)
        return [self._score(entry.get(name)) for entry in self.service.in_order(entries, len(texts))]

    def _score(self, score: Any) -> float:
        if type(score) not in (float, int) or not abs(score) < math.inf:
            raise self.service.failure(f"sent a score that is no finite number: {str(score)[:40]!r}. {UNKEPT}")
        return float(score)

    def _tokens(self, answer: Any) -> int:
        """Tokens, where the answer tells them."""
        usage = answer.get("usage") if isinstance(answer, dict) else None
        return self.service.tokens(usage.get("total_tokens") if isinstance(usage, dict) else None) or 0
