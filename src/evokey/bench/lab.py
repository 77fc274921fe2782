"""One data set under one encoder: its vectors, and memories of its documents."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from evokey import memory as memory_
from evokey import registry
from evokey import settings as settings_
from evokey.bench import naming
from evokey.bench.data import Dataset
from evokey.bench.protocols import Question
from evokey.errors import InvalidInput
from evokey.evolution.policy import Policy
from evokey.memory import Memory
from evokey.registry import Named
from evokey.types import Vectors

HYBRID = "hybrid"
ADDED = 2_000


class Lab:
    """One data set under one encoder. Its memory is made once, in `folder`, and copied for every run.

    Vectors that lie beside the set are handed in (encoder "given") instead of being made again, as long as only the
    set's own queries are asked.
    """

    def __init__(self, data: Dataset, encoder: str, folder: Path, *, encode: bool = False) -> None:
        self.data, self.encoder = data, encoder
        self.parts = [] if encoder == HYBRID else encoder.split("+")
        if not data.documents:
            raise InvalidInput(f"{data.name} has no corpus: there is nothing to search")
        beside = [part for part in self.parts if part in data.embeddings and not encode]
        if len(beside) > 1:
            raise InvalidInput(f"{encoder}: only one part can take its vectors from files; leave one of {beside} out")
        self._beside = beside[0] if beside else None
        self._folder = folder / f"{data.name}.{encoder.replace('/', '_')}.{'given' if beside else 'encoded'}"

    @property
    def given(self) -> bool:
        """Whether vectors come from files."""
        return self._beside is not None

    @property
    def dense(self) -> bool:
        """Whether there is one dense vector for each document, and nothing else."""
        return len(self.parts) == 1 and naming.encoder_kind(self.parts[0]) == "dense"

    @cached_property
    def vectors(self) -> tuple[Vectors, Mapping[str, Vectors]]:
        """Of the documents, in their order; and of the set's queries, by id."""
        assert self._beside is not None
        corpus, queries = (np.load(path).astype(np.float32) for path in self.data.embeddings[self._beside])
        for found, wanted, what in (
            (corpus, self.data.documents, "documents"),
            (queries, self.data.queries, "queries"),
        ):
            if len(found) != len(wanted):
                raise InvalidInput(
                    f"{self.data.name}: embeddings/{self._beside} holds {len(found)} vectors for {len(wanted)} {what}; "
                    f"write them again, one for each line, or remove the folder to have them encoded"
                )
        return _units(corpus), dict(zip(self.data.queries, _units(queries), strict=True))

    def vector(self, question: Question) -> Vectors | None:
        return self.vectors[1][question.id] if self.given else None

    @cached_property
    def keys(self) -> Vectors:
        """Dense vectors of the documents."""
        if self.given:
            return self.vectors[0]
        file = self._folder.with_suffix(".keys.npy")
        with FileLock(f"{file}.lock"):
            if not file.exists():
                np.save(file, self._made.documents([f"{one.title} {one.text}".strip() for one in self.data.documents]))
        kept: Vectors = np.load(file)
        return kept

    def question_vectors(self, questions: Sequence[Question]) -> Vectors:
        """Dense vectors of questions."""
        if self.given:
            return np.stack([self.vectors[1][one.id] for one in questions])
        made: Vectors = self._made.queries([one.text for one in questions])
        return made

    @cached_property
    def _made(self) -> Any:
        return registry.build("encoder", naming.parse(self.parts[0]))

    @contextmanager
    def memory(self, policy: Named | Policy = "guarded", **changed: Any) -> Iterator[Memory]:
        """An untaught memory of the documents, deleted afterwards. `changed`: its settings."""
        self._prepare()
        with tempfile.TemporaryDirectory(dir=self._folder.parent) as place:
            folder = Path(place) / "memory"
            shutil.copytree(self._folder, folder)
            settings = settings_.change(settings_.read(folder / settings_.FILE), policy=policy, **changed)
            with Memory(folder, settings) as memory:
                yield memory

    def _prepare(self) -> None:
        with FileLock(f"{self._folder}.lock"):
            if self._folder.exists():
                return
            making = self._folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            encoders: list[Named] = ["given" if part == self._beside else naming.parse(part) for part in self.parts]
            with memory_.open(making, encoder=encoders or None) as memory:
                for start in range(0, len(self.data.documents), ADDED):
                    batch = self.data.documents[start : start + ADDED]
                    memory.add(batch, self.vectors[0][start : start + ADDED] if self.given else None)
            making.rename(self._folder)


def _units(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
