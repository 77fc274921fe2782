"""Keys belong to their ledger: one that was restored, replaced or lost never lends its keys to other documents."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import Opener
from fixtures.earlier import story
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import DamagedLedger, EvokeyError, InvalidInput, MissingLedger
from evokey.inspect import doctor
from evokey.stores.segments import read_manifest

EARLIER = Path(__file__).parents[1] / "fixtures" / "earlier" / "hybrid"
ENCODERS = [None, "bm25"]


def add(memory: evokey.Memory, *words: str) -> None:
    memory.add([{"id": word, "text": f"{word} {word}s and more about {word}"} for word in words])


def first(memory: evokey.Memory, query: str) -> str:
    return memory.search(query, k=1)[0].id


def restore(folder: Path, copy: Path) -> None:
    for left in folder.glob("ledger.sqlite*"):
        left.unlink()
    shutil.copy(copy, folder / "ledger.sqlite")


@pytest.fixture(params=ENCODERS, ids=["hybrid", "bm25"])
def restored(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A ledger of two documents beside keys of four."""
    folder = tmp_path / "kb"
    with evokey.open(folder, encoder=request.param) as memory:
        add(memory, "apple", "banana")
    shutil.copy(folder / "ledger.sqlite", tmp_path / "copy")
    with evokey.open(folder) as memory:
        add(memory, "cherry", "damson")
    restore(folder, tmp_path / "copy")
    return folder


def test_new_documents_of_a_restored_ledger_get_no_keys_of_others(restored: Path) -> None:
    with evokey.open(restored) as memory:
        add(memory, "violin", "trumpet", "drum")
        assert [first(memory, word) for word in ("apple", "violin", "trumpet", "drum")] == [
            *("apple", "violin", "trumpet", "drum")
        ]
        assert [hit.id for hit in memory.search("cherry", k=5)][:1] != ["violin"]
    with evokey.open(restored) as memory:
        assert [first(memory, word) for word in ("violin", "trumpet", "drum")] == ["violin", "trumpet", "drum"]


def test_keys_stay_foreign_when_new_documents_pass_their_numbers_before_keys_are_saved(restored: Path) -> None:
    memory = evokey.open(restored)
    add(memory, "violin", "trumpet", "drum")
    memory.ledger.close()  # as if killed: nothing derived was saved
    with evokey.open(restored) as again:
        assert [first(again, word) for word in ("violin", "trumpet", "drum")] == ["violin", "trumpet", "drum"]


def test_the_doctor_names_keys_of_another_ledger_and_mends_them(restored: Path) -> None:
    found = doctor.examine(restored)
    assert found and all("made for other documents" in one.what for one in found)
    assert {one.mended_by for one in found} == {doctor.REBUILD}
    assert doctor.rebuild(restored) == 2
    assert doctor.examine(restored) == []


def test_a_restored_ledger_says_in_the_log_that_its_keys_are_made_again(
    restored: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with evokey.open(restored) as memory:
        assert first(memory, "apple") == "apple"
    assert "were made for other documents" in caplog.text


def test_a_ledger_copied_in_the_midst_of_a_session_is_told_from_what_came_later(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    with evokey.open(folder, encoder="bm25") as memory:
        add(memory, "apple")
        memory.backup(tmp_path / "copy")
        add(memory, "cherry", "damson")
    restore(folder, tmp_path / "copy" / "ledger.sqlite")
    for word in ("violin", "trumpet"):
        with evokey.open(folder) as memory:
            add(memory, word)
            memory.ledger.close()
    with evokey.open(folder) as memory:
        assert [first(memory, word) for word in ("apple", "violin", "trumpet")] == ["apple", "violin", "trumpet"]
        assert memory.search("cherry") == []


def test_keys_of_another_memory_are_not_used(tmp_path: Path) -> None:
    for name, words in (("one", ("apple", "banana")), ("two", ("violin", "trumpet"))):
        with evokey.open(tmp_path / name, encoder="bm25") as memory:
            add(memory, *words)
    shutil.rmtree(tmp_path / "one" / "keys")
    shutil.copytree(tmp_path / "two" / "keys", tmp_path / "one" / "keys")
    with evokey.open(tmp_path / "one") as memory:
        assert first(memory, "apple") == "apple" and memory.search("violin") == []


def test_keys_of_an_earlier_version_are_taken_up_once_and_only_by_their_own_ledger(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    shutil.copytree(EARLIER, folder)
    before = {path.name for path in (folder / "keys" / "bm25").iterdir()}
    with evokey.open(folder) as memory:
        assert first(memory, "prune roses") == "garden-roses"
    assert {path.name for path in (folder / "keys" / "bm25").iterdir()} == before
    with evokey.open(folder) as memory:
        add(memory, "violin")
    manifest = read_manifest(folder / "keys" / "bm25")
    assert manifest is not None and manifest.writer
    shutil.rmtree(folder / "keys")
    shutil.copytree(EARLIER / "keys", folder / "keys")  # still right: they are older than all that was signed
    with evokey.open(folder) as memory:
        assert first(memory, "violin") == "violin"
    (tmp_path / "new").mkdir()
    shutil.copy(EARLIER / "evokey.toml", tmp_path / "new")
    with evokey.open(tmp_path / "new") as memory:
        add(memory, "violin", "trumpet")
    shutil.rmtree(tmp_path / "new" / "keys")
    shutil.copytree(EARLIER / "keys", tmp_path / "new" / "keys")
    with evokey.open(tmp_path / "new") as memory:
        assert first(memory, "trumpet") == "trumpet"


def test_a_reader_takes_up_keys_that_are_newer_than_what_it_has_read(opened: Opener) -> None:
    writer, reader = opened(encoder="bm25"), opened()
    for turn in range(5):
        add(writer, f"word{turn}")
        writer.save()
        assert first(reader, f"word{turn}") == f"word{turn}"
        assert all(segment.name for segment in reader.index.retrievers[0].store.rows.segments)


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_keys_without_their_ledger_are_an_error(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "kb"
    with evokey.open(folder, encoder="bm25") as memory:
        add(memory, "apple")
    (folder / "ledger.sqlite").unlink()
    if left == "an empty file":
        (folder / "ledger.sqlite").touch()
    with pytest.raises(MissingLedger, match="Restore it from a backup"):
        evokey.open(folder)
    assert (folder / "ledger.sqlite").exists() == (left == "an empty file")
    result = CliRunner().invoke(app, ["search", "apple", "--at", str(folder)])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    shutil.rmtree(folder / "keys")
    with evokey.open(folder) as memory:
        assert len(memory) == 0


# ---- backups


def test_a_backup_is_a_memory_that_knows_the_same(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb") as memory:
        story.tell(memory)
        memory.save()
        memory.backup(tmp_path / "copy")
        expected = story.rankings(memory)
    before = sorted(path.name for path in (tmp_path / "copy" / "keys" / "bm25").iterdir())
    with evokey.open(tmp_path / "copy") as copy:
        assert story.rankings(copy) == expected
        assert [one.number for one in copy.epochs()] == [0, 1, 2]
        assert copy.protected_queries() == {story.PROTECTED[0]: story.PROTECTED[1]}
    assert sorted(path.name for path in (tmp_path / "copy" / "keys" / "bm25").iterdir()) == before
    assert doctor.examine(tmp_path / "copy") == []


def test_a_backup_made_while_others_write_is_of_one_moment(tmp_path: Path) -> None:
    folder, stop = tmp_path / "kb", threading.Event()
    with evokey.open(folder, encoder="bm25") as memory:
        add(memory, "start")

        def write() -> None:
            for turn in range(10_000):
                if stop.is_set():
                    return
                memory.add([{"id": f"{turn}{half}", "text": f"pair{turn} {half}"} for half in ("a", "b")])
                if turn % 7 == 0:
                    memory.save()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for copy in range(5):
                with evokey.open(folder) as reader:
                    reader.backup(tmp_path / f"copy{copy}")
        finally:
            stop.set()
            thread.join()
    for copy in range(5):
        with evokey.open(tmp_path / f"copy{copy}") as memory:
            ids = {row[0] for row in memory.ledger._database.all("SELECT id FROM documents")} - {"start"}
            assert {id[:-1] for id in ids if id.endswith("a")} == {id[:-1] for id in ids if id.endswith("b")}
            for id in sorted(ids)[:20]:
                assert {hit.id for hit in memory.search(f"pair{id[:-1]}")} == {f"{id[:-1]}a", f"{id[:-1]}b"}
        assert doctor.examine(tmp_path / f"copy{copy}") == []


def test_a_backup_goes_to_a_new_directory_and_leaves_nothing_half_done(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(encoder="bm25")
    add(memory, "apple")
    (tmp_path / "there").mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        memory.backup(tmp_path / "there")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evokey.inspect.backup._sync", full)
    with pytest.raises(EvokeyError, match="No space left"):
        memory.backup(tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb", "there"]


def test_a_damaged_ledger_is_not_backed_up_as_if_it_were_whole(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": str(n), "text": f"word{n} " * 200} for n in range(200)])
    damage(tmp_path / "kb" / "ledger.sqlite")
    with pytest.raises(EvokeyError, match="doctor"), evokey.open(tmp_path / "kb") as memory:
        memory.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_the_command_makes_a_backup(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        add(memory, "apple")
    result = CliRunner().invoke(app, ["backup", str(tmp_path / "copy"), "--at", str(tmp_path / "kb")])
    assert result.exit_code == 0, result.output
    with evokey.open(tmp_path / "copy") as memory:
        assert first(memory, "apple") == "apple"


# ---- damaged ledgers


def damage(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    for page in range(1, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 100] = np.random.default_rng(page).bytes(100)
    path.write_bytes(bytes(whole))


@pytest.mark.parametrize("verb", ["search", "add", "stats", "evolve", "lessons"])
def test_a_malformed_ledger_is_an_error_with_a_way_out(tmp_path: Path, verb: str) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": str(n), "text": f"word{n} " * 200} for n in range(200)])
    damage(tmp_path / "kb" / "ledger.sqlite")
    (tmp_path / "more.jsonl").write_text('{"id": "x", "text": "more"}\n')
    arguments = {"search": ["word1"], "add": [str(tmp_path / "more.jsonl")]}.get(verb, [])
    result = CliRunner().invoke(app, [verb, *arguments, "--at", str(tmp_path / "kb"), "--json"])
    assert result.exit_code == 1 and "DamagedLedger" in result.stdout and "evokey doctor" in result.stdout
    assert any(one.mended_by == doctor.BACKUP for one in doctor.examine(tmp_path / "kb"))


def test_damage_that_is_met_later_is_the_same_error(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": str(n), "text": f"word{n} " * 200} for n in range(200)])
    with evokey.open(tmp_path / "kb") as memory:
        memory.search("word1")
        with sqlite3.connect(tmp_path / "kb" / "ledger.sqlite") as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        damage(tmp_path / "kb" / "ledger.sqlite")
        with pytest.raises(DamagedLedger, match="evokey doctor"):
            for n in range(200):
                memory.search(f"word{n}")
