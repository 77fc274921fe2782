"""Indexes made elsewhere become memories: what needs no engine. The engines are in integrations/engines/tests."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Opener
from typer.testing import CliRunner

import evokey
from evokey import registry
from evokey.cli.app import app
from evokey.errors import EncoderMismatch, InvalidInput, InvalidVector
from evokey.importing import import_index, load_source
from evokey.importing.records import Place, Record

TEXTS = {
    "git-revert": "Record new changes that reverse the effect of an earlier commit.",
    "git-commit": "Record changes to the repository: make a commit.",
    "git-log": "Show the history, newest first.",
}
QUESTION = "how do I undo a commit?"


def encode(texts: list[str]) -> Any:
    return registry.build("encoder", "wordllama").documents(texts)


class Index:
    """Records in this process."""

    def __init__(self, vectors: Any, metric: str = "cosine") -> None:
        self.metric, self._vectors = metric, vectors

    def records(self) -> Any:
        for (id, text), vector in zip(TEXTS.items(), self._vectors, strict=True):
            yield Record(id, text, vector, {"n": 1})


def test_an_imported_memory_searches_learns_and_takes_more_documents(opened: Opener) -> None:
    memory = opened(encoder="wordllama", keys="full")
    assert import_index(memory, Index(encode(list(TEXTS.values())))) == 3
    plain = opened("plain", encoder="wordllama", keys="full")
    plain.add([{"id": id, "text": text} for id, text in TEXTS.items()])
    untaught = [(hit.id, pytest.approx(hit.score, abs=1e-5)) for hit in plain.search(QUESTION)]
    assert [(hit.id, hit.score) for hit in memory.search(QUESTION)] == untaught
    memory.add([{"id": "git-stash", "text": "Put local modifications away."}])
    assert memory.search("put modifications away", 1)[0].id == "git-stash"
    memory.feedback(QUESTION, relevant=["git-log"])
    memory.evolve()
    assert memory.search(QUESTION, 1)[0].id == "git-log"


def test_the_vectors_that_came_are_the_keys_also_when_these_are_made_again(opened: Opener, tmp_path: Path) -> None:
    vectors = encode(list(TEXTS.values()))
    near = vectors + np.float32(0.004) * np.sign(vectors)  # of the same encoder, in another precision
    memory = opened(encoder="wordllama", keys="full")
    import_index(memory, Index(near))
    before = [(hit.id, hit.score) for hit in memory.search(QUESTION)]
    memory.close()
    for file in sorted((tmp_path / "kb" / "keys").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    assert [(hit.id, hit.score) for hit in opened().search(QUESTION)] == before


def test_vectors_of_another_encoder_are_refused_and_nothing_is_stored(opened: Opener) -> None:
    memory = opened(encoder="wordllama", keys="full")
    with pytest.raises(EncoderMismatch, match=r"'git-\w+' came with a vector that encoder 'wordllama' does not make"):
        import_index(memory, Index(encode(list(TEXTS.values()))[::-1]))
    with pytest.raises(EncoderMismatch):
        import_index(memory, Index(np.ones((3, 7))))
    assert len(memory) == 0


def test_an_index_that_would_be_ranked_otherwise_is_refused(opened: Opener) -> None:
    vectors = encode(list(TEXTS.values()))
    memory = opened(encoder="wordllama", keys="full")
    with pytest.raises(InvalidInput, match=r"ranks by l2, and its vectors have lengths from 1 to 3.*beside"):
        import_index(memory, Index(vectors * [[1], [3], [2]], "l2"))
    assert import_index(memory, Index(vectors * 3, "l2")) == 3


def test_a_memory_with_other_keys_takes_no_vectors(opened: Opener) -> None:
    with pytest.raises(InvalidInput, match="one dense encoder"):
        import_index(opened("hybrid"), Index(encode(list(TEXTS.values()))))
    with pytest.raises(InvalidVector, match="keys='full'"):
        opened("bm25", encoder="bm25").add([{"id": "a", "text": "b"}], vectors=[[1.0]])


def llama_index_folder(folder: Path) -> Path:
    """As LlamaIndex writes it (the test with LlamaIndex itself is in integrations)."""
    folder.mkdir()
    vectors = dict(zip(TEXTS, encode(list(TEXTS.values())).tolist(), strict=True))
    nodes = {id: {"__data__": {"text": text, "metadata": {"n": 1}}, "__type__": "1"} for id, text in TEXTS.items()}
    (folder / "default__vector_store.json").write_text(json.dumps({"embedding_dict": vectors}))
    (folder / "docstore.json").write_text(json.dumps({"docstore/data": nodes}))
    return folder


def test_the_command_imports_into_a_new_memory_and_says_what_it_needs(tmp_path: Path) -> None:
    folder, at = llama_index_folder(tmp_path / "index"), str(tmp_path / "kb")
    asked = ["import", "llama-index", str(folder), "--at", at]
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code != 0 and "--encoder" in refused.output
    done = CliRunner().invoke(app, [*asked, "--encoder", "wordllama", "--json"])
    assert json.loads(done.output) == {"imported": 3, "documents": 3}
    assert CliRunner().invoke(app, asked).exit_code == 0  # again: nothing changes
    with evokey.open(at) as memory:
        assert len(memory) == 3 and memory.get("git-log").metadata == {"n": 1}


@pytest.mark.parametrize("engine", ["faiss", "langchain", "llama-index"])
def test_a_place_that_is_not_there_is_an_error_that_names_it(engine: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        load_source(engine, Place(str(tmp_path / "nowhere")))


def test_an_engine_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="chroma, lancedb, qdrant"):
        load_source("access", Place("x"))


# ---- the pickle of LangChain's FAISS store


def test_a_pickle_is_refused_without_the_flag(tmp_path: Path) -> None:
    (tmp_path / "index.pkl").write_bytes(b"")
    with pytest.raises(InvalidInput, match="--trust-pickle"):
        load_source("langchain", Place(str(tmp_path)))


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmed"),)


def test_a_pickle_with_anything_else_in_it_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import faiss

    monkeypatch.chdir(tmp_path)
    index = faiss.IndexFlatL2(2)
    index.add(np.ones((1, 2), np.float32))
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    (tmp_path / "index.pkl").write_bytes(pickle.dumps((Harmful(), {})))
    source = load_source("langchain", Place(str(tmp_path), trust_pickle=True))
    with pytest.raises(InvalidInput, match="it is not read"):
        list(source.records())
    assert not (tmp_path / "harmed").exists()
