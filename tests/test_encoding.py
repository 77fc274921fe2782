"""Encoders that cost something or refuse a document: nothing is half done, nothing is paid for twice, and a memory
whose encoder fails goes on.

A real server counts what it encodes, and refuses every text with the word "forbidden".
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener
from typer.testing import CliRunner
from wire import Reply, Wire, embeddings

import evokey
from evokey.cli import adding
from evokey.cli import app as cli
from evokey.errors import DocumentRefused, ServiceFailed
from evokey.inspect import doctor
from evokey.registry import COMPONENTS, Component
from evokey.search import indexing

TOPICS = ["rivers", "bread", "volcanoes", "sailing", "owls", "chess", "violins", "glaciers", "bees"]


class Embedder(Wire):
    """Counts the texts it has encoded. Down, it refuses all."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: Counter[str] = Counter()
        self.down = False
        self.most: int | None = None
        """Texts after which it is down."""
        self.answers["/v1/embeddings"] = self._embed

    @property
    def documents(self) -> dict[str, int]:
        return {text: count for text, count in self.paid.items() if text.startswith("document ")}

    def _embed(self, body: Any) -> Any:
        if self.down or (self.most is not None and self.paid.total() + len(body["input"]) > self.most):
            return Reply(503, {"error": {"message": "overloaded"}})
        if any("forbidden" in text for text in body["input"]):
            return Reply(400, {"error": {"message": "this text is not allowed"}})
        self.paid.update(body["input"])
        return embeddings(body)


@pytest.fixture
def server() -> Iterator[Embedder]:
    with Embedder() as running:
        yield running


def paid(server: Embedder, **options: Any) -> dict[str, Any]:
    return {"name": "openai", "base_url": server.url, "retries": 0, "rest": 0, "batch_size": 20, **options}


def document(number: int, more: str = "") -> evokey.Document:
    return evokey.Document(f"d{number}", f"document {number} about {TOPICS[number % len(TOPICS)]} {more}".strip())


def batch(start: int, end: int) -> list[evokey.Document]:
    return [document(number) for number in range(start, end)]


# ---- an encoder that refuses


def test_a_document_that_the_encoder_refuses_is_named_and_nothing_of_its_batch_is_stored(
    opened: Opener, server: Embedder
) -> None:
    memory = opened(encoder=paid(server))
    memory.add(batch(0, 30))
    documents = [*batch(30, 77), document(77, "forbidden"), *batch(78, 100)]
    with pytest.raises(DocumentRefused, match=r"document 'd77'.*400.*not allowed.*None of these 70 documents"):
        memory.add(documents)
    assert len(memory) == 30 and memory.search("about chess")
    assert memory.feedback("board game", relevant=["d5"]).number
    memory.evolve()
    assert memory.delete(["d0"]) == 1 and memory.forget(query="board game").lessons == 1
    assert memory.stats().documents_without_keys == 0


def test_what_was_encoded_of_a_refused_batch_is_not_paid_for_again(opened: Opener, server: Embedder) -> None:
    memory = opened(encoder=paid(server))
    with pytest.raises(DocumentRefused):
        memory.add([*batch(0, 50), document(50, "forbidden"), *batch(51, 100)])
    memory.add([*batch(0, 50), *batch(51, 100)])
    assert len(server.documents) == 99 and set(server.documents.values()) == {1}
    assert memory.search("about violins")[0].document.text.endswith("violins")


def test_every_refused_document_is_named_at_once(opened: Opener, server: Embedder) -> None:
    documents = [document(number, "forbidden" * (number in (3, 40, 41))) for number in range(60)]
    with pytest.raises(DocumentRefused, match="documents 'd3', 'd40', 'd41':"):
        opened(encoder=paid(server)).add(documents)


def test_an_encoder_that_takes_no_document_is_at_fault_itself(opened: Opener, server: Embedder) -> None:
    memory = opened(encoder=paid(server))
    with pytest.raises(ServiceFailed, match=r"refused every document it was given.*Check its options"):
        memory.add([document(number, "forbidden") for number in range(500)])
    assert len(server.requests) < 60


class Fussy:
    """An encoder of somebody else's, which raises what it likes."""

    kind, cost, identity = "dense", "nothing", "fussy"

    def documents(self, texts: list[str]) -> Any:
        if any("forbidden" in text for text in texts):
            raise ZeroDivisionError("bad luck")
        return np.ones((len(texts), 4), np.float32) / 2

    queries = documents


@pytest.fixture
def fussy(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(COMPONENTS["encoder"], "fussy", Component(f"{__name__}:Fussy"))
    return "fussy"


@pytest.mark.parametrize("others", [[], ["bm25"]])
def test_an_encoder_may_raise_anything(opened: Opener, fussy: str, others: list[str]) -> None:
    memory = opened(encoder=[*others, fussy])
    with pytest.raises(DocumentRefused, match="'d2': ZeroDivisionError: bad luck"):
        memory.add([*batch(0, 2), document(2, "forbidden")])
    memory.add(batch(0, 2))
    memory.add([document(9, "again")])
    assert {hit.id for hit in memory.search("about rivers")} >= {"d0", "d9"}
    assert memory.search("again")[0].document.id == ("d9" if others else "d0")


# ---- an encoder that is down


def verbs_work(memory: evokey.Memory) -> None:
    memory.stats()
    memory.feedback("board game", relevant=["d5"])
    memory.evolve()
    memory.forget(query="board game")
    memory.delete(["d1"])
    memory.rollback(0)


def test_documents_come_whole_or_not_at_all_from_a_service_that_is_down(opened: Opener, server: Embedder) -> None:
    memory = opened(encoder=["bm25", paid(server)])
    memory.add(batch(0, 30))
    server.down = True
    with pytest.raises(ServiceFailed, match="503: overloaded"):
        memory.add(batch(30, 60))
    assert len(memory) == 30
    memory.delete(["d3"])
    memory.close()
    memory = opened()
    server.down = False
    assert memory.add(batch(30, 60)) == 30 and len(memory) == 59
    assert set(server.documents.values()) == {1}


def test_a_memory_without_its_keys_goes_on_while_the_service_is_down_and_is_completed_after(
    opened: Opener, server: Embedder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = opened(encoder=["bm25", paid(server)])
    memory.add(batch(0, 30))
    memory.feedback("board game", relevant=["d5"])
    memory.close()
    shutil.rmtree(tmp_path / "kb" / "keys" / "openai")
    server.down = True
    with caplog.at_level(logging.WARNING):
        memory = opened()
    assert "30 documents have no keys by openai" in caplog.text and "doctor --rebuild" in caplog.text
    assert memory.stats().documents_without_keys == 30
    assert memory.delete(["d1"]) == 1 and memory.stats().documents_without_keys == 29
    (finding,) = doctor.examine(tmp_path / "kb")
    assert "29 without keys: documents 'd0', 'd2'" in finding.what and finding.mended_by == doctor.REBUILD
    server.down = False
    memory.add([document(40)])
    assert memory.stats().documents_without_keys == 0 and doctor.examine(tmp_path / "kb") == []
    assert len(server.paid) == 31 + 1 and memory.search("about chess")[0].document.text.endswith("chess")


def test_a_stored_document_that_the_encoder_refuses_is_named_and_hinders_nothing(
    opened: Opener, server: Embedder, tmp_path: Path
) -> None:
    memory = opened(encoder="bm25")
    memory.add([*batch(0, 20), document(20, "forbidden")])
    memory.close()
    count, _ = doctor.reencode(tmp_path / "kb", [paid(server)])
    assert count == 21
    (finding,) = doctor.examine(tmp_path / "kb")
    assert "1 without keys: document 'd20'" in finding.what
    memory = opened()
    assert memory.stats().documents_without_keys == 1
    assert memory.get("d20") and "d20" not in {hit.id for hit in memory.search("about violins", k=30)}
    verbs_work(memory)
    memory.add([document(30)])
    memory.add([document(20)])
    assert memory.stats().documents_without_keys == 0
    assert set(server.documents.values()) == {1}


def test_forgetting_and_deleting_need_no_encoder_though_nothing_that_was_encoded_is_left(
    opened: Opener, server: Embedder, tmp_path: Path
) -> None:
    memory = opened(encoder=["bm25", paid(server)])
    memory.add(batch(0, 30))
    for number, question in enumerate(["board game", "string quartet", "ice and cold", "honey", "flour and yeast"]):
        memory.feedback(question, relevant=[f"d{number}"], actor="ann" if number else "bob")
    assert memory.evolve().published
    memory.close()
    shutil.rmtree(tmp_path / "kb" / "keys" / "openai")
    server.down = True
    memory = opened()
    assert memory.stats().documents_touched == 0
    assert memory.delete(["d9"]) == 1
    assert memory.forget(actor="bob").lessons == 1
    assert memory.stats().lessons == 4 and memory.epochs()[-1].kind == "forget"
    assert memory.rollback(1).number == memory.stats().epoch
    assert memory.delete(["d8"]) == 1
    assert memory.forget(query="honey").lessons == 1 and memory.stats().lessons == 3
    memory.close()
    server.down = False
    memory = opened()
    memory.add([document(50)])
    memory.evolve()
    assert memory.stats().documents_without_keys == 0
    assert memory.search("ice and cold")


# ---- keys that are made again


def test_reencoding_that_fails_changes_nothing(opened: Opener, server: Embedder, tmp_path: Path) -> None:
    memory = opened(encoder=["bm25", "wordllama"])
    memory.add(batch(0, 30))
    before = [(hit.id, hit.score) for hit in memory.search("about chess")]
    memory.close()
    settings = (tmp_path / "kb" / "evokey.toml").read_text()
    server.down = True
    with pytest.raises(ServiceFailed):
        doctor.reencode(tmp_path / "kb", ["bm25", paid(server)])
    assert (tmp_path / "kb" / "evokey.toml").read_text() == settings
    memory = opened()
    assert [(hit.id, hit.score) for hit in memory.search("about chess")] == before


def test_rebuilding_keeps_keys_that_were_paid_for_and_pays_for_damaged_ones_alone(
    opened: Opener, server: Embedder, tmp_path: Path
) -> None:
    memory = opened(encoder=paid(server))
    memory.add(batch(0, 60))
    memory.add(batch(60, 70))
    before = [(hit.id, hit.score) for hit in memory.search("about bees")]
    memory.close()
    assert doctor.rebuild(tmp_path / "kb") == 70 and sum(server.documents.values()) == 70
    small = min((tmp_path / "kb" / "keys" / "openai").glob("*/vectors.npy"), key=lambda path: path.stat().st_size)
    content = bytearray(small.read_bytes())
    content[-3] ^= 1
    small.write_bytes(content)
    server.down = True
    with pytest.raises(ServiceFailed):
        doctor.rebuild(tmp_path / "kb")
    assert small.read_bytes() == content
    server.down = False
    doctor.rebuild(tmp_path / "kb")
    assert doctor.examine(tmp_path / "kb") == []
    assert sum(server.documents.values()) == 80
    assert [(hit.id, hit.score) for hit in opened().search("about bees")] == before


# ---- paid once


def test_what_a_service_answered_before_it_failed_is_not_paid_for_again(opened: Opener, server: Embedder) -> None:
    memory = opened(encoder=paid(server))
    server.most = 50
    with pytest.raises(ServiceFailed):
        memory.add(batch(0, 100))
    assert len(memory) == 0 and 40 <= len(server.documents) < 100
    server.most = None
    memory.add(batch(0, 100))
    assert len(server.documents) == 100 and set(server.documents.values()) == {1}


def test_a_text_is_paid_for_once_though_several_documents_have_it(opened: Opener, server: Embedder) -> None:
    memory = opened(encoder=paid(server))
    twins = [evokey.Document(f"t{number}", document(number % 30).text) for number in range(60)]
    memory.add([*batch(0, 20), *twins[:20]])
    memory.add(batch(20, 30))
    memory.add(twins)
    memory.add(batch(0, 30))
    assert len(memory) == 90 and len(server.documents) == 30 and set(server.documents.values()) == {1}
    found = memory.search(document(7).text, k=3)
    assert {hit.id for hit in found} == {"d7", "t7", "t37"} and len({hit.score for hit in found}) == 1


WRITER = """
import os, sys
import evokey
from evokey.search.index import Index
from test_encoding import batch
folder, start, end, death = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def die(*_, **__):
    os.kill(os.getpid(), 9)
class Dying:
    encode = Index.encode
def encode(self, entries, progress=None):
    Dying.encode(self, entries, progress)
    die()
memory = evokey.open(folder)
memory.add(batch(start, (start + end) // 2))
if death == "encoded":
    Index.encode = encode
if death == "committed":
    Index.save = die
memory.add(batch((start + end) // 2, end))
if death == "saved":
    die()
memory.close()
"""
READER = """
import sys
import evokey
with evokey.open(sys.argv[1]) as memory:
    print(len(memory), len(memory.search("about chess", k=1000)), memory.stats().documents_without_keys)
"""


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    path = [str(Path(__file__).parent), str(Path(evokey.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": ":".join(path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_nine_hundred_documents_cost_nine_hundred_embeddings_whoever_writes_reads_or_is_killed(
    server: Embedder, tmp_path: Path
) -> None:
    folder = tmp_path / "kb"
    evokey.open(folder, encoder=paid(server)).close()
    with evokey.open(folder) as reader:
        for start, death in ((0, "no"), (200, "encoded"), (200, "committed"), (400, "saved"), (600, "no")):
            done = run(WRITER, folder, start, start + (300 if start == 600 else 200), death)
            assert done.returncode == (0 if death == "no" else -signal.SIGKILL), done.stderr
            assert run(READER, folder).returncode == 0
            reader.search("about chess")
        assert len(reader) == 900 and len(reader.search("about chess", k=1000)) == 900
    assert run(READER, folder).stdout.split() == ["900", "900", "0"]
    assert len(server.documents) == 900
    assert sum(server.documents.values()) == 900


def test_a_reader_takes_the_keys_of_the_writer(opened: Opener, server: Embedder) -> None:
    writer, reader = opened(encoder=paid(server)), opened()
    for start in range(0, 60, 20):
        writer.add(batch(start, start + 20))
        assert len(reader.search("about chess", k=100)) == start + 20
    assert sum(server.documents.values()) == 60


def test_a_reader_finds_documents_as_soon_as_their_keys_are_written(
    opened: Opener, server: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = opened(encoder=["bm25", paid(server)]), opened()
    monkeypatch.setattr(writer.index, "save", lambda **_: None)
    writer.add(batch(0, 20))
    assert reader.stats().documents_without_keys == 20 and len(reader.search("about chess")) > 0
    monkeypatch.undo()
    writer.index.save()
    assert reader.stats().documents_without_keys == 0
    assert sum(server.documents.values()) == 20


class Slow(Fussy):
    """Costs time, and says what it has encoded."""

    cost, identity, seen = "time", "slow", list[str]()

    def documents(self, texts: list[str]) -> Any:
        Slow.seen += texts
        return super().documents(texts)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(COMPONENTS["encoder"], "slow", Component(f"{__name__}:Slow"))
    monkeypatch.setattr(Slow, "seen", [])
    return "slow"


def test_keys_that_cost_time_are_made_at_open_and_saved_for_all(opened: Opener, slow: str, tmp_path: Path) -> None:
    memory = opened(encoder=slow)
    memory.add(batch(0, 30))
    memory.close()
    shutil.rmtree(tmp_path / "kb" / "keys")
    for _ in range(2):
        memory = opened()
        assert len(memory.search("about chess", k=50)) == 30
    assert len(Slow.seen) == 60
    assert opened().delete(["d0"]) == 1


# ---- progress


def test_progress_is_told_to_a_hook_and_to_the_log(
    opened: Opener, slow: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(indexing.PIECE, "time", 10)  # type: ignore[index]
    monkeypatch.setattr(indexing, "LOGGED_EVERY", 0.0)
    shares: list[float] = []
    with caplog.at_level(logging.INFO, "evokey"):
        opened(encoder=slow).add(batch(0, 40), progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert "encoding 40 documents, now by slow: 25 % done" in caplog.text


# ---- an add that is stopped


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"id": one.id, "text": one.text}) + "\n" for one in batch(0, 50)))
    return path


@pytest.mark.parametrize("late", [False, True])
def test_an_interrupted_add_says_which_documents_are_in(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    def add(self: evokey.Memory, documents: list[evokey.Document], **options: Any) -> int:
        interrupt = any(one.id == "d25" for one in documents)
        if not interrupt or late:
            whole(self, documents, **options)
        if interrupt:
            raise KeyboardInterrupt
        return len(documents)

    whole = evokey.Memory.add
    monkeypatch.setattr(adding, "BATCH", 20)
    with monkeypatch.context() as patched:
        patched.setattr(evokey.Memory, "add", add)
        stopped = CliRunner().invoke(cli.app, ["add", str(lines), "--at", str(tmp_path / "kb"), "--json"])
    said = json.loads(stopped.stdout)
    assert stopped.exit_code == 130 and said["error"] == "Interrupted"
    expected = (
        "The first 40 of 50 documents are added, up to 'd39'" if late else "The first 20 of 50 documents are added"
    )
    assert expected in said["message"] and "Run the same command again" in said["message"]
    done = CliRunner().invoke(cli.app, ["add", str(lines), "--at", str(tmp_path / "kb"), "--json"])
    assert json.loads(done.stdout)["documents"] == 50


def test_an_add_that_is_refused_says_which_documents_are_in(
    opened: Opener, server: Embedder, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(encoder=paid(server)).close()
    lines.write_text(lines.read_text().replace("document 33", "document 33 forbidden"))
    monkeypatch.setattr(adding, "BATCH", 20)
    refused = CliRunner().invoke(cli.app, ["add", str(lines), "--at", str(tmp_path / "kb"), "--json"])
    said = json.loads(refused.stdout)
    assert said["error"] == "DocumentRefused" and "'d33'" in said["message"]
    assert "The first 20 of 50 documents are added, up to 'd19'" in said["message"]
    assert len(opened()) == 20
