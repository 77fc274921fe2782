"""What votes on a layer's results credit. The engine is asked nothing: a vote holds the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evokey.layer.pools import EnginePools
from evokey.ledger.ledger import Ledger
from evokey.types import Document, Lesson, Shown, Verdict

FEEDBACK, RATING = "feedback", "rating"
"""Who says so in a lesson."""


@dataclass(frozen=True)
class LayerCredit:
    ledger: Ledger
    pools: EnginePools
    now: Callable[[], float]

    def find_living(self, shown: Shown, most: int) -> list[Document]:
        """The documents, as the engine returned them; if that is long ago, only their ids."""
        known = self.pools.recall_documents(shown.query)
        return [known.get(id) or Document(id, "") for id in shown.documents[:most]]

    def find_credited(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(names))

    def record_vote(self, query: str, names: Sequence[str], actor: str | None) -> int:
        """The number of a lesson in which these are right. The engine's results are those of the search that was
        voted on, if they are still known; else evolve asks for them."""
        hits = self.pools.recall(query)
        self.pools.number(names)
        self.pools.note_texts(hits or (), names)
        if hits is not None:
            self.pools.put({query: hits})
        lesson = make_lesson(query, dict.fromkeys(names, 1.0), actor, RATING)
        return self.ledger.lessons.append(replace(lesson, time=self.now()), None).number


def make_lesson(query: str, grades: Mapping[str, float], actor: str | None, by: str) -> Lesson:
    """It holds for a document as long as its id is known: texts are compared at every search."""
    row = Document("", "").hash
    verdicts = tuple(Verdict(id, grade, row) for id, grade in grades.items())
    return Lesson(0, query, (), verdicts, actor, by, 0.0)
