"""The engine is somebody else's: it may be down, slow, lose documents, and change its scores."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Attach
from layer.library import Library, ids, pairs, teach

import evokey
from evokey.demo.run import Question
from evokey.errors import InvalidInput, InvalidResults, ServiceFailed


@pytest.fixture
def library(pages: list[evokey.Document]) -> Library:
    return Library(pages)


def test_an_engine_that_is_down_raises_its_own_error(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    layer.evolve()
    library.down = True
    for query in (taught[0].text, "xylophone zeppelin quartz"):
        with pytest.raises(ConnectionError, match=r"^the search engine is down$"):
            layer.search(query)
    library.down = False
    assert layer.search(taught[0].text, 1)[0].id in taught[0].relevant


def test_lessons_are_recorded_while_the_engine_is_down_and_learned_when_it_is_back(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    library.down = True
    taught = teach(layer, questions)
    assert layer.stats().lessons == 60
    assert len(library.asked) == 1, "after a failure the engine is left alone"
    with pytest.raises(ServiceFailed, match=r"results for 60 questions.*ConnectionError.*No lesson is lost"):
        layer.evolve()
    assert layer.stats().lessons == 60
    library.down = False
    assert layer.evolve().published
    assert layer.search(taught[0].text, 1)[0].id in taught[0].relevant


def test_forgetting_does_not_wait_for_an_engine_that_is_down(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    layer.evolve()
    library.down = True
    layer.feedback("how long is a marmalade sandwich", relevant=["len"], actor="mallory")
    with pytest.raises(ServiceFailed):
        layer.evolve()
    assert layer.forget(actor="mallory").lessons == 1
    library.down = False
    layer.evolve()
    assert layer.stats().pending == 0


def test_evolve_asks_the_engine_nothing_that_it_was_asked_before(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    library.asked.clear()
    library.down = True
    assert layer.evolve().published
    assert library.asked == []


def test_a_search_asks_the_engine_once_and_feedback_on_it_asks_no_more(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    layer.evolve()
    library.asked.clear()
    layer.search(taught[0].text, 5)
    assert [(query, k) for query, k, _ in library.asked] == [(taught[0].text, 100)]
    layer.feedback(taught[0].text, relevant=taught[0].relevant)
    assert len(library.asked) == 1


def test_while_evolve_waits_for_the_engine_others_write(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    held: list[int] = []

    def search(query: str, k: int) -> list[tuple[str, float]]:
        if not library.down:
            other = threading.Thread(target=lambda: held.append(layer.hold([1]) + layer.release([1])))
            other.start()
            other.join(10)
        return library.search(query, k)

    layer = attach(search)
    library.down = True
    teach(layer, questions, 3)
    library.down = False
    layer.evolve()
    assert held == [2, 2, 2]


def test_a_question_that_is_forgotten_while_the_engine_is_asked_leaves_no_byte(
    attach: Attach, library: Library, tmp_path: Path
) -> None:
    def search(query: str, k: int) -> list[tuple[str, float]]:
        if not library.down:
            other = threading.Thread(target=lambda: layer.forget(actor="mallory"))
            other.start()
            other.join(10)
        return library.search(query, k)

    layer = attach(search)
    library.down = True
    layer.feedback("marmalade zeppelin", ["os"], actor="mallory")
    layer.feedback("copy a file", ["shutil.copy"], actor="ada")
    library.down = False
    layer.evolve()
    layer.close()
    bytes_left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert (b"zeppelin" in bytes_left, b"copy a file" in bytes_left) == (False, True)


def test_a_slow_engine_is_waited_for_once(attach: Attach, library: Library, questions: list[Question]) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    layer.evolve()
    library.delay = 0.2
    library.asked.clear()
    began = time.perf_counter()
    layer.search(taught[0].text)
    assert time.perf_counter() - began >= 0.2
    assert len(library.asked) == 1


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (0.001, 0.0), (1.0, -500.0)])
def test_scores_may_change_their_scale_and_the_ranking_stays(
    attach: Attach, library: Library, questions: list[Question], scale: float, shift: float
) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    layer.evolve()
    asked = [one.text for one in questions[:40] if len(library.search(one.text, 100)) == 100]
    before = [ids(layer.search(query, 5)) for query in asked]
    library.scale, library.shift = scale, shift
    assert [ids(layer.search(query, 5)) for query in asked] == before
    layer.evolve()


def test_a_document_that_the_engine_lost_does_not_come_back(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search, allowed=library.allowed)
    taught = teach(layer, questions)
    layer.evolve()
    lost = layer.search(taught[0].text, 1)[0].id
    library.lose(lost)
    assert lost not in ids(layer.search(taught[0].text, 50))


def test_without_allowed_a_lost_document_is_deleted_by_hand_until_it_is_taught_again(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    layer.evolve()
    lost = layer.search(taught[0].text, 1)[0].id
    library.lose(lost)
    assert lost in ids(layer.search(taught[0].text, 50))
    assert layer.delete([lost, "never heard of"]) == 1
    assert lost not in ids(layer.search(taught[0].text, 50))
    assert layer.stats().set_aside > 0
    layer.feedback(taught[0].text, relevant=[lost])
    layer.evolve()
    assert lost in ids(layer.search(taught[0].text, 2))


def test_a_document_whose_text_is_another_one_now_rests_until_it_is_confirmed(attach: Attach) -> None:
    texts = {"a": "how to bake bread", "b": "how to brew tea", "c": "how to cook rice"}

    def search(query: str, k: int) -> list[dict[str, Any]]:
        return [{"id": id, "score": 3.0 - at, "text": text} for at, (id, text) in enumerate(texts.items())][:k]

    layer = attach(search)
    layer.feedback("steaming grains", relevant=["c"])
    layer.evolve()
    assert ids(layer.search("steaming grains", 3)) == ["c", "a", "b"]
    texts["c"] = "the history of the alphabet"
    assert ids(layer.search("steaming grains", 3)) == ["a", "b", "c"]
    texts["c"] = "how to cook rice"
    assert ids(layer.search("steaming grains", 3)) == ["c", "a", "b"]
    texts["c"] = "how to cook rice, revised"
    layer.close()
    again = attach(search)
    assert ids(again.search("steaming grains", 3)) == ["a", "b", "c"]
    again.feedback("steaming grains", relevant=["c"])
    assert ids(again.search("steaming grains", 3)) == ["c", "a", "b"]


def test_an_engine_that_finds_nothing_still_has_what_was_taught(attach: Attach) -> None:
    layer = attach(lambda query, k: [])
    assert layer.search("anything") == []
    layer.feedback("where is the key?", relevant=["under the mat"])
    layer.evolve()
    assert pairs(layer.search("where is the key?")) == [("under the mat", layer.search("where is the key?")[0].score)]


def test_results_that_cannot_be_taken_are_an_error_when_teaching_too(attach: Attach) -> None:
    layer = attach(lambda query, k: [("a", float("nan"))])
    with pytest.raises(InvalidResults, match="'a'"):
        layer.search("anything")
    with pytest.raises(InvalidResults, match="'a'"):
        layer.feedback("anything", relevant=["a"])
    assert layer.stats().lessons == 0


def test_a_layer_without_its_search_function_says_what_it_cannot_do(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    teacher = attach(library.search)
    teach(teacher, questions)
    teacher.close()
    layer = attach(None)
    assert layer.evolve().published
    assert layer.forget(actor="demo").lessons == 60
    with pytest.raises(InvalidInput, match=r"without its search function.*evokey\.beside\(search"):
        layer.search("anything")
    with pytest.raises(InvalidInput, match="search is a function"):
        evokey.beside("http://localhost:9200", "kb")  # type: ignore[arg-type]


# ---- the engine breaks before one of the verbs, and is mended after the last

BREAKS = ("down", "slow", "scores rescaled", "loses documents")
VERBS = ("teach", "evolve", "explain", "rollback", "forget")
EARLY, LATE = 22, 8
PROTECTED = "how do I copy a file?"
Ranked = list[list[tuple[str, float]]]


class Told(NamedTuple):
    outcome: Any
    """What a verb returned, or what it raised."""
    asked: int
    """How often the engine was asked."""


class Story:
    """A layer that has learned from two people, and one verb after the other."""

    def __init__(self, folder: Path, pages: list[evokey.Document], questions: list[Question]) -> None:
        self.library = Library(pages)
        self.layer = evokey.beside(self.library.search, folder, allowed=self.library.allowed)
        self.early, self.late = questions[:EARLY], questions[EARLY : EARLY + LATE]
        self.asked = [one.text for one in questions[: 2 * EARLY]]
        self.lost = {self.early[3].relevant[0], *(id for one in self.late[:3] for id in one.relevant)}
        actors = ["mallory", *["ada"] * (EARLY - 1)]
        self._record(self.early, actors)
        self.layer.evolve()

    def play(self, how: str, before: str) -> dict[str, Told]:
        told = {}
        for verb in VERBS:
            if verb == before:
                self._break(how)
            self.library.asked.clear()
            outcome = self._try(verb)
            told[verb] = Told(outcome, len(self.library.asked))
        return told

    def search(self) -> Ranked:
        return [pairs(self.layer.search(query)) for query in self.asked]

    def teach(self) -> None:
        self._record(self.late, ["ada"] * LATE)
        self.layer.protect(PROTECTED, ["shutil.copy"])

    def evolve(self) -> evokey.EpochReport:
        return self.layer.evolve()

    def explain(self) -> evokey.Explanation:
        return self.layer.explain(self.early[3].relevant[0], self.early[3].text)

    def rollback(self) -> evokey.Epoch:
        return self.layer.rollback(1)

    def forget(self) -> evokey.Forgotten:
        return self.layer.forget(actor="mallory")

    def finish(self) -> Ranked:
        """All lessons are learned that are left."""
        self.layer.release(one.number for one in self.layer.lessons(held=True))
        self.layer.evolve()
        return self.search()

    def _try(self, verb: str) -> Any:
        try:
            return getattr(self, verb)()
        except (ConnectionError, ServiceFailed) as error:
            return error

    def _break(self, how: str) -> None:
        library = self.library
        library.down, library.delay = how == "down", 0.002 * (how == "slow")
        library.scale = 1000.0 if how == "scores rescaled" else 1.0
        for id in self.lost if how == "loses documents" else ():
            library.lose(id)

    def _record(self, questions: list[Question], actors: list[str]) -> None:
        named = zip(questions, actors, strict=True)
        self.layer.feedback_many({"query": one.text, "relevant": one.relevant, "actor": who} for one, who in named)


class Healthy(NamedTuple):
    told: dict[str, Told]
    before: Ranked
    """What was found after the last verb."""
    forgotten: evokey.Epoch
    after: Ranked
    lessons: set[tuple[str, str | None]]


@pytest.fixture(scope="module")
def healthy(
    tmp_path_factory: pytest.TempPathFactory, pages: list[evokey.Document], questions: list[Question]
) -> Iterator[Healthy]:
    story = Story(tmp_path_factory.mktemp("healthy"), pages, questions)
    with story.layer as layer:
        told, before, forgotten = story.play("", ""), story.search(), layer.epochs()[-1]
        yield Healthy(told, before, forgotten, story.finish(), {(one.query, one.actor) for one in layer.lessons()})


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("how", BREAKS)
def test_an_engine_may_break_before_any_verb_and_nothing_is_lost(
    tmp_path: Path, pages: list[evokey.Document], questions: list[Question], healthy: Healthy, how: str, verb: str
) -> None:
    story = Story(tmp_path, pages, questions)
    with story.layer as layer:
        told, broken = story.play(how, verb), VERBS[VERBS.index(verb) :]
        unheard = (how, verb) == ("down", "teach")
        asked = {"teach": 2 if unheard else LATE + 1, "evolve": int(unheard), "explain": 1, "rollback": 0, "forget": 0}
        assert {one: told[one].asked for one in VERBS} == asked

        failed = {one: told[one].outcome for one in VERBS if isinstance(told[one].outcome, Exception)}
        assert set(failed) == ({"evolve"} if unheard else set()) | ({"explain"} & {*broken} if how == "down" else set())
        assert str(failed.get("explain", "the search engine is down")) == "the search engine is down"
        if unheard:
            assert f"results for {LATE + 1} questions" in str(failed["evolve"])
        elif how != "loses documents" or verb != "teach":
            assert told["evolve"].outcome.choice == healthy.told["evolve"].outcome.choice
        if "explain" not in failed:
            gone, known = how == "loses documents" and "explain" in broken, healthy.told["explain"].outcome
            found, ranks = told["explain"].outcome, (known.rank_before, known.rank_after)
            assert (found.rank_before, found.rank_after) == ((None, None) if gone else ranks)
            assert known.rank_after == 1 < (known.rank_before or 101)
        assert told["rollback"].outcome.choice == healthy.told["rollback"].outcome.choice
        assert told["forget"].outcome == evokey.Forgotten(1, True, None)
        assert layer.epochs()[-1].kind == "forget"
        assert layer.epochs()[-1].choice == healthy.forgotten.choice != {}

        if how == "down":
            with pytest.raises(ConnectionError, match=r"^the search engine is down$"):
                story.search()
        elif how == "loses documents":
            assert story.lost.isdisjoint(id for hits in story.search() for id, _ in hits)
        else:
            assert list_ids(story.search()) == list_ids(healthy.before)

        story.library.mend()
        if (how, verb) == ("loses documents", "teach"):  # results are kept as they were, until a question that is
            story.search()  # searched anew is taught again
            story.teach()
        after = story.finish()
        assert list_ids(after) == list_ids(healthy.after)
        for hits, others in zip(after, healthy.after, strict=True):
            assert [score for _, score in hits] == pytest.approx([score for _, score in others])
        assert {(one.query, one.actor) for one in layer.lessons()} == healthy.lessons


def list_ids(ranked: Ranked) -> list[list[str]]:
    return [[id for id, _ in hits] for hits in ranked]


TEACHER = """
import sys, evokey
layer = evokey.beside(lambda query, k: [(f"d{at}", 100.0 - at) for at in range(k)], sys.argv[1])
for number in range(10_000):
    layer.feedback(f"question number {number} about thing {number % 7}", relevant=[f"d{number % 7}"])
    print(number, flush=True)
    if number % 30 == 29:
        layer.evolve()
"""


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TEACHER, str(tmp_path / "kb")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        told = [int(running.stdout.readline()) for _ in range(75)]
        running.kill()
    with evokey.beside(None, tmp_path / "kb") as layer:
        known = {lesson.query for lesson in layer.lessons()}
        assert {f"question number {number} about thing {number % 7}" for number in told} <= known
        assert len(layer.epochs()) >= 2
        assert layer.feedback("one more", relevant=["d1"]).number > len(told)
