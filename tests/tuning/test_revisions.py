"""A tuned encoder is a revision: epochs name it, time travel and rollback hold, forgetting leaves nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from translation import ASKED, TEXTS, UNASKED, count_found, make_memory, rank_all, teach
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import DamagedRevision, InvalidInput, InvalidSettings
from evokey.inspect import doctor
from evokey.inspect.migrate import migrate
from evokey.ledger.sqlite.file import named_revisions
from evokey.settings import describe_encoders
from evokey.settings.trust import MODELS
from evokey.tuning.revisions import find_faults
from evokey.tuning.training import Trainer

COPY = Callable[[], Path]


@pytest.fixture(scope="session")
def taught_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that was evolved."""
    folder = tmp_path_factory.mktemp("taught") / "memory"
    with make_memory(folder) as memory:
        teach(memory)
        memory.evolve()
    return folder


@pytest.fixture(scope="session")
def tuned_folder(taught_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, and then tuned."""
    folder = Path(shutil.copytree(taught_folder, tmp_path_factory.mktemp("tuned") / "memory"))
    with evokey.open(folder) as memory:
        report = memory.tune()
        assert report.published, report.reason
    return folder


@pytest.fixture
def copy_taught(taught_folder: Path, tmp_path: Path) -> Callable[[], Path]:
    return lambda: Path(shutil.copytree(taught_folder, tmp_path / "taught"))


@pytest.fixture
def copy_tuned(tuned_folder: Path, tmp_path: Path) -> Callable[[], Path]:
    return lambda: Path(shutil.copytree(tuned_folder, tmp_path / "copy"))


def files_of(folder: Path) -> dict[str, bytes]:
    """All files but SQLite's: the ledger has its own tests."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_tuned_memory_finds_what_evolve_alone_does_not(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        assert count_found(memory) > count_found(memory, epoch=1) > count_found(memory, epoch=0)


def test_an_epoch_names_the_revision_and_its_weights_and_keys_are_files_of_their_own(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    with evokey.open(folder) as memory:
        epochs = memory.epochs()
    assert [one.kind for one in epochs] == ["untaught", "evolve", "tune"]
    revision = epochs[-1].revisions["wordllama"]
    assert [one.revisions for one in epochs[:-1]] == [{}, {}]
    assert (folder / MODELS / revision).is_dir()
    assert (folder / "keys" / f"wordllama@{revision}" / "segments.json").exists()
    assert find_faults(folder, [revision]) == []


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    with make_memory(tmp_path / "memory") as memory:
        teach(memory)
        memory.save()
        before = files_of(tmp_path)
        report = memory.tune(dry_run=True)
        assert (report.published, report.encoders[0].better, len(memory.epochs())) == (False, True, 1)
        assert files_of(tmp_path) == before


def test_too_few_lessons_train_nothing(tmp_path: Path) -> None:
    with make_memory(tmp_path / "memory") as memory:
        query, id = next(iter(ASKED.items()))
        memory.feedback(query, relevant=[id])
        report = memory.tune()
    assert (report.published, report.encoders) == (False, [])
    assert "1 questions were taught" in report.reason


def test_what_the_untuned_epochs_find_is_what_they_found_before(copy_tuned: COPY, copy_taught: COPY) -> None:
    with evokey.open(copy_taught()) as plain, evokey.open(copy_tuned()) as tuned:
        for epoch in (0, 1):
            assert rank_all(tuned, epoch) == rank_all(plain, epoch)


def test_rollback_goes_back_to_the_encoder_of_the_settings_and_forth_again(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    with evokey.open(folder) as memory:
        untuned, tuned = rank_all(memory, 1), rank_all(memory)
        memory.rollback(1)
        assert rank_all(memory) == untuned
        memory.rollback(2)
        assert rank_all(memory) == tuned
    with evokey.open(folder) as memory:
        assert rank_all(memory) == tuned


def test_the_difference_of_an_untuned_and_a_tuned_epoch_can_be_looked_at(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        assert memory.diff(0, 2).queries
        query, id = next(iter(ASKED.items()))
        assert memory.explain(id, query).rank_after == 1


def test_a_document_that_comes_later_is_found_by_the_revision_and_by_the_epochs_before(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    words = "voltage orbit photon"  # in the words of documents
    with evokey.open(folder) as memory:
        before = memory.search(words, 1, epoch=1)
        memory.add([{"id": "new", "text": words}])
        for epoch in (None, 0, 1):
            assert memory.search(words, 1, epoch=epoch)[0].id == "new"
        memory.delete(["new"])
        for epoch in (None, 0, 1):
            assert "new" not in {hit.id for hit in memory.search(words, 10, epoch=epoch)}
        assert [hit.id for hit in memory.search(words, 1, epoch=1)] == [hit.id for hit in before]
    with evokey.open(folder) as memory:
        memory.add([{"id": "new", "text": words}])
        memory.rollback(1)
        assert memory.search(words, 1)[0].id == "new"


def test_a_filter_holds_in_a_tuned_memory(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        query, id = next(iter(UNASKED.items()))
        memory.add([{"id": "marked", "text": TEXTS[id], "metadata": {"lang": "en"}}])
        assert [hit.id for hit in memory.search(query, 10, where={"lang": "en"})] == ["marked"]


def test_evolve_goes_on_with_the_revision(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        revisions = memory.epochs()[-1].revisions
        memory.feedback_many([{"query": query, "relevant": [id]} for query, id in list(UNASKED.items())[:30]])
        assert memory.evolve().published
        assert memory.epochs()[-1].revisions == revisions


def test_tuning_again_without_new_lessons_does_nothing(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        report = memory.tune()
    assert (report.published, report.reason) == (False, "nothing new since epoch 2 was tuned")


def test_forgetting_a_lesson_that_training_saw_leaves_nothing_of_the_revision(copy_tuned: COPY, tmp_path: Path) -> None:
    folder, gone = copy_tuned(), next(iter(ASKED))
    with evokey.open(folder) as memory:
        revision = memory.epochs()[-1].revisions["wordllama"]
        weights = np.load(folder / MODELS / revision / "vectors.npy")
        keys = next((folder / "keys" / f"wordllama@{revision}").glob("*/vectors.npy"))
        traces = [weights[0].tobytes(), np.load(keys)[0].tobytes(), revision.encode()]
        forgotten = memory.forget(query=gone)
        assert (forgotten.lessons, forgotten.erased, forgotten.revisions) == (1, True, 1)
        assert [one.revisions for one in memory.epochs()] == [{}] * 4
        found = rank_all(memory)
    left = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert [trace in left for trace in traces] == [False] * 3
    assert not list(folder.glob(f"{MODELS}/*")) and not list(folder.glob("keys/*@*"))
    with make_memory(tmp_path / "plain") as plain:
        plain.feedback_many([{"query": query, "relevant": [id]} for query, id in ASKED.items() if query != gone])
        plain.evolve()
        assert rank_all(plain) == found


def test_forgetting_a_lesson_that_came_later_keeps_the_revision(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        query, id = next(iter(UNASKED.items()))
        memory.feedback(query, relevant=[id])
        assert memory.forget(query=query).revisions == 0
        assert memory.epochs()[-1].revisions


def test_a_backup_has_the_revision_and_a_doctor_finds_nothing(copy_tuned: COPY, tmp_path: Path) -> None:
    with evokey.open(copy_tuned()) as memory:
        memory.backup(tmp_path / "backup")
        found = rank_all(memory)
    assert doctor.examine(tmp_path / "backup") == []
    with evokey.open(tmp_path / "backup") as copy:
        assert rank_all(copy) == found


def test_weights_that_are_damaged_are_an_error_and_a_rebuild_goes_back_to_the_encoder(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    (revision,) = named_revisions(folder)
    weights = folder / MODELS / revision / "vectors.npy"
    weights.write_bytes(weights.read_bytes()[:-4] + b"oops")
    with pytest.raises(DamagedRevision, match="evokey doctor --rebuild"):
        evokey.open(folder)
    assert [one.mended_by for one in doctor.examine(folder)] == ["evokey doctor --rebuild"]
    doctor.rebuild(folder)
    assert doctor.examine(folder) == []
    with evokey.open(folder) as memory:
        assert memory.epochs()[-1].revisions == {}
        assert count_found(memory) > 0


def test_keys_of_a_revision_that_are_damaged_are_made_again(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    with evokey.open(folder) as memory:
        found = rank_all(memory)
    keys = next(folder.glob("keys/*@*/*/vectors.npy"))
    keys.write_bytes(keys.read_bytes()[:-4] + b"oops")
    doctor.rebuild(folder)
    with evokey.open(folder) as memory:
        assert rank_all(memory) == found


def test_encoding_everything_again_drops_the_revision(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    doctor.reencode(folder)
    assert not list(folder.glob(f"{MODELS}/*"))
    with evokey.open(folder) as memory:
        assert memory.epochs()[-1].revisions == {}


STOPPED = """
import os, signal, sys
from evokey import memory as memory_
from evokey.tuning import revisions, tuner
from evokey.ledger.epochs import Epochs
stop = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
{patch}
memory_.open(sys.argv[1]).tune()
"""
MOMENTS = {
    "before the weights are in place": "revisions.Card.write = stop",
    "before the keys are written": "tuner.Tuner._write_keys = stop",
    "before the epoch is written": "Epochs.append = stop",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_in_the_middle_leaves_the_memory_as_it_was(moment: str, copy_taught: COPY) -> None:
    folder = copy_taught()
    done = subprocess.run([sys.executable, "-c", STOPPED.format(patch=MOMENTS[moment]), str(folder)], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert list((folder / MODELS).iterdir())
    assert {one.mended_by for one in doctor.examine(folder)} == {"evokey doctor --rebuild"}
    with evokey.open(folder) as memory:
        assert (memory.epoch, memory.epochs()[-1].kind) == (1, "evolve")
        assert count_found(memory) > 0
    doctor.rebuild(folder)
    assert not list((folder / MODELS).iterdir())
    assert doctor.examine(folder) == []


def test_what_a_kill_left_behind_goes_with_the_next_forget(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    (revision,) = named_revisions(folder)
    shutil.copytree(folder / MODELS / revision, folder / MODELS / "0123456789ab")
    with evokey.open(folder) as memory:
        memory.forget(query="nobody ever asked this")
    assert [path.name for path in (folder / MODELS).iterdir()] == [revision]


def test_a_restricted_document_has_no_part_in_training(tmp_path: Path) -> None:
    secret = "unobtainium"
    with evokey.open(tmp_path / "memory", encoder="wordllama", restricted="access") as memory:
        memory.add([{"id": id, "text": text} for id, text in TEXTS.items()])
        memory.add([{"id": "secret", "text": f"{secret} vault", "metadata": {"access": "board"}}])
        teach(memory)
        memory.feedback_many([{"query": f"{query} {secret}", "relevant": ["secret"]} for query in list(UNASKED)[:30]])
        lessons = memory.composer.log(memory.last_lesson).taught
        trainer = Trainer(memory.index, memory.ledger, memory.settings)
        data = trainer.collect(memory.index.retrievers[0], lessons, frozenset(lessons.queries))
    assert len(data) == len(ASKED)
    assert not any(secret in text for text in (*data.queries, *data.texts))


def test_what_cannot_be_tuned_is_named(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "memory", encoder="bm25") as memory, pytest.raises(InvalidSettings) as error:
        memory.tune()
    assert "bm25 in store sparse" in str(error.value)


def test_the_hybrid_is_judged_as_a_whole(tmp_path: Path) -> None:
    with make_memory(tmp_path / "memory", encoder=["bm25", "wordllama"]) as memory:
        teach(memory)
        report = memory.tune()
        assert [one.retriever for one in report.encoders] == ["wordllama"]
        assert report.published
        assert memory.epochs()[-1].choice.keys() == {"bm25", "wordllama"}
        json.dumps(report.to_dict())


def test_a_copy_in_another_directory_has_the_revision(copy_tuned: COPY, tmp_path: Path) -> None:
    folder = copy_tuned()
    migrate(folder, tmp_path / "moved")
    with evokey.open(folder) as before, evokey.open(tmp_path / "moved") as after:
        assert rank_all(before) == rank_all(after)
        assert rank_all(before, 1) == rank_all(after, 1)


def test_a_tuned_memory_is_not_moved_to_a_store_that_cannot_hold_it(copy_tuned: COPY, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="its weights are files"):
        migrate(copy_tuned(), tmp_path / "moved", store="ann")


def test_the_cost_is_named_before_work_begins(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        (cost,) = memory.tuning_costs()
    assert (cost.documents, cost.licence) == (len(TEXTS), "MIT License")
    assert cost.seconds > 0
    assert "310 documents are encoded anew" in cost.text


def test_the_command_says_what_it_did(copy_tuned: COPY) -> None:
    done = CliRunner().invoke(app, ["tune", "--dry-run", "--at", str(copy_tuned()), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["reason"]) == (0, "nothing new since epoch 2 was tuned")


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp", "a/b", ""])
def test_a_ledger_cannot_name_weights_outside_the_directory(copy_tuned: COPY, name: str) -> None:
    folder = copy_tuned()
    (revision,) = named_revisions(folder)
    shutil.copytree(folder / MODELS / revision, folder / "elsewhere")
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger, ledger:
        ledger.execute("UPDATE epochs SET revisions = replace(revisions, ?, ?)", (revision, name))
    (folder / "ledger.sum").unlink(missing_ok=True)
    if name:
        with pytest.raises(DamagedRevision, match="its name is none that evokey gives"):
            evokey.open(folder)
    else:
        evokey.open(folder).close()


def test_weights_of_another_kind_than_the_encoder_are_refused(copy_tuned: COPY) -> None:
    folder = copy_tuned()
    (revision,) = named_revisions(folder)
    card = folder / MODELS / revision / "revision.json"
    card.write_text(card.read_text("utf-8").replace('"static"', '"sentence-transformers"'), "utf-8")
    with pytest.raises(DamagedRevision, match="has no revisions of the kind"):
        evokey.open(folder)


def test_other_processes_do_not_encode_for_a_tuned_encoder(copy_tuned: COPY) -> None:
    with evokey.open(copy_tuned()) as memory:
        assert describe_encoders(memory.settings, memory.index.originals) == []
        memory.rollback(1)
        assert [one.name for one, _ in describe_encoders(memory.settings, memory.index.originals)] == ["wordllama"]
