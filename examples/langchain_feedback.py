"""A LangChain app whose retrieval learns from thumbs.

People ask questions on the Python standard library, and vote on the answers. The app is a usual chain: retrieve, put
into a prompt, ask a model. Only the callback is new, and `rate`, when somebody votes. After `evolve` the right page
comes first more often.

A language model would answer; here a stand-in quotes the right page where it was retrieved, so that the program runs
without one. People vote up where the answer is right.

    pip install langchain-evokey
    python examples/langchain_feedback.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

import evokey
from evokey.demo import run
from langchain_evokey import EvokeyFeedback, EvokeyRetriever


def build_chain(memory: evokey.Memory, answers: dict[str, set[str]]) -> Runnable[str, str]:
    """answers: the right pages of each question, which the stand-in for a model knows."""

    def model(asked: Any) -> str:
        right = [one for one in asked["pages"] if one.id in answers[asked["question"]]]
        return str(right[0].page_content) if right else "The pages do not say."

    retriever = EvokeyRetriever(memory=memory, k=10)
    return {"pages": retriever, "question": RunnablePassthrough()} | RunnableLambda(model)


def main(folder: Path, size: int = 5_000) -> dict[str, float]:
    pages = run.documents()[:size]
    known = {one.id for one in pages}
    asked = [one for one in run.questions() if known.issuperset(one.relevant)]
    answers = {one.text: set(one.relevant) for one in asked}
    with evokey.open(folder, encoder="bm25") as memory:
        memory.add(pages)
        chain, feedback = build_chain(memory, answers), EvokeyFeedback(memory)
        before, votes = measure(memory, asked), 0
        for one in asked:
            run_id = uuid4()
            said = chain.invoke(one.text, config={"callbacks": [feedback], "run_id": run_id})
            if said != "The pages do not say.":
                feedback.rate(run_id, up=True, actor="people")
                votes += 1
        memory.evolve()
        return {"questions": len(asked), "votes": votes, "before": before, "after": measure(memory, asked)}


def measure(memory: evokey.Memory, asked: list[run.Question]) -> float:
    """The share of the questions whose first page is right."""
    retriever = EvokeyRetriever(memory=memory, k=1)
    found = [retriever.invoke(one.text) for one in asked]
    return sum(bool(pages) and pages[0].id in one.relevant for one, pages in zip(asked, found, strict=True)) / len(
        asked
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        told = main(Path(place) / "kb")
    sys.stdout.write(
        f"{told['questions']} questions, {told['votes']} votes up. First page right: {told['before']:.0%} before, "
        f"{told['after']:.0%} after\n"
    )
