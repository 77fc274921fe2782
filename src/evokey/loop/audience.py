"""What was shown, and how people rate it: the verbs that a memory and a layer beside another search share."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from evokey import checks
from evokey.errors import InvalidInput
from evokey.ledger.ledger import Ledger
from evokey.ledger.repeating import idempotent, repeated
from evokey.loop.rating import Rater, Vote, citations
from evokey.settings import HUMAN
from evokey.types import Answer, Gap, Hit, Other, Rating, Shown
from evokey.verifiers.human import Human


class Audience(ABC):
    ledger: Ledger
    _folder: Path
    _now: Callable[[], float]
    _rater: Rater

    @property
    @abstractmethod
    def epoch(self) -> int:
        """The number of the epoch that searches read."""

    @abstractmethod
    def _check_open(self) -> None: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[None]:
        """Around a verb that writes."""

    @abstractmethod
    def _follow_lessons(self, new: int) -> None:
        """So many lessons came."""

    def show(
        self,
        query: str,
        hits: Sequence[Hit],
        answer: Answer | None = None,
        actor: str | None = None,
        other: Other | None = None,
        epoch: int | None = None,
    ) -> str:
        """Note what a search or an answer showed, for a week; returns the query_id by which it can be rated. `other`:
        another epoch that took part. Only noted in memory: keep_shown and close write it."""
        self._check_open()
        who = None if actor is None else checks.actor(actor)
        ids, text = tuple(dict.fromkeys(hit.id for hit in hits)), None if answer is None else answer.text
        cited = () if answer is None else citations(answer)
        current = self.epoch if epoch is None else epoch
        one = Shown(uuid.uuid4().hex, checks.query(query), who, self._now(), current, ids, cited, text, other)
        self.ledger.shown.note(one)
        return one.id

    @idempotent
    def keep_shown(self) -> None:
        """Write what was shown to the ledger; what is older than a week goes."""
        with self._write():
            self.ledger.shown.keep(self._now())

    def shown(self, since: float = 0.0, mode: str | None = None) -> list[Shown]:
        """What was shown after a time, oldest first; mode: only where another epoch took part in it."""
        self._check_open()
        return self.ledger.shown.since(since, mode)

    def find_shown(self, query_id: str) -> Shown:
        self._check_open()
        return self._rater.find(query_id)

    @repeated
    def rate(
        self,
        query_id: str,
        up: bool | None,
        reason: str | None = None,
        cited: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> Rating | None:
        """Vote on what was shown; None withdraws the vote. Up credits what the answer cites, or what `cited` names of
        what was shown. Down asks people (evokey review), and changes no key by itself."""
        who = None if actor is None else checks.actor(actor)
        with self._write():
            shown = self._rater.find(query_id)
            if up is None:
                self._rater.withdraw(query_id, who)
                rating = None
            else:
                rating = self._rater.rate(shown, Vote(up, reason, None if cited is None else checks.ids(cited)), who)
            self._follow_lessons(1)
        return rating

    def ratings(self, since: float = 0.0) -> list[Rating]:
        """Votes after a time, oldest first."""
        self._check_open()
        return self.ledger.ratings.since(since)

    def gaps(self) -> list[Gap]:
        """Questions that the documents do not answer, by votes with the reason "not in the documents"."""
        self._check_open()
        return self.ledger.ratings.gaps()

    @repeated
    def click(self, query_id: str, document: str) -> None:
        """Somebody opened a document that was shown: a comparison of two epochs counts it."""
        with self._write():
            self.ledger.shown.keep(self._now())
            if document not in self._rater.find(query_id).documents:
                raise InvalidInput(f"document {document[:80]!r} was not shown for this query_id")
            self.ledger.shown.click(query_id, document)

    def clicks(self) -> dict[str, list[str]]:
        """Documents that were opened, by query_id."""
        self._check_open()
        return self.ledger.shown.clicks()

    def reviews(self) -> Human:
        """The queue of questions to people."""
        return Human(self._folder / HUMAN, now=self._now)
