"""Any sentence-transformers model as an encoder: on the GPU where there is one, else on the CPU.

Making the encoder costs nothing: torch is imported, and the model loaded, when the first text comes. Texts are put
into batches by their length, so that little is padded, and come back in their own order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evokey.encoders.hub import folder_of, identity_of, quiet
from evokey.encoders.presets import preset, query_instruction
from evokey.errors import InvalidSettings
from evokey.protocols import Cost
from evokey.registry import needs
from evokey.types import Vectors

needs("sentence_transformers")


class SentenceTransformers:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "time"

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        max_length: int | None = None,
        threads: int | None = None,
    ) -> None:
        positive(batch_size=batch_size, max_length=max_length, threads=threads)
        known, folder = preset(model), Path(model).expanduser()
        if known is None and query_prefix is None and folder.is_dir():
            query_prefix = query_instruction(folder)
        self.model, self.revision, self.device, self.batch_size = model, revision, device, batch_size
        self.max_length, self.threads = max_length, threads
        self.query_prefix = known.query_prefix if known and query_prefix is None else query_prefix
        self.document_prefix = known.document_prefix if known and document_prefix is None else document_prefix
        own = {"query_prefix": query_prefix, "document_prefix": document_prefix, "max_length": max_length}
        self._said = "".join(f"/{name}={value!r}" for name, value in own.items() if value is not None)
        self._one_at_a_time = threading.RLock()

    @cached_property
    def identity(self) -> str:
        dimension = self.dimension
        return f"{identity_of(self.model, self.revision)}/{dimension}/{self._form}{self._said}"

    _form = "unit"

    @property
    def dimension(self) -> int:
        known = preset(self.model)
        return known.dimension if known else int(self._model.get_embedding_dimension())

    def with_weights(self, folder: Path, revision: str) -> SentenceTransformers:
        """The same encoder with weights that were trained from its own."""
        options = (self.device, self.batch_size, self.query_prefix, self.document_prefix, self.max_length, self.threads)
        made = SentenceTransformers(str(folder), None, *options)
        made.identity = f"{self.identity}@{revision}"
        return made

    @property
    def folder(self) -> Path:
        """Where its weights are."""
        return folder_of(self.model, self.revision)

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, "document", self.document_prefix)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, "query", self.query_prefix)

    def _encode(self, texts: Sequence[str], side: str, prefix: str | None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        said = spoken(texts)
        if said:
            vectors[said] = self._run([texts[row] for row in said], side, prefix, normalize_embeddings=True)
        return vectors

    def _run(self, texts: Sequence[str], side: str, prefix: str | None, **options: Any) -> Any:
        with self._one_at_a_time, torch_threads(self.threads):
            encode = self._model.encode_query if side == "query" else self._model.encode_document
            return encode(list(texts), prompt=prefix, batch_size=self.batch_size, show_progress_bar=False, **options)

    @cached_property
    def _model(self) -> Any:
        with self._one_at_a_time:
            from sentence_transformers import SentenceTransformer

            model = load(SentenceTransformer, self.model, self.revision, self.device)
            if self.max_length is not None:
                self._check_length(model[0])
                model.max_seq_length = self.max_length
            return model

    def _check_length(self, transformer: Any) -> None:
        limit = getattr(transformer.auto_model.config, "max_position_embeddings", None)
        if limit is not None and self.max_length is not None and self.max_length > limit:
            raise InvalidSettings(f"max_length is {self.max_length}; {self.model} reads at most {limit} tokens")


class TokenVectors(SentenceTransformers):
    """Late interaction with any model: the vectors of a text's tokens, each of unit norm, in place of their mean."""

    kind: ClassVar[str] = "multi"
    _form = "tokens"

    def documents(self, texts: Sequence[str]) -> list[Vectors]:  # type: ignore[override]
        return self._tokens(texts, "document", self.document_prefix)

    def queries(self, texts: Sequence[str]) -> list[Vectors]:  # type: ignore[override]
        return self._tokens(texts, "query", self.query_prefix)

    def _tokens(self, texts: Sequence[str], side: str, prefix: str | None) -> list[Vectors]:
        found = [np.zeros((0, self.dimension), np.float32) for _ in texts]
        said = spoken(texts)
        for row, told in zip(
            said, self._run([texts[row] for row in said], side, prefix, output_value=None), strict=True
        ):
            ids = told["input_ids"].cpu().numpy()
            kept = told["attention_mask"].cpu().numpy().astype(bool) & ~np.isin(ids, self._special)
            found[row] = unit(told["token_embeddings"].float().cpu().numpy()[kept])
        return found

    @cached_property
    def _special(self) -> list[int]:
        return [int(id) for id in self._model.tokenizer.all_special_ids]


def load(kind: Any, model: str, revision: str | None, device: str | None) -> Any:
    """A model of a class of sentence-transformers, from wherever it lies."""
    folder, place = folder_of(model, revision), device_of(device)
    with quiet():
        try:
            return kind(str(folder), device=place, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InvalidSettings(
                f"{folder} holds no model that sentence-transformers can load ({reason}). "
                f"Give the name of a model on the hub, or a folder as the hub lays it out."
            ) from error


def device_of(device: str | None) -> str:
    """The device that was asked for, if it is there; unasked, a GPU before the CPU."""
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidSettings(f"torch cannot use device {device!r} here; leave it out, or use 'cpu'") from error
    return device


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """So many threads for torch, and afterwards as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def spoken(texts: Sequence[str]) -> list[int]:
    """The places of texts that say something; the others have no vector."""
    return [place for place, text in enumerate(texts) if text.strip()]


def unit(vectors: Any) -> Vectors:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 1e-12, norms, np.inf), np.float32)


def positive(**options: int | None) -> None:
    for name, value in options.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidSettings(f"{name} must be a whole number above 0, not {value!r}")
