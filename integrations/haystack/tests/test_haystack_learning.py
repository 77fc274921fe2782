"""Teach, evolve, better, forget: through Haystack's own interface."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import own_folders  # noqa: F401
from frameworks.behind import ANSWER, DOCUMENTS, QUESTION, RIGHT, WRONG, behind, embed
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.core.errors import SerializationError
from haystack.dataclasses import ByteStream

import evokey
from haystack_integrations.components.feedback.evokey import EvokeyRater, EvokeyTeacher
from haystack_integrations.components.retrievers.evokey import EvokeyRetriever
from haystack_integrations.document_stores.evokey import EvokeyDocumentStore

PAGES = [Document(id=one.id, content=one.text, meta=dict(one.metadata)) for one in DOCUMENTS]


@pytest.fixture(params=["memory", "client", "layer"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store over a memory, a store over a service, and a layer."""
    if request.param == "memory":
        store = EvokeyDocumentStore(str(tmp_path / "kb"), encoder="bm25")
        store.write_documents(PAGES)
        yield store
        store.close()
        return
    with behind(request.param, tmp_path / "kb") as found:
        if request.param == "client":
            store = EvokeyDocumentStore(url="http://nowhere")
            store._open = found
            yield store
        else:
            yield found


def memory_of(source: Any) -> Any:
    return source.memory if isinstance(source, EvokeyDocumentStore) else source


def retrieve(source: Any, **inputs: Any) -> list[Document]:
    pipeline = Pipeline()
    pipeline.add_component("retriever", EvokeyRetriever(source, top_k=4))
    found: list[Document] = pipeline.run({"retriever": {"query": QUESTION, **inputs}})["retriever"]["documents"]
    return found


def test_a_verdict_is_learned_and_forgotten_in_pipelines(source: Any) -> None:
    assert retrieve(source)[0].id == WRONG
    teaching = Pipeline()
    teaching.add_component("teacher", EvokeyTeacher(source))
    assert teaching.run({"teacher": {"query": QUESTION, "relevant": [RIGHT]}})["teacher"]["lesson"] >= 1
    memory_of(source).evolve()
    assert retrieve(source)[0].id == RIGHT
    memory_of(source).forget(query=QUESTION)
    assert retrieve(source)[0].id == WRONG


def test_a_vote_on_an_answer_credits_what_it_was_made_from(source: Any) -> None:
    rating = Pipeline()
    rating.add_component("retriever", EvokeyRetriever(source, top_k=4))
    rating.add_component("rater", EvokeyRater(source))
    rating.connect("retriever.documents", "rater.documents")
    vote = {"query": QUESTION, "answer": ANSWER, "up": True}
    assert rating.run({"retriever": {"query": QUESTION}, "rater": vote})["rater"]["credited"] == [RIGHT]
    memory_of(source).evolve()
    assert retrieve(source)[0].id == RIGHT


def test_a_pipeline_is_written_down_and_read_again(tmp_path: Path) -> None:
    store = EvokeyDocumentStore(str(tmp_path / "kb"), encoder="bm25")
    store.write_documents(PAGES)
    pipeline = Pipeline()
    where = {"field": "meta.n", "operator": "<=", "value": 2}
    pipeline.add_component("retriever", EvokeyRetriever(store, filters=where, top_k=2))
    pipeline.add_component("prompt", PromptBuilder("{% for one in documents %}{{ one.content }}\n{% endfor %}"))
    pipeline.connect("retriever.documents", "prompt.documents")
    asked = {"retriever": {"query": QUESTION}}
    before, written = pipeline.run(asked), json.dumps(pipeline.to_dict())
    store.close()
    again = Pipeline.from_dict(json.loads(written))
    assert again.run(asked) == before and json.dumps(again.to_dict()) == written
    again.get_component("retriever").document_store.close()


def test_a_layer_is_not_written_down(tmp_path: Path) -> None:
    with behind("layer", tmp_path / "kb") as layer, pytest.raises(SerializationError, match="in code"):
        EvokeyRetriever(layer).to_dict()


def test_the_embeddings_of_documents_are_searched_and_taught(tmp_path: Path) -> None:
    store = EvokeyDocumentStore(str(tmp_path / "kb"), encoder="given")
    texts = [one.content or "" for one in PAGES]
    store.write_documents(
        [
            Document(id=one.id, content=one.content, embedding=vector)
            for one, vector in zip(PAGES, embed(texts), strict=True)
        ]
    )
    asked = embed([QUESTION])[0]
    assert retrieve(store, query_embedding=asked)[0].id == WRONG
    EvokeyTeacher(store).run(query=QUESTION, relevant=[RIGHT], query_embedding=asked)
    store.memory.evolve()
    assert retrieve(store, query_embedding=asked)[0].id == RIGHT
    store.close()


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    store = EvokeyDocumentStore(str(tmp_path / "kb"), encoder="bm25")
    whole = Document(
        id="1", content="a", meta={"n": 1.0}, embedding=[0.1, 1 / 3], blob=ByteStream(b"x", mime_type="a/b")
    )
    empty = Document(id="2", blob=ByteStream(b"y"))
    store.write_documents([whole, empty])
    assert store.filter_documents() == [whole, empty]
    store.close()


def test_the_version_is_that_of_evokey() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == evokey.__version__
