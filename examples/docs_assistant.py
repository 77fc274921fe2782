"""A documentation assistant that learns from thumbs.

It answers questions on the Python standard library by showing the entry that it finds. People vote: a thumb up on an
answer credits the entry that it showed; a thumb down puts the question into the review queue, where an editor names the
right entries. Then `evolve`, and the assistant finds more, also for questions in other words. A person's votes are
forgotten on request.

    pip install evokey
    python examples/docs_assistant.py
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evokey
from evokey.demo import run


@dataclass(frozen=True)
class Reply:
    query_id: str
    """What a page sends back with a thumb."""
    entry: str
    text: str


class Assistant:
    def __init__(self, memory: evokey.Memory) -> None:
        self.memory = memory

    def answer(self, question: str) -> Reply:
        hits = self.memory.search(question, k=5)
        query_id = self.memory.show(question, hits)
        return Reply(query_id, hits[0].id, hits[0].passage.text) if hits else Reply(query_id, "", "nothing found")

    def vote(self, reply: Reply, up: bool, user: str) -> None:
        cited = [reply.entry] if up and reply.entry else None
        self.memory.rate(reply.query_id, up, None if up else "wrong document", cited, user)

    def review(self, answers: dict[str, tuple[str, ...]]) -> int:
        """The editor goes through what was voted down, and names the right entries."""
        queue = self.memory.reviews()
        waiting = queue.pending()
        for question in waiting:
            self.memory.feedback(question.query, answers[question.query], actor="editor")
            queue.skip(question.id)  # it is answered: the lesson says more than the list that was shown
        return len(waiting)


def main(at: Path, intents: int = 80) -> dict[str, Any]:
    asked = [one for one in run.questions() if one.group != "untouched questions"][: 4 * intents]
    today, later = asked[0::2], asked[1::2]
    with evokey.open(at, encoder="bm25") as memory:
        memory.add(run.documents())
        assistant = Assistant(memory)
        before = share_right(assistant, later)
        votes = {True: 0, False: 0}
        for number, one in enumerate(today):
            reply = assistant.answer(one.text)
            up = reply.entry in one.relevant
            assistant.vote(reply, up, user=f"user-{number % 20}")
            votes[up] += 1
        reviewed = assistant.review({one.text: one.relevant for one in today})
        report = memory.evolve()
        after = share_right(assistant, later)
        forgotten = memory.forget(actor="user-7").lessons
        return {
            "up": votes[True], "down": votes[False], "reviewed": reviewed, "published": report.published,
            "before": before, "after": after, "forgotten": forgotten,
            "left_of_user": len(memory.lessons(actor="user-7")),
        }  # fmt: skip


def share_right(assistant: Assistant, asked: list[run.Question]) -> float:
    """How often one of the five hits is right."""
    found = [{hit.id for hit in assistant.memory.search(one.text, k=5)} for one in asked]
    return sum(bool(ids & set(one.relevant)) for ids, one in zip(found, asked, strict=True)) / len(asked)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        told = main(Path(folder) / "kb")
    print(f"{told['up']} thumbs up, {told['down']} down, {told['reviewed']} of these answered by the editor")
    print(f"questions in other words: {told['before']:.0%} found before, {told['after']:.0%} after")
    print(f"user-7 asked to be forgotten: {told['forgotten']} lessons erased")
