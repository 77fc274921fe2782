"""What stands behind a framework's interface, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frameworks.behind import ANSWER, DOCUMENTS, KINDS, QUESTION, RIGHT, WRONG, behind, embed, embed_otherwise

from evokey.errors import EncoderMismatch, InvalidInput, InvalidVector
from evokey.frameworks import Backend, Retrieved, open_with

TEXTS = {one.id: one.text for one in DOCUMENTS}


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with behind(request.param, tmp_path / "kb") as found:
        yield Backend(found)


def first(backend: Backend) -> str:
    return backend.search(QUESTION, 3)[0].id


def test_a_verdict_is_learned_and_forgotten(backend: Backend) -> None:
    assert first(backend) == WRONG
    backend.teach(QUESTION, [RIGHT])
    backend.behind.evolve()
    assert first(backend) == RIGHT
    backend.behind.forget(query=QUESTION)
    assert first(backend) == WRONG


def test_a_vote_up_credits_the_documents_that_the_answer_was_made_from(backend: Backend) -> None:
    retrieved = Retrieved(QUESTION, TEXTS, getattr(backend.search(QUESTION, 4), "query_id", None))
    assert retrieved.credit(ANSWER) == [RIGHT]
    assert retrieved.credit("I do not know.") == []
    backend.rate(retrieved, True, retrieved.credit(ANSWER))
    backend.behind.evolve()
    assert first(backend) == RIGHT


def test_a_vote_down_is_no_lesson(backend: Backend) -> None:
    retrieved = Retrieved(QUESTION, TEXTS, getattr(backend.search(QUESTION, 4), "query_id", None))
    backend.rate(retrieved, False, [RIGHT], "wrong document")
    assert backend.behind.lessons() == []


def test_an_empty_query_finds_nothing(backend: Backend) -> None:
    assert backend.search("  ", 3) == [] and backend.search(QUESTION, 0) == []


@pytest.mark.parametrize("kind", ["memory", "client"])
def test_documents_are_added_listed_and_deleted(kind: str, tmp_path: Path) -> None:
    with behind(kind, tmp_path / "kb") as found:
        backend = Backend(found)
        assert backend.delete(["git-log", "unknown"]) == 1
        assert [one.id for one in backend.documents()] == ["git-revert", "git-commit", "git-blame"]
        assert [one.id for one in backend.get(["git-log", "git-commit"])] == ["git-commit"]
        backend.add([DOCUMENTS[2]])
        assert [one.metadata["n"] for one in backend.documents()] == [1, 2, 4, 3]


def test_what_a_layer_cannot_do_is_said(tmp_path: Path) -> None:
    with behind("layer", tmp_path / "kb") as layer, pytest.raises(InvalidInput, match="holds no documents"):
        Backend(layer).add([])


def test_a_client_has_its_own_user(tmp_path: Path) -> None:
    with behind("client", tmp_path / "kb") as client, pytest.raises(InvalidInput, match="user="):
        Backend(client).teach(QUESTION, [RIGHT], actor="bob")


def test_something_else_is_refused() -> None:
    wrong: Any = "kb"
    with pytest.raises(InvalidInput, match="not str"):
        Backend(wrong)


# ---- memories with the vectors of a framework's embedding


def test_a_memory_has_the_vectors_of_an_embedding_and_knows_it_again(tmp_path: Path) -> None:
    with open_with(tmp_path / "kb", embed, embed, "words") as memory:
        memory.add(DOCUMENTS)
        assert memory.search(TEXTS[RIGHT], 1)[0].score == pytest.approx(1, abs=1e-3)
    noisy = lambda texts: [[one + 1e-4 for one in vector] for vector in embed(texts)]  # noqa: E731
    with open_with(tmp_path / "kb", noisy, noisy, "words by another name") as memory:
        memory.feedback(QUESTION, [RIGHT])
        memory.evolve()
        assert memory.search(QUESTION, 1)[0].id == RIGHT


def test_another_embedding_of_the_same_length_is_refused(tmp_path: Path) -> None:
    open_with(tmp_path / "kb", embed, embed, "words").close()
    with pytest.raises(EncoderMismatch, match="words/64; those of other/64 differ"):
        open_with(tmp_path / "kb", embed_otherwise, embed_otherwise, "other")
    with pytest.raises(EncoderMismatch):  # also where only the questions are embedded otherwise
        open_with(tmp_path / "kb", embed, embed_otherwise, "other")


def test_an_embedding_that_changes_its_mind_is_an_error_and_nothing_is_stored(tmp_path: Path) -> None:
    def short(texts: list[str]) -> list[list[float]]:
        return embed(texts) if len(texts) == 1 else [one[:3] for one in embed(texts)]

    with open_with(tmp_path / "kb", short, short, "words") as memory:
        with pytest.raises(InvalidVector, match="one vector for each text"):
            memory.add(DOCUMENTS)
        assert len(memory) == 0
