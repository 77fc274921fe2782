"""Rewordings: how a taught question may be asked again. Where no other wording is known, one is simulated.

Some of its words are replaced by words of other questions, all chosen by a hash of the text: the same texts, the same
rewordings. Where a text cannot be encoded at no cost, its vector is turned towards those of other questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evokey.types import Vectors

REPLACED = (0.6, 0.4, 0.75)
"""About what share of its words is replaced, by the first rewording of a question, the second and the third. Of
questions that people ask in several ways, a fifth to four fifths of the weight of the words is in another wording."""
TURNS = (0.75, 0.85, 0.65)
"""How similar a turned vector is to the one it was."""
OTHERS = 4
"""Questions towards which a vector is turned: of none of them it becomes a rewording."""


class Rewording(NamedTuple):
    query: str
    text: str
    others: tuple[str, ...]
    """Other queries, towards which a vector may be turned."""
    similarity: float


def reword(queries: Sequence[str], most: int) -> list[Rewording]:
    """Rewordings of these queries: up to three of each, and about so many at most."""
    times = min(len(REPLACED), max(1, most // max(len(queries), 1)))
    words = [word for query in queries for word in query.split()]
    return [_reword(at, queries, words, time) for at in range(len(queries)) for time in range(times)]


def _reword(at: int, queries: Sequence[str], words: Sequence[str], time: int) -> Rewording:
    query = queries[at]
    others = {queries[(at + 1 + time + step) % len(queries)] for step in range(OTHERS)} - {query}
    text = " ".join(replace_words(query, words, REPLACED[time], time))
    return Rewording(query, text, tuple(sorted(others)), TURNS[time])


def replace_words(text: str, others: Sequence[str], share: float, time: int) -> list[str]:
    """The words of a text, about this share of them replaced by other words, each time differently; one stays."""
    words = text.split()
    stays = _hash(text, str(time)) % max(len(words), 1)

    def replace_word(at: int, word: str) -> str:
        if at == stays or _hash(text, f"{time} {at}") % 1000 >= 1000 * share:
            return word
        return others[_hash(text, f"{time} {at} other") % len(others)]

    return [replace_word(at, word) for at, word in enumerate(words)]


def turn(vector: Vectors, others: Sequence[Vectors], similarity: float) -> Vectors:
    """A unit vector turned towards the middle of others until it is only so similar to what it was."""
    own = vector.astype(np.float64)
    towards = np.sum([other.astype(np.float64) for other in others], axis=0) if others else own
    across = towards - (towards @ own) * own
    length = float(np.linalg.norm(across))
    if length < 1e-6:
        return vector
    turned = similarity * own + np.sqrt(1 - similarity**2) * across / length
    return np.asarray(turned, np.float32)


def _hash(text: str, salt: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{salt}|{text}".encode()).digest()[:8])
