"""Would learning help here? A layer answers from its lessons, and neither it nor the engine notices."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Attach
from layer.library import Library, ids, teach
from typer.testing import CliRunner, Result

import evokey
from evokey.bench.own import PARTS, PEOPLE, Bench, part_of
from evokey.cli.app import app
from evokey.demo.run import Question
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.evolution.ndcg import ndcg
from evokey.registry import COMPONENTS, Component

FAR = "zyx{at} qwv{at}"
"""Questions in words of their own, that no document has."""


@pytest.fixture
def library(pages: list[evokey.Document]) -> Library:
    return Library(pages)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "1000"})


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def measure(layer: evokey.Layer, asked: list[Question]) -> list[float]:
    """What real searches find."""
    found = []
    for one in asked:
        places = {id: at for at, id in enumerate(one.relevant)}
        right = dict.fromkeys(places.values(), 1.0)
        found.append(ndcg([places.get(id, -1) for id in ids(layer.search(one.text, 10))], right))
    return found


def test_the_figures_are_those_of_real_searches_in_layers_that_heard_only_the_others(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    asked = teach(layer, questions)
    people = Bench(layer).run().kinds[PEOPLE]
    assert people.held_out is not None and people.asked_again is not None
    untaught = measure(attach(library.search, "empty"), asked)
    layer.evolve()
    again, held_out = measure(layer, asked), list[float]()
    for part in range(PARTS):
        other = attach(library.search, f"without-{part}")
        teach(other, [one for one in asked if part_of(one.text) != part])
        other.evolve()
        held_out += measure(other, [one for one in asked if part_of(one.text) == part])
    assert (people.held_out.questions, len(held_out)) == (60, 60)
    assert people.held_out.untaught == pytest.approx(sum(untaught) / 60)
    assert people.held_out.taught == pytest.approx(sum(held_out) / 60)
    assert people.asked_again.taught == pytest.approx(sum(again) / 60)
    assert people.held_out.taught > people.held_out.untaught


def test_the_engine_is_not_asked_and_related_questions_are_apart_from_others(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search, allowed=library.allowed)
    teach(layer, questions)
    library.asked.clear()
    library.down = True
    report = Bench(layer).run()
    assert (library.asked, library.asked_for_leave) == ([], [])
    people = report.kinds[PEOPLE]
    assert people.related is not None and people.unrelated is not None
    assert people.related.questions + people.unrelated.questions == people.questions == report.lessons == 60
    assert people.related.gain > 0.05 and people.related.clear
    assert report.verdicts[0].startswith("people's questions: learning helps here: ")


def test_a_question_is_never_tested_on_its_own_lesson(attach: Attach, library: Library) -> None:
    layer = attach(library.search)
    layer.feedback_many([{"query": FAR.format(at=at), "relevant": [f"page {at}"]} for at in range(30)])
    people = Bench(layer).run().kinds[PEOPLE]
    assert people.held_out is not None and people.asked_again is not None
    assert (people.held_out.taught, people.related, people.asked_again.taught) == (0.0, None, 1.0)


class Slow(WordLlamaEncoder):
    """Encoding costs time, so texts of lessons are kept encoded in a file of the layer."""

    cost: ClassVar[Any] = "time"


@pytest.mark.parametrize("encoder", ["bm25", "slow"])
def test_the_command_needs_no_search_function_and_changes_no_byte(
    tmp_path: Path, library: Library, questions: list[Question], encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPONENTS["encoder"], "slow", Component("test_own_layer:Slow"))
    with evokey.beside(library.search, tmp_path / "kb", encoder=encoder) as layer:
        teach(layer, questions, 24)
        layer.evolve()
        teach(layer, questions, 30)
    before = files(tmp_path / "kb")
    assert any(name.endswith("taught.sqlite") for name in before) == (encoder == "slow")
    told = run("bench", "--at", tmp_path / "kb", "--json")
    assert told.exit_code == 0, told.output
    assert files(tmp_path / "kb") == before
    report = json.loads(told.stdout)
    assert (report["lessons"], report["kinds"]["people"]["held_out"]["questions"]) == (54, 30)
    assert (report["beside"], report["traffic"], report["judge"]) == (True, None, None)


def test_the_screen_has_a_table_a_verdict_and_a_picture(
    tmp_path: Path, library: Library, questions: list[Question]
) -> None:
    with evokey.beside(library.search, tmp_path / "kb") as layer:
        teach(layer, questions, 24)
    told = run("bench", "--at", tmp_path / "kb", "--plot", tmp_path / "own.svg")
    assert "people, held out" in told.stdout and "→ people's questions: " in told.stdout
    assert "related" in (tmp_path / "own.svg").read_text()
    refused = run("bench", "--at", tmp_path / "kb", "--llm", "openai")
    assert refused.exit_code == 2 and "leave --llm out" in refused.stderr


def test_questions_whose_results_are_not_known_take_no_part_and_are_counted(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    teach(layer, questions, 40)
    known = Bench(layer).run()
    library.down = True
    layer.feedback_many([{"query": FAR.format(at=at), "relevant": ["os"]} for at in range(3)])
    layer.feedback(FAR.format(at=0), relevant=["os"], actor="ada")
    layer.protect("xylophone quartz", ["os"])
    library.down = False
    library.asked.clear()
    report = Bench(layer).run()
    assert (report.unasked, report.lessons, library.asked) == (3, 40, [])
    assert report.kinds == known.kinds
    assert report.verdicts[-1].startswith("3 taught questions took no part, because what the search function returns")
    layer.evolve()
    assert (Bench(layer).run().unasked, known.unasked) == (0, 0)


def test_too_few_lessons_are_said_to_be_too_few_and_lessons_on_hold_take_no_part(
    attach: Attach, library: Library
) -> None:
    layer = attach(library.search)
    assert Bench(layer).run().verdicts == (
        "too little is known: there is no lesson yet, and 20 questions are needed. Give feedback",
    )
    layer.feedback_many([{"query": FAR.format(at=at), "relevant": ["os"]} for at in range(8)])
    layer.hold([3])
    report = Bench(layer).run()
    assert report.kinds[PEOPLE].held_out is None
    assert "lessons on 7, and at least 20 are needed (13 more)" in report.verdicts[0]
