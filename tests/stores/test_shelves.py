"""Large overlays on shelves of the store: the same rankings, to the bit, and nothing left of what is out of date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LENS, Always, Opener, ranking
from pymilvus import MilvusClient

import evokey
from evokey import Choice
from evokey.errors import InvalidSettings
from evokey.search import shelved
from evokey.search.shelved import OnDemand, Shelved
from evokey.stores.milvus_shelf import MilvusShelf

COUNT, DIMENSIONS, LESSONS = 400, 16, 90
Found = list[list[tuple[str, float]]]


def unit(seed: int, count: int) -> Any:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS, TAUGHT, ASKED = unit(1, COUNT), unit(2, LESSONS), unit(3, 30)
DOCUMENTS = [{"id": f"d{n}", "text": f"text {n}", "metadata": {"third": n % 3}} for n in range(COUNT)]
QUESTIONS = np.concatenate([ASKED, TAUGHT[:20], (TAUGHT[20:30] + ASKED[:10]) / 2])
GATE = (-1.0, 4.0, 0.5, -0.5, 1.0, 0.3, 2.0, 0.5, -0.4)
CHOICES = {
    "moved keys and rows": Choice(0.5, 1.0, 0.0, 0.2),
    "moved keys alone": Choice(0.5, 2.0, 0.0, None),
    "rows alone": Choice(penalty=0.1),
    "with a gate": Choice(0.5, 1.0, 0.0, 0.2, gate_weights=GATE),
    "demoted": Choice(0.5, 1.0, 0.0, 0.2, demotion=0.4, gate_weights=GATE),
    "through a lens": LENS,
}


@pytest.fixture
def lite(tmp_path: Path) -> dict[str, Any]:
    return {"name": "milvus", "uri": str(tmp_path / "keys.db"), "consistency": "Strong", "shelve_from": 1}


def filled(opened: Opener, name: str, **settings: Any) -> evokey.Memory:
    memory = opened(name, encoder="given", **settings)
    memory.add(DOCUMENTS, vectors=VECTORS)
    return memory


def teach(memory: evokey.Memory, start: int = 0, end: int = LESSONS) -> None:
    memory.feedback_many(
        [
            {
                "query": f"question {n}",
                "relevant": [f"d{n * 3 % COUNT}", f"d{n * 7 % 50}"],
                "irrelevant": [f"d{n * 5 % 20 + 380}"],
                "vector": TAUGHT[n],
                "actor": "ada" if n % 2 else "bob",
            }
            for n in range(start, end)
        ]
    )


def found(memory: evokey.Memory, **asked: Any) -> Found:
    return [ranking(memory, "asked", vector=vector, **asked) for vector in QUESTIONS]


def shelved_by(memory: evokey.Memory, epoch: int | None = None) -> Shelved | None:
    (overlay,) = memory.index.view(epoch).overlays.of.values()
    return overlay.shelved


def shelves(store: dict[str, Any]) -> list[str]:
    client = MilvusClient(store["uri"])
    names = [name for name in client.list_collections() if "_shelf_" in name]
    client.close()
    return names


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_a_shelf_gives_the_rankings_of_the_overlay_itself_to_the_bit(
    opened: Opener, lite: dict[str, Any], always: Always, choice: Choice
) -> None:
    always(choice)
    there, own = filled(opened, "there", store=lite), filled(opened, "own")
    for memory in (there, own):
        teach(memory)
        assert memory.evolve().published
    one = shelved_by(there)
    assert one is not None and one.whole and shelved_by(own) is None
    for asked in ({}, {"k": 40}, {"where": {"third": 1}}, {"where": {"third": [0, 2]}, "k": 30}):
        assert found(there, **asked) == found(own, **asked)
    (overlay,) = there.index.view().overlays.of.values()
    assert [isinstance(block, OnDemand) and block.held for block in (overlay.base, overlay.texts)] == [False, False]
    assert [view.after for view in there.explain("d3", "question 1", vector=TAUGHT[1]).views] == [
        view.after for view in own.explain("d3", "question 1", vector=TAUGHT[1]).views
    ]


def test_documents_of_several_rows_lie_on_a_shelf_with_all_of_them(
    opened: Opener, lite: dict[str, Any], always: Always
) -> None:
    always(CHOICES["demoted"])
    words = "owl mouse star gas night day dust bird hunt tree river stone cloud light".split()
    texts = [" ".join(words[at * n % 14] for at in range(1, 20 + n % 30)) for n in range(60)]
    settings = {"encoder": "wordllama", "keys": {"name": "chunks", "tokens": 16, "overlap": 2}}
    there, own = opened("there", **settings, store=lite), opened("own", **settings)
    for memory in (there, own):
        memory.add(evokey.Document(f"d{n}", f"{n} {text}", "", {"third": n % 3}) for n, text in enumerate(texts))
        memory.feedback_many(
            {
                "query": f"{words[n % 14]} or {words[n * 5 % 14]} {n}",
                "relevant": [f"d{n}"],
                "irrelevant": [f"d{59 - n}"],
            }
            for n in range(25)
        )
        assert memory.evolve().published
    one = shelved_by(there)
    assert one is not None and one.whole
    for query in (*words, "river and stone", "the owl hunts the mouse at night"):
        for asked in ({}, {"where": {"third": 1}}, {"k": 30}):
            assert ranking(there, query, **asked) == ranking(own, query, **asked)
    (overlay,) = there.index.view().overlays.of.values()
    assert overlay.touched.several and [block.held for block in (overlay.base, overlay.texts)] == [False, False]
    there.delete(["d3", "d4", "d5"])
    own.delete(["d3", "d4", "d5"])
    assert ranking(there, "owl", k=40) == ranking(own, "owl", k=40)


def test_a_shelf_is_taken_only_from_so_many_rows_on(opened: Opener, lite: dict[str, Any], always: Always) -> None:
    always(CHOICES["moved keys and rows"])
    memory = filled(opened, "kb", store={**lite, "shelve_from": 10_000})
    teach(memory)
    assert memory.evolve().published and shelved_by(memory) is None and shelves(lite) == []
    with pytest.raises(InvalidSettings, match="shelve_from is a number of rows"):
        opened("other", encoder="given", store={**lite, "shelve_from": -1})


def test_older_epochs_stay_searchable_and_a_rollback_is_a_matter_of_which_shelf_is_asked(
    opened: Opener, lite: dict[str, Any], always: Always
) -> None:
    always(CHOICES["with a gate"])
    there, own = filled(opened, "there", store=lite), filled(opened, "own")
    for start, end in ((0, 40), (40, 70), (70, LESSONS)):
        for memory in (there, own):
            teach(memory, start, end)
            assert memory.evolve().published
    assert len(shelves(lite)) == 3
    for epoch in (0, 1, 2, 3):
        assert found(there, epoch=epoch) == found(own, epoch=epoch)
    before = found(there, epoch=2)
    there.rollback(2)
    assert found(there) == before
    for at in range(3):
        there.rollback(1 + at)
    assert len(shelves(lite)) == 4 and found(there, epoch=1) == found(own, epoch=1)


def test_another_process_answers_by_the_same_shelf_and_by_itself_where_it_has_gone(
    opened: Opener, lite: dict[str, Any], always: Always, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelved, "AGAIN", 0.0)
    always(CHOICES["with a gate"])
    writer = filled(opened, "kb", store=lite)
    teach(writer)
    writer.evolve()
    reader, wanted = opened("kb"), found(writer)
    one = shelved_by(reader)
    assert found(reader) == wanted and one is not None and one.whole
    store: Any = writer.index.originals[0].store
    store.clear_shelf(one.name)
    assert found(reader) == wanted and not one.whole
    writer.evolve()  # nothing new to learn; what is missing on shelves is put there
    assert found(reader) == wanted and one.whole


def test_forget_leaves_nothing_of_it_in_the_engine(opened: Opener, lite: dict[str, Any], always: Always) -> None:
    always(CHOICES["with a gate"])
    memory, without = filled(opened, "kb", store=lite), filled(opened, "without")
    teach(memory, 0, 50)
    memory.evolve()
    teach(memory, 50)
    memory.evolve()
    assert len(shelves(lite)) == 2
    assert memory.forget(actor="ada").erased
    (name,) = shelves(lite)
    client = MilvusClient(lite["uri"])
    rows = client.query(name, filter="row >= 0", output_fields=["vector"], limit=10_000)
    client.close()
    kept = {np.array(row["vector"], np.float32).tobytes() for row in rows}
    ada, bob = ({TAUGHT[n].tobytes() for n in range(first, LESSONS, 2)} for first in (1, 0))
    assert not kept & ada and bob <= kept
    teach(without)
    without.forget(actor="ada")
    without.evolve()
    assert found(memory) == found(without)
    assert memory.forget(actor="bob").erased and shelves(lite) == []


def test_a_shelf_that_a_crash_left_half_filled_is_not_used_and_goes_with_the_next_epoch(
    opened: Opener, lite: dict[str, Any], always: Always, monkeypatch: pytest.MonkeyPatch
) -> None:
    always(CHOICES["with a gate"])
    own, memory = filled(opened, "own"), filled(opened, "kb", store=lite)
    write = MilvusShelf.write

    def die(self: MilvusShelf, pieces: Any) -> None:
        write(self, half(pieces))

    def half(pieces: Any) -> Iterator[Any]:
        yield next(iter(pieces))[:10]
        raise KeyboardInterrupt

    for one in (own, memory):
        teach(one, 0, 50)
    own.evolve()
    with monkeypatch.context() as patched:
        patched.setattr(MilvusShelf, "write", die)
        with pytest.raises(KeyboardInterrupt):
            memory.evolve()
    memory.close()
    memory = opened("kb")
    assert memory.epoch == 1 and len(shelves(lite)) == 1  # published, and half of it is there
    assert found(memory) == found(own)
    one = shelved_by(memory)
    assert one is not None and not one.whole
    for each in (own, memory):
        teach(each, 50)
        each.evolve()
    one = shelved_by(memory)
    assert one is not None and one.whole and found(memory) == found(own)
    assert found(memory, epoch=1) == found(own, epoch=1)
