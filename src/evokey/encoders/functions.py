"""Two functions as an encoder: the embedding model of a framework, or of a program of one's own.

Such functions have no name that says which vectors they make. So the identity holds a part of the vectors of a fixed
text, the probe: two encoders are the same where their probes agree, up to the noise of a service.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from evokey.errors import InvalidVector
from evokey.protocols import Cost
from evokey.types import Vectors

PROBE = "Which embedding made these vectors? This sentence tells them apart."
SHOWN = 32
"""Components of the probe that the identity holds, for each side."""
NOISE = 0.05
"""Greatest relative distance between two probes of one model: services do not give the same bits each time."""
Embed = Callable[[list[str]], Any]
"""Texts → vectors, one for each."""


class Functions:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "money"

    def __init__(self, documents: Embed, queries: Embed, name: str) -> None:
        """name: for people; two encoders are told apart by their probes."""
        self._documents, self._queries = documents, queries
        sides = [_unit(embed([PROBE])) for embed in (documents, queries)]
        self.dimension = int(sides[0].shape[1])
        shown = np.concatenate([side[0, :SHOWN] for side in sides]).astype("<f2")
        spelled = base64.b64encode(shown.tobytes()).decode()
        self.identity = f"functions/{name}/{self.dimension}/unit/probe={spelled}"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(self._documents, texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(self._queries, texts)

    def _encode(self, embed: Embed, texts: Sequence[str]) -> Vectors:
        """An empty text is not sent, and has no vector."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        said = [row for row, text in enumerate(texts) if text.strip()]
        if said:
            made = _unit(embed([texts[row] for row in said]))
            if made.shape != (len(said), self.dimension):
                raise InvalidVector(
                    f"the embedding gave vectors of the shape {made.shape} for {len(said)} texts; "
                    f"({len(said)}, {self.dimension}) is right: one vector for each text, all of one length"
                )
            vectors[said] = made
        return vectors


def same_vectors(one: str, other: str) -> bool:
    """Whether two identities are of encoders that give the same vectors."""
    probes = [_probe(identity) for identity in (one, other)]
    if any(probe is None for probe in probes):
        return one == other
    (size, first), (other_size, second) = [probe for probe in probes if probe is not None]
    close = first.shape == second.shape and np.linalg.norm(first - second) <= NOISE * np.linalg.norm(first)
    return size == other_size and bool(close)


def _probe(identity: str) -> tuple[str, Vectors] | None:
    """The dimension and the probe that an identity holds."""
    head, mark, spelled = identity.rpartition("/unit/probe=")
    if not mark or not head.startswith("functions/"):
        return None
    return head.rpartition("/")[2], np.frombuffer(base64.b64decode(spelled), "<f2").astype(np.float32)


def _unit(given: Any) -> Vectors:
    vectors = np.asarray(given, np.float64)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise InvalidVector("an embedding gives a list of vectors of finite numbers, one for each text")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
