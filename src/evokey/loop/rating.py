"""Ratings: how feedback arrives where people read answers. A thumb up or down, on what one query_id showed.

Up credits the passages that the answer cites; where it cites none, those that its sentences match; else nothing. Down
demotes nothing by itself: it asks people (the review queue), and "not in the documents" goes to the list of gaps.
A vote may be changed or withdrawn: the lesson that it led to is then on hold, and takes part in nothing from the next
evolve on, as if it had never been given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evokey.errors import InvalidInput, UnknownResult
from evokey.ledger.ledger import Ledger
from evokey.ledger.ratings import NOT_THERE
from evokey.types import Answer, Attempt, Document, Hit, Rating, Shown
from evokey.verifiers.human import Human

REASONS = ("wrong document", "outdated", NOT_THERE, "bad answer")
MATCH = 0.6
"""Share of the words of an answer's sentence that a passage must have to be credited without a citation: the least at
which nine of ten credits are right on two sets. Measured: benchmarks/results/ratings.json, "threshold"."""
SHOWN = 10
"""Documents that people are asked about."""
SHORTEST = 4
"""Words of a sentence below which it matches nothing: too little to tell."""
_SENTENCE = re.compile(r"[^.!?\n]{1,2000}[.!?]?")
_WORD = re.compile(r"\w{3,64}")


class Credit(Protocol):
    """Makes lessons of what upvotes credit; and knows the documents."""

    def find_living(self, shown: Shown, most: int) -> list[Document]:
        """The first of the shown documents that are still here."""
        ...

    def find_credited(self, names: Sequence[str]) -> list[str]:
        """Of passages those that are still here; one whose heading is gone is its document."""
        ...

    def record_vote(self, query: str, names: Sequence[str], actor: str | None) -> int:
        """The number of a lesson in which these are right."""
        ...


@dataclass(frozen=True)
class Rater:
    ledger: Ledger
    credit: Credit
    people: Callable[[], Human]
    """The queue of questions to people."""
    now: Callable[[], float]

    def find(self, query_id: str) -> Shown:
        found = self.ledger.shown.get(query_id) if isinstance(query_id, str) else None
        if found is None:
            raise UnknownResult(
                f"nothing is kept of the query_id {str(query_id)[:80]!r}: what was shown can be rated for a week, "
                f"unless it was forgotten. Ask again, and rate the new query_id"
            )
        return found

    def rate(self, shown: Shown, vote: Vote, actor: str | None) -> Rating:
        """A vote in the place of the one that this actor gave before, if any."""
        old = self.ledger.ratings.get(shown.id, actor)
        credited = self._passages_to_credit(shown, vote) if vote.up else ()
        if old is not None and (old.up, old.reason, old.cited) == (vote.up, vote.reason, credited):
            return old
        new = Rating(shown.id, actor, shown.query, vote.up, vote.reason, credited, self.now(), shown.epoch)
        with self.ledger.write():
            self._undo(old)
            if vote.up:
                new = replace(new, lesson=self._teach(old, new))
            else:
                new = replace(new, lesson=old.lesson if old else None, review=self._ask_people(shown))
            self.ledger.ratings.put(new)
        return new

    def withdraw(self, query_id: str, actor: str | None) -> None:
        old = self.ledger.ratings.get(query_id, actor)
        with self.ledger.write():
            self._undo(old)
            self.ledger.ratings.remove(query_id, actor)

    def _passages_to_credit(self, shown: Shown, vote: Vote) -> tuple[str, ...]:
        """Passages that an upvote credits: those that the voter names, or else those of the answer."""
        if vote.cited is None:
            return shown.cited
        known = {*shown.documents, *shown.cited}
        for name in vote.cited:
            if name not in known and name.rpartition("#")[0] not in known:
                raise InvalidInput(
                    f"{name[:80]!r} was not shown for this query_id; cite some of what was, or use feedback"
                )
        return tuple(dict.fromkeys(vote.cited))

    def _teach(self, old: Rating | None, new: Rating) -> int | None:
        """The lesson of an upvote: the one it had before, if it says the same, or a new one."""
        before = None if old is None or old.lesson is None else old.lesson
        known = self.credit.find_credited(new.cited)
        if before is not None:
            lessons = self.ledger.lessons.select({"query": new.query}, held=True)
            said = [
                name for one in lessons if one.number == before for verdict in one.verdicts for name in verdict.names
            ]
            if said == list(known):
                self.ledger.lessons.release([before])
                return before
        return self.credit.record_vote(new.query, known, new.actor) if known else None

    def _ask_people(self, shown: Shown) -> int | None:
        """The number of a question to people about what was shown; None where nothing of it is left to look at."""
        hits = tuple(Hit(one.id, 0.0, one) for one in self.credit.find_living(shown, SHOWN))
        answer = None if shown.answer is None else Answer(shown.query, shown.answer, (), hits, "")
        if not hits and answer is None:
            return None
        return self.people().ask(Attempt(shown.query, hits, answer))

    def _undo(self, old: Rating | None) -> None:
        """Take back what a vote led to: its lesson is put on hold, its question to people is dropped."""
        if old is None:
            return
        if old.up and old.lesson is not None:
            self.ledger.lessons.hold([old.lesson])
        if not old.up and old.review is not None and self.ledger.ratings.reviewed(old.review) <= 1:
            self.people().drop(old.review)


@dataclass(frozen=True, slots=True)
class Vote:
    up: bool
    reason: str | None = None
    cited: Sequence[str] | None = None
    """Which of what was shown was right; None: what the answer cites."""

    def __post_init__(self) -> None:
        if self.reason is not None and (self.up or self.reason not in REASONS):
            raise InvalidInput(f"a downvote may have a reason, one of: {', '.join(REASONS)}; not {self.reason!r}")


def citations(answer: Answer) -> tuple[str, ...]:
    """The passages that an upvote on an answer credits, as feedback names them."""
    if answer.sources:
        return tuple(_name(one.document, one.passage.anchor) for one in answer.sources)
    if answer.citations:
        return answer.citations
    passages = {_name(hit.id, hit.passage.anchor): hit.passage.text for hit in answer.hits}
    return tuple(find_origins(answer.plain, passages))


def find_origins(answer: str, passages: Mapping[str, str], threshold: float = MATCH) -> list[str]:
    """Of passages, by name, those that an answer without citations was made from: for each sentence the one that has
    most of its words, if it has enough. The first of several: passages come best first."""
    words = {name: set(_WORD.findall(passage.casefold())) for name, passage in passages.items()}
    found = set()
    for sentence in _SENTENCE.findall(answer):
        shares = {name: overlap(sentence, own) for name, own in words.items()}
        best = max(shares, key=lambda name: shares[name], default=None)
        if best is not None and shares[best] >= threshold:
            found.add(best)
    return [name for name in passages if name in found]


def overlap(sentence: str, words: set[str]) -> float:
    """The share of a sentence's words that are among these; 0 for a sentence of few words."""
    said = set(_WORD.findall(sentence.casefold()))
    return len(said & words) / len(said) if len(said) >= SHORTEST else 0.0


def _name(document: str, anchor: str) -> str:
    return f"{document}#{anchor}" if anchor else document
