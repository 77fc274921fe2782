"""An index that LlamaIndex persisted, imported with its vectors."""

from __future__ import annotations

from pathlib import Path

from conftest import own_folders  # noqa: F401
from frameworks.behind import DOCUMENTS, QUESTION
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

import evokey
from evokey import registry
from evokey.importing import import_index, load_source
from evokey.importing.records import Place

ENCODER = registry.build("encoder", "wordllama")


class WordLlama(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        found: list[float] = ENCODER.documents([text])[0].tolist()
        return found

    def _get_query_embedding(self, query: str) -> list[float]:
        found: list[float] = ENCODER.queries([query])[0].tolist()
        return found

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def test_a_persisted_index_is_imported_and_learns(tmp_path: Path) -> None:
    index = VectorStoreIndex([TextNode(id_=one.id, text=one.text) for one in DOCUMENTS], embed_model=WordLlama())
    index.storage_context.persist(str(tmp_path / "index"))
    untaught = [one.node.node_id for one in index.as_retriever(similarity_top_k=10).retrieve(QUESTION)]
    with evokey.open(tmp_path / "kb", encoder="wordllama", keys="full") as memory:
        assert import_index(memory, load_source("llama-index", Place(str(tmp_path / "index")))) == len(DOCUMENTS)
        assert [hit.id for hit in memory.search(QUESTION)] == untaught
        memory.feedback(QUESTION, relevant=["git-blame"])
        memory.evolve()
        assert memory.search(QUESTION, 1)[0].id == "git-blame"
