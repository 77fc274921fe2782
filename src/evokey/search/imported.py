"""Keys that come with the documents, from an index that was made elsewhere by the same encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evokey.scoring.block import Keys
from evokey.scoring.dense import DenseBlock
from evokey.types import Numbers, Vectors

SAMPLE = 8
"""Documents of which it is looked whether the encoder makes their vectors."""
SAME = 0.99
"""Least similarity of two vectors that one encoder made of one text, on two machines or in two precisions."""


def find_mismatch(
    encode: Callable[[Sequence[str]], Vectors], texts: Sequence[str], vectors: Vectors
) -> tuple[int, float] | None:
    """Of a sample, the first text of which the encoder makes another vector, and the similarity of both."""
    sample = [int(row) for row in np.unique(np.linspace(0, len(texts) - 1, SAMPLE).astype(int)) if texts[int(row)]]
    if not sample:
        return None
    made = encode([texts[row] for row in sample])
    if made.shape[1] != vectors.shape[1]:
        return sample[0], 0.0
    similarities = np.vecdot(made, vectors[sample])
    worst = int(np.argmin(similarities))
    return (sample[worst], float(similarities[worst])) if similarities[worst] < SAME else None


def merge(covered: Numbers, encoded: Keys, handed: Keys) -> Keys:
    """All keys of some documents, in the order of their numbers."""
    if not len(encoded.owners):
        return Keys(covered, handed.owners, handed.block)
    owners = np.concatenate([encoded.owners, handed.owners])
    order = np.argsort(owners, kind="stable")
    vectors = np.concatenate([encoded.block.vectors, handed.block.vectors])
    return Keys(covered, owners[order], DenseBlock(vectors[order]))
