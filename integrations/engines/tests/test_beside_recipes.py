"""The recipes beside Chroma, LanceDB, faiss and LlamaIndex run for real: untaught, taught, forgotten, with rights, and
as the programs that they are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
import pytest
from conftest import own_folders  # noqa: F401
from layer.library import ids, pairs, teach
from layer.test_recipes import RECIPES, embed, recipe
from test_engines import Search, World, make_chroma, make_faiss, make_lancedb

import evokey
from evokey import registry
from evokey.demo import run

INTENTS, OTHERS, DEPTH = 24, 40, 5


class Attached(NamedTuple):
    """A recipe's engine, and what the tests know about the index behind it."""

    engine: Any
    own: Search
    where: Callable[[str], Any]
    """The filter of a team, as this engine takes it."""
    lose: Callable[[str], object]
    program: list[str]
    """The recipe's file, and its arguments before the question."""
    names: dict[str, str]
    """A document's id → that in the index."""

    def questions(self, world: World) -> list[run.Question]:
        """With the ids of the index."""
        return [replace(one, relevant=tuple(self.names[id] for id in one.relevant)) for one in world.questions]

    def secret(self, world: World) -> set[str]:
        return {self.names[one.id] for one in world.documents if one.metadata["team"] == "staff"}


@pytest.fixture(scope="module")
def world() -> World:
    """Some dozens of documents of the demo. What every third intent asks for, only staff may see."""
    encoder = registry.build("encoder", "wordllama")
    intents = list(dict.fromkeys(one.relevant for one in run.questions()))[:INTENTS]
    questions = [one for one in run.questions() if one.relevant in intents]
    wanted, secret = {id for intent in intents for id in intent}, {id for intent in intents[::3] for id in intent}
    pages = [page for page in run.documents() if page.id in wanted]
    pages += [page for page in run.documents() if page.id not in wanted][:OTHERS]
    documents = [
        evokey.Document(one.id, f"{one.title} {one.text}"[:1500], "", {"team": "staff" if one.id in secret else "all"})
        for one in pages
    ]
    vectors = encoder.documents([one.text for one in documents])
    return World(documents, vectors, questions, encoder.queries([one.text for one in questions]))


def attach_chroma(world: World, folder: Path) -> Attached:
    import chromadb

    own, _ = make_chroma(world, folder)
    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    collection = client.get_collection("pages", embedding_function=None)
    return Attached(
        recipe("chroma_index").Chroma(collection, embed),
        own,
        lambda team: {"team": {"$in": ["all", team]}},
        lambda id: collection.delete(ids=[id]),
        ["chroma_index.py", str(folder)],
        {one.id: one.id for one in world.documents},
    )


def attach_lancedb(world: World, folder: Path) -> Attached:
    import lancedb

    own, _ = make_lancedb(world, folder)
    table = lancedb.connect(str(folder), read_consistency_interval=timedelta(0)).open_table("pages")
    other = lancedb.connect(str(folder)).open_table("pages")
    return Attached(
        recipe("lancedb_table").LanceDB(table, embed),
        own,
        lambda team: f"team IN ('all', '{team}')",
        lambda id: other.delete(f"id = '{id}'"),
        ["lancedb_table.py", str(folder)],
        {one.id: one.id for one in world.documents},
    )


def attach_faiss(world: World, folder: Path) -> Attached:
    own, place = make_faiss(world, folder)
    index = faiss.read_index(place.path)
    rows = [json.loads(line) for line in Path(place.texts or "").read_text("utf-8").splitlines()]
    names = {one["text"]: str(one["number"]) for one in rows}
    return Attached(
        recipe("faiss_index").Faiss(index, rows, embed),
        own,
        lambda team: {"team": ["all", team]},
        lambda id: index.remove_ids(np.array([int(id)])),
        ["faiss_index.py", place.path, place.texts or ""],
        {one.id: names[one.text] for one in world.documents},
    )


def attach_llama_index(world: World, folder: Path) -> Attached:
    from llama_index.core import QueryBundle, VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

    module = recipe("llama_index_retriever")
    nodes = [
        TextNode(id_=one.id, text=one.text, metadata=dict(one.metadata), embedding=vector.tolist())
        for one, vector in zip(world.documents, world.vectors, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=module.WordLlama())
    index.storage_context.persist(str(folder))

    def own(vector: Any, k: int) -> list[str]:
        asked = QueryBundle("", embedding=vector.tolist())
        return [one.node_id for one in index.as_retriever(similarity_top_k=k).retrieve(asked)]

    def where(team: str) -> MetadataFilters:
        return MetadataFilters(filters=[MetadataFilter(key="team", value=["all", team], operator=FilterOperator.IN)])

    return Attached(
        module.Retriever(index),
        own,
        where,
        lambda id: index.delete_nodes([id]),
        ["llama_index_retriever.py", str(folder)],
        {one.id: one.id for one in world.documents},
    )


MAKERS = {
    "chroma_index": attach_chroma, "lancedb_table": attach_lancedb, "faiss_index": attach_faiss,
    "llama_index_retriever": attach_llama_index,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(params=list(MAKERS))
def attached(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Attached:
    return MAKERS[request.param](world, tmp_path / "index")


@pytest.fixture
def layer(attached: Attached, tmp_path: Path) -> Iterator[evokey.Layer]:
    with evokey.beside(attached.engine.search, tmp_path / "kb", allowed=attached.engine.allowed) as layer:
        yield layer


def test_untaught_the_list_is_the_engines_own(attached: Attached, world: World, layer: evokey.Layer) -> None:
    texts = {attached.names[one.id]: one.text for one in world.documents}
    for question, vector in zip(world.questions, world.asked, strict=True):
        hits, own = layer.search(question.text, DEPTH), attached.own(vector, DEPTH)
        assert ids(hits) == own
        assert pairs(hits) == [(one["id"], one["score"]) for one in attached.engine.search(question.text, DEPTH)]
        assert [hit.document.text for hit in hits] == [texts[hit.id] for hit in hits]


def test_scores_fall_by_as_much_as_the_cosines(attached: Attached, world: World) -> None:
    found = attached.engine.search(world.questions[0].text, 1_000)
    cosines = np.sort(world.vectors @ world.asked[0])[::-1]
    scores = np.array([one["score"] for one in found])
    assert len(found) == len(world.documents)
    assert (np.diff(scores) <= 0).all()
    assert np.allclose(scores - scores[0], cosines - cosines[0], atol=1e-5)


def test_of_a_faiss_index_by_distance_the_score_is_the_negative() -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(2))
    index.add_with_ids(np.array([[0, 1], [0, 3]], np.float32), np.array([7, 9]))
    rows = [{"number": 7, "text": "near"}, {"number": 9, "text": "far"}]
    engine = recipe("faiss_index").Faiss(index, rows, lambda text: [0.0, 0.0])
    assert [(one["id"], one["score"]) for one in engine.search("anything", 5)] == [("7", -1.0), ("9", -9.0)]


def test_what_was_taught_is_found_and_forgotten_again(attached: Attached, world: World, layer: evokey.Layer) -> None:
    questions = attached.questions(world)
    untaught = [pairs(layer.search(one.text, DEPTH)) for one in questions]
    before = [measure(layer, questions, group) for group in run.GROUPS[:2]]
    taught = teach(layer, questions)
    assert layer.evolve().published
    after = [measure(layer, questions, group) for group in run.GROUPS[:2]]
    assert after[0] >= max(0.9, before[0] + 0.1)
    assert after[1] > before[1], "wordings that nobody taught"
    assert all(hit.document.text for one in taught for hit in layer.search(one.text, DEPTH))
    layer.forget(actor="demo")
    assert [pairs(layer.search(one.text, DEPTH)) for one in questions] == untaught


def test_a_guest_never_sees_what_only_staff_may_see(attached: Attached, world: World, layer: evokey.Layer) -> None:
    questions = attached.questions(world)
    guest, staff, secret = attached.where("guest"), attached.where("staff"), attached.secret(world)
    taught = [one for one in teach(layer, questions, where=staff) if secret.issuperset(one.relevant)]
    assert layer.evolve().published
    assert taught and all(layer.search(one.text, 1, where=staff)[0].id in one.relevant for one in taught)
    assert all(secret.isdisjoint(ids(layer.search(one.text, 50, where=guest))) for one in questions)


def test_allowed_are_the_ids_that_exist_and_pass_the_filter(attached: Attached, world: World) -> None:
    allowed, secret = attached.engine.allowed, attached.secret(world)
    every = set(attached.names.values())
    strange = ["nobody's", "0", '"', "') OR (1 = 1", "-1"]
    assert identify(allowed([*strange, *every])) == every
    assert identify(allowed([*strange, *every], where=attached.where("staff"))) == every
    assert identify(allowed([*strange, *every], where=attached.where("guest"))) == every - secret
    assert identify(allowed(strange)) == identify(allowed(sorted(secret), where=attached.where("guest"))) == set()
    attached.lose(lost := min(every))
    assert identify(allowed(sorted(every))) == every - {lost}
    assert lost not in identify(attached.engine.search(world.questions[0].text, len(every)))


def test_a_recipe_runs_as_a_program(attached: Attached, world: World, tmp_path: Path) -> None:
    """Its folder comes first in the path then: no name of a recipe may hide a package."""
    query, (name, *arguments) = world.questions[0].text, attached.program
    command = [sys.executable, str(RECIPES / name), *arguments, query]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = [one["id"] for one in attached.engine.search(query, 5)]
    assert [line.split()[1] for line in done.stdout.splitlines()] == expected


def measure(layer: evokey.Layer, questions: Sequence[run.Question], group: str) -> float:
    """nDCG@10 of these questions."""
    own = [one for one in questions if one.group == group]
    return float(np.mean([run.quality(ids(layer.search(one.text, DEPTH)), one.relevant) for one in own]))


def identify(found: Sequence[dict[str, Any]]) -> set[str]:
    return {one["id"] for one in found}
