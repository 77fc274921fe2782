"""Would learning help here? Answered from a memory's own lessons, honestly, and without changing a byte of it."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Opener
from typer.testing import CliRunner, Result

import evokey
from evokey.bench.own import PEOPLE, Bench, Effect, Kind, OwnReport, describe, give_verdicts, part_of
from evokey.cli.app import app
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.registry import COMPONENTS, Component
from evokey.types import SYNTHETIC

sys.path += [str(Path(__file__).parents[1] / "seeding"), str(Path(__file__).parent)]
from test_seeding import DOCUMENTS, SUBJECTS, writer
from writer import Writer

ASIDE = [evokey.Document(f"x{at}", f"Opening hours of hall {at} are on the door.") for at in range(30)]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "1000"})


def teach(memory: evokey.Memory, count: int, actor: str | None = None, word: str = "exhibit") -> None:
    """Questions in words that no document has: two thirds of the wordings teach the rest."""
    memory.feedback_many(
        {"query": f"{word} {name} {SUBJECTS[at // 12]}ish", "relevant": [f"d{at % 12}"], "actor": actor}
        for at, name in ((at, f"{SUBJECTS[at % 12]}oid") for at in range(count))
    )


@pytest.fixture
def museum(opened: Opener) -> evokey.Memory:
    memory = opened("kb", encoder="bm25")
    memory.add([*DOCUMENTS, *ASIDE])
    return memory


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_questions_are_tested_on_what_the_others_taught_and_learning_is_seen_to_help(museum: evokey.Memory) -> None:
    teach(museum, 48)
    report = Bench(museum).run()
    people = report.kinds[PEOPLE]
    assert people.held_out is not None and people.asked_again is not None and people.related is not None
    assert (people.questions, people.held_out.questions) == (48, 48)
    assert people.held_out.untaught == 0 and people.held_out.taught > 0.5
    assert people.asked_again.taught > 0.95
    assert report.verdicts[0].startswith("people's questions: learning helps here: ")
    assert report.by_seeds is None and report.kinds[SYNTHETIC].questions == 0


def test_a_question_is_never_tested_on_its_own_lesson(museum: evokey.Memory) -> None:
    """Each names a document of its own, in words of its own: nobody else can teach it."""
    museum.feedback_many({"query": f"zyx{at} qwv{at}", "relevant": [one.id]} for at, one in enumerate(ASIDE))
    people = Bench(museum).run().kinds[PEOPLE]
    assert people.held_out is not None and people.asked_again is not None
    assert (people.held_out.taught, people.related, people.asked_again.taught) == (0.0, None, 1.0)


class Slow(WordLlamaEncoder):
    """Encoding costs time, so texts of lessons are kept encoded in a file of the memory."""

    cost: ClassVar[Any] = "time"


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", "slow"])
def test_no_byte_of_the_memory_changes(tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPONENTS["encoder"], "slow", Component("test_own:Slow"))
    with evokey.open(tmp_path / "kb", encoder=encoder) as memory:
        memory.add([*DOCUMENTS, *ASIDE])
        teach(memory, 24)
        for at in range(40):
            memory.search(f"hall {at}")
        memory.evolve()
    before = files(tmp_path / "kb")
    assert any(name.endswith("taught.sqlite") for name in before) == (encoder == "slow")
    told = run("bench", "--at", tmp_path / "kb", "--json")
    assert told.exit_code == 0, told.output
    assert files(tmp_path / "kb") == before
    assert json.loads(told.stdout)["traffic"]["questions"] == 40


def test_people_and_synthetic_questions_are_told_apart(museum: evokey.Memory) -> None:
    teach(museum, 24)
    teach(museum, 36, SYNTHETIC, "old")
    report = Bench(museum).run()
    assert [kind.questions for kind in report.kinds.values()] == [24, 36]
    assert report.by_seeds is not None and report.by_seeds.questions == 24
    assert "a model wrote these" in report.verdicts[1]
    assert report.verdicts[2].startswith("synthetic lessons alone, on people's questions: ")


def test_too_few_lessons_are_said_to_be_too_few_and_how_many_are_needed(museum: evokey.Memory) -> None:
    assert "there is no lesson yet, and 20 questions are needed" in Bench(museum).run().verdicts[0]
    teach(museum, 7)
    report = Bench(museum).run()
    assert report.kinds[PEOPLE].held_out is None
    assert "lessons on 7, and at least 20 are needed (13 more)" in report.verdicts[0]


def test_lessons_on_hold_and_restricted_documents_take_no_part(opened: Opener) -> None:
    memory = opened("kb", encoder="bm25", restricted="access")
    memory.add([*DOCUMENTS, *ASIDE, evokey.Document("secret", "The vault is below hall 3.", metadata={"access": "hr"})])
    teach(memory, 24)
    memory.feedback("where is the vault", relevant=["secret"])
    held = memory.feedback("never mind", relevant=["d0"])
    memory.hold([held.number])
    report = Bench(memory).run()
    assert report.kinds[PEOPLE].questions == 24
    assert "vault" not in json.dumps(report.to_dict())


def test_searched_questions_are_judged_where_there_is_a_model(museum: evokey.Memory, tmp_path: Path) -> None:
    teach(museum, 24)
    museum.search("hall 3")
    museum.search("hall 4")
    museum.close()
    told = run("bench", "--at", tmp_path / "kb", "--llm", "test_own:Judging", "--json")
    report: dict[str, Any] = json.loads(told.stdout)
    assert report["judge"] == "writer/1" and report["judged_traffic"]["questions"] == 2
    assert report["verdicts"][-1].startswith("searched questions, of which writer/1 could judge 2 of 2: unchanged")
    assert json.loads(run("bench", "--at", tmp_path / "kb", "--json").stdout)["judge"] is None


class Judging(Writer):
    def __init__(self) -> None:
        super().__init__({"<answer>": "Right. <score>95</score>"}, otherwise="It is on the door [1].")


def test_the_screen_has_a_table_a_verdict_and_a_picture(museum: evokey.Memory, tmp_path: Path) -> None:
    teach(museum, 24)
    museum.seed(writer())
    museum.close()
    told = run("bench", "memory", "--at", tmp_path / "kb", "--plot", tmp_path / "own.svg")
    assert "people, held out" in told.stdout and "synthetic, asked again" in told.stdout
    assert "→ people's questions: " in told.stdout
    assert "related" in (tmp_path / "own.svg").read_text()


def test_a_bench_without_data_and_memory_says_what_to_name() -> None:
    told = run("bench")
    assert told.exit_code == 2 and "evokey bench --at DIR" in told.stderr


def test_parts_are_other_than_the_folds_that_evolve_uses() -> None:
    from evokey.evolution.folds import fold_of

    pairs = {(part_of(f"question {at}"), fold_of(f"question {at}")) for at in range(2_000)}
    assert len(pairs) == 30


# ---- what the figures say, in words


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (Effect(50, 0.5, 0.56, 0.02, 0.1), "+12.0% (+4.0% to +20.0%, 50 questions)"),
        (Effect(50, 0.5, 0.5, 0.0, 0.0), "unchanged (50 questions)"),
        (Effect(50, 0.0, 0.4, 0.3, 0.5), "0.000 → 0.400 (50 questions)"),
        (
            Effect(50, 0.5, 0.51, -0.01, 0.03),
            "+2.0% (-2.0% to +6.0%, 50 questions; to be sure of a change this large: about 200 questions)",
        ),
    ],
)
def test_an_effect_is_described_with_its_interval_and_what_is_missing(one: Effect, words: str) -> None:
    assert describe(one) == words


def test_harm_and_doubt_are_said_as_plainly_as_help() -> None:
    def verdict(one: Effect) -> str:
        kinds = {PEOPLE: Kind(PEOPLE, one.questions, one)}
        return next(iter(give_verdicts(OwnReport(10, 50, kinds, None, None))))

    assert verdict(Effect(50, 0.5, 0.4, -0.15, -0.05)).startswith("people's questions: learning does harm here: -20.0%")
    assert verdict(Effect(50, 0.5, 0.51, -0.01, 0.03)).startswith("people's questions: no clear effect: +2.0%")
