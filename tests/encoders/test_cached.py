"""The cache around an encoder: nothing twice, the same bits, several processes, and files that were damaged."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import Opener
from encoding import Slow
from wire import Reply, Wire

import evokey
from evokey import registry
from evokey.encoders.bm25 import BM25
from evokey.encoders.cached import Cached
from evokey.encoders.openai import OpenAI
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import EncoderMismatch, InvalidSettings, ServiceFailed
from evokey.protocols import Bag, Cost
from evokey.types import Spent, Vectors

SCRIPT = Path(__file__).with_name("encoding.py")
TEXTS = ["a cat sat", "", "a dog barks", "a cat sat", "naïve \ud800 猫"]


class Letters:
    """Late interaction, of a kind: a vector for each letter. And weights that no short decimal can write."""

    kind: ClassVar[str] = "multi"
    cost: ClassVar[Cost] = "time"
    identity = "letters"

    def documents(self, texts: Sequence[str]) -> list[Vectors]:
        return [np.array([[ord(letter), 1 / 3, -0.0] for letter in text], np.float32).reshape(-1, 3) for text in texts]

    queries = documents


class Weighted(BM25):
    def documents(self, texts: Sequence[str]) -> list[Bag]:
        return [{term: np.float32(count) / 3 for term, count in bag.items()} for bag in super().documents(texts)]


def bits(encoded: Any) -> Any:
    if isinstance(encoded, np.ndarray):
        return encoded.dtype, encoded.shape, encoded.tobytes()
    return [bits(one) if isinstance(one, np.ndarray) else list(one.items()) for one in encoded]


def file(folder: Path) -> Path:
    return folder / "cache.sqlite"


@pytest.mark.parametrize("inner", [WordLlamaEncoder, BM25, Weighted, Letters, Slow])
@pytest.mark.parametrize("side", ["documents", "queries"])
def test_a_miss_a_hit_and_another_opening_give_the_same_bits(tmp_path: Path, inner: Any, side: str) -> None:
    texts = TEXTS[:-1] if inner is WordLlamaEncoder else TEXTS
    first = Cached.around(inner(), file(tmp_path))
    missed = getattr(first, side)(texts)
    hit = getattr(first, side)(texts)
    first.close()
    again = getattr(Cached.around(inner(), file(tmp_path)), side)(texts)
    assert bits(missed) == bits(hit) == bits(again)
    plain = getattr(inner(), side)(texts)
    for ours, theirs in zip(hit, plain, strict=True):
        if isinstance(theirs, np.ndarray):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
        else:
            assert dict(ours) == {term: float(weight) for term, weight in theirs.items()}


def test_the_same_text_is_encoded_once_and_one_by_one_where_it_costs_time(tmp_path: Path) -> None:
    inner = Slow()
    cached = Cached.around(inner, file(tmp_path))
    cached.documents(["a", "b", "a"])
    cached.documents(["b", "c"])
    assert inner.calls == [["a"], ["b"], ["c"]]
    assert (cached.hits, cached.misses) == (2, 3)
    assert cached.documents(["c"]).tolist() == (-cached.queries(["c"])).tolist()
    assert len(inner.calls) == 4


def test_texts_that_cost_money_are_sent_together_and_what_they_cost_is_told(tmp_path: Path) -> None:
    with Wire() as wire:
        cached = Cached.around(OpenAI(base_url=wire.url, model="m", price=1.0), file(tmp_path))
        cached.documents(["one text", "two texts", "one text"])
        cached.documents(["two texts"])
        assert [request.body["input"] for request in wire.requests] == [["one text", "two texts"]]
        assert (cached.spent.calls, cached.spent.prompt_tokens) == (1, 4)
        assert Cached.around(Slow(), file(tmp_path)).spent == Spent()


def test_what_was_paid_for_is_kept_when_a_later_call_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evokey.encoders.cached.KEPT_AT_ONCE", {"money": 2})
    with Wire() as wire:
        cached = Cached.around(OpenAI(base_url=wire.url, model="m", retries=0), file(tmp_path))
        wire.answers["/v1/embeddings"], fine = refuse_c(wire), wire.answers["/v1/embeddings"]
        with pytest.raises(ServiceFailed):
            cached.documents(["a", "b", "c", "d"])
        wire.answers["/v1/embeddings"] = fine
        cached.documents(["a", "b", "c", "d"])
        assert [request.body["input"] for request in wire.requests] == [["a", "b"], ["c", "d"], ["c", "d"]]


def refuse_c(wire: Wire) -> Any:
    fine = wire.answers["/v1/embeddings"]

    def answer(body: Any) -> Any:
        if "c" in body["input"]:
            return {"nothing": True}
        return fine(body)

    return answer


def test_encoders_of_other_names_share_a_file_and_not_their_vectors(tmp_path: Path) -> None:
    words = Cached.around(BM25(language="english"), file(tmp_path))
    assert words.documents(["running dogs"]) == [{"run": 1, "dog": 1}]
    other = Cached.around(BM25(language="none"), file(tmp_path))
    assert other.documents(["running dogs"]) == [{"running": 1, "dogs": 1}]
    assert (other.hits, other.misses) == (0, 1)


def test_no_text_is_in_the_file(tmp_path: Path) -> None:
    cached = Cached.around(WordLlamaEncoder(), file(tmp_path))
    cached.documents(["unmistakable secret"])
    assert all(b"unmistakable" not in part.read_bytes() for part in tmp_path.iterdir())


def test_what_is_forgotten_is_gone_on_both_sides_and_from_the_disk(tmp_path: Path) -> None:
    inner = Slow()
    cached, other = Cached.around(inner, file(tmp_path)), Cached.around(BM25(), file(tmp_path))
    kept, gone = cached.documents(["kept", "gone"])
    cached.queries(["kept", "gone"])
    other.documents(["kept", "gone"])
    file(tmp_path).with_name("cache.sqlite.damaged1").write_bytes(gone.tobytes())
    cached.forget(["gone", "never seen"])
    assert all(gone.tobytes() not in part.read_bytes() for part in tmp_path.iterdir())
    assert any(kept.tobytes() in part.read_bytes() for part in tmp_path.iterdir())
    inner.calls.clear()
    cached.documents(["kept", "gone"])
    cached.queries(["kept", "gone"])
    other.documents(["kept", "gone"])
    assert inner.calls == [["gone"], ["gone"]]
    assert (other.hits, other.misses) == (1, 3)


def run(path: Path, first: int, last: int, seconds: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(path), str(first), str(last), str(seconds)], stdout=subprocess.PIPE, text=True
    )


def test_another_process_finds_what_this_one_encoded(tmp_path: Path) -> None:
    Cached.around(Slow(), file(tmp_path)).documents([f"text {number}" for number in range(20)])
    out, _ = run(file(tmp_path), 10, 25).communicate(timeout=60)
    assert out.split()[-1] == "5"
    here = Cached.around(Slow(), file(tmp_path))
    here.documents([f"text {number}" for number in range(25)])
    assert here.misses == 0


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    writers = [run(file(tmp_path), first, first + 150) for first in (0, 50, 100, 150)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    texts = [f"text {number}" for number in range(300)]
    here = Cached.around(Slow(), file(tmp_path))
    assert here.documents(texts).tobytes() == Slow().documents(texts).tobytes()
    assert here.misses == 0


def test_a_killed_process_loses_nothing_that_it_had_encoded(tmp_path: Path) -> None:
    for round in range(3):
        process = run(file(tmp_path), round * 1000, round * 1000 + 1000, 0.002)
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(20 + 7 * round)]
        process.kill()
        process.wait(timeout=60)
        process.stdout.close()
        here = Cached.around(Slow(), file(tmp_path))
        texts = [f"text {number}" for number in seen]
        assert here.documents(texts).tobytes() == Slow().documents(texts).tobytes()
        assert here.misses == 0


def test_threads_that_want_the_same_text_wait_for_one_of_them(tmp_path: Path) -> None:
    inner = Slow(0.02)
    cached = Cached.around(inner, file(tmp_path))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(cached.documents([f"text {number}" for number in range(6)])))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.tobytes() for one in found}) == 1 and len(found) == 6
    assert sorted(inner.calls) == [[f"text {number}"] for number in range(6)]


def test_what_another_thread_encoded_since_it_was_looked_for_is_not_encoded_again(tmp_path: Path) -> None:
    inner = Slow()
    cached = Cached.around(inner, file(tmp_path))
    look, looked = cached._file.read, []

    def slow_look(keys: Any) -> Any:
        found = look(keys)
        looked.append(keys)
        if len(looked) == 1:
            cached.documents(["a"])
        return found

    cached._file.read = slow_look  # type: ignore[method-assign]
    cached.documents(["a"])
    assert inner.calls == [["a"]]


def test_a_thread_whose_encoder_failed_leaves_the_text_to_the_next(tmp_path: Path) -> None:
    with Wire(delay=0.05) as wire:
        wire.first = [Reply(400, delay=0.2)]
        cached = Cached.around(OpenAI(base_url=wire.url, model="m"), file(tmp_path))
        outcomes: list[Any] = []

        def ask() -> None:
            try:
                outcomes.append(cached.documents(["a"]).shape)
            except ServiceFailed:
                outcomes.append("failed")

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, outcomes)) == ["(1, 256)", "(1, 256)", "failed"]
        assert len(wire.requests) == 2


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    file(tmp_path).write_bytes(content)
    cached = Cached.around(Slow(), file(tmp_path))
    assert cached.documents(["a"]).tobytes() == Slow().documents(["a"]).tobytes()
    assert file(tmp_path).with_name("cache.sqlite.damaged1").read_bytes() == content
    assert "is damaged" in caplog.text and "started again" in caplog.text
    again = Cached.around(Slow(), file(tmp_path))
    again.documents(["a"])
    assert again.misses == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_file_damaged_anywhere_never_gives_a_wrong_vector(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Random bytes over random places, a cut, or zeros: each text has its own vector, before and after."""
    texts = [f"text {number}" for number in range(400)]
    expected = Slow().documents(texts).tobytes()
    cached = Cached.around(Slow(), file(tmp_path))
    cached.documents(texts)
    cached.close()
    chance, content = random.Random(seed), bytearray(file(tmp_path).read_bytes())
    for _ in range(chance.choice([1, 20, 300])):
        place = chance.randrange(len(content))
        content[place : place + 8] = chance.randbytes(8)
    if seed % 3 == 0:
        content = content[: chance.randrange(len(content))]
    file(tmp_path).write_bytes(content)
    for part in tmp_path.glob("*-wal"):
        part.unlink()
    damaged = Cached.around(Slow(), file(tmp_path))
    for _ in range(2):
        assert damaged.documents(texts).tobytes() == expected
    damaged.close()
    healed = Cached.around(Slow(), file(tmp_path))
    assert healed.documents(texts).tobytes() == expected


def test_a_value_that_was_changed_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cached = Cached.around(Slow(), file(tmp_path))
    cached.documents(["a", "b"])
    with sqlite3.connect(file(tmp_path)) as other:
        other.execute("UPDATE encoded SET value = substr(value, 1, 20) || x'00'")
    other.close()
    assert cached.documents(["a", "b"]).tobytes() == Slow().documents(["a", "b"]).tobytes()
    assert cached.misses == 4 and "2 values are damaged" in caplog.text
    cached.documents(["a", "b"])
    assert cached.misses == 4


def test_a_file_that_is_removed_or_replaced_under_it_is_begun_anew(tmp_path: Path) -> None:
    first, second = Cached.around(Slow(), file(tmp_path)), Cached.around(Slow(), file(tmp_path))
    first.documents(["a"])
    for part in tmp_path.glob("cache.sqlite*"):
        part.unlink()
    first.documents(["a", "b"])
    second.documents(["a", "b"])
    assert (first.misses, second.misses) == (3, 0)


def test_a_disk_that_takes_nothing_costs_only_the_keeping(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cached = Cached.around(Slow(), file(tmp_path))
    cached.documents(["a"])
    cached._file._connection.execute("PRAGMA query_only = ON")
    assert cached.documents(["a", "b"]).tobytes() == Slow().documents(["a", "b"]).tobytes()
    assert "cannot be used now" in caplog.text
    with pytest.raises(sqlite3.OperationalError):
        cached.forget(["a"])


def test_a_place_that_cannot_be_a_cache_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(InvalidSettings, match="cannot be a cache"):
        Cached.around(Slow(), tmp_path / "taken" / "cache.sqlite")
    with sqlite3.connect(tmp_path / "ledger.sqlite") as other:
        other.execute("CREATE TABLE documents (id)")
    other.close()
    with pytest.raises(InvalidSettings, match="is a database of something else"):
        Cached.around(Slow(), tmp_path / "ledger.sqlite")


def test_a_model_that_changed_under_its_name_is_told(tmp_path: Path) -> None:
    with Wire() as wire:
        cached = Cached.around(OpenAI(base_url=wire.url, model="m", revision="1"), file(tmp_path))
        cached.documents(["a"])
        other = Cached.around(OpenAI(base_url=wire.url, model="m", revision="1"), file(tmp_path))
        wire.first = [Reply(body={"data": [{"index": 0, "embedding": [1.0]}]})]
        with pytest.raises(EncoderMismatch, match="vectors of 1, 256 dimensions"):
            other.documents(["a", "b"])


def test_a_memory_is_made_with_a_cache_by_its_settings(
    tmp_path: Path, opened: Opener, commands: list[evokey.Document]
) -> None:
    inside = {"name": "bm25", "language": "none", "k1": 1.2}
    for number, encoder in enumerate(["wordllama", inside]):
        plain = opened(f"plain {number}", encoder=encoder)
        said = {"name": "cached", "encoder": encoder, "at": str(tmp_path / "cache")}
        cached = opened(f"cached {number}", encoder=said)
        for memory in (plain, cached):
            memory.add(commands)
            memory.feedback("annotate", relevant=["git-blame"])
            memory.evolve()
        for query in ("annotate", "find the bug", "history"):
            assert [(hit.id, hit.score) for hit in cached.search(query)] == [
                (hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in plain.search(query)
            ]
        cached.close()
        again = opened(f"cached {number}")
        assert again.search("annotate")[0].id == "git-blame"
        again.close()
        opened(f"cached {number}", encoder=said).close()
    assert (tmp_path / "cache" / "encoded.sqlite").exists()


def test_the_kind_follows_the_encoder_inside() -> None:
    assert registry.encoder_kind("cached", {"encoder": "bm25"}) == "sparse"
    assert registry.encoder_kind("cached", {"encoder": {"name": "cached", "encoder": "wordllama"}}) == "dense"
    assert registry.encoder_kind("bm25", {}) == "sparse"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"name": "cached"}, "needs the encoder inside"),
        ({"name": "cached", "encoder": "given"}, "nothing to cache"),
        ({"name": "cached", "encoder": "bert"}, "no encoder called 'bert'"),
        ({"name": "cached", "encoder": {"language": "german"}}, "needs its name"),
        (
            {"name": "cached", "encoder": {"name": "bm25", "colour": "red"}},
            "'bm25' has no option colour; its options are: k1, b",
        ),
    ],
)
def test_settings_that_make_no_cache_are_refused(tmp_path: Path, said: Any, told: str) -> None:
    with pytest.raises(InvalidSettings, match=told):
        evokey.open(tmp_path / "kb", encoder=said)


def test_without_a_folder_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Cached("bm25").documents(["a"])
    assert (tmp_path / ".cache" / "evokey" / "encoded.sqlite").exists()
