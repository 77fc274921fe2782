"""BGE-M3 in its three forms: one vector, weighted words, or a vector for every token. One set of weights serves all.

A folder is laid out as on the hub: an XLM-RoBERTa model, and beside it sparse_linear.pt and colbert_linear.pt, the two
layers that make weights and token vectors of its last hidden state.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evokey.encoders.hub import folder_of, identity_of, quiet
from evokey.encoders.sentence_transformers import device_of, positive, spoken, torch_threads, unit
from evokey.errors import InvalidSettings
from evokey.protocols import Bag, Cost
from evokey.registry import needs
from evokey.types import Scores, Vectors

needs("torch", "transformers")

HUB = "BAAI/bge-m3"
SPARSE, COLBERT = "sparse_linear.pt", "colbert_linear.pt"


@dataclass(frozen=True, slots=True)
class Weights:
    folder: Path
    tokenizer: Any
    model: Any
    longest: int
    """Tokens of a text that are read."""
    one_at_a_time: Any = field(default_factory=threading.RLock)

    def layer(self, name: str) -> Any:
        """A linear layer that lies beside the model."""
        import torch

        try:
            state = torch.load(self.folder / name, map_location=self.model.device, weights_only=True)
        except FileNotFoundError:
            raise InvalidSettings(
                f"{self.folder} has no {name}; this form of BGE-M3 needs all files of {HUB} on the hub"
            ) from None
        layer = torch.nn.Linear(*reversed(state["weight"].shape), device=self.model.device)
        layer.load_state_dict({key: value.float() for key, value in state.items()})
        return layer.eval()


@cache
def _weights(model: str, revision: str | None, device: str | None) -> Weights:
    from transformers import AutoModel, AutoTokenizer

    folder, place = folder_of(model, revision), device_of(device)
    with quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            found = AutoModel.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InvalidSettings(f"{folder} holds no model that transformers can load ({reason})") from error
    # XLM-RoBERTa counts positions from two on.
    longest = min(int(tokenizer.model_max_length), int(found.config.max_position_embeddings) - 2)
    return Weights(folder, tokenizer, found.float().eval().to(place), longest)


class BgeM3:
    """One unit vector: that of the first token."""

    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "time"
    _form = "unit"

    def __init__(
        self,
        model: str = HUB,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 16,
        max_length: int | None = None,
        threads: int | None = None,
    ) -> None:
        positive(batch_size=batch_size, max_length=max_length, threads=threads)
        self.model, self.revision, self.device = model, revision, device
        self.batch_size, self.max_length, self.threads = batch_size, max_length, threads

    @cached_property
    def identity(self) -> str:
        cut = "" if self.max_length is None else f"/max_length={self.max_length}"
        dimension = self.dimension
        return f"{identity_of(self.model, self.revision)}/{dimension}/{self._form}{cut}"

    @property
    def dimension(self) -> int:
        return 1024 if self.model in (HUB, "bge-m3") else int(self._load.model.config.hidden_size)

    @property
    def _load(self) -> Weights:
        return _weights(self.model, self.revision, self.device)

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, _, hidden in self._hidden(texts):
            vectors[row] = unit(hidden[0].cpu().numpy())
        return vectors

    def _hidden(self, texts: Sequence[str]) -> Iterator[tuple[int, list[int], Any]]:
        """Place, tokens and last hidden state of every text that says something, the longest first."""
        import torch

        said = spoken(texts)
        if not said:
            return
        weights = self._load
        with weights.one_at_a_time, torch_threads(self.threads), torch.inference_mode():
            longest = min(self.max_length or weights.longest, weights.longest)
            tokens = weights.tokenizer([texts[row] for row in said], truncation=True, max_length=longest)["input_ids"]
            order = sorted(range(len(said)), key=lambda place: -len(tokens[place]))
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                given = weights.tokenizer.pad({"input_ids": [tokens[place] for place in batch]}, return_tensors="pt")
                hidden = weights.model(**given.to(weights.model.device)).last_hidden_state
                for place, states in zip(batch, hidden, strict=True):
                    yield said[place], tokens[place], states[: len(tokens[place])]


class BgeM3Sparse(BgeM3):
    """Learned weights of the words a text has: of a token that comes twice, the larger."""

    kind: ClassVar[str] = "sparse"
    _form = "weights"

    def documents(self, texts: Sequence[str]) -> list[Bag]:  # type: ignore[override]
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> list[Bag]:  # type: ignore[override]
        bags: list[dict[str, float]] = [{} for _ in texts]
        for row, tokens, hidden in self._hidden(texts):
            weights = self._layer(hidden).relu().squeeze(-1).tolist()
            words = self._load.tokenizer.convert_ids_to_tokens(tokens)
            for id, word, weight in zip(tokens, words, weights, strict=True):
                if weight > 0 and id not in self._special:
                    bags[row][word] = max(weight, bags[row].get(word, 0.0))
        return list(bags)

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        return None

    def idf(self, documents: int, frequency: int) -> float:
        return 1.0

    @cached_property
    def _layer(self) -> Any:
        return self._load.layer(SPARSE)

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self._load.tokenizer.all_special_ids)


class BgeM3Multi(BgeM3):
    """A unit vector for every token but the first."""

    kind: ClassVar[str] = "multi"
    _form = "tokens"

    def documents(self, texts: Sequence[str]) -> list[Vectors]:  # type: ignore[override]
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> list[Vectors]:  # type: ignore[override]
        found = [np.zeros((0, self.dimension), np.float32) for _ in texts]
        for row, _, hidden in self._hidden(texts):
            found[row] = unit(self._layer(hidden[1:]).cpu().numpy())
        return found

    @cached_property
    def _layer(self) -> Any:
        return self._load.layer(COLBERT)
