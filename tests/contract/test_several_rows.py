"""Documents of several rows against a slow model: the best row, and credit to the chunk that matched."""

from __future__ import annotations

import threading
from statistics import median
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking

import evokey
from evokey.encoders.bm25 import BM25
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.evolution import pools
from evokey.evolution.attribution import attribute
from evokey.evolution.ndcg import ndcg
from evokey.evolution.trial import Trial
from evokey.keys.chunks import Chunks
from evokey.search.retriever import search
from evokey.types import Choice, Expansion, Unit

CHUNKS = {"name": "chunks", "tokens": 16, "overlap": 0}
PARTS = {
    "volcano": [
        "Magma rises through the deep crust of the earth.",
        "Lava covers the slopes.",
        "Ash falls on villages.",
    ],
    "bakery": ["Knead the dough well with both hands.", "Yeast works overnight.", "Bake the loaf in a hot oven."],
    "sailing": ["Trim the jib and the mainsail early.", "Tack against the wind.", "Anchor in the harbour at night."],
    "night": ["Owls hunt mice over the field at night.", "Foxes feed their young.", "The moon lights the hot den."],
}
DOCUMENTS = [evokey.Document(id, " ".join(3 * parts), id) for id, parts in PARTS.items()]
LESSONS: list[tuple[str, dict[str, float], list[str]]] = [
    ("mountain fire", {"volcano": 1.0}, ["hot lava", "ash on slopes"]),
    ("make bread", {"bakery": 2.0, "night": 0.5}, []),
    ("steer boats", {"sailing": 1.0}, ["wind and harbour", "zebra"]),
    ("dark hunters", {"night": 1.0, "volcano": 1.0}, ["owls at night"]),
]
CHOICES = [Choice(penalty=0.2), Choice(0.5, 1.0), Choice(1.0, 4.0, 1.0, 0.3), Choice(0.0, 8.0, 2.0), Choice(0.5, 0.25)]
ASKED = [*(query for query, _, _ in LESSONS), "lava", "night", "the of", "zebra", "hot oven crust", "☃"]


def teach(memory: evokey.Memory) -> None:
    for query, relevant, units in LESSONS:
        memory.feedback(query, relevant=relevant, units=units or None)


class Dense:
    floor = -np.inf

    def __init__(self, texts: list[str]) -> None:
        self._encoder = WordLlamaEncoder()

    def similar(self, query: str, text: str, learned: dict[str, int] | None = None) -> float:
        first, second = self._encoder.documents([query, text]).astype(np.float64)
        return float(first @ second)

    def self_similarity(self, query: str, learned: dict[str, int]) -> float:
        return 1.0

    def norm(self, base: str, pulls: dict[str, float]) -> float:
        vectors = self._encoder.documents([base, *pulls]).astype(np.float64)
        return float(np.linalg.norm(vectors[0] + np.array(list(pulls.values())) @ vectors[1:]))

    def words(self, text: str) -> set[str]:
        return set()


class Sparse:
    """BM25 over rows: each chunk counts as one document."""

    floor = 0.0

    def __init__(self, texts: list[str]) -> None:
        self._encoder = BM25()
        self._rows = [bag for bag in self._encoder.documents(texts) if bag]
        self._average = sum(sum(bag.values()) for bag in self._rows) / len(self._rows)

    def similar(self, query: str, text: str, learned: dict[str, int] | None = None) -> float:
        asked, row = self._encoder.documents([query, text])
        pivot = 0.9 * (0.6 + 0.4 * sum(row.values()) / self._average)
        score = 0.0
        for word in asked:
            frequency = sum(word in bag for bag in self._rows) or (learned or {}).get(word, 0)
            if frequency and word in row:
                idf = np.log(1 + (len(self._rows) - frequency + 0.5) / (frequency + 0.5))
                score += asked[word] * idf * row[word] / (row[word] + pivot)
        return float(score)

    def self_similarity(self, query: str, learned: dict[str, int]) -> float:
        return self.similar(query, query, learned)

    def norm(self, base: str, pulls: dict[str, float]) -> float:
        return 1.0

    def words(self, text: str) -> set[str]:
        return set(self._encoder.documents([text])[0])


class Oracle:
    def __init__(self, kind: Any, choice: Choice) -> None:
        builder: Any = Chunks(tokens=16, overlap=0)
        self.rows = {one.id: [row.text for row in builder.rows(one, None)] for one in DOCUMENTS}
        assert all(len(rows) > 1 for rows in self.rows.values())
        self.model, self.choice = kind([text for rows in self.rows.values() for text in rows]), choice
        self.omega: dict[tuple[str, int], dict[str, float]] = {}
        taught: dict[str, set[str]] = {}
        for query, relevant, units in LESSONS:
            for id, grade in relevant.items():
                weight = grade * len(relevant) ** -choice.spread
                gains = {unit: max(0.0, *self._scores(unit, id)) for unit in units}
                kept = {unit: gain for unit, gain in gains.items() if gain > 0 and gain >= 0.5 * max(gains.values())}
                parts = {query: weight} | {
                    unit: weight * choice.unit_weight * gain / sum(kept.values()) for unit, gain in kept.items()
                }
                for text, omega in parts.items():
                    for word in self.model.words(text):
                        taught.setdefault(word, set()).add(id)
                    if omega > 0:
                        scores = self._scores(text, id)
                        texts = self.omega.setdefault((id, scores.index(max(scores))), {})
                        texts[text] = texts.get(text, 0.0) + omega
        self.learned = {word: len(ids) for word, ids in taught.items()}
        self.middle = median(sum(texts.values()) for texts in self.omega.values())

    def _scores(self, text: str, id: str) -> list[float]:
        return [self.model.similar(text, row) for row in self.rows[id]]

    def score(self, id: str, query: str) -> float:
        found = []
        for place, row in enumerate(self.rows[id]):
            texts = self.omega.get((id, place), {})
            similar = {text: self.model.similar(query, text, self.learned) for text in (row, *texts)}
            score = similar[row]
            if self.choice.step and texts:
                mass = sum(texts.values()) + self.middle
                pulls = {text: self.choice.step * omega / mass for text, omega in texts.items()}
                score += sum(pull * similar[text] for text, pull in pulls.items())
                score /= self.model.norm(row, pulls)
            found.append(score)
            if self.choice.penalty is not None:
                share = self.choice.penalty * self.model.self_similarity(query, self.learned)
                found += [similar[text] - share for text in texts]
        return max(found)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize(("encoder", "kind"), [("bm25", Sparse), ("wordllama", Dense)])
def test_taught_chunks_score_as_the_formulas_say(opened: Opener, encoder: str, kind: Any, choice: Choice) -> None:
    memory = opened(encoder=encoder, keys=CHUNKS)
    memory.add(DOCUMENTS)
    teach(memory)
    retriever, oracle = memory.index.retrievers[0], Oracle(kind, choice)
    lessons = memory.composer.log(memory.ledger.lessons.last).taught
    attribution = attribute(retriever, lessons)
    overlay = attribution.overlay(choice)
    numbers = memory.ledger.documents.numbers([one.id for one in DOCUMENTS])
    for query in ASKED:
        found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
        wanted = {numbers[id]: oracle.score(id, query) for id in numbers}
        wanted = {number: score for number, score in wanted.items() if score > kind.floor}
        scores = dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
        assert scores == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    kept = pools.CurrentPools(retriever, memory.ledger.pools, memory.index.position, memory.index.live)
    outcomes = Trial(retriever, attribution, lessons, kept).outcomes([Choice(), choice])[choice]
    for place, query in enumerate(lessons.queries):
        found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
        assert outcomes[place] == pytest.approx(ndcg(found.numbers, lessons.grades[query]), abs=1e-6)


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
@pytest.mark.parametrize("policy", ["guarded", "paper"])
def test_a_document_whose_chunks_change_and_come_back(opened: Opener, encoder: str, policy: str) -> None:
    memory, fresh = (opened(name, encoder=encoder, keys=CHUNKS, policy=policy) for name in ("kb", "fresh"))
    memory.add(DOCUMENTS)
    teach(memory)
    memory.evolve()
    taught = {query: dict(ranking(memory, query)) for query in ASKED}
    longer = evokey.Document("volcano", DOCUMENTS[0].text + " Geysers steam nearby in the valley." * 4, "volcano")
    for changed in (longer, evokey.Document("volcano", "Short."), evokey.Document("volcano", "")):
        memory.add([changed])
        for query in ASKED:
            assert [id for id, _ in ranking(memory, query)].count("volcano") <= 1
        with opened(changed.text[:3] + str(len(changed.text)), encoder=encoder, keys=CHUNKS) as untaught:
            untaught.add([*DOCUMENTS[1:], changed])
            for query in ASKED:
                assert dict(ranking(memory, query, epoch=0)) == dict(ranking(untaught, query))
    memory.add([DOCUMENTS[0]])
    if policy == "guarded":
        assert {query: dict(ranking(memory, query)) for query in ASKED} == taught
    fresh.add(DOCUMENTS)
    for query in ASKED:
        assert dict(ranking(memory, query, epoch=0)) == dict(ranking(fresh, query))


@pytest.mark.parametrize("policy", ["guarded", "paper"])
@pytest.mark.parametrize("units", [True, False])
def test_what_was_learned_follows_bm25s_weights_here_as_in_a_new_process(
    opened: Opener, policy: str, units: bool
) -> None:
    """Which chunk a text matches, and which texts count most, follows the weights, and these follow every document."""
    named = {"name": "paper", "x": 1} if policy == "paper" else policy
    memory = opened(encoder="bm25", keys=CHUNKS, policy=named)
    plain = opened("plain", encoder="bm25", policy=named)
    for one in (memory, plain):
        one.add(DOCUMENTS)
        for query, id, unit in [
            ("hot lava night", "volcano", "ash"),
            ("ash crust", "volcano", "slopes"),
            ("slopes earth hot", "volcano", "magma"),
            ("hot oven night", "bakery", "dough"),
        ]:
            one.feedback(query, relevant=[id], units=[unit, f"{unit} hot"] if units else None)
        one.evolve()
        for word in ("ash", "slopes", "hot", "night", "lava"):
            one.search(word)
            one.add([evokey.Document(f"{word}{number}", f"{word} {number}") for number in range(6)])
            if word == "hot":
                one.delete(["ash1", "ash2"])
    for name, one in (("kb", memory), ("plain", plain)):
        here = [ranking(one, query, 40) for query in ASKED]
        one.close()
        assert [ranking(opened(name), query, 40) for query in ASKED] == here


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"]])
@pytest.mark.parametrize("keys", ["full", CHUNKS])
def test_a_memory_of_nothing_answers_nothing(opened: Opener, encoder: Any, keys: Any) -> None:
    memory = opened(encoder=encoder, keys=keys)

    def asked(one: evokey.Memory) -> None:
        for query in ASKED:
            assert one.search(query) == []
            for way in ("blend", "concat", "fuse"):
                assert one.search(query, expansion=Expansion(query, (Unit("lava"),), "by hand", way)) == []
        assert not one.evolve().published

    asked(memory)
    memory.add([evokey.Document("empty", ""), evokey.Document("blank", " \n", "\t")])
    asked(memory)
    memory.feedback("lava", relevant=["empty"])
    asked(memory)
    memory.close()
    again = opened()
    asked(again)
    again.add(DOCUMENTS)
    assert again.search("lava")[0].id == "volcano"
    again.delete([one.id for one in DOCUMENTS])
    asked(again)


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_very_long_documents_are_found_by_what_stands_at_their_end(opened: Opener, encoder: str) -> None:
    memory = opened(encoder=encoder, keys={"name": "chunks", "tokens": 64, "overlap": 8})
    filler = "The committee met again and nothing was decided on that day. " * 8000
    memory.add([*DOCUMENTS, evokey.Document("report", f"{filler} Penguins swim below the ice shelf.")])
    assert memory.search("penguins below the ice")[0].id == "report"
    memory.feedback("antarctic birds", relevant=["report"])
    assert memory.evolve().published
    assert memory.search("antarctic birds")[0].id == "report"
    before = ranking(memory, "antarctic birds")
    memory.close()
    assert ranking(opened(), "antarctic birds") == before


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"]])
def test_threads_search_while_chunks_come_and_go(opened: Opener, encoder: Any) -> None:
    memory = opened(encoder=encoder, keys=CHUNKS)
    memory.add(DOCUMENTS)
    teach(memory)
    memory.evolve()
    stop, wrong = threading.Event(), list[Any]()

    def ask() -> None:
        while not stop.is_set():
            for query in ASKED:
                try:
                    hits = memory.search(query, 50)
                    ids = [hit.id for hit in hits]
                    if len(set(ids)) != len(ids) or any(not np.isfinite(hit.score) for hit in hits):
                        wrong.append(hits)
                    if query == "mountain fire" and "volcano" not in ids:
                        wrong.append(ids)
                except Exception as error:  # noqa: BLE001
                    wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(12):
            more = [evokey.Document(f"{turn}-{number}", " ".join(PARTS["night"] * (number + 1))) for number in range(4)]
            memory.add(more)
            memory.add([evokey.Document(f"{turn}-0", "Lava. " * 40)])
            memory.feedback(f"question {turn}", relevant=[f"{turn}-1"])
            memory.evolve()
            memory.delete([f"{turn}-2", f"{turn}-3"])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    here = [ranking(memory, query, 50) for query in ASKED]
    memory.close()
    assert [ranking(opened(), query, 50) for query in ASKED] == here
