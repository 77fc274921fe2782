"""Some faults of every kind that `make faults` injects; and what they have found, each by itself."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from report import PAGE, page
from wire import Reply, Wire, embeddings

import evokey
from evokey.errors import DamagedLedger, InvalidSettings, MissingLedger, ServiceFailed
from evokey.inspect import doctor

HERE = Path(__file__).parent
needs_forks = pytest.mark.skipif(sys.platform == "win32", reason="SKIPPED ON WINDOWS: there is no fork and no SIGKILL")


@needs_forks
def test_faults_of_every_kind_do_no_harm(tmp_path: Path) -> None:
    command = [sys.executable, HERE / "table.py", "--out", tmp_path / "faults.json", "--count", "64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "run as root" in done.stderr:
        pytest.skip("SKIPPED FOR WANT OF ROOT: a full disk needs a file system of its own")
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "faults.jsonl").read_text()
    assert len((tmp_path / "faults.jsonl").read_text().splitlines()) >= 64
    again = subprocess.run([*command, "--hours", "0"], capture_output=True, text=True, check=False)
    assert again.stdout == done.stdout  # what was done is not done again


def test_the_page_says_what_the_result_says() -> None:
    assert PAGE.read_text("utf-8") == page()


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([{"id": f"d{n}", "text": f"word{n} apple"} for n in range(9)])
    return tmp_path / "kb"


# ---- files


@pytest.mark.parametrize("size", [1, 100, 511])
def test_a_ledger_that_was_cut_to_a_few_bytes_is_no_empty_memory(kb: Path, size: int) -> None:
    os.truncate(kb / "ledger.sqlite", size)
    with pytest.raises(MissingLedger, match="Restore it from a backup"):
        evokey.open(kb)


def flip_a_letter(ledger: Path) -> None:
    """As a disk that rots does: the time of the file stays."""
    before, whole = ledger.stat(), ledger.read_bytes()
    assert b"word3 apple" in whole
    ledger.write_bytes(whole.replace(b"word3 apple", b"word3 bpple"))
    os.utime(ledger, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_flipped_letter_in_a_ledger_is_an_error_with_a_way_out(kb: Path) -> None:
    flip_a_letter(kb / "ledger.sqlite")
    with pytest.raises(DamagedLedger, match=r"evokey doctor .*restore the memory from a backup"):
        evokey.open(kb)
    assert [one.mended_by for one in doctor.examine(kb)] == [doctor.BACKUP]
    (kb / "ledger.sum").unlink()
    with evokey.open(kb) as memory:  # as the error says: it is gone on with as it is
        assert memory.get("d3").text == "word3 bpple"


def test_a_ledger_that_another_program_wrote_or_that_was_put_back_is_no_damage(kb: Path, tmp_path: Path) -> None:
    shutil.copy2(kb / "ledger.sqlite", tmp_path / "copy")
    with evokey.open(kb) as memory:
        memory.add([{"id": "new", "text": "new"}])
    shutil.copy2(tmp_path / "copy", kb / "ledger.sqlite")
    with evokey.open(kb) as memory:
        assert len(memory) == 9
    with sqlite3.connect(kb / "ledger.sqlite") as other:
        other.execute("UPDATE documents SET text = 'word3 pear' WHERE id = 'd3'")
    other.close()
    with evokey.open(kb) as memory:
        assert memory.get("d3").text == "word3 pear"


def test_a_note_of_the_checksum_that_is_itself_damaged_says_nothing(kb: Path) -> None:
    note = kb / "ledger.sum"
    whole = note.read_bytes()
    for at in range(len(whole)):
        note.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        evokey.open(kb).close()


def test_a_damaged_name_in_the_schema_is_a_damaged_ledger(kb: Path) -> None:
    ledger = kb / "ledger.sqlite"
    ledger.write_bytes(ledger.read_bytes().replace(b"CREATE TABLE pins", b"CREATE T\xceBLE pins"))
    with pytest.raises(DamagedLedger, match="evokey doctor"):
        evokey.open(kb)
    assert doctor.examine(kb)[0].mended_by == doctor.BACKUP


@pytest.mark.parametrize("left", ["", "format = 2\n", "format = 2\npolicy = 'guarded'\n", "format = 0\n"])
def test_settings_that_were_cut_are_not_filled_up_with_defaults(kb: Path, left: str) -> None:
    (kb / "evokey.toml").write_text(left)
    with pytest.raises(InvalidSettings, match="from a backup"):
        evokey.open(kb)
    with pytest.raises(InvalidSettings, match="from a backup"):
        doctor.examine(kb)


def test_settings_that_a_person_wrote_may_say_little(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "evokey.toml").write_text("traffic = 0\n")
    for _ in range(2):
        evokey.open(tmp_path / "kb").close()


def test_the_doctor_names_keys_of_an_encoder_that_settings_lost(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb") as memory:
        memory.add([{"id": "a", "text": "apple"}])
    path = tmp_path / "kb" / "evokey.toml"
    path.write_text(path.read_text().rpartition("\n[[retriever]]")[0])
    (finding,) = doctor.examine(tmp_path / "kb")
    assert "wordllama" in finding.what and finding.mended_by == doctor.UNNAMED


@needs_forks
@pytest.mark.parametrize("name", ["evokey.toml", "ledger.sqlite"])
def test_a_pipe_in_the_place_of_a_file_is_an_error_and_nobody_waits(kb: Path, name: str) -> None:
    (kb / name).unlink()
    os.mkfifo(kb / name)
    for look in (evokey.open, doctor.examine):
        with pytest.raises(InvalidSettings, match="does not belong in a memory"):
            look(kb)


def test_the_doctor_says_of_a_ledger_that_cannot_be_opened_what_is_wrong(kb: Path) -> None:
    (kb / "ledger.sqlite").unlink()
    (kb / "ledger.sqlite").mkdir()
    assert doctor.examine(kb)[0].mended_by == doctor.BACKUP


# ---- services and others


class Liar(Wire):
    """Sends vectors of one dimension where it should send more."""

    def __init__(self) -> None:
        super().__init__()
        self.lying = False
        self.answers["/v1/embeddings"] = self._embed

    def _embed(self, body: Any) -> Any:
        if not self.lying:
            return embeddings(body)
        answer = embeddings({**body, "encoding_format": "float"})
        data = [{**one, "embedding": one["embedding"][:1]} for one in answer["data"]]
        return Reply(body={**answer, "data": data})


def test_a_service_whose_first_answer_lies_about_its_dimension_is_not_believed(opened: Opener) -> None:
    with Liar() as server:
        settings = {"name": "openai", "base_url": server.url, "retries": 0, "rest": 0.0}
        memory = opened(encoder=["bm25", settings])
        memory.add([{"id": "a", "text": "apple"}, {"id": "b", "text": "bread"}])
        memory.close()
        memory = opened()
        server.lying = True
        for ask in (lambda: memory.search("apple"), lambda: memory.add([{"id": "c", "text": "cat"}])):
            with pytest.raises(ServiceFailed, match="sent vectors of 1 dimensions"):
                ask()
        server.lying = False
        assert [hit.id for hit in memory.search("apple", k=1)] == ["a"]
        assert memory.add([{"id": "c", "text": "cat"}]) == 1


@pytest.mark.parametrize("where", [None, {"kind": "fruit"}])
def test_a_search_misses_no_document_that_is_replaced_meanwhile(opened: Opener, where: dict[str, str] | None) -> None:
    writer, reader = opened(encoder="bm25"), opened()
    fruit = {"metadata": {"kind": "fruit"}}
    writer.add([{"id": f"d{n}", "text": "apple 0", **fruit} for n in range(5)])
    stop = threading.Event()

    def write() -> None:
        for turn in range(10_000):
            if stop.wait(0.03):  # time for the attempts of a search
                return
            writer.add([{"id": f"d{n}", "text": f"apple {turn}", **fruit} for n in range(5)])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        found = [len(reader.search("apple", where=where)) for _ in range(400)]
    finally:
        stop.set()
        thread.join()
    assert set(found) == {5}


def test_keys_that_are_newer_than_what_a_reader_read_of_the_ledger_do_not_count(opened: Opener) -> None:
    writer, reader = opened(encoder="bm25"), opened()
    writer.add([{"id": f"d{n}", "text": f"apple {n}"} for n in range(3)])
    store = reader.index.retrievers[0].store
    follow = store.follow

    def write_and_follow(live: Any, added: Any, removed: Any) -> bool:
        if len(states) == 1:
            writer.add([{"id": "d1", "text": "an apple is replaced by another"}])
            writer.save()
            states.append(ranked(writer))
        return follow(live, added, removed)

    writer.add([{"id": "d3", "text": "one more apple"}])
    states = [ranked(writer)]
    store.follow = write_and_follow  # type: ignore[method-assign]
    reader.index.catch_up()
    assert len(states) == 2
    assert [(hit.id, hit.score) for hit in reader.search("apple")] in states


def ranked(memory: evokey.Memory) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in memory.search("apple")]


def test_what_was_learned_is_composed_from_the_state_that_the_keys_are_of(opened: Opener) -> None:
    writer, reader = opened(encoder="bm25"), opened()
    writer.add([{"id": f"d{n}", "text": f"apple {n}"} for n in range(3)])
    writer.feedback("which fruit?", relevant=["d1"])
    writer.evolve()
    reader.index.catch_up()
    reader.index.state = replace(reader.index.state, composed={})  # as after documents came
    catch_up = reader.index.catch_up

    def forget_then(*, wait: bool = True) -> None:
        catch_up(wait=wait)
        if writer.stats().lessons:
            writer.forget(query="which fruit?")

    reader.index.catch_up = forget_then  # type: ignore[method-assign]
    assert reader.search("which fruit?") == writer.search("which fruit?") == []
    assert reader.index.epoch == writer.stats().epoch
