"""WordLlama: static 256-dimensional word embeddings that come inside the package. Dense search with no set-up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from evokey.protocols import Cost
from evokey.types import Numbers, Vectors

# Importing wordllama configures the root logger, which is the application's business: put it back as it was.
_handlers, _level = logging.root.handlers[:], logging.root.level
import wordllama  # noqa: E402

logging.root.handlers[:] = _handlers
logging.root.setLevel(_level)

LONGEST = 4_000
"""Characters of a text that are read: a mean over more words than that says little."""


_loading = threading.Lock()


def _model() -> Any:
    with _loading:  # of several threads that search first, one loads it
        return _load()


@cache
def _load() -> Any:
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def token_table() -> Vectors:
    """The vector of each token, as it comes with the package."""
    return np.asarray(_model().embedding, np.float32)


def count_tokens(texts: Sequence[str]) -> sparse.csr_array:
    """How often each text has each token; blanks alone have none."""
    said = [text[:LONGEST] if text.strip() else "" for text in texts]
    found = _model().tokenizer.encode_batch(said, is_pretokenized=False, add_special_tokens=False)
    ids = [np.asarray(one.ids, np.int64)[np.asarray(one.attention_mask, bool)] for one in found]
    size, starts = len(token_table()), np.cumsum([0, *map(len, ids)])
    columns = np.clip(np.concatenate([np.zeros(0, np.int64), *ids]), 0, size - 1)
    counts = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts), (len(texts), size))
    counts.sum_duplicates()
    return counts


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


class TunedWordLlama(WordLlamaEncoder):
    """The same with other vectors for some tokens. What a token weighs is the length of its vector."""

    def __init__(self, tokens: Numbers, vectors: Vectors, revision: str) -> None:
        super().__init__()
        self.identity = f"{self.identity}@{revision}"
        self._table = token_table().copy()
        self._table[tokens] = vectors

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._table.shape[1]), np.float32)
        sums = np.asarray(count_tokens(texts) @ self._table, np.float32)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.where(norms > 1e-12, norms, np.inf), np.float32)
