"""The store "ann": graphs find nearly all that is there, with the scores of the rows, and nobody waits for a build."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener, ranking

import evokey
from evokey import Choice
from evokey.errors import InvalidSettings
from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Proposal
from evokey.inspect import doctor
from evokey.ledger.sqlite.database import SQLite
from evokey.scoring.dense import DenseBlock
from evokey.stores import ann, graph, nearest
from evokey.stores.ann import AnnStore

COUNT, DIMENSIONS = 6_000, 24
CHOICE = Choice(spread=0.5, step=0.5, gate_weights=(-3.0, 6.0, *([0.0] * 7)), sharpness=1.0)
STORE = {"name": "ann", "build_at": 1_000, "threads": 1}


def clusters(seed: int, count: int) -> Any:
    """Unit vectors around 60 centres."""
    centres = np.random.default_rng(3).standard_normal((60, DIMENSIONS))
    chance = np.random.default_rng(seed)
    vectors = centres[chance.integers(60, size=count)] + 0.9 * chance.standard_normal((count, DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS, ASKED = clusters(1, COUNT), clusters(2, 40)
DOCUMENTS = [
    {"id": f"d{n}", "text": f"text {n}", "metadata": {"even": n % 2 == 0, "tenth": n % 10}} for n in range(COUNT)
]


@pytest.fixture(autouse=True)
def use_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "GATHERED", 1)  # a few thousand rows are searched by the graph, too


def fill(opened: Opener, name: str = "kb", store: Any = STORE, count: int = COUNT) -> evokey.Memory:
    memory = opened(name, encoder="given", store=store)
    for start in range(0, count, 1_500):
        some = slice(start, min(start + 1_500, count))
        memory.add(DOCUMENTS[some], vectors=VECTORS[some])
    return memory


def store_of(memory: evokey.Memory) -> AnnStore:
    store = memory.index._retrievers[0].store
    assert isinstance(store, AnnStore)
    return store


def found(memory: evokey.Memory, **asked: Any) -> list[list[tuple[str, float]]]:
    return [ranking(memory, "asked", vector=vector, **asked) for vector in ASKED]


def overlap(some: list[list[tuple[str, float]]], others: list[list[tuple[str, float]]]) -> float:
    """Documents that both have, with equal scores to the last bit."""
    return sum(len({*a} & {*b}) for a, b in zip(some, others, strict=True)) / sum(map(len, others))


def has_graph(memory: evokey.Memory) -> bool:
    return store_of(memory).rows.has_graph


def test_it_finds_what_a_look_at_all_rows_finds_with_the_same_bits(opened: Opener) -> None:
    memory, flat = fill(opened), fill(opened, "flat", "flat")
    memory.save()
    assert [len(one.graph) for one in store_of(memory).rows.segments] == [COUNT]
    assert overlap(found(memory), found(flat)) >= 0.97
    assert overlap(found(memory, k=100), found(flat, k=100)) >= 0.97
    assert memory.stats().recall["given"] >= 0.95 and flat.stats().recall == {}


@pytest.mark.parametrize("where", [{"even": True}, {"tenth": 3}, {"tenth": [1, 2, 3]}])
def test_filters_find_as_much_whether_few_or_many_documents_pass(opened: Opener, where: Any) -> None:
    memory, flat = fill(opened), fill(opened, "flat", "flat")
    memory.save()
    hits = found(memory, where=where)
    assert overlap(hits, found(flat, where=where)) >= 0.97
    assert all(len(one) == 10 for one in hits)


def test_what_was_deleted_is_not_found_and_a_graph_of_many_dead_is_built_anew(opened: Opener) -> None:
    memory, flat = fill(opened), fill(opened, "flat", "flat")
    memory.save()
    for gone in ([f"d{n}" for n in range(0, COUNT, 9)], [f"d{n}" for n in range(1, COUNT, 3)]):
        for one in (memory, flat):
            one.delete(gone)
        assert overlap(found(memory), found(flat)) >= 0.97
        assert not {id for hits in found(memory) for id, _ in hits} & {*gone}
    memory.save()
    (segment,) = store_of(memory).rows.segments
    assert len(segment.graph) == len(memory) == len(flat)


def test_adding_and_searching_wait_for_no_build(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    building, go_on = threading.Event(), threading.Event()
    grow = ann.grow

    def grow_slowly(*given: Any) -> Any:
        building.set()
        assert go_on.wait(60)
        return grow(*given)

    monkeypatch.setattr(ann, "grow", grow_slowly)
    memory = fill(opened, count=3_000)
    assert building.wait(60)
    new = clusters(9, 1)
    memory.add([{"id": "new", "text": "new"}], vectors=new)
    memory.add(DOCUMENTS[3_000:4_500], vectors=VECTORS[3_000:4_500])
    assert ranking(memory, "asked", k=1, vector=new[0])[0][0] == "new"
    assert not has_graph(memory)
    go_on.set()
    builder = store_of(memory)._builder
    assert builder is not None
    builder.join()
    assert has_graph(memory) and ranking(memory, "asked", k=1, vector=new[0])[0][0] == "new"
    flat = fill(opened, "flat", "flat", 4_500)
    flat.add([{"id": "new", "text": "new"}], vectors=new)
    assert overlap(found(memory), found(flat)) >= 0.97


def test_a_build_asks_the_ledger_nothing_for_whoever_has_it_may_be_waiting(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = set[str]()
    read = SQLite.one

    def note(self: SQLite, *given: Any) -> Any:
        asking.add(threading.current_thread().name)
        return read(self, *given)

    monkeypatch.setattr(SQLite, "one", note)
    memory = fill(opened)
    memory.index.background.wait()
    assert has_graph(memory) and "MainThread" in asking and "evokey-ann" not in asking


def test_keys_that_are_not_written_yet_stay_when_another_process_has_built_a_graph(opened: Opener) -> None:
    other = fill(opened, count=3_000)
    other.close()
    memory = opened("kb")
    found(memory, k=1)
    other = opened("kb")
    other.save()
    other.close()
    memory.add(DOCUMENTS[3_000:4_500], vectors=VECTORS[3_000:4_500])
    memory.save()
    assert not memory.index.without_keys and [len(one.graph) for one in store_of(memory).rows.segments] == [4_500]


def test_a_search_takes_up_a_graph_that_was_built_since_in_this_process_and_in_another(opened: Opener) -> None:
    memory = fill(opened)
    reader = opened("kb")
    assert found(reader, k=1) == found(memory, k=1)
    memory.save()
    memory.feedback("a question", relevant=["d1"], vector=ASKED[0])
    for one in (memory, reader):
        found(one, k=1)
        (segment,) = one.index.retrievers[0].base.segments  # type: ignore[attr-defined]
        assert segment.graph is not None


def test_few_graphs_are_kept_and_each_holds_the_rows_of_those_before(opened: Opener) -> None:
    memory = fill(opened, count=0)
    for start in range(0, COUNT, 500):
        memory.add(DOCUMENTS[start : start + 500], vectors=VECTORS[start : start + 500])
        builder = store_of(memory)._builder
        if builder is not None:
            builder.join()
    sizes = [len(one.graph) for one in store_of(memory).rows.segments if one.graph is not None]
    assert len(sizes) <= 2 and sum(sizes) >= COUNT - 1_000
    assert overlap(found(memory), found(fill(opened, "flat", "flat"))) >= 0.97


def test_a_closed_memory_opens_with_its_graph_and_an_interrupted_build_is_done_later(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ann, "grow", lambda base, pieces, stopped: None)  # as if it was stopped
    memory = fill(opened)
    assert not has_graph(memory)
    memory.close()
    monkeypatch.undo()
    (tmp_path / "kb" / "keys" / "given" / "abcdef123456.tmp").mkdir()  # what a killed process leaves
    again = opened("kb")
    assert not has_graph(again) and len(found(again)) == len(ASKED)
    again.save()
    before = found(again)
    again.close()
    third = opened("kb")
    assert has_graph(third) and found(third) == before
    assert not list((tmp_path / "kb" / "keys" / "given").glob("*.tmp"))
    assert doctor.examine(tmp_path / "kb") == []


def test_a_damaged_graph_costs_no_key_and_is_built_again(
    opened: Opener, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = fill(opened)
    memory.save()
    before = found(memory)
    memory.close()
    (path,) = (tmp_path / "kb" / "keys" / "given").glob("*/graph.npy")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert [one.mended_by for one in doctor.examine(tmp_path / "kb")] == ["evokey doctor --rebuild"]
    again = opened("kb")
    assert not has_graph(again) and len(again.index.without_keys) == 0
    assert overlap(before, found(again)) >= 0.97
    again.close()
    doctor.rebuild(tmp_path / "kb")
    assert doctor.examine(tmp_path / "kb") == [] and has_graph(opened("kb"))


def test_graphs_that_miss_too_much_are_widened_and_the_doctor_says_so(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "NEIGHBOURS", 12)
    monkeypatch.setattr(graph, "BUILD_WIDTH", 12)
    memory = fill(opened, store={**STORE, "recall": 0.1})
    memory.save()
    for number, vector in enumerate(ASKED):
        memory.feedback(f"question {number}", relevant=[f"d{number}"], vector=vector)
    narrow = store_of(memory).rows.width
    memory.close()
    assert doctor.examine(tmp_path / "kb") == []
    settings = tmp_path / "kb" / "evokey.toml"
    settings.write_text(settings.read_text().replace("recall = 0.1", "recall = 0.97"))
    (finding,) = doctor.examine(tmp_path / "kb")
    assert "of the ten best documents, and are to find 0.970" in finding.what
    again = opened("kb")
    again.evolve()
    builder = store_of(again)._builder
    assert builder is not None
    builder.join()
    assert again.stats().recall["given"] >= 0.97 and store_of(again).rows.width > narrow
    again.close()
    assert opened("kb").stats().recall["given"] >= 0.97
    assert doctor.examine(tmp_path / "kb") == []


def test_a_memory_moves_to_graphs_and_back_by_a_line_of_its_settings(opened: Opener, tmp_path: Path) -> None:
    flat = fill(opened, store="flat")
    before = found(flat)
    flat.close()
    settings = tmp_path / "kb" / "evokey.toml"
    for name, other in (("flat", "ann"), ("ann", "flat")):
        settings.write_text(settings.read_text().replace(f'"{name}"', f'"{other}"'))
        memory = opened("kb")
        if other == "ann":
            memory.save()
            assert has_graph(memory)
        assert overlap(found(memory), before) >= 0.97
        memory.close()


def test_it_learns_and_forgets_as_the_flat_store_does(opened: Opener) -> None:
    memory, flat = fill(opened), fill(opened, "flat", "flat")
    memory.save()
    untaught = found(memory)
    for one in (memory, flat):
        for number, vector in enumerate(ASKED):
            one.feedback(f"question {number}", relevant=[f"d{number * 7}"], actor="ada", vector=vector)
        assert one.evolve().published
    assert overlap(found(memory), found(flat)) >= 0.97
    assert overlap(found(memory), untaught) < 0.99
    memory.forget(actor="ada")
    assert found(memory) == untaught


@pytest.mark.parametrize("penalty", [None, 0.2])
def test_of_many_that_have_learned_only_those_are_scored_that_may_be_found(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, penalty: float | None
) -> None:
    """The same documents with the same bits as if all were scored."""
    memory = fill(opened)
    memory.save()
    lessons = [
        {"query": f"question {at}", "relevant": [f"d{n}" for n in range(at, COUNT, 120)], "vector": vector}
        for at, vector in enumerate(ASKED)
    ]
    memory.feedback_many(lessons)
    choice = replace(CHOICE, penalty=penalty)
    monkeypatch.setattr(Guarded, "propose", lambda *_: Proposal({"given": choice}, {"given": 1.0}, None, None, True))
    assert memory.evolve().published
    every, scored = found(memory), list[int]()
    take = DenseBlock.take
    monkeypatch.setattr(DenseBlock, "take", lambda self, rows: scored.append(len(rows)) or take(self, rows))
    monkeypatch.setattr(nearest, "MANY", 100)
    assert overlap(found(memory), every) >= 0.99
    assert max(scored) < 1_000, "of 2,000 documents that have learned"


def test_documents_of_several_rows_are_found_by_their_best(opened: Opener) -> None:
    texts = [f"{word} {number}. " * 12 for number in range(60) for word in ("ant", "bee", "cat", "dog", "eel", "fox")]
    kept = {"encoder": "wordllama", "keys": {"name": "chunks", "tokens": 16, "overlap": 0}}
    memory, flat = opened("a", **kept, store={**STORE, "build_at": 100}), opened("b", **kept)
    for one in (memory, flat):
        one.add([{"id": str(n), "text": text} for n, text in enumerate(texts)])
        one.save()
    assert has_graph(memory)
    for query in ("ant 7", "eel", "a fox and a dog 33"):
        assert len(ranking(memory, query)) == 10
        assert overlap([ranking(memory, query)], [ranking(flat, query)]) >= 0.9


def test_a_disk_that_is_full_leaves_the_keys_as_they_are(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*given: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ann, "write_segment", refuse)
    with caplog.at_level(logging.WARNING, "evokey"):
        memory = fill(opened)
        builder = store_of(memory)._builder
        assert builder is not None
        builder.join()
    assert "no graph was built" in caplog.text and len(found(memory, k=1)) == len(ASKED)


@pytest.mark.parametrize("options", [{"recall": 1.5}, {"recall": 0}, {"build_at": 0}, {"threads": 0}])
def test_wrong_options_are_named(opened: Opener, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="store 'ann' takes"):
        opened("kb", encoder="given", store={"name": "ann", **options})


def test_lessons_that_come_together_have_the_pools_that_they_have_one_by_one(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    one_by_one, together = fill(opened, "one by one", count=3_000), fill(opened, "together", count=3_000)
    lessons = [{"query": f"question {n % 20}", "relevant": [f"d{n}"], "vector": ASKED[n % 20]} for n in range(25)]
    for memory in (one_by_one, together):
        memory.save()
    for lesson in lessons:
        one_by_one.feedback(**lesson)
    together.feedback_many(lessons)
    pools = [memory.ledger.pools.get("given") for memory in (one_by_one, together)]
    assert pools[0].keys() == pools[1].keys() and len(pools[1]) == 20
    for query, pool in pools[0].items():
        assert pool.ranking.numbers.tolist() == pools[1][query].ranking.numbers.tolist()
        assert pool.ranking.scores.tolist() == pools[1][query].ranking.scores.tolist()
