"""Tables of what a user meets first: the package, a newcomer's run, and an imported index."""

from __future__ import annotations

from collections.abc import Callable

from results import read, table

ENGINES = {
    "chroma": "Chroma", "faiss": "faiss", "lancedb": "LanceDB", "milvus": "Milvus Lite", "pgvector": "pgvector",
    "qdrant": "Qdrant",
}  # fmt: skip


def imports() -> str:
    rows = [
        [f"{ENGINES[name]} ({one['package']} {one['version']})", f"{one['documents']:,}",
         f"{one['same_top_ten']:.1%}", f"{one['taught']}", f"{one['first_imported']:.0%}", f"{one['first_beside']:.0%}"]
        for name, one in read("imports.json").items()
    ]  # fmt: skip
    head = ["engine", "documents", "same top ten", "questions taught", "first hit right: imported", "beside the engine"]
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {"imports": imports}
