"""Systems side by side: what is taught the same lessons and asked the same questions.

| name                | is                                                                              |
|---------------------|---------------------------------------------------------------------------------|
| none                | the untaught index                                                              |
| guarded, paper      | the policies                                                                    |
| nudge-n, nudge-m    | NUDGE (nudge-ft): dense vectors moved once, the step chosen on a fifth of the lessons |
| bm25s               | BM25 by another hand, untaught                                                  |
| expansion[:WHO]     | the untaught index, asked with recorded expansions: paid for with every query    |
| no-rows, no-guard … | the guarded policy without one of its parts                                     |
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock

from evokey import memory as memory_
from evokey import registry
from evokey import settings as settings_
from evokey.bench.ablations import ABLATIONS, NEEDS_UNITS
from evokey.bench.data import Dataset
from evokey.bench.protocols import Question
from evokey.errors import ExpansionFailed, InvalidInput
from evokey.evolution.policy import Policy
from evokey.expanders.recorded import Recorded
from evokey.memory import Memory
from evokey.registry import Named
from evokey.types import Expansion, Vectors

HYBRID = "hybrid"
POLICIES = ("guarded", "paper")
PEERS = ("nudge-n", "nudge-m", "bm25s")
EXPANSION = "expansion"
NAMES = ("none", *POLICIES, *PEERS, EXPANSION, *ABLATIONS)
ADDED = 2_000
ACTOR = "bench"


class System(Protocol):
    def teach(self, questions: Sequence[Question]) -> None: ...

    def evolve(self) -> Mapping[str, Any]:
        """Learn from all that was taught so far; returns what there is to say about it."""
        ...

    def rank(self, question: Question, depth: int) -> list[str]:
        """Ids of the best documents, best first."""
        ...


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
        return len(self.parts) == 1 and registry.encoder_kind(self.parts[0], {}) == "dense"

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
                    f"make them again, one for each line, or take the folder away to have them encoded"
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

    def asked(self, questions: Sequence[Question]) -> Vectors:
        """Dense vectors of questions."""
        if self.given:
            return np.stack([self.vectors[1][one.id] for one in questions])
        made: Vectors = self._made.queries([one.text for one in questions])
        return made

    @cached_property
    def _made(self) -> Any:
        return registry.made("encoder", self.parts[0], {})

    @contextmanager
    def memory(self, policy: str | Policy = "guarded") -> Iterator[Memory]:
        """A memory of the documents, untaught, that is thrown away afterwards."""
        self._prepare()
        with tempfile.TemporaryDirectory(dir=self._folder.parent) as place:
            folder = Path(place) / "memory"
            shutil.copytree(self._folder, folder)
            settings = replace(
                settings_.read(folder / settings_.FILE), policy=policy if policy == "paper" else "guarded"
            )
            with Memory(folder, settings, policy=None if isinstance(policy, str) else policy) as memory:
                yield memory

    def _prepare(self) -> None:
        with FileLock(f"{self._folder}.lock"):
            if self._folder.exists():
                return
            making = self._folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            encoders: list[Named] = ["given" if part == self._beside else part for part in self.parts]
            with memory_.open(making, encoder=encoders or None) as memory:
                for start in range(0, len(self.data.documents), ADDED):
                    batch = self.data.documents[start : start + ADDED]
                    memory.add(batch, self.vectors[0][start : start + ADDED] if self.given else None)
            making.rename(self._folder)


def _units(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def fits(name: str, encoder: str, units: str | None) -> str | None:
    """Why a system cannot take part, or None."""
    plain, _, who = name.partition(":")
    if plain not in NAMES or (who and plain != EXPANSION):
        raise InvalidInput(f"there is no policy {name!r}; choose of: {', '.join(NAMES)}; expansion:NAME; ablations")
    parts = [] if encoder == HYBRID else encoder.split("+")
    kind = registry.encoder_kind(parts[0], {}) if len(parts) == 1 else "several"
    if name.startswith("nudge") and kind != "dense":
        return f"{name} moves dense vectors; {encoder} has others"
    if name == "bm25s" and encoder != "bm25":
        return "bm25s stands beside bm25 alone"
    if name == "no-words" and kind == "dense":
        return f"{encoder} does not go by words"
    if name in NEEDS_UNITS and units is None:
        return f"{name} is about expansion units: teach some with --units NAME"
    return None


@contextmanager
def system(name: str, lab: Lab, *, units: str | None = None, seed: int = 0) -> Iterator[System]:
    """A system by its name, in its untaught state."""
    plain, _, who = name.partition(":")
    if name in PEERS:
        from evokey.bench import peers

        yield peers.made(name, lab, seed)
        return
    policy: str | Policy = ABLATIONS[name]() if name in ABLATIONS else name if name in POLICIES else "guarded"
    with lab.memory(policy) as memory:
        if name == "none":
            yield Plain(memory, lab)
        elif plain == EXPANSION:
            yield Expanded(memory, lab, recorded(lab.data, who or None))
        else:
            yield Taught(memory, lab, None if units is None else recorded(lab.data, units))


def recorded(data: Dataset, who: str | None) -> Recorded:
    """The expansions of a set that somebody recorded; without a name, the first."""
    if who is not None and who not in data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions by {who}; there are: {', '.join(data.expansions)}")
    if not data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions (expansions/NAME.jsonl)")
    return Recorded(data.expansions[who or min(data.expansions)], queries=dict(data.queries))


class Plain:
    """The untaught index."""

    def __init__(self, memory: Memory, lab: Lab) -> None:
        self._memory, self._lab = memory, lab

    def teach(self, questions: Sequence[Question]) -> None:
        pass

    def evolve(self) -> Mapping[str, Any]:
        return {}

    def rank(self, question: Question, depth: int) -> list[str]:
        hits = self._memory.search(question.text, depth, vector=self._lab.vector(question))
        return [hit.id for hit in hits]


class Expanded(Plain):
    """The untaught index, asked with recorded expansions; without one, with the query alone."""

    def __init__(self, memory: Memory, lab: Lab, expander: Recorded) -> None:
        super().__init__(memory, lab)
        self._expander = expander
        self.missing = 0

    def rank(self, question: Question, depth: int) -> list[str]:
        expansion = expanded(self._expander, question.text)
        return [hit.id for hit in self._memory.search(question.text, depth, expansion=expansion)]


class Taught(Plain):
    """A memory that learns."""

    def __init__(self, memory: Memory, lab: Lab, expander: Recorded | None) -> None:
        super().__init__(memory, lab)
        self._expander = expander

    def teach(self, questions: Sequence[Question]) -> None:
        self._memory.feedback_many([self._lesson(one) for one in questions])

    def _lesson(self, question: Question) -> dict[str, Any]:
        expansion = None if self._expander is None else expanded(self._expander, question.text)
        return {
            "query": question.text,
            "relevant": {id: grade for id, grade in question.grades.items() if grade > 0},
            "units": None if expansion is None else expansion.texts,
            "actor": ACTOR,
            "vector": self._lab.vector(question),
        }

    def evolve(self) -> Mapping[str, Any]:
        report = self._memory.evolve().to_dict()
        return {name: report[name] for name in ("published", "reason", "choice", "weights", "documents")}


def expanded(expander: Recorded, query: str) -> Expansion | None:
    try:
        return expander.expand(query, lambda text, k: ())
    except ExpansionFailed:
        return None
