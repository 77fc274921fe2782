"""Improve a Chroma index that you have: import it with its vectors, teach it, and see what questions gain that were
not taught.

The index holds entries of the Python standard library. Half of the wordings of some questions are taught; the other
wordings are measured, in Chroma and in the memory.

    pip install 'evokey[chroma]'
    python examples/improve_chroma.py
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import chromadb

import evokey
from evokey import registry
from evokey.demo import run
from evokey.importing import import_index, load_source
from evokey.importing.records import Place

ENCODER = "wordllama"
Search = Callable[[str], list[str]]


def make_index(folder: Path, size: int) -> Search:
    """An index as you may have it; its own search."""
    encoder = registry.build("encoder", ENCODER)
    pages = run.documents()[:size]
    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    made: Any = client.create_collection("pages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    texts = [f"{one.title} {one.text}" for one in pages]
    for start in range(0, size, 1_000):
        some = slice(start, start + 1_000)
        made.add(ids=[one.id for one in pages[some]], documents=texts[some], embeddings=encoder.documents(texts[some]))
    return lambda query: made.query(query_embeddings=encoder.queries([query]), n_results=10)["ids"][0]


def main(folder: Path, size: int = 5_000) -> dict[str, float]:
    search = make_index(folder / "chroma", size)
    known = {one.id for one in run.documents()[:size]}
    questions = [one for one in run.questions() if known.issuperset(one.relevant)]
    taught = [one for one in questions if one.group == "taught wordings"]
    other = [one for one in questions if one.group == "other wordings"]
    with evokey.open(folder / "kb", encoder=ENCODER, keys="full") as memory:
        imported = import_index(memory, load_source("chroma", Place(str(folder / "chroma"))))
        for one in taught:
            memory.feedback(one.text, relevant=one.relevant)
        memory.evolve()
        after = measure(other, lambda query: [hit.id for hit in memory.search(query)])
    return {"documents": imported, "lessons": len(taught), "chroma": measure(other, search), "taught": after}


def measure(questions: Sequence[run.Question], search: Search) -> float:
    """nDCG@10, the mean of all questions."""
    return sum(run.quality(search(one.text), one.relevant) for one in questions) / len(questions)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        told = main(Path(place))
    sys.stdout.write(
        f"{told['documents']} documents imported, {told['lessons']} lessons. nDCG@10 of other wordings: "
        f"{told['chroma']:.3f} in Chroma, {told['taught']:.3f} in the memory\n"
    )
