"""One writer, many readers, nothing acknowledged lost, everything derived made again."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import COMMANDS, Opener, ranking

import evokey
from evokey.errors import EncoderMismatch, MemoryBusy, NewerFormat, NotAMemory
from evokey.stores.segments import read_manifest, write_manifest


def filled(folder: Path) -> None:
    with evokey.open(folder) as memory:
        memory.add([evokey.Document(id, text, title) for id, (title, text) in COMMANDS.items()])
        memory.feedback("rescue my afternoon", relevant=["git-bisect"])
        memory.evolve()


def test_sections_are_part_of_what_a_document_is(tmp_path: Path) -> None:
    plain = evokey.Document("a", "first second")
    pages = replace(plain, sections=(evokey.Section(0, 5, "p. 1"), evokey.Section(6, 12, "p. 2")))
    with evokey.open(tmp_path / "kb") as memory:
        memory.add([plain])
        memory.add([pages])
    with evokey.open(tmp_path / "kb") as memory:
        assert memory.get("a") == pages
        assert memory.search("second")[0].document == pages
    assert pages.hash != plain.hash


def test_a_second_writer_is_told_who_the_first_one_is_and_may_still_search(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb") as first, evokey.open(tmp_path / "kb") as second:
        first.add([{"id": "new", "text": "brand new"}])
        with pytest.raises(MemoryBusy, match=f"process {os.getpid()} on"):
            second.add([{"id": "other", "text": "other"}])
        assert second.search("brand new")[0].id == "new"
    with evokey.open(tmp_path / "kb") as later:
        assert later.add([{"id": "other", "text": "other"}]) == 1


def test_a_reader_picks_up_documents_and_epochs_by_itself(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb") as reader, evokey.open(tmp_path / "kb") as writer:
        assert reader.search("rescue my afternoon")[0].id == "git-bisect"
        writer.add([{"id": "coffee", "text": "coffee rescues the afternoon"}])
        assert "coffee" in {hit.id for hit in reader.search("coffee", k=3)}
        writer.feedback("what now?", relevant=["coffee"])
        writer.evolve()
        assert reader.search("what now?")[0].id == "coffee"
        writer.forget(query="what now?")
        assert ranking(reader, "what now?") == ranking(reader, "what now?", epoch=0) or reader.stats().epoch == 3


def test_what_is_found_follows_the_ledger_and_is_nobodys_to_change(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb") as reader, evokey.open(tmp_path / "kb") as writer:
        for language in ("en", "de"):
            for memory in (writer, reader):
                if memory is writer:
                    writer.add([evokey.Document("git-log", COMMANDS["git-log"][1], "git log", {"lang": language})])
                for _ in range(2):
                    document = memory.search("show the history")[0].document
                    assert (document.id, document.metadata) == ("git-log", {"lang": language})
                    document.metadata["lang"] = "mine"  # type: ignore[index]


KILLED = """
import sys, evokey
memory = evokey.open(sys.argv[1])
for number in range(100_000):
    memory.add([{"id": f"d{number}", "text": f"document number {number}"}])
    if number % 3 == 0:
        memory.feedback(f"question {number}", relevant=[f"d{number}"])
    if number % 10 == 0:
        memory.evolve()
    print(number, flush=True)
"""


def test_killing_the_writer_loses_nothing_it_had_acknowledged(tmp_path: Path) -> None:
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "kb")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        done = [int(process.stdout.readline()) for _ in range(25)][-1]
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with evokey.open(tmp_path / "kb") as memory:
            assert {f"d{number}" for number in range(done + 1)} <= {memory.get(f"d{n}").id for n in range(done + 1)}
            assert memory.stats().lessons >= done // 3
            assert memory.search(f"document number {done}")[0].id == f"d{done}"
            memory.delete([f"d{number}" for number in range(len(memory))])
            memory.forget(query="question 0")
        shutil.rmtree(tmp_path / "kb")


def test_derived_files_are_made_again_from_the_ledger(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb") as memory:
        before = ranking(memory, "rescue my afternoon"), ranking(memory, "show history")
    shutil.rmtree(tmp_path / "kb" / "keys")
    with evokey.open(tmp_path / "kb") as memory:
        assert (ranking(memory, "rescue my afternoon"), ranking(memory, "show history")) == before


def test_votes_are_read_in_the_order_of_documents_whatever_their_grades(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([evokey.Document(id, f"text of {id}") for id in ("z,1", "y", "x", "w", "v")])
    memory.feedback("first", relevant={"v": 1.0, "z,1": 1 / 3, "x": 1.0}, irrelevant=["y"], actor="ada")
    memory.feedback("second", relevant=["w"])
    memory.feedback("third", relevant=["v"])
    memory.add([evokey.Document("v", "another text")])  # what was said of the old one is set aside
    votes = [(one.query, one.actor, list(one.verdicts.items())) for one in memory.ledger.lessons.votes(3)]
    assert votes == [("first", "ada", [(1, 1 / 3), (2, -1.0), (3, 1.0)]), ("second", None, [(4, 1.0)])]
    assert [vote[:4] for vote in memory.ledger.lessons.votes(1)] == [("first", "ada", {1: 1 / 3, 2: -1.0, 3: 1.0}, 1)]
    assert memory.ledger.lessons.extent(3) == (3, 6) and memory.ledger.lessons.extent(1) == (1, 4)


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    connection = sqlite3.connect(tmp_path / "kb" / "ledger.sqlite")
    connection.execute("INSERT INTO migrations VALUES ('9999_from_the_future')")
    connection.commit()
    connection.close()
    with pytest.raises(NewerFormat, match="9999_from_the_future"):
        evokey.open(tmp_path / "kb")


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    (tmp_path / "kb" / "ledger.sqlite").write_bytes(b"not a database at all " * 100)
    (tmp_path / "kb" / "ledger.commits").unlink()
    with pytest.raises(NotAMemory, match="not a ledger"):
        evokey.open(tmp_path / "kb")
    assert (tmp_path / "kb" / "ledger.sqlite").read_bytes().startswith(b"not a database")
    assert not (tmp_path / "kb" / "ledger.commits").exists()


def test_keys_of_another_encoder_are_not_mixed_in(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    keys = tmp_path / "kb" / "keys" / "wordllama"
    manifest = read_manifest(keys)
    assert manifest is not None
    write_manifest(keys, replace(manifest, encoder="wordllama/other/256"))
    with pytest.raises(EncoderMismatch, match="wordllama/other/256"):
        evokey.open(tmp_path / "kb")


def test_threads_search_while_one_teaches(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    wrong: list[object] = []
    stop = threading.Event()

    def reading() -> None:
        while not stop.is_set():
            for hit in memory.search("show the history", k=5):
                if hit.document.id != hit.id:
                    wrong.append(hit)

    readers = [threading.Thread(target=reading) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(20):
        memory.add([{"id": f"extra{number}", "text": f"history lesson {number}"}])
        memory.feedback(f"lesson {number}", relevant=[f"extra{number}"])
        memory.evolve()
        memory.delete([f"extra{number}"])
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


OPENED = """
import sys, evokey
with evokey.open(sys.argv[1], encoder="bm25") as memory:
    print(len(memory))
"""


def test_several_processes_may_make_the_same_memory_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENED, str(tmp_path / "kb")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate() for process in started] == [("0\n", "")] * 4


def test_a_reader_forgets_with_the_writer_even_in_an_older_epoch(tmp_path: Path) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb", encoder=None) as reader, evokey.open(tmp_path / "kb") as writer:
        assert reader.search("rescue my afternoon", epoch=1)[0].id == "git-bisect"
        writer.forget(query="rescue my afternoon")
        assert ranking(reader, "rescue my afternoon", epoch=1) == ranking(reader, "rescue my afternoon", epoch=0)


@pytest.mark.parametrize("damage", ["segment", "manifest", "array"])
def test_damaged_keys_are_made_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path / "kb")
    with evokey.open(tmp_path / "kb") as memory:
        before = ranking(memory, "show history")
    keys = tmp_path / "kb" / "keys" / "wordllama"
    segment = next(path for path in keys.iterdir() if path.is_dir())
    if damage == "segment":
        shutil.rmtree(segment)
    elif damage == "manifest":
        (keys / "segments.json").write_text('{"format": 1, "enc')
    else:
        (segment / "vectors.npy").write_bytes((segment / "vectors.npy").read_bytes()[:-100])
    with evokey.open(tmp_path / "kb") as memory:
        assert ranking(memory, "show history") == before
    assert "rebuilt from the ledger" in caplog.text


@pytest.mark.parametrize("encoding", [True, False])
def test_an_interrupted_add_is_whole_or_nothing_and_leaves_no_double_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: bool
) -> None:
    texts = [("a", "one apple"), ("b", "two apples and a pear"), ("c", "three pears")]
    documents = [{"id": id, "text": text} for id, text in texts]
    with evokey.open(tmp_path / "kb") as memory, evokey.open(tmp_path / "fresh") as fresh:
        memory.add(documents[:1])
        dense = memory.index._retrievers[1]
        with monkeypatch.context() as patched:
            where, what = (dense, "keys") if encoding else (dense.store, "write")
            patched.setattr(where, what, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                memory.add(documents[1:2])
        assert len(memory) == 2 - encoding
        memory.add(documents[2:])
        fresh.add(documents[:1] + documents[2 - (not encoding) :])
        assert ranking(memory, "apple pear") == ranking(fresh, "apple pear")


def test_searches_do_not_wait_for_evolve(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened()
    memory.add([evokey.Document(id, text, title) for id, (title, text) in COMMANDS.items()])
    memory.feedback("rescue my afternoon", relevant=["git-bisect"])
    entered, leave = threading.Event(), threading.Event()
    propose = memory.policy.propose

    def slow(*arguments: object) -> object:
        entered.set()
        leave.wait(30)
        return propose(*arguments)

    monkeypatch.setattr(memory.policy, "propose", slow)
    evolving = threading.Thread(target=memory.evolve)
    evolving.start()
    assert entered.wait(30)
    assert memory.search("show history")[0].id == "git-log"
    leave.set()
    evolving.join()
    assert memory.search("rescue my afternoon")[0].id == "git-bisect"
