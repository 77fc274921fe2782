"""Attempts to verify, and a reranker that scores as it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evokey.types import Answer, Attempt, Document, Hit, Message, Scores

TEXTS = {
    "paris": "Paris is the capital of France.",
    "lyon": "Lyon lies on the Rhône.",
    "wine": "France exports wine and cheese.",
}


def hits(*ids: str, **texts: str) -> tuple[Hit, ...]:
    known = TEXTS | texts
    named = ids or tuple(texts)
    return tuple(Hit(id, 1 / rank, Document(id, known[id])) for rank, id in enumerate(named, 1))


def attempt(
    query: str = "What is the capital of France?",
    said: str | None = None,
    *expected: str,
    found: tuple[Hit, ...] = hits("paris", "lyon", "wine"),
    cites: Sequence[str] = (),
    relevant: Mapping[str, float] | None = None,
) -> Attempt:
    answer = None if said is None else Answer(query, said, tuple(cites), found, "someone")
    return Attempt(query, found, answer, expected, relevant)


class Reranking:
    """Scores by id; one for every document, unless it is told how many."""

    identity = "told/1"

    def __init__(self, scores: Mapping[str, float] | Exception, count: int | None = None) -> None:
        self._scores, self._count = scores, count

    def scores(self, query: str, documents: Sequence[Document]) -> Scores:
        if isinstance(self._scores, Exception):
            raise self._scores
        return np.array([self._scores.get(document.id, 0.0) for document in documents][: self._count])


class Likely:
    """Tells the log-probabilities it is told to, by whether the prompt holds a text."""

    identity = "likely/1"

    def __init__(self, within: Mapping[str, list[float]], otherwise: list[float] | Exception) -> None:
        self._within, self._otherwise = within, otherwise
        self.asked: list[str] = []

    def logprobs(self, messages: Sequence[Message], answer: str) -> list[float]:
        self.asked.append(messages[-1].text)
        for text, told in self._within.items():
            if text in messages[-1].text:
                return told
        if isinstance(self._otherwise, Exception):
            raise self._otherwise
        return self._otherwise
