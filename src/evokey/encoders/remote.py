"""What the encoders behind HTTP have in common: batches, checks, costs. One file for each provider says the rest.

All of them take: model, dimensions, batch_size (texts in a request), max_tokens (a longer text is cut, at twice as
many bytes of UTF-8), price (US dollars for a million tokens), revision (stands in the identity for the place where the
vectors come from), and those of Service: base_url, key_env, timeout, retries, patience, total, rest, largest,
requests_per_minute, parallel.
"""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evokey.errors import InvalidSettings
from evokey.http.client import LARGEST_ANSWER, UNKEPT, Provider, Service
from evokey.protocols import Cost
from evokey.types import Spent, Vectors

Numbers = NDArray[np.float64]
BYTES_A_TOKEN = 2
"""Fewer than texts have (English about four), so that neither a text nor a request passes a limit of tokens."""
BYTES_A_VECTOR = 1 << 17
"""More than a vector takes in an answer: 4096 numbers with all their digits."""
REST = 30.0
"""Seconds for which a server that failed is not asked: every search needs it, and none should wait in vain."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request of a provider may hold."""

    texts: int
    tokens: int


class Remote:
    """Texts → unit vectors, by asking a provider. An empty text is not sent, and has a row of zeros."""

    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "money"
    provider: ClassVar[Provider]
    path: ClassVar[str]
    limits: ClassVar[Limits]
    known: ClassVar[Mapping[str, int]]
    """Dimensions of the provider's own models."""

    def __init__(
        self, model: str, dimensions: int | None, batch_size: int, max_tokens: int, price: float, revision: str | None,
        **service: Any,
    ) -> None:  # fmt: skip
        name = self.provider.name
        if not (1 <= batch_size <= self.limits.texts and max_tokens >= 1 and price >= 0):
            raise InvalidSettings(
                f"{name} needs 1 ≤ batch_size ≤ {self.limits.texts}, max_tokens ≥ 1 and price ≥ 0, not "
                f"batch_size={batch_size}, max_tokens={max_tokens}, price={price}"
            )
        if dimensions is not None and dimensions < 1:
            raise InvalidSettings(f"{name} needs dimensions ≥ 1, not {dimensions}")
        self.model, self.dimensions = model, dimensions
        limits = {"rest": REST, "largest": LARGEST_ANSWER + batch_size * BYTES_A_VECTOR}
        self.service = Service(self.provider, **{**limits, **service})
        self._batch_size, self._longest, self._price = batch_size, max_tokens * BYTES_A_TOKEN, price
        # A server elsewhere may give a model of its own a provider's name: only at home is its dimension known.
        self._dimension = dimensions or (self.known.get(model) if self.service.at_home else None)
        self.identity = f"{name}/{model}@{revision or self.service.place}/{self._dimension or '?'}/unit"
        self.spent = Spent()
        self._counting = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity})"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, "document")

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, "query")

    def _body(self, texts: Sequence[str], side: str) -> dict[str, Any]:
        raise NotImplementedError

    def _rows(self, answer: Mapping[str, Any], count: int) -> Sequence[Any]:
        """One vector for each text, in their order: numbers, or base64 of little-endian float32."""
        raise NotImplementedError

    def _tokens(self, answer: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _encode(self, texts: Sequence[str], side: str) -> Vectors:
        made = list(self.stream(texts, side))
        vectors = np.zeros((len(texts), self._dimension or 0), np.float32)
        for places, rows in made:
            vectors[places] = rows
        return vectors

    def stream(self, texts: Sequence[str], side: str) -> Iterator[tuple[list[int], Vectors]]:
        """The vectors of some texts after those of others, as the answers come: places among the texts, and rows. What
        was answered before or beside a failure has been given when the failure is raised."""
        said = {number: _cut(text, self._longest) for number, text in enumerate(texts) if text.strip()}
        batches = list(self._batches(said))
        asked = lambda batch: self._request([said[number] for number in batch], side)  # noqa: E731
        for place, rows in self.service.as_completed(asked, batches):
            yield batches[place], rows
        if texts and self._dimension is None:
            self._request(["dimension"], side)
        empty = [number for number in range(len(texts)) if number not in said]
        if empty:
            yield empty, np.zeros((len(empty), self._dimension or 0), np.float32)

    def _batches(self, texts: Mapping[int, str]) -> Iterator[list[int]]:
        batch: list[int] = []
        tokens = 0
        for number, text in texts.items():
            cost = len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN + 1
            if batch and (len(batch) == self._batch_size or tokens + cost > self.limits.tokens):
                yield batch
                batch, tokens = [], 0
            batch.append(number)
            tokens += cost
        if batch:
            yield batch

    def _request(self, texts: Sequence[str], side: str) -> Vectors:
        begun = time.perf_counter()
        answer = self.service.post(self.path, self._body(texts, side))
        self._count(answer, time.perf_counter() - begun)
        return self._check(self._rows(answer, len(texts)), len(texts))

    def _count(self, answer: Mapping[str, Any], seconds: float) -> None:
        tokens = self.service.tokens(self._tokens(answer)) or 0
        with self._counting:
            self.spent += Spent(1, tokens, 0, tokens * self._price / 1e6, seconds)

    def _check(self, rows: Sequence[Any], count: int) -> Vectors:
        """The rows as unit vectors, or an error: nothing is kept of an answer that is wrong in one place."""
        if len(rows) != count:
            raise self.service.failure(f"answered with {len(rows)} vectors for {count} texts. {UNKEPT}")
        try:
            vectors = np.stack([_numbers(row) for row in rows])
        except (ValueError, TypeError, OverflowError, binascii.Error):
            raise self.service.failure(
                f"sent vectors that are no lists of numbers, all of one length. {UNKEPT}"
            ) from None
        self._check_dimension(vectors.shape[1])
        if not np.isfinite(vectors).all():
            raise self.service.failure(f"sent a vector with numbers that are not finite. {UNKEPT}")
        return np.asarray(_unit(vectors), np.float32)

    def expect(self, dimension: int) -> None:
        """Of the vectors that a memory has: the first answer of a server may be the one that is wrong."""
        with self._counting:
            self._dimension = dimension

    def _check_dimension(self, dimension: int) -> None:
        with self._counting:
            self._dimension = self._dimension or dimension
        if dimension != self._dimension:
            raise self.service.failure(
                f"sent vectors of {dimension} dimensions where {self.model} has {self._dimension}. "
                f"Check model and dimensions."
            )


def _numbers(row: Any) -> Numbers:
    if isinstance(row, str) and row:
        return np.frombuffer(base64.b64decode(row, validate=True), "<f4").astype(np.float64)
    if not isinstance(row, list) or not row or not all(type(number) in (float, int) for number in row):
        raise TypeError("no list of numbers")
    return np.array(row, np.float64)


def _unit(vectors: Numbers) -> Numbers:
    """By the largest number first, as the square of a number may be beyond all numbers; then by the norm."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(norms > 0, norms, 1), np.float64)


def _cut(text: str, longest: int) -> str:
    """The beginning of a text, in bytes of UTF-8, never inside a character."""
    if len(text) * 4 <= longest:
        return text
    return text.encode("utf-8", "replace")[:longest].decode("utf-8", "ignore")
