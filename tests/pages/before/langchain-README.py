"""A chain that asks the page's retriever, with a model that says one sentence."""

from langchain_core.runnables import RunnableLambda

import evokey

with evokey.open("kb") as memory:
    memory.add([{"id": "git-revert", "text": "Record new changes that reverse the effect of an earlier commit."}])
question = "how do I undo a commit?"


def answer(question):
    found = retriever.invoke(question)  # noqa: F821 - the page makes it
    return f"Use git revert: {found[0].page_content}"


chain = RunnableLambda(answer)
