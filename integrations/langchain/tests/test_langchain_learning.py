"""Teach, evolve, better, forget: through LangChain's own interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import own_folders  # noqa: F401
from frameworks.behind import ANSWER, DOCUMENTS, KINDS, QUESTION, RIGHT, WRONG, behind, embed, embed_otherwise
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough

from evokey.errors import EncoderMismatch, UnknownResult
from langchain_evokey import EvokeyFeedback, EvokeyRetriever, EvokeyVectorStore


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


class OtherWords(Words):
    def embed_query(self, text: str) -> list[float]:
        return embed_otherwise([text])[0]


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with behind(request.param, tmp_path / "kb") as found:
        yield found


def chain_of(memory: Any, answer: str) -> Runnable[str, str]:
    """A chain as apps have it: retrieve, put into a prompt, ask a model, take its text."""
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
    model = GenericFakeChatModel(messages=iter([AIMessage(answer)] * 10))
    retrieve = EvokeyRetriever(memory=memory, k=4) | (lambda found: "\n".join(one.page_content for one in found))
    return {"context": retrieve, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def first(memory: Any) -> Document:
    return EvokeyRetriever(memory=memory).invoke(QUESTION)[0]


def ask(memory: Any, feedback: EvokeyFeedback, answer: str = ANSWER) -> UUID:
    run = uuid4()
    chain_of(memory, answer).invoke(QUESTION, config={"callbacks": [feedback], "run_id": run})
    return run


def test_a_vote_on_a_chain_is_learned_and_forgotten(memory: Any) -> None:
    feedback = EvokeyFeedback(memory)
    assert first(memory).id == WRONG
    feedback.rate(ask(memory, feedback), up=True)
    memory.evolve()
    assert first(memory).id == RIGHT
    memory.forget(query=QUESTION)
    assert first(memory).id == WRONG


def test_the_voter_may_name_the_document(memory: Any) -> None:
    feedback = EvokeyFeedback(memory)
    run = ask(memory, feedback, "I cannot say.")
    feedback.rate(run, up=True)
    assert memory.lessons() == []
    feedback.rate(run, up=True, cited=["git-log"])
    assert [verdict.document for verdict in memory.lessons()[0].verdicts] == ["git-log"]


def test_a_vote_down_teaches_nothing_by_itself(memory: Any) -> None:
    feedback = EvokeyFeedback(memory)
    feedback.rate(ask(memory, feedback), up=False, reason="wrong document")
    assert memory.lessons() == []


def test_a_run_that_was_not_seen_cannot_be_rated_and_old_runs_go(memory: Any) -> None:
    feedback = EvokeyFeedback(memory, size=1)
    runs = [ask(memory, feedback) for _ in range(2)]
    with pytest.raises(UnknownResult, match="config"):
        feedback.rate(runs[0], up=True)
    feedback.rate(runs[1], up=True)


def test_the_retriever_filters_and_shows_passages(tmp_path: Path) -> None:
    with behind("memory", tmp_path / "kb") as memory:
        retriever = EvokeyRetriever(memory=memory, where={"n": [1, 2]}, passages=True)
        assert [one.id for one in retriever.invoke(QUESTION)] == [WRONG, RIGHT]
        assert retriever.invoke(QUESTION, where={"n": 3})[0].metadata["passage"] == ""


async def test_it_is_awaited_like_any_other(tmp_path: Path) -> None:
    with behind("memory", tmp_path / "kb") as memory:
        assert (await EvokeyRetriever(memory=memory).ainvoke(QUESTION))[0].id == WRONG


def test_a_vector_store_learns_and_forgets_and_is_opened_again(tmp_path: Path) -> None:
    texts, names = [one.text for one in DOCUMENTS], [one.id for one in DOCUMENTS]
    store = EvokeyVectorStore.from_texts(texts, Words(), [{"n": 1}] * 4, ids=names, path=tmp_path / "kb")
    untaught = [one.id for one in store.similarity_search(QUESTION)]
    assert untaught[0] == WRONG
    store.feedback(QUESTION, relevant=[RIGHT], actor="ada")
    assert store.evolve().published
    store.close()
    store = EvokeyVectorStore(tmp_path / "kb", embedding=Words())
    ((found, score),) = store.similarity_search_with_relevance_scores(QUESTION, k=1)
    assert (found.id, found.metadata) == (RIGHT, {"n": 1}) and 0.5 < score <= 1
    assert store.as_retriever(search_kwargs={"k": 1}).invoke(QUESTION) == [found]
    store.forget(actor="ada")
    assert [one.id for one in store.similarity_search(QUESTION)] == untaught
    store.close()


def test_a_vector_store_knows_its_embedding_again(tmp_path: Path) -> None:
    EvokeyVectorStore(tmp_path / "kb", Words()).close()
    with pytest.raises(EncoderMismatch, match="OtherWords"):
        EvokeyVectorStore(tmp_path / "kb", OtherWords())


def test_diverse_results_and_filters(tmp_path: Path) -> None:
    store = EvokeyVectorStore(tmp_path / "kb", Words())
    store.add_texts(["a commit", "a commit!", "the log"], [{"n": 1}, {"n": 1}, {"n": 2}], ids=["1", "2", "3"])
    found = store.max_marginal_relevance_search("a commit", k=2, lambda_mult=0.1)
    assert {one.id for one in found} > {"3"}
    assert [one.id for one in store.similarity_search("a commit", filter={"n": 2})] == ["3"]
    assert store.delete() and store.similarity_search("a commit") == []
    store.close()
