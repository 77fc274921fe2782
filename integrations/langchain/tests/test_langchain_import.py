"""Stores that LangChain wrote, imported with their vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import own_folders  # noqa: F401
from frameworks.behind import DOCUMENTS, QUESTION, RIGHT
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import evokey
from evokey import registry
from evokey.errors import InvalidInput
from evokey.importing import import_index, load_source
from evokey.importing.records import Place


class WordLlama(Embeddings):
    def __init__(self) -> None:
        self._encoder = registry.build("encoder", "wordllama")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self._encoder.documents(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = self._encoder.queries([text])[0].tolist()
        return found


TEXTS, NAMES = [one.text for one in DOCUMENTS], [one.id for one in DOCUMENTS]
METADATA = [dict(one.metadata) for one in DOCUMENTS]


def check_import(place: Place, untaught: list[str], folder: Path) -> None:
    with evokey.open(folder / "kb", encoder="wordllama", keys="full") as memory:
        assert import_index(memory, load_source("langchain", place)) == len(TEXTS)
        assert [hit.id for hit in memory.search(QUESTION)] == untaught
        assert memory.get(RIGHT).metadata == {"n": 1}
        memory.feedback(QUESTION, relevant=["git-blame"])
        memory.evolve()
        assert memory.search(QUESTION, 1)[0].id == "git-blame"


def test_a_dump_of_the_store_in_memory_is_imported_and_learns(tmp_path: Path) -> None:
    store = InMemoryVectorStore(WordLlama())
    store.add_texts(TEXTS, METADATA, ids=NAMES)
    store.dump(str(tmp_path / "dump.json"))
    untaught = [str(one.id) for one in store.similarity_search(QUESTION, k=10)]
    check_import(Place(str(tmp_path / "dump.json")), untaught, tmp_path)


@pytest.mark.filterwarnings("default")
def test_the_folder_of_the_faiss_store_is_imported_with_the_flag_alone(tmp_path: Path) -> None:
    from langchain_community.vectorstores import FAISS

    store = FAISS.from_texts(TEXTS, WordLlama(), METADATA, ids=NAMES)
    store.save_local(str(tmp_path / "faiss"))
    untaught = [str(one.id) for one in store.similarity_search(QUESTION, k=10)]
    with pytest.raises(InvalidInput, match="--trust-pickle"):
        load_source("langchain", Place(str(tmp_path / "faiss")))
    check_import(Place(str(tmp_path / "faiss"), trust_pickle=True), untaught, tmp_path)
