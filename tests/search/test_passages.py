"""The passage of a hit: the part of the document that answers, by every kind of key, an exact slice of its text."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from conftest import Opener
from hypothesis import given, settings
from hypothesis import strategies as st

import evokey
from evokey.encoders.bm25 import BM25
from evokey.search import passages
from evokey.types import Document, Hit, Passage

FILLER = {
    name: f"{name} fills the page with words that nobody asks for. " * 30 for name in ("Oak", "Elm", "Ash", "Fir")
}
FACTS = ("feeds squirrels", "shelters beetles", "burns slowly", "stands in cold mountains")
PARTS = [
    f"## {name}\n\n{text}\n\nThe {name.lower()} {fact}.\n"
    for (name, text), fact in zip(FILLER.items(), FACTS, strict=True)
]
TREES = Document("trees.md", "# Trees\n\n" + "\n\n".join(PARTS), "Trees")
OTHERS = [Document(f"other-{n}", f"A note about stones, rivers and the number {n}.") for n in range(5)]


class Letters:
    """A late-interaction encoder: a vector for each word, by its letters."""

    kind, cost, identity = "multi", "time", "letters"

    def documents(self, texts: Any) -> list[Any]:
        return [np.stack([self._vector(word) for word in text.lower().split()[:400]]) for text in texts]

    queries = documents

    @staticmethod
    def _vector(word: str) -> Any:
        counts = np.array([word.count(chr(ord("a") + letter)) + 0.01 for letter in range(26)], np.float32)
        return counts / np.linalg.norm(counts)


@pytest.mark.parametrize("keys", ["full", "chunks", "auto"])
@pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"], "late"])
def test_the_passage_is_the_part_that_answers(opened: Opener, keys: str, encoder: Any) -> None:
    memory = opened(encoder=Letters() if encoder == "late" else encoder, keys=keys)
    memory.add([TREES, *OTHERS])
    for question, heading in (
        ("squirrels feeds", "Oak"),
        ("mountains cold stands", "Fir"),
        ("burns slowly ash", "Ash"),
    ):
        hit = next(hit for hit in memory.search(question) if hit.id == "trees.md")
        assert hit.passage.where.startswith(heading)
        assert question.split()[0] in hit.passage.text
        assert hit.document.text[hit.passage.start : hit.passage.end] == hit.passage.text


def test_a_short_document_is_its_own_passage(opened: Opener) -> None:
    memory = opened()
    memory.add(OTHERS)
    hit = memory.search("stones")[0]
    assert (hit.passage.text, hit.passage.start, hit.passage.where) == (hit.document.text, 0, "")


def test_the_passage_is_found_when_it_is_read_and_not_before(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened(keys="chunks")
    memory.add([TREES, *OTHERS])
    found: list[int] = []
    locate = passages.locate
    monkeypatch.setattr(passages, "locate", lambda *said: found.append(said[1]) or locate(*said))
    hits = memory.search("beetles")
    assert not found
    assert hits[0].passage is hits[0].passage and len(found) == 1
    memory.close()
    assert "beetles" in hits[0].passage.text


def test_a_hit_travels_to_another_process_with_its_passage(opened: Opener) -> None:
    memory = opened(keys="chunks")
    memory.add([TREES, *OTHERS])
    hit = memory.search("beetles")[0]
    again = pickle.loads(pickle.dumps(hit))
    assert again == hit and again.passage == hit.passage and again.passage.where.startswith("Elm")
    assert Hit("a", 1.0, TREES).passage.text == TREES.text


def test_what_was_learned_ranks_the_document_and_the_question_finds_the_passage(opened: Opener) -> None:
    memory = opened(encoder="bm25", keys="chunks")
    memory.add([TREES, *OTHERS])
    memory.feedback("where do woodlice hide", relevant=["trees.md"])
    memory.evolve()
    hit = memory.search("where do woodlice hide, like beetles")[0]
    assert hit.id == "trees.md" and hit.passage.where.startswith("Elm")
    assert memory.search("where do woodlice hide")[0].id == "trees.md"


class Longest:
    """A reranker that likes long texts, and notes what it was given."""

    identity, longest = "longest", 900

    def __init__(self) -> None:
        self.read: list[Document] = []

    def scores(self, query: str, documents: Any) -> Any:
        self.read += documents
        return np.array([float(len(one.text)) for one in documents])


def test_a_reranker_reads_the_passage_and_the_hit_keeps_it(opened: Opener) -> None:
    reranker = Longest()
    memory = opened(encoder="bm25", reranker=reranker)
    memory.add([TREES, *OTHERS])
    hit = memory.search("beetles stones")[0]
    assert hit.id == "trees.md" and hit.score == len(reranker.read[0].text) <= 900
    assert "beetles" in reranker.read[0].text and hit.passage.text in reranker.read[0].text
    assert hit.passage.where.startswith("Elm") and hit.document == TREES


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("abc. \n#é漢\u0301😀`|"), min_size=1, max_size=500),
    st.sampled_from(["full", "auto"]),
)
def test_offsets_are_exact_whatever_the_text(tmp_path_factory: pytest.TempPathFactory, text: str, keys: str) -> None:
    options: Any = {"name": "auto", "whole": 16, "tokens": 16, "overlap": 4} if keys == "auto" else keys
    with evokey.open(tmp_path_factory.mktemp("kb"), encoder="bm25", keys=options) as memory:
        memory.add([{"id": "a", "text": text + " abc", "title": "b"}])
        for hit in memory.search("abc c 漢"):
            assert hit.document.text[hit.passage.start : hit.passage.end] == hit.passage.text


def test_windows_are_compared_by_words_where_encoding_costs(opened: Opener) -> None:
    scores = passages.by_words("red fish", ["a blue fish", "a red bird", "a red fish", "nothing"])
    assert scores.argmax() == 2 and scores[3] == 0
    assert passages.by_words("zzz", ["a", "b"]).tolist() == [0, 0]


class Counting:
    """BM25 that notes what it is given to encode."""

    kind, cost, identity = "sparse", "nothing", "counting"

    def __init__(self) -> None:
        self._inner, self.encoded = BM25(), list[str]()

    def documents(self, texts: Any) -> Any:
        self.encoded += texts
        return self._inner.documents(texts)

    def queries(self, texts: Any) -> Any:
        return self._inner.queries(texts)

    def pivots(self, lengths: Any, average: float) -> Any:
        return self._inner.pivots(lengths, average)

    def idf(self, documents: int, frequency: int) -> float:
        return self._inner.idf(documents, frequency)


def test_a_document_is_cut_and_encoded_once_however_many_queries_find_it(opened: Opener) -> None:
    encoder = Counting()
    memory = opened(encoder=encoder, keys="full")
    memory.add([TREES, *OTHERS])
    first = memory.search("squirrels")[0].passage
    encoded = len(encoder.encoded)
    second = memory.search("beetles")[0].passage
    assert (first.where[:3], second.where[:3]) == ("Oak", "Elm")
    assert len(encoder.encoded) == encoded


def test_a_document_that_was_replaced_is_cut_anew(opened: Opener) -> None:
    memory = opened(encoder="bm25", keys="full")
    memory.add([TREES, *OTHERS])
    assert memory.search("squirrels")[0].passage.where.startswith("Oak")
    memory.add([Document("trees.md", TREES.text.replace("## Oak", "## Beech"), "Trees")])
    assert memory.search("squirrels")[0].passage.where.startswith("Beech")


def test_of_cut_documents_the_last_used_ones_are_kept(opened: Opener) -> None:
    retrievers = opened(encoder="bm25", keys="full").index.retrievers
    cuts = passages.Cuts(most=100)
    first, second, third = (Document(str(number), str(number) * 40) for number in range(3))
    kept = [cuts.get(retrievers, number, one) for number, one in enumerate((first, second))]
    assert cuts.get(retrievers, 0, first) is kept[0]
    cuts.get(retrievers, 2, third)
    assert cuts.get(retrievers, 0, first) is kept[0]
    assert cuts.get(retrievers, 1, second) is not kept[1]


def test_a_passage_is_found_while_another_one_is_being_looked_for() -> None:
    begun, end = threading.Event(), threading.Event()

    def slowly() -> Passage:
        begun.set()
        assert end.wait(30)
        return Passage("slow", 0, 4, "")

    slow, fast = (Hit(id, 1.0, TREES, locate) for id, locate in (("a", slowly), ("b", lambda: Passage("", 0, 0, ""))))
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(lambda: slow.passage)
        assert begun.wait(30)
        assert threads.submit(lambda: fast.passage).result(30).text == ""
        assert not waiting.done()
        end.set()
        assert waiting.result(30).text == "slow"
