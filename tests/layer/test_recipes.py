"""The recipes run: over services that speak the real wire format; for real over PostgreSQL, Milvus and Qdrant."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.error import HTTPError

import pytest
from conftest import Attach
from layer import wire_engines
from layer.library import Library, ids, teach
from postgres_server import Server
from wire import Reply, Wire

import evokey
from evokey.demo.run import Question
from evokey.encoders.wordllama import WordLlamaEncoder

RECIPES = Path(__file__).parents[2] / "examples" / "beside"
SECRET = "os.path.dirname"
TAUGHT = 24


class Attached(NamedTuple):
    engine: Any
    lose: Callable[[str], None]
    wire: Wire | None = None


def recipe(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"recipe_{name}", RECIPES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def embed(text: str) -> Sequence[float]:
    vector: Sequence[float] = WordLlamaEncoder().queries([text])[0]
    return vector


@pytest.fixture(scope="module")
def some(pages: list[evokey.Document], questions: list[Question]) -> list[evokey.Document]:
    """Few enough for engines that are slow when they run inside a test."""
    wanted = {id for one in questions for id in one.relevant}
    return [one for one in pages if one.id in wanted] + [one for one in pages if one.id not in wanted][:300]


@contextmanager
def over_http(name: str, pages: Sequence[evokey.Document]) -> Iterator[Attached]:
    library = Library(pages, secret=[SECRET])
    shelf, module = wire_engines.Shelf(library, pages), recipe(name)
    with Wire() as wire:
        wire.answers["/pages/_search"] = wire_engines.elasticsearch(shelf)
        wire.answers["/pages/_search?search_pipeline=hybrid"] = wire_engines.opensearch(shelf)
        wire.answers[f"/indexes/pages/docs/search?api-version={'2024-07-01'}"] = wire_engines.azure(shelf)
        wire.answers["/search/"] = wire_engines.vespa(shelf)
        made = {
            "elasticsearch": lambda: module.Elasticsearch(wire.host, "pages", "key"),
            "opensearch": lambda: module.OpenSearch(wire.host, "pages", "model"),
            "azure_search": lambda: module.AzureSearch(wire.host, "pages", "key", "usual"),
            "vespa": lambda: module.Vespa(wire.host),
        }
        yield Attached(made[name](), library.lose, wire)


@contextmanager
def postgres(pages: Sequence[evokey.Document]) -> Iterator[Attached]:
    import psycopg

    module = recipe("postgres")
    with Server.start() as server, psycopg.connect(server.url, autocommit=True) as database:
        database.execute("CREATE EXTENSION vector")
        database.execute(module.__doc__[module.__doc__.index("CREATE TABLE") :])
        with (
            database.cursor() as cursor,
            cursor.copy("COPY pages (id, team, title, body, embedding) FROM STDIN") as copy,
        ):
            for one, vector in zip(pages, _vectors(pages), strict=True):
                copy.write_row((one.id, _team(one), one.title, one.text, str(vector)))
        engine = module.Pages(server.url, embed)
        try:
            yield Attached(engine, lambda id: database.execute("DELETE FROM pages WHERE id = %s", (id,)))
        finally:
            engine.close()


@contextmanager
def milvus(pages: Sequence[evokey.Document], folder: Path) -> Iterator[Attached]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pymilvus import MilvusClient

        module, uri = recipe("milvus"), str(folder / "milvus.db")
        client = MilvusClient(uri)
        client.create_collection("pages", 256, id_type="string", max_length=512, metric_type="COSINE")
        rows = [
            {"id": one.id, "vector": vector, "team": _team(one), "title": one.title, "text": one.text}
            for one, vector in zip(pages, _vectors(pages), strict=True)
        ]
        client.insert("pages", rows)
        engine = module.Milvus(uri, embed)
        try:
            yield Attached(engine, lambda id: client.delete("pages", ids=[id]))
        finally:
            engine.close()
            client.close()


@contextmanager
def qdrant(pages: Sequence[evokey.Document]) -> Iterator[Attached]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from qdrant_client import QdrantClient, models

        client = QdrantClient(":memory:")
        space = models.VectorParams(size=256, distance=models.Distance.COSINE)
        client.create_collection("pages", vectors_config=space)
        points = [
            models.PointStruct(
                id=at, vector=vector, payload={"page": one.id, "team": _team(one), "title": one.title, "text": one.text}
            )
            for at, (one, vector) in enumerate(zip(pages, _vectors(pages), strict=True))
        ]
        client.upsert("pages", points)
        numbers = {one.id: at for at, one in enumerate(pages)}
        try:
            yield Attached(recipe("qdrant").Qdrant(client, embed), lambda id: client.delete("pages", [numbers[id]]))
        finally:
            client.close()


def _team(page: evokey.Document) -> str:
    return "staff" if page.id == SECRET else "all"


def _vectors(pages: Sequence[evokey.Document]) -> list[list[float]]:
    found: list[list[float]] = WordLlamaEncoder().documents([f"{one.title} {one.text}" for one in pages]).tolist()
    return found


HTTP = ("elasticsearch", "opensearch", "azure_search", "vespa")
REAL = ("postgres", "milvus", "qdrant")
ELSEWHERE = ("chroma_index", "lancedb_table", "faiss_index", "llama_index_retriever")
"""Run where these packages are: integrations/engines/tests/test_beside_recipes.py."""


@pytest.fixture
def attached(request: pytest.FixtureRequest, some: list[evokey.Document], tmp_path: Path) -> Iterator[Attached]:
    name = request.param
    with ExitStack() as stack:
        if name in HTTP:
            yield stack.enter_context(over_http(name, some))
        elif name == "milvus":
            yield stack.enter_context(milvus(some, tmp_path))
        else:
            yield stack.enter_context(postgres(some) if name == "postgres" else qdrant(some))


@pytest.mark.parametrize("attached", [*HTTP, *REAL], indirect=True)
def test_a_recipe_learns_keeps_rights_and_drops_what_is_gone(
    attached: Attached, attach: Attach, questions: list[Question]
) -> None:
    engine = attached.engine
    layer = attach(engine.search, allowed=engine.allowed)
    query = "strip the file name from a path and keep the directory"
    untaught = layer.search(query, 5, team="guest")
    assert untaught
    assert untaught[0].document.text
    taught = teach(layer, questions, TAUGHT, team="staff")
    layer.feedback(query, relevant=[SECRET], team="staff")
    assert layer.evolve().published
    assert all(set(ids(layer.search(one.text, 3, team="staff"))) & set(one.relevant) for one in taught)
    first = layer.search(query, 2, team="staff")
    assert SECRET in ids(first)
    assert all(hit.document.text for hit in first)
    assert all(SECRET not in ids(layer.search(one.text, 50, team="guest")) for one in [*taught, questions[0]])
    attached.lose(SECRET)
    assert SECRET not in ids(layer.search(query, 50, team="staff"))


@pytest.mark.parametrize("attached", HTTP, indirect=True)
def test_a_service_that_is_down_is_its_own_error(attached: Attached, attach: Attach) -> None:
    layer = attach(attached.engine.search, allowed=attached.engine.allowed)
    assert attached.wire is not None
    attached.wire.first.append(Reply(503, {"error": "unavailable"}))
    with pytest.raises(HTTPError, match="503") as failed:
        layer.search("anything at all")
    failed.value.close()
    assert layer.search("the directory of a path", 3)


def test_every_recipe_is_short() -> None:
    recipes = sorted(RECIPES.glob("*.py"))
    assert {path.stem for path in recipes} == {*HTTP, *REAL, *ELSEWHERE}
    assert all(len(path.read_text("utf-8").splitlines()) <= 60 for path in recipes)
