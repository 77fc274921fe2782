"""SPLADE: a masked language model weighs the words of its whole vocabulary, those a text does not have included."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from evokey.encoders.hub import identity_of
from evokey.encoders.sentence_transformers import load, positive, spoken, torch_threads
from evokey.protocols import Bag, Cost
from evokey.registry import needs
from evokey.types import Scores

needs("sentence_transformers")


class Splade:
    kind: ClassVar[str] = "sparse"
    cost: ClassVar[Cost] = "time"

    def __init__(
        self,
        model: str = "naver/splade-cocondenser-ensembledistil",
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 16,
        threads: int | None = None,
    ) -> None:
        positive(batch_size=batch_size, threads=threads)
        self.model, self.revision, self.device = model, revision, device
        self.batch_size, self.threads = batch_size, threads
        self.identity = f"{identity_of(model, revision)}/weights"
        self._one_at_a_time = threading.RLock()

    def documents(self, texts: Sequence[str]) -> list[Bag]:
        return self._bags(texts, "document")

    def queries(self, texts: Sequence[str]) -> list[Bag]:
        return self._bags(texts, "query")

    def _bags(self, texts: Sequence[str], side: str) -> list[Bag]:
        bags: list[Bag] = [{} for _ in texts]
        said = spoken(texts)
        if not said:
            return bags
        with self._one_at_a_time, torch_threads(self.threads):
            encode = self._model.encode_query if side == "query" else self._model.encode_document
            rows = encode(
                [texts[row] for row in said],
                batch_size=self.batch_size,
                show_progress_bar=False,
                convert_to_tensor=False,
                convert_to_sparse_tensor=False,
                save_to_cpu=True,
            )
        for row, weights in zip(said, rows, strict=True):
            bags[row] = {self._words[id]: float(weights[id]) for id in weights.nonzero().ravel().tolist()}
        return bags

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        return None

    def idf(self, documents: int, frequency: int) -> float:
        return 1.0

    @cached_property
    def _words(self) -> list[str]:
        """The word of every place in a vector; places beyond the vocabulary have a number for a name."""
        tokenizer, size = self._model.tokenizer, self._model.get_embedding_dimension()
        known = min(len(tokenizer), size)
        return [*tokenizer.convert_ids_to_tokens(range(known)), *(f"#{id}" for id in range(known, size))]

    @cached_property
    def _model(self) -> Any:
        with self._one_at_a_time:
            from sentence_transformers import SparseEncoder

            return load(SparseEncoder, self.model, self.revision, self.device)
