"""Lessons → training data for an encoder: questions, the texts that are right for them, and texts that are not.

Questions are divided into parts of which training sees one. Wordings of one question that share almost all their words
stay together: else a held-out question would have been seen in other words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from evokey.encoders.bm25 import BM25
from evokey.evolution.judgements import Judgements
from evokey.types import Numbers

SAME_WORDING = 0.8
"""The cosine of two questions' words from which they are wordings of one question."""
COMPARED_AT_ONCE = 512
Id = TypeVar("Id", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """What an encoder is trained on, or tested with."""

    queries: tuple[str, ...]
    texts: tuple[str, ...]
    """Of documents, each once. Those that no query names are further negatives for all of them."""
    positives: tuple[tuple[int, ...], ...]
    """By query: places of the texts that are right."""
    weights: tuple[tuple[float, ...], ...]
    """By query: what each of these counts."""
    negatives: tuple[tuple[int, ...], ...]
    """By query: places of texts that are not right, those that were named wrong first, then those that the index finds
    and nobody named. None of them is right."""

    @classmethod
    def of(
        cls, right: Mapping[str, Mapping[Id, float]], texts: Mapping[Id, str], negatives: Mapping[str, Sequence[Id]]
    ) -> TrainingSet:
        """right: by query, the documents that are right and what each counts. Documents without a text are left out;
        documents of equal text are one."""
        places: dict[str, int] = {}
        place = {id: places.setdefault(text, len(places)) for id, text in texts.items() if text.strip()}
        found = {query: _weigh(documents, place) for query, documents in right.items()}
        kept = [query for query, weights in found.items() if weights]
        wrong = {query: [place[id] for id in negatives.get(query, ()) if id in place] for query in kept}
        return cls(
            tuple(kept),
            tuple(places),
            tuple(tuple(found[query]) for query in kept),
            tuple(tuple(found[query].values()) for query in kept),
            tuple(tuple(dict.fromkeys(one for one in wrong[query] if one not in found[query])) for query in kept),
        )

    def __len__(self) -> int:
        return len(self.queries)

    def only(self, queries: Collection[str]) -> TrainingSet:
        """These queries; the texts stay as they are."""
        kept = [at for at, query in enumerate(self.queries) if query in queries]
        return TrainingSet(
            tuple(self.queries[at] for at in kept),
            self.texts,
            tuple(self.positives[at] for at in kept),
            tuple(self.weights[at] for at in kept),
            tuple(self.negatives[at] for at in kept),
        )


def _weigh(documents: Mapping[Id, float], place: Mapping[Id, int]) -> dict[int, float]:
    """The texts of some documents; of equal texts the largest weight."""
    found: dict[int, float] = {}
    for id, weight in documents.items():
        if id in place and weight > 0:
            found[place[id]] = max(weight, found.get(place[id], 0.0))
    return found


@dataclass(frozen=True, slots=True)
class Parts:
    """Questions by what they are for."""

    train: frozenset[str]
    validation: frozenset[str]
    """They say when training stops."""
    held_out: frozenset[str]
    """They say whether the result is better."""


def split(queries: Sequence[str], validation: float, held_out: float) -> Parts:
    """Divide questions by these shares, wordings of one question together. It follows from the texts alone."""
    groups: dict[int, list[str]] = {}
    ordered = sorted(set(queries))
    for query, group in zip(ordered, group_wordings(ordered), strict=True):
        groups.setdefault(int(group), []).append(query)
    dealt = sorted(groups.values(), key=lambda group: hashlib.sha256(group[0].encode()).digest())
    found: tuple[set[str], set[str], set[str]] = set(), set(), set()
    wanted = [(found[2], held_out * len(ordered)), (found[1], validation * len(ordered)), (found[0], len(ordered))]
    for group in dealt:
        part = next(part for part, size in wanted if len(part) + len(group) <= size)
        part.update(group)
    return Parts(*map(frozenset, found))


def group_wordings(queries: Sequence[str]) -> Numbers:
    """The group of each question: those that share almost all their words have one."""
    bags = BM25().queries(queries)
    words = {word: place for place, word in enumerate(sorted({word for bag in bags for word in bag}))}
    starts = np.cumsum([0, *map(len, bags)])
    columns = np.array([words[word] for bag in bags for word in bag], np.int64)
    lengths = np.repeat(np.sqrt(np.maximum(np.diff(starts), 1)), np.diff(starts))
    table = sparse.csr_array((1 / lengths, columns, starts), (len(bags), max(len(words), 1)))
    similar = [_similar(table, start) for start in range(0, len(bags), COMPARED_AT_ONCE)]
    joined = sparse.vstack(similar) if similar else sparse.csr_array((0, 0))
    return np.asarray(connected_components(joined, directed=False)[1], np.int64)


def _similar(table: sparse.csr_array, start: int) -> sparse.csr_array:
    """Which questions the next few are similar to."""
    products = sparse.csr_array(table[start : start + COMPARED_AT_ONCE] @ table.T)
    products.data = (products.data >= SAME_WORDING - 1e-9).astype(np.int8)
    products.eliminate_zeros()
    return products


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the texts of training data come from."""

    row: Callable[[str, int], str | None]
    """The text of a document by which a query should find it; None: it has no key."""
    found: Callable[[str], Sequence[int]]
    """Documents that the untaught index finds for a query, best first."""
    others: Sequence[int] = ()
    """Some more documents: no query is about them, as far as is known."""
    negatives: int = 30
    """How many of what is found and not named right are negatives of a query."""


def training_set(lessons: Judgements, sources: Sources) -> TrainingSet:
    """All that was taught: verdicts weigh what they weigh for moved keys (grade times evidence). Of a document with
    several rows, the one that fits the query best is right for it, and the others are not wrong."""
    texts: dict[int | tuple[str, int], str] = {}
    right: dict[str, dict[int | tuple[str, int], float]] = {}
    negatives: dict[str, list[int | tuple[str, int]]] = {}
    for query, grades in lessons.grades.items():
        weights = {number: grade * lessons.evidence.get((query, number), 1.0) for number, grade in grades.items()}
        right[query] = {(query, number): weight for number, weight in weights.items()}
        wrong = lessons.wrong.get(query, {})
        mined = [number for number in sources.found(query) if number not in grades and number not in wrong]
        negatives[query] = [(query, number) for number in (*wrong, *mined[: sources.negatives])]
        for number in (*grades, *wrong, *mined[: sources.negatives]):
            texts[query, number] = sources.row(query, number) or ""
    for number in sources.others:
        texts[number] = sources.row("", number) or ""
    return TrainingSet.of(right, texts, negatives)
