"""Is a question about the passage that it was written for? A search or a judge must say so.

By search: the untaught index must find the document among the first k hits (of fewer than 10 k documents, among the
first tenth). A question that finds other documents is
about these, or about everything. One that already finds its document first is kept as well: it teaches little, but a
guard that only heard of questions with something to gain would see nothing but gains.

By judge: the question is answered from this passage alone, and the memory's verifier must accept the answer. That
costs calls, and also confirms questions that the index does not find yet, which teach most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from evokey.errors import InvalidSettings, ServiceFailed
from evokey.loop.components import Components
from evokey.search.index import Index
from evokey.seeding.report import Drop
from evokey.seeding.targets import Target
from evokey.types import Attempt, Hit, Spent

WAYS = ("search", "judge")
SHARE = 0.1
"""Of all documents: in a small collection, any question finds its document among the first ten."""
JUDGE_CALLS = 2
"""Calls for each question: its answer, and the grade of that."""


class Confirmation(NamedTuple):
    reason: Drop | None
    """Why it is not confirmed; None: it is."""
    rank: int | None
    """Of the document in the untaught index, from 1; None: not among the first hits."""
    spent: Spent = Spent()


class Confirmer(Protocol):
    @property
    def identity(self) -> str: ...

    @property
    def calls(self) -> int:
        """Of the model, for each question."""
        ...

    def confirm(self, question: str, target: Target) -> Confirmation: ...


@dataclass(frozen=True)
class BySearch:
    index: Index
    k: int
    calls: int = 0

    @property
    def identity(self) -> str:
        return f"search@{self.k}"

    def confirm(self, question: str, target: Target) -> Confirmation:
        few = max(int(SHARE * len(self.index.live)), 1)
        found = self.index.view(0).rank(question, min(self.k, few)).numbers.tolist()
        rank = found.index(target.number) + 1 if target.number in found else None
        return Confirmation(Drop.NOT_FOUND if rank is None else None, rank)


@dataclass(frozen=True)
class ByJudge:
    components: Components
    search: BySearch
    calls: int = JUDGE_CALLS

    @property
    def identity(self) -> str:
        return "judge"

    def confirm(self, question: str, target: Target) -> Confirmation:
        _, rank, _ = self.search.confirm(question, target)
        hit = Hit(target.document.id, 1.0, target.document, lambda: target.passage)
        attempt = Attempt(question, (hit,))
        verifier = self.components.verifier(attempt)
        if verifier.identity.startswith("human"):
            raise InvalidSettings(
                "the verifier 'human' asks people; to confirm synthetic questions, set another one, or use "
                "confirm='search'"
            )
        spent = Spent()
        try:
            if verifier.looks_at != "retrieval":
                answer = self.components.answering().answer(question, (hit,))
                attempt, spent = Attempt(question, (hit,), answer), answer.spent
            ruling = verifier.verify(attempt)
        except ServiceFailed:
            return Confirmation(Drop.NOT_VERIFIED, rank, spent)
        right = ruling.success and ruling.grades.get(target.document.id, 0.0) > 0
        return Confirmation(None if right else Drop.NOT_VERIFIED, rank, spent + ruling.spent)


def make_confirmer(way: str, index: Index, components: Components, k: int) -> Confirmer:
    search = BySearch(index, k)
    return search if way == "search" else ByJudge(components, search)
