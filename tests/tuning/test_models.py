"""A sentence-transformers model is trained, kept and forgotten as token vectors are. The guard is left out here: what
is told is where the weights go."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from translation import ASKED, TEXTS, rank_all

import evokey
from evokey.errors import NotAllowed
from evokey.settings.trust import MODELS
from evokey.tuning import neural, tuner
from evokey.tuning.judging import Verdict

MINILM = "all-MiniLM-L6-v2"
LESSONS = dict(list(ASKED.items())[:100])


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "memory"
    encoder = {"name": "sentence-transformers", "model": MINILM, "threads": 1}
    with pytest.MonkeyPatch.context() as patch, evokey.open(folder, encoder=encoder) as memory:
        patch.setattr(Verdict, "refusal", None)
        patch.setattr(tuner, "LEAST", len(LESSONS))
        patch.setattr(neural, "TrainingOptions", partial(neural.TrainingOptions, epochs=1))
        memory.add([{"id": id, "text": text} for id, text in list(TEXTS.items())[:100]])
        memory.feedback_many([{"query": query, "relevant": [id]} for query, id in LESSONS.items()])
        (cost,) = memory.tuning_costs()
        assert (cost.licence, cost.documents) == ("apache-2.0", 100)
        assert memory.tune().published
    return folder


def test_the_weights_are_a_revision_and_nothing_else_stays(tuned: Path) -> None:
    with evokey.open(tuned) as memory:
        (revision,) = memory.epochs()[-1].revisions.values()
        encoder = memory.index.retrievers[0].encoder
        assert encoder.identity.endswith(f"@{revision}")
        assert rank_all(memory) != rank_all(memory, epoch=0)
    assert [path.name for path in (tuned / MODELS).iterdir()] == [revision]


def test_weights_from_elsewhere_are_loaded_when_somebody_allows_it(tuned: Path, tmp_path: Path) -> None:
    with evokey.open(tuned) as memory:
        found = rank_all(memory)
    copy = Path(shutil.copytree(tuned, tmp_path / "copy"))
    with pytest.raises(NotAllowed, match="is a model that was trained"):
        evokey.open(copy)
    (weights,) = (copy / MODELS).iterdir()
    with evokey.open(copy, allow=[str(weights / "model")]) as memory:
        assert rank_all(memory) == found


def test_forgetting_leaves_nothing_of_the_weights(tuned: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    (weights,) = (folder / MODELS).iterdir()
    with evokey.open(folder, allow=[str(weights / "model")]) as memory:
        assert memory.forget(query=next(iter(LESSONS))).revisions == 1
    assert not list((folder / MODELS).iterdir()) and not list(folder.glob("keys/*@*"))


def test_a_document_that_came_after_tuning_is_found_when_one_goes_back(tuned: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    (weights,) = (folder / MODELS).iterdir()
    with evokey.open(folder, allow=[str(weights / "model")]) as memory:
        memory.add([{"id": "new", "text": "a lighthouse keeper paints boats"}])
        for epoch in (None, 0):
            assert memory.search("who paints boats?", 1, epoch=epoch)[0].id == "new"
        memory.rollback(0)
        assert memory.search("who paints boats?", 1)[0].id == "new"
        assert memory.stats().documents_without_keys == 0
