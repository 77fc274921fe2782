"""The documents with the best scores, by plain numpy: for peers that are no memory."""

from __future__ import annotations

import numpy as np

from evokey.types import Scores, Vectors


def best(scores: Scores | Vectors, depth: int) -> list[int]:
    """Places of the best scores; of equals the first."""
    size = min(depth, len(scores))
    top = np.argpartition(-scores, size - 1)[:size]
    found: list[int] = top[np.lexsort((top, -scores[top]))].tolist()
    return found
