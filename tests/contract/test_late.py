"""Late interaction against a slow model of it, written from the formulas: MaxSim, appended vectors, the paper's Δ."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import by_word
import numpy as np
import pytest
from conftest import Opener, ranking

import evokey
from evokey.encoders.cached import hash_texts
from evokey.evolution import pools
from evokey.evolution.attribution import attribute
from evokey.evolution.ndcg import ndcg
from evokey.evolution.paper import Replay
from evokey.evolution.trial import Trial
from evokey.registry import COMPONENTS, Component
from evokey.scoring.late import LateBlock, LateQuestion
from evokey.search.retriever import search
from evokey.types import Choice, Expansion, Unit

LATE = "by-word"
CHUNKS = {"name": "chunks", "tokens": 16, "overlap": 0}
TOPICS = {
    "volcano": "Magma rises through the crust. Lava covers the slopes. Ash falls on the villages below the crater.",
    "bakery": "Knead the dough well. Yeast works overnight. Bake the loaf in a hot oven until the crust is brown.",
    "sailing": "Trim the jib and the mainsail. Tack against the wind. Anchor in the harbour before the storm.",
    "garden": "Water the roses at dawn. Prune the hedge in winter. Compost feeds the soil of every bed.",
    "night": "Owls hunt mice. The moon lights the field. Foxes leave their den to feed the young.",
}
DOCUMENTS = [evokey.Document(id, text) for id, text in TOPICS.items()]
LESSONS: list[tuple[str, dict[str, float], list[str]]] = [
    ("mountain that spits fire", {"volcano": 1.0}, ["eruption of molten rock", "hot stone"]),
    ("bread recipe", {"bakery": 2.0, "garden": 0.5}, []),
    ("steer a boat", {"sailing": 1.0}, ["yacht and captain"]),
    ("birds after dark", {"night": 1.0, "garden": 1.0}, ["nocturnal hunter", "☃"]),
    ("☃ ☃", {"night": 1.0}, []),
]
CHOICES = [
    Choice(penalty=0.2),
    Choice(0.5, 1.0),
    Choice(1.0, 4.0, 1.0, 0.3),
    Choice(0.0, 0.25, 2.0),
    Choice(0.5, 8.0, 0.5, 0.0),
]
ASKED = [query for query, _, _ in LESSONS] + ["fire", "crust", "feed the young bread", "☃", "!?"]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(COMPONENTS["encoder"], LATE, Component("by_word:ByWord"))
    yield


@pytest.fixture(params=["full", "chunks"])
def memory(request: pytest.FixtureRequest, opened: Opener) -> evokey.Memory:
    made = opened(encoder=LATE, keys=CHUNKS if request.param == "chunks" else "full")
    made.add(DOCUMENTS)
    return made


def teach(memory: evokey.Memory) -> None:
    for query, relevant, units in LESSONS:
        memory.feedback(query, relevant=relevant, units=units or None)


def rows_of(memory: evokey.Memory, id: str) -> list[Any]:
    """The vectors of each of a document's key texts, from the key builder and the encoder alone."""
    retriever: Any = memory.index.retrievers[0]
    return [by_word.vectors(row.text) for row in retriever._keys.rows(memory.get(id), memory.ledger.words)]


def likeness(row: Any, question: Any) -> list[float]:
    """Of each vector of a question: its best match among a row's, its share of the mean."""
    return [max((float(v @ q) for v in row), default=-math.inf) / len(question) for q in question]


def maxsim(row: Any, question: Any) -> float:
    return sum(likeness(row, question))


class Oracle:
    """Scores of taught documents: pairs, weights, appended vectors and recall rows, all in plain Python."""

    def __init__(self, memory: evokey.Memory, choice: Choice, lessons: Sequence[Any] = LESSONS) -> None:
        self.rows, self.choice = {id: rows_of(memory, id) for id in TOPICS}, choice
        self.omega: dict[tuple[str, int], dict[str, float]] = {}
        for query, relevant, units in lessons:
            for id, grade in relevant.items():
                weight = grade * len(relevant) ** -choice.spread
                self._teach(id, query, weight)
                for unit, share in self._shares(units, id).items():
                    self._teach(id, unit, weight * choice.unit_weight * share)
        self.middle = median(sum(texts.values()) for texts in self.omega.values())

    def _scores(self, text: str, id: str) -> list[float]:
        return [maxsim(row, by_word.vectors(text)) for row in self.rows[id]]

    def _teach(self, id: str, text: str, omega: float) -> None:
        if omega > 0:
            scores = self._scores(text, id)
            texts = self.omega.setdefault((id, scores.index(max(scores))), {})
            texts[text] = texts.get(text, 0.0) + omega

    def _shares(self, units: Sequence[str], id: str) -> Mapping[str, float]:
        gains = {unit: max(0.0, *self._scores(unit, id)) for unit in units}
        kept = {unit: gain for unit, gain in gains.items() if gain > 0 and gain >= 0.5 * max(gains.values())}
        return {unit: gain / sum(kept.values()) for unit, gain in kept.items()}

    def score(self, id: str, query: str) -> float:
        question = by_word.vectors(query)
        if not len(question):
            return 0.0
        found = []
        for place, row in enumerate(self.rows[id]):
            texts = self.omega.get((id, place), {})
            best = likeness(row, question)
            if self.choice.step:
                mass = sum(texts.values()) + self.middle
                for text, omega in texts.items():
                    scale = min(1.0, self.choice.step * omega / mass)
                    said = likeness(by_word.vectors(text), question)
                    best = [max(own, scale * new) if new > 0 else own for own, new in zip(best, said, strict=True)]
            found.append(sum(best))
            if self.choice.penalty is not None:
                found += [maxsim(by_word.vectors(text), question) - self.choice.penalty for text in texts]
        return max(found)


def test_a_document_scores_as_its_best_row_by_maxsim(memory: evokey.Memory) -> None:
    for query in ASKED:
        question = by_word.vectors(query)
        wanted = {
            id: max(maxsim(row, question) for row in rows_of(memory, id)) if len(question) else 0 for id in TOPICS
        }
        assert dict(ranking(memory, query)) == pytest.approx(wanted, abs=1e-6)
    assert any(len(rows_of(memory, id)) > 1 for id in TOPICS) == memory.index.retrievers[0].base.several  # type: ignore[attr-defined]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_taught_documents_score_as_the_formulas_say(memory: evokey.Memory, choice: Choice) -> None:
    teach(memory)
    retriever, oracle = memory.index.retrievers[0], Oracle(memory, choice)
    overlay = attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught).overlay(choice)
    numbers = memory.ledger.documents.numbers(list(TOPICS))
    for query in ASKED:
        found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
        scores = dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
        wanted = {numbers[id]: oracle.score(id, query) for id in TOPICS}
        if not len(by_word.vectors(query)):
            assert scores == pytest.approx(dict.fromkeys(wanted, 0.0))
            continue
        assert scores == pytest.approx(wanted, abs=1e-6)


def test_a_trial_finds_what_searches_find(memory: evokey.Memory) -> None:
    teach(memory)
    retriever, lessons = memory.index.retrievers[0], memory.composer.log(memory.ledger.lessons.last).taught
    kept = pools.CurrentPools(retriever, memory.ledger.pools, memory.index.position, memory.index.live)
    for taught in (lessons.queries, lessons.queries[2:], lessons.queries[:1]):
        attribution = attribute(retriever, lessons).only(frozenset(taught))
        trial = Trial(retriever, attribution, lessons, kept)
        choices = [Choice(), *CHOICES]
        outcomes = trial.outcomes(choices)
        for choice in choices:
            overlay = attribution.overlay(choice)
            ranked = trial.rankings(choice, 10)
            for place, query in enumerate(lessons.queries):
                if not len(by_word.vectors(query)):
                    continue  # all score alike, and a trial puts what was taught first among equals
                found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
                assert outcomes[choice][place] == pytest.approx(ndcg(found.numbers, lessons.grades[query]), abs=1e-6)
                told = dict(zip(*(part.tolist() for part in (found.numbers, found.scores)), strict=True))
                tried = ranked[place][0]
                assert dict(zip(tried.numbers.tolist(), tried.scores.tolist(), strict=True)) == pytest.approx(
                    told, abs=1e-6
                )


def test_a_key_grown_by_texts_never_scores_less_and_an_unlike_text_adds_nothing() -> None:
    key = LateBlock.of([np.array([[-0.8, 0.6]], np.float32)])
    texts = LateBlock.of([np.array([[-0.6, 0.8]], np.float32), np.array([[0.6, 0.8]], np.float32)])
    question = LateQuestion(np.array([[1.0, 0.0]], np.float32))
    for columns, wanted in (([0], -0.8), ([1], 0.3), ([0, 1], 0.3)):
        evidence = evokey_evidence(columns, 0.5)
        pulled = key.pull(texts.likeness(question), evidence)
        grown = key.grow(key.likeness(question), pulled, 1.0, np.ones(1))
        assert grown == pytest.approx([wanted])


def evokey_evidence(columns: Sequence[int], weight: float) -> Any:
    from scipy import sparse

    return sparse.csr_array((np.full(len(columns), weight), (np.zeros(len(columns), int), columns)), shape=(1, 2))


def test_rows_without_a_vector_are_like_nothing_wherever_they_lie() -> None:
    vector, none = np.array([[0.6, 0.8]], np.float32), np.zeros((0, 2), np.float32)
    question = LateQuestion(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    for rows in ([none, vector], [vector, none], [none, vector, none, none, vector], [none]):
        block = LateBlock.of(rows)
        for one in (block, block.take(np.arange(len(rows))), LateBlock.join([block, LateBlock.empty()])):
            assert one.scores(question).tolist() == pytest.approx([0.7 if len(row) else -math.inf for row in rows])


# ---- the paper's rule


@pytest.mark.parametrize("keys", ["full", "chunks"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_the_papers_gain_is_what_appending_a_unit_adds(opened: Opener, keys: str, accumulate: bool) -> None:
    rule = {"name": "paper", "x": 2, "capacity": 3, "retrieved": 3, "gate": 0, "accumulate": accumulate}
    memory = opened(encoder=LATE, keys=CHUNKS if keys == "chunks" else "full", policy=rule)
    memory.add(DOCUMENTS)
    said = []
    for batch in (LESSONS[:2], LESSONS[2:]):
        for query, relevant, units in batch:
            lesson = memory.feedback(query, relevant=relevant, units=units or None)
            said.append((lesson.number, query, units or [query]))
        memory.evolve()
    retriever, log = memory.index.retrievers[0], memory.composer.log(memory.ledger.lessons.last)
    ids = {number: id for id, number in memory.ledger.documents.numbers(list(TOPICS)).items()}
    retrieved = {one.query: [ids[number] for number in one.retrieved[:3]] for one in log.successes}
    rows = {id: rows_of(memory, id) for id in TOPICS}
    scores: dict[tuple[str, int], dict[str, float]] = {(id, at): {} for id in TOPICS for at in range(len(rows[id]))}
    added: dict[tuple[str, int], list[str]] = {key: [] for key in scores}
    for batch in (said[:2], said[2:]):
        for _, query, units in batch:
            question = by_word.vectors(query)
            for id in retrieved.get(query, ()):
                base = [maxsim(row, question) if len(question) else 0.0 for row in rows[id]]
                row = base.index(max(base))
                attribute_by_hand(scores[id, row], rows[id][row], added[id, row], question, units)
        for key, known in scores.items():
            scores[key] = known = dict(sorted(known.items(), key=lambda item: (-item[1], item[0]))[:3])
            chosen = sorted(known, key=lambda text: (-known[text], text))[:2]
            added[key] = sorted({*added[key], *chosen}) if accumulate else chosen
    replay = Replay(memory.policy, retriever, log.successes)  # type: ignore[arg-type]
    replay.run(log.marks)
    for (id, place), known in scores.items():
        number = memory.ledger.documents.numbers([id])[id]
        span = replay.touched.rows(number)
        if span.start == span.stop:
            assert not known
            continue
        found = {replay.texts[column]: s for column, s in replay.scores[span.start + place].items()}
        assert found == pytest.approx(known, abs=1e-6)
        assert {replay.texts[column] for column in replay.added[span.start + place]} == set(added[id, place])
    for query in ASKED:
        question = by_word.vectors(query)
        if not len(question):
            assert {score for _, score in ranking(memory, query)} == {0.0}
            continue
        wanted = {
            id: max(sum(appended(row, added[id, at], question)) for at, row in enumerate(rows[id])) for id in TOPICS
        }
        assert dict(ranking(memory, query)) == pytest.approx(wanted, abs=1e-6)


def test_the_papers_gain_is_found_again_in_the_score(opened: Opener) -> None:
    """Keys and texts of one word each: some are unlike the question, and what is unlike brings nothing."""
    words = "apple river stone law music war tax blue seven engine prayer goal".split()
    memory = opened(encoder=LATE, policy={"name": "paper", "retrieved": 100, "gate": 0})
    memory.add([evokey.Document(word, word) for word in words])
    numbers = memory.ledger.documents.numbers(words)
    unlike = 0
    for query in ("yeast", "parliament", "zinc", "wolf"):
        for unit in ("quickly", "seventeen", "herself", "dough"):
            memory.feedback(query, relevant=["apple"], units=[unit])
            memory.evolve()
            log, before = memory.composer.log(memory.ledger.lessons.last), dict(ranking(memory, query, 20, epoch=0))
            replay = Replay(memory.policy, memory.index.retrievers[0], log.successes)  # type: ignore[arg-type]
            replay.run(log.marks)
            for id, after in ranking(memory, query, 20):
                gains = replay.scores[replay.touched.rows(numbers[id]).start]
                assert after - before[id] == pytest.approx(sum(gains.values()), abs=1e-6)
                (pulls,) = (view.contributions for view in memory.explain(id, query).views)
                assert sum(pull.amount for pull in pulls) == pytest.approx(after - before[id], abs=1e-6)
                unlike += before[id] < maxsim(by_word.vectors(unit), by_word.vectors(query)) < 0
            memory.forget(query=query)
    assert unlike > 5


def appended(row: Any, texts: Sequence[str], question: Any) -> list[float]:
    """The best matches of a question in a row with the vectors of texts beside its own; unlike ones bring nothing."""
    best = likeness(row, question)
    for text in texts:
        said = likeness(by_word.vectors(text), question)
        best = [max(own, new) if new > 0 else own for own, new in zip(best, said, strict=True)]
    return best


def attribute_by_hand(
    scores: dict[str, float], row: Any, added: Sequence[str], question: Any, units: Sequence[str]
) -> None:
    gains = [
        sum(appended(row, [*added, unit], question)) - sum(appended(row, added, question)) if len(question) else 0.0
        for unit in units
    ]
    powers = [math.exp(gain) for gain in gains]
    for unit, gain, power in zip(units, gains, powers, strict=True):
        if gain > 0:
            scores[unit] = scores.get(unit, 0.0) + gain * power / sum(powers)


# ---- in a memory


@pytest.mark.parametrize("policy", ["guarded", "paper"])
def test_explain_tells_the_score_that_search_gives(opened: Opener, policy: str) -> None:
    memory = opened(encoder=LATE, keys=CHUNKS, policy=policy)
    memory.add(DOCUMENTS)
    teach(memory)
    memory.evolve()
    for query in ASKED:
        for hit in memory.search(query):
            view = memory.explain(hit.id, query).views[0]
            assert view.after == pytest.approx(hit.score, abs=1e-6)
            assert view.before == pytest.approx(dict(ranking(memory, query, epoch=0))[hit.id], abs=1e-6)
            if view.best_key == "moved key":
                assert view.after - view.before <= sum(pull.amount for pull in view.contributions) + 1e-6
                assert all(pull.amount >= 0 for pull in view.contributions)


def test_what_a_text_adds_alone_is_what_explain_says_of_it(opened: Opener) -> None:
    """One taught text, moved keys: its pull is all there is between before and after."""
    memory = opened(encoder=LATE, policy={"name": "paper", "retrieved": 1})
    memory.add(DOCUMENTS)
    memory.feedback("mountain that spits fire", relevant=["volcano"])
    memory.evolve()
    (known,) = memory.index.view(1).overlays.of[LATE].documents.tolist()
    id = memory.ledger.documents.fetch([known])[known].id
    moved = 0
    for query in [*ASKED, "zinc", "parliament", "quantum entropy", "football match", "tax law of 1982"]:
        view = memory.explain(id, query).views[0]
        assert sum(pull.amount for pull in view.contributions) == pytest.approx(view.after - view.before, abs=1e-6)
        moved += view.after > view.before
    assert moved > 3


@pytest.mark.parametrize("policy", ["guarded", "paper"])
def test_forgetting_is_exact_and_erases_the_encoded_texts(opened: Opener, policy: str, tmp_path: Path) -> None:
    taught, twin = (opened(name, encoder=LATE, keys=CHUNKS, policy=policy, now=lambda: 0.0) for name in "ab")
    for memory in (taught, twin):
        memory.add(DOCUMENTS)
        teach(memory)
    taught.feedback("a secret wish", relevant=["garden"], units=["hidden longing"], actor="eve")
    for memory in (taught, twin):
        memory.evolve()
        memory.search("a secret wish")
    file = tmp_path / "a" / "keys" / LATE / "taught.sqlite"
    hidden = by_word.vectors("hidden longing").tobytes()
    assert kept(file, "a secret wish") >= 1
    assert kept(file, "hidden longing") >= 1
    assert taught.forget(actor="eve").lessons == 1
    assert kept(file, "a secret wish") == kept(file, "hidden longing") == 0
    assert kept(file, "bread recipe") == 2  # as a question and as a row
    for path in file.parent.glob("taught.sqlite*"):
        assert hidden not in path.read_bytes()
    for query in [*ASKED, "a secret wish"]:
        assert ranking(taught, query) == ranking(twin, query)
    before = {query: ranking(taught, query) for query in ASKED}
    taught.close()
    again = opened("a")
    assert {query: ranking(again, query) for query in ASKED} == before
    for query, _, _ in LESSONS:
        again.forget(query=query)
    for query in ASKED:
        assert ranking(again, query) == ranking(again, query, epoch=0)
    again.forget(traffic=True)
    assert rows_in(file) == 0


def kept(file: Path, text: str) -> int:
    with sqlite3.connect(file) as connection:
        return int(connection.execute("SELECT count(*) FROM encoded WHERE text = ?", (hash_texts(text),)).fetchone()[0])


def rows_in(file: Path) -> int:
    with sqlite3.connect(file) as connection:
        return int(connection.execute("SELECT count(*) FROM encoded").fetchone()[0])


@pytest.mark.parametrize("search", ["blend", "concat", "fuse"])
@pytest.mark.parametrize("units", [(), ("lava", "☃"), ("☃",), ("lava " * 600,)], ids=["none", "some", "sign", "long"])
def test_an_expanded_question_has_the_vectors_of_all(
    memory: evokey.Memory, search: str, units: tuple[str, ...]
) -> None:
    expansion = Expansion("steer", (*map(Unit, units), Unit("oven", False)), "by hand", search)
    found = ranking(memory, "steer", expansion=expansion)
    assert len(found) == len(dict(found)) == len(TOPICS)
    if search != "fuse" and len(units) == 2:
        question = np.concatenate([by_word.vectors("steer"), by_word.vectors("lava")])
        wanted = {id: max(maxsim(row, question) for row in rows_of(memory, id)) for id in TOPICS}
        assert dict(found) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("policy", ["guarded", "paper"])
def test_a_taught_text_without_a_vector_harms_nothing(opened: Opener, policy: str) -> None:
    memory = opened(encoder=LATE, policy=policy)
    memory.add([*DOCUMENTS, evokey.Document("signs", "☃ ☂"), evokey.Document("empty", "")])
    memory.feedback("☃", relevant=["night"], units=["☂"])
    memory.feedback("snow", relevant=["night", "signs"], units=["☂", "winter"])
    memory.feedback("☂", relevant=["signs", "empty"])
    memory.evolve()
    assert {id for id, _ in ranking(memory, "☃")} == set(TOPICS)
    found = ranking(memory, "snow")
    assert all(math.isfinite(score) for _, score in found)
    if policy == "guarded":
        assert found[0][0] == "night"
    for id in ("night", "signs", "empty"):
        memory.explain(id, "☃")
        memory.explain(id, "snow")
    memory.diff(0, len(memory.epochs()) - 1)
    assert memory.forget(query="☃").lessons == 1
