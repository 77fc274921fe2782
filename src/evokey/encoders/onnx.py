"""A sentence encoder that runs without torch: an ONNX file, its tokenizer, and a note of what belongs to them.

`evokey export-onnx` makes the folder. In int8 a text's vector depends a little on the texts it is encoded with, because
the scale of a layer's numbers is taken from the whole batch.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from evokey.encoders.presets import PRESETS
from evokey.errors import InvalidSettings
from evokey.protocols import Cost
from evokey.registry import needs
from evokey.types import Vectors

needs("onnxruntime", "tokenizers")

PRECISIONS = ("fp32", "int8")
MODEL, TOKENIZER, NOTE = "model.onnx", "tokenizer.json", "evokey.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What the encoder must know of a model file, written beside it."""

    identity: str
    """name@revision"""
    dimension: int
    precision: str
    pooling: str
    query_prefix: str
    document_prefix: str
    max_length: int
    pad: int
    """Id of the token that fills up a batch."""
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> Self:
        try:
            told = json.loads((folder / NOTE).read_text("utf-8"))
            return cls(**{**told, "inputs": tuple(told["inputs"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InvalidSettings(
                f"{folder} is no folder of an exported model ({NOTE}: {error}). "
                f"Make one with: evokey export-onnx MODEL {folder}"
            ) from error


def place(model: str, precision: str) -> Path:
    """Where an exported preset is kept if nobody says otherwise."""
    return Path.home() / ".cache" / "evokey" / "onnx" / f"{model}-{precision}"


class Onnx:
    kind: ClassVar[str] = "dense"
    cost: ClassVar[Cost] = "time"

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        precision: str | None = None,
        batch_size: int = 32,
        threads: int | None = None,
    ) -> None:
        """A folder has its precision; of a preset, int8 is taken unless fp32 is asked for."""
        if precision not in (None, *PRECISIONS):
            raise InvalidSettings(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
        for name, value in {"batch_size": batch_size, "threads": threads}.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidSettings(f"{name} must be a whole number above 0, not {value!r}")
        self.folder = self._folder(model, precision)
        self.note = Note.of(self.folder)
        if precision not in (None, self.note.precision):
            raise InvalidSettings(
                f"{self.folder} holds a model in {self.note.precision}, not in {precision}; leave precision out, or "
                f"make the other with: evokey export-onnx MODEL FOLDER --precision {precision}"
            )
        self.batch_size, self.threads = batch_size, threads
        form = "unit" if self.note.precision == "fp32" else f"unit/{self.note.precision}"
        self.identity = f"{self.note.identity}/{self.note.dimension}/{form}"
        self._loading = threading.RLock()

    @staticmethod
    def _folder(model: str, precision: str | None) -> Path:
        if model not in PRESETS:
            return Path(model).expanduser()
        folder = place(model, precision or "int8")
        if not folder.is_dir():
            raise InvalidSettings(
                f"{model} has not been exported: there is no {folder}. "
                f"Make it with: evokey export-onnx {model} --precision {precision or 'int8'}"
            )
        return folder

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, self.note.document_prefix)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, self.note.query_prefix)

    def _encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        vectors = np.zeros((len(texts), self.note.dimension), np.float32)
        said = [row for row, text in enumerate(texts) if text.strip()]
        tokens = [one.ids for one in self._tokenizer.encode_batch([prefix + texts[row] for row in said])]
        order = sorted(range(len(said)), key=lambda place: -len(tokens[place]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            vectors[[said[place] for place in batch]] = self._run([tokens[place] for place in batch])
        return vectors

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, tokens))
        ids = np.full((len(tokens), longest), self.note.pad, np.int64)
        mask = np.zeros((len(tokens), longest), np.int64)
        for row, one in enumerate(tokens):
            ids[row, : len(one)], mask[row, : len(one)] = one, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: given[name] for name in self.note.inputs})[0]
        pooled = (
            hidden[:, 0] if self.note.pooling == "cls" else np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        )
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        return np.asarray(pooled / np.where(norms > 1e-12, norms, np.inf), np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        with self._loading:
            tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.note.max_length)
            return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        with self._loading:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            if self.threads is not None:
                options.intra_op_num_threads = self.threads
            return onnxruntime.InferenceSession(str(self.folder / MODEL), options, providers=["CPUExecutionProvider"])
