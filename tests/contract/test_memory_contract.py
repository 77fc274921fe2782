"""The whole life of a memory, for every encoder, key builder and policy that can be put together here.

Encoders that cost nothing meet all key builders and policies; the others a few, chosen so that every kind of store
meets one row and several, and both policies.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LENS, Always, Opener, ranking
from parts import ENCODERS, Parts
from parts import parts as parts  # the fixture

import evokey
from evokey import registry
from evokey.registry import COMPONENTS
from evokey.types import Expansion, Unit

CHUNKS = {"name": "chunks", "tokens": 16, "overlap": 4}
KEYS = tuple(COMPONENTS["keys"])
POLICIES = tuple(COMPONENTS["policy"])
LENSED = "guarded, with a lens"
LIGHT = ("bm25", "wordllama", "cached", "hybrid")
ONCE = ("sentence-transformers", "onnx", "openai", "cohere", "voyage")
"""The same vectors, or another model of a class that others stand for: one combination."""
SEVERAL = [("chunks", "guarded"), ("full", "paper")]
REST = [name for name in ENCODERS if name not in (*LIGHT, "given")]
COMBINATIONS = [
    *((name, keys, policy) for name in LIGHT for keys in KEYS for policy in POLICIES),
    *((name, keys, LENSED) for name in LIGHT for keys in KEYS),
    *((name, keys, policy) for name in REST for keys, policy in (SEVERAL[:1] if name in ONCE else SEVERAL)),
]
DOCUMENTS = [
    evokey.Document("owls", "owls hunt mice at night and eat mice by day", "owls at night", {"sky": "night"}),
    evokey.Document("sun", "the sun is a star of gas and dust", "what is the sun", {"abstract": "a star of gas"}),
    evokey.Document("birds", "birds fly by day and hunt", "birds"),
    evokey.Document("mice", "mice eat dust at night", "", {"sky": "night"}),
    evokey.Document("empty", ""),
    evokey.Document(
        "all",
        "owls hunt mice at night. the sun is a star of gas. birds fly by day. what do they eat. dust and gas. " * 3,
        "all of the day",
    ),
]
LESSONS: list[dict[str, Any]] = [
    {"query": "they fly at night", "relevant": ["owls"]},
    {"query": "what do birds eat", "relevant": {"mice": 2.0, "all": 1.0}, "units": ["birds eat mice", "they hunt"]},
    {"query": "gas by day", "relevant": ["sun"], "irrelevant": ["birds"], "units": ["a star"]},
]
WRONG: list[dict[str, Any]] = [
    {"query": "dust of owls", "relevant": ["birds"], "units": ["the star eat birds", "fly"]},
    {"query": "they fly at night", "relevant": ["sun"]},
]
ASKED = [
    *dict.fromkeys(one["query"] for one in LESSONS + WRONG),
    "star",
    "mice hunt owls",
    "😀",
    "the of",
    "zebra",
    "?!",
]
FEW = ["they fly at night", "what do birds eat", "star", "😀"]
"""Asked where each question costs time."""
FUSED = Expansion("hunt", (Unit("owls hunt mice"), Unit("night"), Unit("the sun", False)), "by hand")


def settings(parts: Parts, name: str, keys: str, policy: str) -> dict[str, Any]:
    encoder: Any = ["bm25", "wordllama"] if name == "hybrid" else parts.named(name)
    return {"encoder": encoder, "keys": CHUNKS if keys == "chunks" else keys, "policy": policy.partition(",")[0]}


def rankings(memory: evokey.Memory, **options: Any) -> dict[str, list[tuple[str, float]]]:
    asked = ASKED if memory.index.retrievers[0].name in LIGHT else FEW
    return {query: ranking(memory, query, 20, **options) for query in asked}


def test_every_store_and_key_builder_takes_part() -> None:
    kinds = {"sparse", "dense", "multi"}  # of bm25, wordllama and token-vectors
    assert set().union(*(registry.load("store", name).kinds for name in COMPONENTS["store"])) == kinds
    assert {keys for _, keys, _ in COMBINATIONS} == set(KEYS)
    assert {name for name, _, _ in COMBINATIONS} | {"given"} == {*ENCODERS, "hybrid"}


@pytest.mark.parametrize(("name", "keys", "policy"), COMBINATIONS)
def test_the_life_of_a_memory(
    parts: Parts, opened: Opener, always: Always, tmp_path: Path, name: str, keys: str, policy: str
) -> None:
    made = settings(parts, name, keys, policy)
    if policy == LENSED:
        always(LENS)
    memory, twin = (opened(folder, now=lambda: 0.0, **made) for folder in ("kb", "twin"))
    assert memory.search("owls") == []
    for one in (memory, twin):
        assert one.add(DOCUMENTS[:3]) + one.add(DOCUMENTS[3:]) == len(DOCUMENTS)
    untaught = rankings(memory)
    assert untaught == rankings(twin)
    well_formed(untaught)
    assert ranking(memory, "star", 2) == untaught["star"][:2]
    night = {"owls", "mice"}
    assert {id for id, _ in ranking(memory, "mice hunt owls", where={"sky": "night"})} <= night
    expanded(memory)

    # learning
    for lesson in LESSONS:
        twin.feedback(**lesson, actor="right")
        memory.feedback(**lesson, actor="right")
    for lesson in WRONG:
        memory.feedback(**lesson, actor="wrong")
    assert rankings(memory) == untaught
    assert memory.evolve(dry_run=True).published is False
    assert memory.evolve().published
    assert twin.evolve().published
    well_formed(rankings(memory))
    assert rankings(memory) != untaught
    assert rankings(memory, epoch=0) == untaught
    if policy == "guarded" and name not in ("splade", "bge-m3-sparse"):  # there a text may pass a question's own words
        first = 2 if name in ("bm25", "hybrid") else 1  # "all" says the same words three times
        for lesson in LESSONS:
            assert {hit.id for hit in twin.search(lesson["query"], first)} & set(lesson["relevant"])
    explained(memory, untaught)

    # forgetting is exact, and so is opening again
    assert memory.forget(actor="wrong").lessons == len(WRONG)
    assert rankings(memory) == rankings(twin)
    taught = rankings(memory)
    memory.close()
    memory = opened("kb")
    assert rankings(memory) == taught
    expanded(memory)

    # time travel
    last = memory.epochs()[-1].number
    memory.rollback(0)
    assert rankings(memory) == untaught
    memory.rollback(last)
    assert rankings(memory) == taught == rankings(memory, epoch=last)
    memory.diff(0, last)

    # documents come, go, change and come back
    memory.delete(["owls"])
    assert all(id != "owls" for found in rankings(memory).values() for id, _ in found)
    memory.add([evokey.Document("owls", "gas and dust", "gas")])
    well_formed(rankings(memory))
    memory.add([DOCUMENTS[0]])
    alike = keys != "keywords"  # how words are weighed follows the documents there were when a key was made
    if policy != "paper" and alike:
        near(rankings(memory), taught)
    memory.forget(actor="right")
    assert rankings(memory) == rankings(memory, epoch=0)
    if alike:
        near(rankings(memory), untaught)
    memory.forget(traffic=True)  # what was searched is kept encoded too, if a policy listens
    assert not any(encoded(path) for path in tmp_path.glob("kb/keys/*/taught.sqlite"))


def well_formed(found: dict[str, list[tuple[str, float]]]) -> None:
    for hits in found.values():
        scores = [score for _, score in hits]
        assert len(dict(hits)) == len(hits)
        assert scores == sorted(scores, reverse=True)
        assert all(map(math.isfinite, scores))
        assert "empty" not in dict(hits)


def near(found: dict[str, list[tuple[str, float]]], wanted: dict[str, list[tuple[str, float]]]) -> None:
    """The same scores; a document that was encoded again, in other company, may differ in its last digits."""
    for query, hits in wanted.items():
        assert dict(found[query]) == pytest.approx(dict(hits), rel=1e-4, abs=1e-4)


def expanded(memory: evokey.Memory) -> None:
    for way in ("blend", "concat", "fuse"):
        for units in (FUSED.units, (), FUSED.units[2:], (Unit("😀"),)):
            hits = memory.search("hunt", 20, expansion=replace(FUSED, units=units, search=way))
            well_formed({"hunt": [(hit.id, hit.score) for hit in hits]})
            if not units:
                assert [(hit.id, hit.score) for hit in hits] == ranking(memory, "hunt", 20)
        found = ranking(memory, "hunt", expansion=replace(FUSED, search=way), where={"sky": "night"})
        assert set(dict(found)) <= {"owls", "mice"}


def explained(memory: evokey.Memory, untaught: dict[str, list[tuple[str, float]]]) -> None:
    for query in (LESSONS[1]["query"], "star", "😀"):
        found = dict(ranking(memory, query, 20))
        for id in ("mice", "all", "sun", "empty"):
            told = memory.explain(id, query)
            (view, *others) = told.views
            if others:
                continue
            if id in found:
                assert view.after == pytest.approx(found[id], rel=1e-5, abs=1e-6)
                assert told.rank_after == list(found).index(id) + 1
            elif memory.index.retrievers[0].kind != "sparse":
                assert view.after == -math.inf
            if view.terms and view.best_key != "taught question":
                assert sum(term.after for term in view.terms) == pytest.approx(view.after, rel=1e-5)
            if view.best_key == "base key":
                assert view.after == view.before
            if view.best_key == "base key" and id in found and memory.index.retrievers[0].kind != "sparse":
                assert view.after == pytest.approx(dict(untaught[query])[id], rel=1e-5, abs=1e-6)


def encoded(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM encoded").fetchone()[0])


# ---- vectors that callers bring


@pytest.mark.parametrize("keys", ["full", "chunks"])
@pytest.mark.parametrize("policy", [*POLICIES, LENSED])
def test_the_life_of_a_memory_of_given_vectors(opened: Opener, always: Always, keys: str, policy: str) -> None:
    if policy == LENSED:
        always(LENS)
    rng = np.random.default_rng(7)
    vectors = {text: rng.normal(size=8) for text in [one.id for one in DOCUMENTS] + ["q", "r", "s"]}
    made = {"encoder": "given", "keys": CHUNKS if keys == "chunks" else keys, "policy": policy.partition(",")[0]}
    memory, twin = (opened(folder, now=lambda: 0.0, **made) for folder in ("kb", "twin"))
    for one in (memory, twin):
        one.add(DOCUMENTS, vectors=[vectors[document.id] for document in DOCUMENTS])

    def asked(one: evokey.Memory, **options: Any) -> list[Any]:
        return [ranking(one, query, vector=vectors[query], **options) for query in "qrs"]

    untaught = asked(memory)
    plain = ranking(memory, "q", vector=vectors["q"], expansion=memory.expand("q"))
    assert plain == untaught[0]
    for one in (memory, twin):
        one.feedback("q", relevant=["empty"], vector=vectors["q"], actor="right")
        one.feedback("r", relevant=["sun"], vector=vectors["r"], actor="right")
    memory.feedback("s", relevant=["owls"], vector=vectors["s"], actor="wrong")
    assert memory.evolve().published and twin.evolve().published
    if policy == "guarded":
        assert asked(memory)[0][0][0] == "empty"
    assert asked(memory) != untaught
    memory.forget(actor="wrong")
    assert asked(memory) == asked(twin)
    memory.close()
    memory = opened("kb")
    assert asked(memory) == asked(twin)
    (view,) = memory.explain("sun", "q", vector=vectors["q"]).views
    assert view.after == pytest.approx(dict(asked(memory)[0])["sun"])
    memory.forget(actor="right")
    assert asked(memory) == untaught


# ---- rerankers


@pytest.mark.parametrize("name", COMPONENTS["reranker"])
def test_a_reranker_orders_what_was_found(parts: Parts, opened: Opener, name: str) -> None:
    options = parts.reranker(name)
    memory, plain = opened("kb", reranker={"name": name, **options}), opened("plain")
    for one in (memory, plain):
        one.add(DOCUMENTS)
    for query in ("owls hunt mice", "star of gas"):
        hits = memory.search(query, 20)
        well_formed({query: [(hit.id, hit.score) for hit in hits]})
        found = dict(ranking(plain, query, 20))
        assert {hit.id for hit in hits} == set(found)
        assert [hit.score for hit in hits] != list(found.values())
        assert memory.search(query, 2) == hits[:2]
    memory.close()
    assert opened("kb").search("star of gas", 20) == hits
