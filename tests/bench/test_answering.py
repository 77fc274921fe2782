"""Expansion while the searcher waits, and answers against gold ones, by a model whose words are known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_sets
from reading import Reading

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import answering, runs, systems, tables
from evokey.bench.data import load
from evokey.bench.grid import Grid
from evokey.bench.lab import Lab
from evokey.bench.protocols import split
from evokey.bench.runs import Run, measure
from evokey.errors import InvalidInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The right answer to every question is its document's text."""
    folder = small_sets.gap(tmp_path / "gap", 12)
    rows = ({"_id": f"{kind}{n}", "answer": f"leaf{n} bark{n}"} for n in range(12) for kind in "ab")
    small_sets.lines(folder / "answers.jsonl", rows)
    return folder


def outcome(folder: Path, policy: str, llm: Reading, monkeypatch: pytest.MonkeyPatch, **given: Any) -> dict[str, Any]:
    monkeypatch.setattr(runs, "model", lambda name: llm)
    run = Run(str(folder), "bm25", "same-intent", None, 0, policy, **given)
    return measure(run, folder.parent)


def test_live_expansion_asks_the_model_for_every_question(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Reading()
    found = outcome(folder, "live", llm, monkeypatch)
    assert found["metrics"]["nDCG@10"] == found["taught"]["nDCG@10"] == 1
    assert len(llm.asked) == 24
    assert outcome(folder, "none", llm, monkeypatch)["metrics"]["nDCG@10"] == 0
    untold = systems.system("live", Lab(load(folder), "bm25", folder.parent))
    with pytest.raises(InvalidInput, match="live expansion needs a language model"), untold:
        pass


def test_answers_are_as_good_as_what_was_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Reading()
    found = [outcome(folder, policy, llm, monkeypatch, answers=10) for policy in ("none", "guarded", "judged")]
    untaught, taught, judged = (one["answers"] for one in found)
    assert [len(one["rows"]) for one in (untaught, taught, judged)] == [10, 10, 10]
    assert (untaught["means"]["recall@3"], untaught["means"]["token-f1"]) == (0, 0)
    assert taught["means"]["token-f1"] == taught["means"]["exact-match"] == taught["means"]["some right"] == 1
    assert judged["means"] == taught["means"]
    assert "loss" not in judged["means"], "this model does not tell how likely it finds an answer"
    rows = {row["policy"]: row for row in tables.answers(Grid(found))}
    assert rows["none"]["p"] is None
    assert rows["guarded"]["p"] == pytest.approx(2 / 2**10)
    assert (rows["judged"]["questions"], rows["judged"]["model"]) == (10, "reading")
    assert "rows" not in runs.summarise(found[0])["answers"]


def test_the_same_passages_are_not_read_twice(folder: Path) -> None:
    llm, data = Reading(), load(folder)
    dealt = split(data, "same-intent")
    for _ in range(2):
        with systems.system("judged", Lab(data, "bm25", folder.parent)) as system:
            answering.answer(system, data, answering.answerable(data, dealt.tested)[:5], llm, folder.parent)
    assert len(llm.asked) == 5


def test_questions_without_a_gold_answer_are_not_asked(tmp_path: Path) -> None:
    data, llm = load(small_sets.gap(tmp_path / "gap", 4)), Reading()
    with systems.system("judged", Lab(data, "bm25", tmp_path)) as system:
        found = answering.answer(
            system, data, answering.answerable(data, split(data, "same-intent").tested), llm, tmp_path
        )
    assert (found["rows"], llm.asked, found["means"]["token-f1"]) == ([], [], None)


def test_runs_that_ask_a_model_are_kept_apart_by_its_name() -> None:
    given = ("x/one", "bm25", "holdout", 0.5, 0)
    files = {Run(*given, policy, llm=llm, answers=answers).file
             for policy in ("none", "live") for llm in (None, "other") for answers in (0, 5)}  # fmt: skip
    assert len(files) == 7, "the untaught index asks no model, so its name does not matter"
