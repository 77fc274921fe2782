"""What a policy is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

from evokey.evolution.judgements import Judgements, merge_votes
from evokey.evolution.restricted import Own, split
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import NONE, Omitted, Success
from evokey.search.fusion import Fusion
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.types import Choice, Quality, Ranking, Reach


@dataclass(frozen=True, slots=True)
class Proposal:
    choice: Mapping[str, Choice]
    weights: Mapping[str, float]
    held_out: Quality | None
    taught: Quality | None
    changes: bool
    """Whether it differs from the untaught index."""
    reach: Reach | None = None
    """Which questions it acts on; None: on all of them."""
    unrelated: Quality | None = None
    """What it does to questions about other things."""


@dataclass(frozen=True)
class Log:
    """The lessons up to a number, without some, in the forms that policies read."""

    ledger: Ledger
    up_to: int
    omitted: Omitted = NONE
    restricted: str | None = None
    """The field of the metadata that marks restricted documents, if any are."""

    @property
    def taught(self) -> Judgements:
        """What a policy learns from: the lessons on documents that are not restricted."""
        return self._split[0]

    @property
    def own(self) -> Own | None:
        """Lessons on restricted documents: these learn from them, and no policy sees them. None if there are none."""
        own = self._split[1]
        return own if own and (own.grades or own.wrong) else None

    @cached_property
    def _split(self) -> tuple[Judgements, Own | None]:
        lessons, said = self.ledger.lessons, (self.up_to, self.omitted)
        if self.restricted is None:
            return merge_votes(lessons.votes(*said), lessons.units(*said)), None
        with self.ledger.read():
            restricted = lessons.restricted(self.restricted)
            return split(lessons.votes(*said), lessons.unit_lessons(*said), restricted)

    @cached_property
    def successes(self) -> Sequence[Success]:
        return self.ledger.lessons.successes(self.up_to, self.omitted)

    @property
    def marks(self) -> Sequence[int]:
        return self.ledger.epochs.marks(self.up_to)


class Policy(Protocol):
    """A policy may also say credits_retrieved = True: it credits all that a verified query retrieved (the paper's
    rule), which is then recorded with each lesson."""

    weighs: ClassVar[bool]
    """Whether a document that comes may change what others have learned, because BM25's weights follow it. (Units
    share their credit by these weights, and chunks are chosen by them, under any policy.)"""

    @property
    def hears(self) -> bool:
        """Whether it looks at the traffic: that takes the pools of some queries more."""
        ...

    def propose(
        self,
        retrievers: Sequence[Retriever],
        fusion: Fusion,
        lessons: Judgements,
        pools: Mapping[str, Mapping[str, Ranking]],
        protected: Judgements,
        searched: Sequence[str] = (),
    ) -> Proposal:
        """What the lessons are worth; `protected` are queries that must not get worse, and `searched` a sample of
        what else was asked (its pools are among the others)."""
        ...

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        """What the lessons of a log give to one retriever, with a choice once made."""
        ...


def credits_retrieved(policy: Policy) -> bool:
    return bool(getattr(policy, "credits_retrieved", False))
