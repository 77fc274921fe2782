"""Rewordings: how a taught question may be asked again. Where no other wording is known, one is simulated.

Some of its words are dropped and some of another question are added, all chosen by a hash of the text: the same text,
the same rewording. Where a text cannot be encoded at no cost, its vector is turned towards that of the other question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evokey.types import Vectors

DROPPED, OTHERS_DROPPED = (0.5, 0.4, 0.7), (0.75, 0.75, 0.5)
"""About what share of its own words is dropped, and of those of another question: by the first rewording of a question,
the second and the third. Real rewordings share fewer words with a question than a part of it does."""
TURNS = (0.9, 0.95, 0.85)
"""How similar a turned vector is to the one it was."""


class Rewording(NamedTuple):
    query: str
    text: str
    other: str
    """Another query, towards which a vector may be turned."""
    similarity: float


def reword(queries: Sequence[str], most: int) -> list[Rewording]:
    """Rewordings of these queries: up to three of each, and about so many at most."""
    times = min(len(DROPPED), max(1, most // max(len(queries), 1)))
    return [
        _reword(query, queries[(at + 1 + time) % len(queries)], time)
        for at, query in enumerate(queries)
        for time in range(times)
    ]


def _reword(query: str, other: str, time: int) -> Rewording:
    words = drop_words(query, DROPPED[time], time)
    if other != query:
        words += drop_words(other, OTHERS_DROPPED[time], time)
    return Rewording(query, " ".join(words) or query, other, TURNS[time])


def drop_words(text: str, share: float, time: int) -> list[str]:
    """The words of a text without about this share of them, each time others; at least one is left."""
    words = text.split()
    kept = [word for at, word in enumerate(words) if _hash(text, f"{time} {at}") % 1000 >= 1000 * share]
    return kept or words[_hash(text, str(time)) % max(len(words), 1) :][:1]


def turn(vector: Vectors, other: Vectors, similarity: float) -> Vectors:
    """A unit vector turned towards another until it is only so similar to what it was."""
    own, towards = vector.astype(np.float64), other.astype(np.float64)
    across = towards - (towards @ own) * own
    length = float(np.linalg.norm(across))
    if length < 1e-6:
        return vector
    turned = similarity * own + np.sqrt(1 - similarity**2) * across / length
    return np.asarray(turned, np.float32)


def _hash(text: str, salt: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{salt}|{text}".encode()).digest()[:8])
