"""WordLlama: static 256-dimensional word embeddings that come inside the package. Dense search with no set-up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evokey.protocols import Cost
from evokey.types import Vectors

# Importing wordllama configures the root logger, which is the application's business: put it back as it was.
_handlers, _level = logging.root.handlers[:], logging.root.level
import wordllama  # noqa: E402

logging.root.handlers[:] = _handlers
logging.root.setLevel(_level)

LONGEST = 4_000
"""Characters of a text that are read: a mean over more words than that says little."""


@cache
def _model() -> Any:
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


class WordLlamaEncoder:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "nothing"

    def __init__(self) -> None:
        self.identity = "wordllama/l2_supercat/256"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 256), np.float32)
        vectors = np.asarray(_model().embed([text[:LONGEST] for text in texts], norm=False), np.float32)
        # A text without a single token has no mean: zeros, not NaN, say so. Blanks alone are tokens, and say nothing.
        vectors = np.nan_to_num(vectors)
        vectors[[row for row, text in enumerate(texts) if not text.strip()]] = 0
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 1e-12, norms, np.inf), np.float32)
