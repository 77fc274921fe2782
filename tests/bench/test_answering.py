"""Expansion while the searcher waits, and answers against gold ones, by a model whose words are known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_sets
from reading import Reading

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import answering, runs, systems, tables
from evokey.bench.calibration import calibration
from evokey.bench.data import load
from evokey.bench.grid import Grid
from evokey.bench.lab import Lab
from evokey.bench.protocols import split
from evokey.bench.runs import Run, measure
from evokey.errors import InvalidInput
from evokey.llm.recorded import Recorded


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


def test_answers_are_graded_from_0_to_100_and_grades_compared_with_gold(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = Reading()
    found = [outcome(folder, policy, llm, monkeypatch, answers=10) for policy in ("none", "guarded")]
    rows = {row["policy"]: row for row in tables.answers(Grid(found))}
    assert (rows["none"]["judge"], rows["guarded"]["judge"], rows["guarded"]["graded"]) == (None, 90, 1)
    assert rows["none"]["graded"] == 0, "who finds nothing answers nothing, and there is nothing to grade"
    bins = {row["grade"]: row for row in calibration(Grid(found))}
    assert list(bins) == ["0–20", "20–40", "40–60", "60–80", "80–100", "none given", "all"]
    assert (bins["80–100"]["answers"], bins["80–100"]["match"], bins["0–20"]["answers"]) == (10, 1, 0)
    assert (bins["none given"]["answers"], bins["none given"]["match"]) == (10, 0)
    assert (bins["all"]["agreement"], bins["all"]["kappa"]) == (1, None), "only right answers were graded"


def test_a_judge_that_is_wrong_is_told_so() -> None:
    graded = [(90, 1.0), (100, 0.0), (10, 0.0), (20, 0.6), (None, 1.0)]
    answered = [{"id": str(n), "said": "x", "judge": judge, "token-f1": f1, "exact-match": float(f1 == 1)}
                for n, (judge, f1) in enumerate(graded)]  # fmt: skip
    made = {"dataset": "s", "encoder": "e", "protocol": "holdout", "policy": "none", "seed": 0,
            "answers": {"judge": "weak", "rows": answered}}  # fmt: skip
    bins = {row["grade"]: row for row in calibration(Grid([made, {**made, "seed": 1}]))}
    assert [bins[grade]["answers"] for grade in ("0–20", "20–40", "80–100", "none given", "all")] == [1, 1, 2, 1, 5]
    assert (bins["all"]["agreement"], bins["all"]["kappa"]) == (0.5, 0)
    assert bins["80–100"]["match"] == 0.5


def test_answers_and_grades_that_were_recorded_are_measured_without_a_model(folder: Path, tmp_path: Path) -> None:
    data, file = load(folder), tmp_path / "recorded.jsonl"
    asked = answering.answerable(data, split(data, "same-intent").tested)[:5]
    found = []
    for options in ({"llm": Reading(), "mode": "record"}, {}):
        llm = Recorded(file, **options)  # type: ignore[arg-type]
        with systems.system("judged", Lab(data, "bm25", folder.parent)) as system:
            scratch = tmp_path / f"{len(found)}"
            scratch.mkdir()
            found.append(answering.answer(system, data, asked, llm, scratch))
    assert found[0]["means"] == found[1]["means"]
    assert (found[1]["means"]["judge"], found[1]["judge"]) == (90, "reading")


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
