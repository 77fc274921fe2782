"""An agent with evokey as its memory, over MCP.

The agent answers questions on the Python standard library. For each it searches, answers, and tells with `used` which
hits the answer rests on. Where the first search shows nothing useful it asks in other words, and teaches what it found,
with these words as units. After `evolve` more questions are answered that ask for the same in words nobody used before.

A language model would decide which hits are useful; here an answer key does, so that the program runs without one.

    pip install 'evokey[mcp]'
    python examples/agent_memory.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

import evokey
from evokey.demo import run


@dataclass(frozen=True)
class Task:
    question: str
    reworded: str
    """What the agent asks when the question finds nothing useful."""
    later: str
    """How somebody else asks for the same."""
    answers: frozenset[str]


def read_tasks(count: int) -> list[Task]:
    asked = [one for one in run.questions() if one.group != "untouched questions"]
    intents = [asked[start : start + 4] for start in range(0, len(asked), 4)]
    return [
        task
        for a, b, c, d in intents[:count]
        for task in (
            Task(a.text, b.text, c.text, frozenset(a.relevant)),
            Task(b.text, a.text, d.text, frozenset(a.relevant)),
        )
    ]


class Agent:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise RuntimeError(f"{tool}: {result.content}")
        return result.structured_content

    async def answer(self, task: Task) -> None:
        found = await self.call("search", query=task.question, k=10)
        useful = [hit["id"] for hit in found["hits"] if hit["id"] in task.answers]
        if useful:
            await self.call("used", query_id=found["query_id"], ids=useful)
            return
        again = await self.call("search", query=task.reworded, k=10)
        useful = [hit["id"] for hit in again["hits"] if hit["id"] in task.answers]
        if useful:
            await self.call("teach", query=task.question, relevant=useful, units=[task.reworded])

    async def share_found(self, tasks: list[Task]) -> float:
        """Of questions in words that nobody used before: how often one of five hits is right."""
        right = 0
        for task in tasks:
            found = await self.call("search", query=task.later, k=5)
            right += any(hit["id"] in task.answers for hit in found["hits"])
        return right / len(tasks)


async def work(at: Path, tasks: list[Task]) -> dict[str, Any]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "evokey", "mcp", "--at", str(at)], env=dict(os.environ)
    )
    async with Client(server) as client:
        agent = Agent(client)
        before = await agent.share_found(tasks)
        for task in tasks:
            await agent.answer(task)
        report = await agent.call("evolve")
        after = await agent.share_found(tasks)
        return {"before": before, "after": after, "lessons": report["lessons"], "published": report["published"]}


def main(at: Path, count: int = 80) -> dict[str, Any]:
    with evokey.open(at, encoder="bm25") as memory:
        memory.add(run.documents())
    return anyio.run(work, at, read_tasks(count))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        told = main(Path(folder) / "kb")
    print(f"answered in other words: {told['before']:.0%} before, {told['after']:.0%} after {told['lessons']} lessons")
