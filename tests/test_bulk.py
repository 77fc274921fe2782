"""Many documents: memory does not grow with them, several processes encode, and what was killed goes on."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking
from typer.testing import CliRunner

import evokey
from evokey.cli import adding
from evokey.cli.app import app
from evokey.cli.records import look_through
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import InvalidDocument, InvalidVector
from evokey.ingest import ChildReader, File, Selection, listing

LONG = "several words that are said again and again " * 40


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "1000"})
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write(path: Path, count: int, text: str = "text") -> Path:
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": f"{text} {n}"}) + "\n" for n in range(count)))
    return path


def files(path: Path) -> list[File]:
    return list(listing(path, None, Selection()).files)


def test_a_large_file_is_looked_through_and_cut_without_holding_it(tmp_path: Path) -> None:
    path = write(tmp_path / "many.jsonl", 10_000, LONG)
    tracemalloc.start()
    with ChildReader() as child:
        records = look_through(files(path), child)
        count = sum(len(batch) for batch in adding._cut(records.documents(child)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == len(records) == 10_000
    assert path.stat().st_size > 17_000_000 and peak < 9_000_000  # one batch at a time


def test_of_documents_that_come_twice_the_later_counts_and_two_files_may_not_share_an_id(tmp_path: Path) -> None:
    twice = write(tmp_path / "twice.jsonl", 5)
    twice.write_text(twice.read_text() + '{"id": "d2", "text": "later"}\n')
    with ChildReader() as child:
        records = look_through(files(twice), child)
        assert {one.id: one.text for one in records.documents(child)}["d2"] == "later"
        assert (len(records), records.repeated) == (5, 1)
        found = records.file_of("d3")
        assert found is not None and found.path == twice and records.file_of("d9") is None
        write(tmp_path / "other.jsonl", 1)
        with pytest.raises(InvalidDocument, match=r"other.jsonl and .*twice.jsonl both give a document 'd0'"):
            look_through(files(tmp_path), child)


def test_batches_are_taken_from_an_iterator_one_by_one_and_those_before_an_error_stay(opened: Opener) -> None:
    memory, sizes = opened(encoder="bm25"), list[int]()

    def documents() -> Iterator[dict[str, str]]:
        for number in range(25):
            sizes.append(len(memory))
            yield {"id": f"d{number}", "text": f"text {number}"}
        yield {"id": "", "text": "wrong"}

    with pytest.raises(InvalidDocument):
        memory.add(documents(), batch=10)
    assert len(memory) == 20 and sizes[9] == 0 and sizes[10] == 10 and sizes[20] == 20
    assert memory.add(({"id": f"e{n}", "text": "t"} for n in range(7)), batch=3) == 7


def test_vectors_go_with_their_batches(opened: Opener) -> None:
    memory = opened(encoder="given")
    vectors = np.eye(8, dtype=np.float32)
    documents = [{"id": f"d{n}", "text": f"text {n}"} for n in range(8)]
    assert memory.add(iter(documents), vectors, batch=3) == 8
    for number in range(8):
        assert ranking(memory, "asked", k=1, vector=vectors[number]) == [(f"d{number}", 1.0)]
    with pytest.raises(InvalidVector, match="8 vectors came with 7 documents"):
        memory.add(documents[:7], vectors, batch=3)


def test_several_processes_make_the_keys_that_one_makes(opened: Opener, commands: list[evokey.Document]) -> None:
    one, several = opened("one"), opened("several")
    one.add(commands)
    with several.workers(2):
        several.add(commands)
    several.add([evokey.Document("git-tag", "Name a state.")])
    one.add([evokey.Document("git-tag", "Name a state.")])
    for query in ("record changes", "who wrote this line", "tag"):
        assert ranking(several, query) == ranking(one, query)


def test_a_process_that_ends_is_named_and_nothing_is_stored(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened(encoder="wordllama")
    with memory.workers(2):
        memory.add(commands[:4])
        pool = memory.index.originals[0]._staged.pooled._pool
        assert pool is not None
        for process in pool._processes.values():
            process.kill()
        with pytest.raises(evokey.EvokeyError, match="use fewer workers"):
            memory.add(commands[4:])
    assert len(memory) == 4
    memory.add(commands[4:])
    assert len(memory) == len(commands)


SLOWLY = """
import sys, time
from evokey.cli import adding, main
from evokey.memory import Memory
adding.BATCH = 200
add = Memory.add
Memory.add = lambda *given, **named: (add(*given, **named), time.sleep(0.05))[0]
sys.argv[1:] = {arguments!r}
main()
"""


def stored(at: Path) -> int:
    if not (at / "ledger.sqlite").exists():
        return 0
    with closing(sqlite3.connect(f"file:{at / 'ledger.sqlite'}?mode=ro", uri=True)) as ledger:
        try:
            return int(ledger.execute("SELECT count(*) FROM documents").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def test_a_large_file_whose_adding_was_killed_is_taken_up_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, at = write(tmp_path / "many.jsonl", 6_000), tmp_path / "kb"
    run("init", "--at", at, "--encoder", "wordllama", "--json")
    script = SLOWLY.format(arguments=["add", str(path), "--at", str(at), "--json"])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL) as process:
        while stored(at) < 1_000 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = stored(at)
    assert 1_000 <= before < 6_000
    encode, encoded = WordLlamaEncoder.documents, list[str]()

    def count(self: WordLlamaEncoder, texts: Any) -> Any:
        encoded.extend(texts)
        return encode(self, texts)

    with evokey.open(at):  # keys that were in memory only are made again
        pass
    monkeypatch.setattr(WordLlamaEncoder, "documents", count)
    assert run("add", path, "--at", at, "--json")["documents"] == 6_000
    assert len(encoded) <= 6_000 - before + 1_000
    encoded.clear()
    assert run("add", path, "--at", at, "--json", "--workers", "1")["documents"] == 6_000
    assert encoded == []
