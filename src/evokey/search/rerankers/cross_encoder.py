"""A cross-encoder reads the query and a document as one text and scores the pair."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from evokey.encoders.hub import identity_of
from evokey.encoders.sentence_transformers import load, positive, torch_threads
from evokey.errors import InvalidSettings
from evokey.registry import needs
from evokey.types import Document, Scores

needs("sentence_transformers")


class CrossEncoder:
    def __init__(
        self,
        model: str = "cross-encoder/ms-marco-MiniLM-L6-v2",
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        threads: int | None = None,
    ) -> None:
        positive(batch_size=batch_size, threads=threads)
        self.model, self.revision, self.device = model, revision, device
        self.batch_size, self.threads = batch_size, threads
        self.identity = f"{identity_of(model, revision)}/cross-encoder"
        self._one_at_a_time = threading.RLock()

    def scores(self, query: str, documents: Sequence[Document]) -> Scores:
        if not documents:
            return np.zeros(0, np.float64)
        pairs = [(query, f"{document.title} {document.text}".strip()) for document in documents]
        with self._one_at_a_time, torch_threads(self.threads):
            scores = self._model.predict(pairs, batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(scores, np.float64).reshape(len(documents))

    @cached_property
    def _model(self) -> Any:
        with self._one_at_a_time:
            from sentence_transformers import CrossEncoder as Pairs

            model = load(Pairs, self.model, self.revision, self.device)
            if model.num_labels != 1:
                raise InvalidSettings(
                    f"{self.model} gives {model.num_labels} scores for a pair; a reranker must give one"
                )
            return model
