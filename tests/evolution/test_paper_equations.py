"""The paper's equations by hand, in dictionaries and numpy, beside the policy: dense keys and BM25, batch by batch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import evokey
from evokey.encoders.bm25 import BM25
from evokey.encoders.given import Given
from evokey.evolution.paper import REPLAYED, Paper, Replay
from evokey.keys.full import Full
from evokey.ledger.documents import Entry
from evokey.ledger.lessons import Success
from evokey.protocols import Space
from evokey.search.retriever import GivenRetriever, Retriever, SparseRetriever, search
from evokey.stores.flat import FlatStore
from evokey.stores.sparse import SparseStore

WORDS = "ant bee cat dog eel fox gnu hen ibis jay koi lynx mole newt owl pig".split()
COMMON = np.arange(1, len(WORDS) + 1) / np.arange(1, len(WORDS) + 1).sum()
Key = dict[Any, float]
"""A vector: by place, or by word."""
seeds = st.integers(0, 100_000)
DOCUMENTS, UNITS, TIE = 12, 14, 1e-6


# ---- the paper, by hand


def add(one: Mapping[Any, float], other: Mapping[Any, float]) -> Key:
    return {place: one.get(place, 0.0) + other.get(place, 0.0) for place in {**one, **other}}


def inner(one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    return sum(value * other.get(place, 0.0) for place, value in one.items())


def cosine(question: Mapping[Any, float], key: Mapping[Any, float]) -> float:
    return inner(question, key) / math.sqrt(inner(key, key))


@dataclass
class ByHand:
    """k_i, u_i with s_ij, and the branch gains of all batches."""

    keys: dict[int, Key]
    f: Callable[[str], Key]
    """A unit as a key."""
    asked: Callable[[str], Key]
    """A query."""
    sim: Callable[[Mapping[Any, float], Mapping[Any, float]], float]
    rule: Paper
    """Read for its numbers alone."""
    first: dict[int, Key] = field(init=False)
    memory: dict[int, dict[str, float]] = field(init=False)
    gains: list[float] = field(default_factory=list)
    waited: int = 0
    tied: bool = False
    """Whether a choice hung on a difference that rounding can turn."""

    def __post_init__(self) -> None:
        self.first, self.memory = dict(self.keys), {i: {} for i in self.keys}

    def take(self, batch: Sequence[Success]) -> None:
        """Δ_ij(q), w_ij(q), s_ij over a whole batch; then the capacity; then Δ^B."""
        sums = {i: dict(memory) for i, memory in self.memory.items()}
        largest = 0.0
        for one in batch:
            q, units = self.asked(one.query), one.units or (one.query,)
            for i in one.retrieved[: self.rule.retrieved]:
                delta = {e: self.sim(q, add(self.keys[i], self.f(e))) - self.sim(q, self.keys[i]) for e in units}
                total = sum(math.exp(d) for d in delta.values())
                for e, d in delta.items():
                    if d > 0:
                        sums[i][e] = sums[i].get(e, 0.0) + math.exp(d) / total * d
                        largest = max(largest, d)
        self.memory = {i: dict(self.choose(known, self.rule.capacity)) for i, known in sums.items()}
        best = max(self.gains, default=0.0)
        self.tied |= bool(best) and abs(largest - (1 - self.rule.margin) * best) < TIE
        self.waited = self.waited + 1 if best and largest <= (1 - self.rule.margin) * best else 0
        self.gains.append(largest)

    def choose(self, memory: Mapping[str, float], count: int) -> list[tuple[str, float]]:
        """The units of largest score, of equals the first by name."""
        ranked = sorted(memory.items(), key=lambda item: (-item[1], item[0]))
        self.tied |= len(ranked) > count and ranked[count - 1][1] - ranked[count][1] < TIE
        return ranked[:count]

    @property
    def saturated(self) -> bool:
        return self.waited >= self.rule.patience

    def evolve(self) -> None:
        """k ← k⁰ ⊕ f(τ_x(u)), or k ← k ⊕ f(τ_x(u))."""
        for i, memory in self.memory.items():
            key = self.keys[i] if self.rule.accumulate else self.first[i]
            for e, _ in self.choose(memory, self.rule.x):
                key = add(key, self.f(e))
            self.keys[i] = key
        self.waited = 0

    def run(self, lessons: Sequence[Success], marks: Sequence[int]) -> list[int]:
        """All lessons; keys evolve after those marked, after the last, and online when batches are saturated."""
        saturated, batch = [], list[Success]()
        for place, one in enumerate(lessons):
            batch.append(one)
            marked = place + 1 == len(lessons) or any(one.number <= m < lessons[place + 1].number for m in marks)
            full = len(batch) == self.rule.batch
            if not (full or marked):
                continue
            self.take(batch)
            batch = []
            due = self.rule.online and full and self.saturated
            saturated += [one.number] if due else []
            if due or marked:
                self.evolve()
        return saturated


# ---- random settings


def draw_rule(chance: np.random.Generator) -> Paper:
    return Paper(
        x=int(chance.integers(1, 5)),
        capacity=int(chance.integers(1, 7)),
        batch=int(chance.integers(1, 9)),
        patience=int(chance.integers(1, 4)),
        margin=float(chance.choice([0.0, 0.05, 0.3])),
        retrieved=int(chance.integers(1, 6)),
        accumulate=bool(chance.integers(2)),
        online=bool(chance.integers(2)),
        normalise=bool(chance.integers(2)),
    )


def draw_lessons(chance: np.random.Generator, queries: Sequence[str], units: Sequence[str]) -> list[Success]:
    """With up to four units each, or none; numbers have gaps, as after a forget."""
    numbers = np.cumsum(chance.integers(1, 3, len(queries)))
    return [
        Success(int(number), query, tuple(chance.choice(units, int(chance.integers(0, 5)), replace=False).tolist()),
                tuple(chance.choice(DOCUMENTS, 5, replace=False).tolist()))
        for number, query in zip(numbers, queries, strict=True)
    ]  # fmt: skip


def draw_marks(chance: np.random.Generator, lessons: Sequence[Success]) -> list[int]:
    return sorted(set(chance.integers(1, lessons[-1].number + 1, int(chance.integers(0, 4))).tolist()))


class Corpus:
    documents = 0

    def frequency(self, word: str) -> int:
        return 0


def dense(chance: np.random.Generator, rule: Paper) -> tuple[Retriever, ByHand, list[str], list[str]]:
    vectors = chance.normal(scale=0.4, size=(DOCUMENTS + 30 + UNITS, 6)).astype(np.float32)
    documents, rest = vectors[:DOCUMENTS], vectors[DOCUMENTS:]
    documents = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    queries, units = [f"q{n}" for n in range(30)], [f"u{n}" for n in range(UNITS)]
    known = dict(zip([*queries, *units], rest, strict=True))
    retriever = GivenRetriever("given", Given(), Full(), None, FlatStore(Space(None, Given())))
    entries = [Entry(n, evokey.Document(str(n), "x"), vector) for n, vector in enumerate(documents)]
    retriever.store.write(retriever.keys(entries, Corpus()))
    retriever.remember(known)

    def read(text: str) -> Key:
        return dict(enumerate(known[text].astype(float).tolist()))

    keys = {n: dict(enumerate(vector.astype(float).tolist())) for n, vector in enumerate(documents)}
    return retriever, ByHand(keys, read, read, cosine if rule.normalise else inner, rule), queries, units


def bm25(chance: np.random.Generator, rule: Paper) -> tuple[Retriever, ByHand, list[str], list[str]]:
    def text(longest: int) -> str:
        return " ".join(chance.choice(WORDS, int(chance.integers(1, longest)), p=COMMON).tolist())

    documents = [text(20) for _ in range(DOCUMENTS)]
    queries, units = [text(6) for _ in range(30)], sorted({text(5) for _ in range(UNITS)})
    retriever = SparseRetriever("bm25", BM25(), Full(), None, SparseStore(Space(None, BM25())))
    entries = [Entry(n, evokey.Document(str(n), one), None) for n, one in enumerate(documents)]
    retriever.store.write(retriever.keys(entries, Corpus()))
    average = sum(len(one.split()) for one in documents) / len(documents)
    frequency = Counter(word for one in documents for word in set(one.split()))

    def weigh(text: str) -> Key:
        pivot = 0.9 * (1 - 0.4 + 0.4 * len(text.split()) / average)
        return {word: count / (count + pivot) for word, count in Counter(text.split()).items()}

    def ask(text: str) -> Key:
        return {
            word: count * math.log(1 + (DOCUMENTS - frequency[word] + 0.5) / (frequency[word] + 0.5))
            for word, count in Counter(text.split()).items()
            if frequency[word]
        }

    keys = {n: weigh(one) for n, one in enumerate(documents)}
    return retriever, ByHand(keys, weigh, ask, inner, rule), queries, units


@pytest.mark.parametrize("kind", [dense, bm25])
@given(seed=seeds)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_the_policy_says_what_the_equations_say(kind: Any, seed: int) -> None:
    chance = np.random.default_rng(seed)
    rule = draw_rule(chance)
    retriever, paper, queries, units = kind(chance, rule)
    lessons = draw_lessons(chance, queries, units)
    marks = draw_marks(chance, lessons)
    expected, replay = paper.run(lessons, marks), Replay(rule, retriever, lessons)
    assume(not paper.tied)
    assert replay.run(marks) == expected
    assert replay.largest_gains == pytest.approx(paper.gains, abs=1e-6)
    for number, memory in paper.memory.items():
        rows = replay.touched.rows(number)
        found = replay.scores[rows.start] if rows.start < rows.stop else {}
        assert {replay.texts[column]: s for column, s in found.items()} == pytest.approx(memory, abs=1e-6)
    overlay = replay.overlay(REPLAYED)
    for query in queries[:8]:
        found = search(retriever, retriever.question(query, {}), DOCUMENTS, overlay)
        scores = dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
        wanted = {i: paper.sim(paper.asked(query), key) for i, key in paper.keys.items()}
        found_at_all = {i: score for i, score in wanted.items() if kind is dense or score > 0}
        assert scores == pytest.approx(found_at_all, rel=1e-6, abs=1e-6)  # keys without a norm grow, in float32


# ---- the gate, and what is credited


TEXTS = [f"{one} {other} {third}" for one, other, third in zip(WORDS, WORDS[3:], WORDS[7:], strict=False)]


def find_by_hand(query: str, units: Sequence[str] = ()) -> Iterator[str]:
    """BM25 with the query's words five times and those of its units once."""
    average, asked = 3.0, Counter[str]()
    for text, times in ((query, 5), *((unit, 1) for unit in units)):
        for word in text.split():
            asked[word] += times
    frequency = Counter(word for text in TEXTS for word in text.split())
    scores = {
        n: sum(
            count
            * math.log(1 + (len(TEXTS) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            * tf
            / (tf + 0.9 * (1 - 0.4 + 0.4 * 3 / average))
            for word, count in asked.items()
            if (tf := text.split().count(word))
        )
        for n, text in enumerate(TEXTS)
    }
    for n in sorted(scores, key=lambda n: (-scores[n], n)):
        if scores[n] > 0:
            yield str(n)


def retrieved(memory: evokey.Memory) -> dict[str, list[str]]:
    ids = {number: id for id, number in memory.ledger.documents.numbers([str(n) for n in range(len(TEXTS))]).items()}
    found = memory.composer.log(memory.ledger.lessons.last).successes
    return {one.query: [ids[number] for number in one.retrieved] for one in found}


@pytest.mark.parametrize("gate", [0, 0.1, 0.5, 1])
def test_a_lesson_teaches_if_enough_right_documents_were_found(opened: Opener, gate: float) -> None:
    memory = opened(encoder="bm25", policy={"name": "paper", "gate": gate, "retrieved": 3})
    memory.add([evokey.Document(str(n), text) for n, text in enumerate(TEXTS)])
    expected = {}
    for n, (query, units) in enumerate(
        [("ant", ()), ("hen owl", ()), ("cat", ("cat jay", "koi")), ("unicorn", ("fox",))]
    ):
        right = {str(n), str((n * 3 + 1) % len(TEXTS)), "2"}
        found = list(find_by_hand(query, units))
        memory.feedback(query, relevant=sorted(right), units=list(units))
        if found and len(right & set(found[:3])) / len(right) >= gate:
            expected[query] = found
    assert retrieved(memory) == expected
    untaught = ranking(memory, "cat")
    memory.evolve()
    assert (ranking(memory, "cat") != untaught) == bool(expected)
