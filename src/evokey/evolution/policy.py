"""The policy seam: what a policy is given, what it returns, and when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from evokey.evolution.judgements import NOTHING_NAMED, Judgements, Named, leave_to_people, merge_votes
from evokey.evolution.restricted import RestrictedJudgements, public_units, select, split
from evokey.evolution.voices import Voices, drop
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import NONE, Omitted, Success, Vote
from evokey.search.fusion import Fusion
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.types import ALL_HEARD, Choice, LeftOut, Quality, Ranking, Reach


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a policy learns from."""

    retrievers: Sequence[Retriever]
    fusion: Fusion
    lessons: Judgements
    pools: Mapping[str, Mapping[str, Ranking]]
    """Retriever → query → its untaught top documents: of the taught and protected queries, and of the traffic."""
    protected: Judgements
    """Queries that must not get worse."""
    traffic: Sequence[str] = ()
    """A sample of other queries that were searched; empty unless the policy uses traffic."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a policy would publish."""

    choice: Mapping[str, Choice]
    """By retriever."""
    weights: Mapping[str, float]
    """The share of each retriever in the fused score."""
    held_out: Quality | None
    """Of held-out queries; None if nothing was cross-validated."""
    taught: Quality | None
    """Of the taught queries; None if the policy does not measure them."""
    changes: bool
    """Whether it differs from the untaught index."""
    reach: Reach | None = None
    """Which questions it acts on; None: on all of them."""
    unrelated: Quality | None = None
    """Of unrelated questions."""


@dataclass(frozen=True)
class Log:
    """The lessons up to a number, without some, in the forms that policies read."""

    ledger: Ledger
    up_to: int
    omitted: Omitted = NONE
    restricted: str | None = None
    """The field of the metadata that marks restricted documents, if any are."""

    shared: bool = False
    """Whether unnamed feedback comes from many people."""
    left_out: LeftOut = ALL_HEARD

    @property
    def taught(self) -> Judgements:
        """What a policy learns from: the lessons on documents that are not restricted."""
        return self._split[0]

    @property
    def restricted_judgements(self) -> RestrictedJudgements | None:
        """Lessons on restricted documents: these learn from them, and no policy sees them. None if there are none."""
        own = self._split[1]
        return own if own and (own.grades or own.wrong) else None

    @cached_property
    def voices(self) -> Voices | None:
        """Who taught that; None: one voice alone."""
        return Voices.of(self.votes, shared=self.shared)

    @property
    def votes(self) -> Sequence[Vote]:
        """What lessons say about documents that are not restricted."""
        return self._read[0]

    @property
    def units(self) -> Mapping[str, Sequence[str]]:
        """Expansion units of these lessons, by query."""
        return self._read[1]

    def leave_out(self, left_out: LeftOut) -> Log:
        """The same lessons without these."""
        return replace(self, left_out=left_out) if left_out != self.left_out else self

    @cached_property
    def _split(self) -> tuple[Judgements, RestrictedJudgements | None]:
        votes, units, among = self._read
        taught = replace(merge_votes(leave_to_people(votes), units, self.voices), named=self._named)
        if self.restricted is None:
            return taught, None
        said = self.up_to, self.omitted
        with self.ledger.read():
            lessons = self.ledger.lessons
            own = split(lessons.votes(*said), lessons.unit_lessons(*said), among, taught)
            return taught, replace(own, named=self._named)

    @cached_property
    def _read(self) -> tuple[Sequence[Vote], Mapping[str, Sequence[str]], frozenset[int]]:
        """Votes and units of the lessons that are heard; and the restricted documents that lessons name."""
        lessons, said = self.ledger.lessons, (self.up_to, self.omitted | {lesson for lesson, _ in self.left_out})
        with self.ledger.read():
            votes = drop(lessons.votes(self.up_to, self.omitted), self._left_out)
            if self.restricted is None:
                return votes, lessons.units(*said), frozenset()
            restricted = lessons.find_restricted(self.restricted)
            public = list(select(votes, restricted, inside=False))
            return public, public_units(lessons.unit_lessons(*said), restricted), restricted

    @property
    def _left_out(self) -> set[tuple[int, int]]:
        """What is left out, with the numbers that its documents have today."""
        numbers = self.ledger.documents.find({document for _, document in self.left_out})
        return {(lesson, numbers[document]) for lesson, document in self.left_out if document in numbers}

    @cached_property
    def _named(self) -> Named:
        """By query and document, so that nobody learns of passages of another's documents."""
        spans = self.ledger.lessons.passages(self.up_to, self.omitted | {lesson for lesson, _ in self.left_out})
        numbers = sorted({number for documents in spans.values() for number in documents})
        return Named(spans, self.ledger.documents.fetch(numbers)) if spans else NOTHING_NAMED

    @cached_property
    def successes(self) -> Sequence[Success]:
        """Verified queries, for a policy that credits what they retrieved."""
        found = self.ledger.lessons.successes(self.up_to, self.omitted)
        return [one for one in found if one.retrieved]

    @property
    def marks(self) -> Sequence[int]:
        return self.ledger.epochs.marks(self.up_to)


class Policy(Protocol):
    """Decides what is learned from the lessons, and turns it into an overlay for each retriever.

    A policy is built once for a memory, from its settings. It must be a function of what it is given: the same lessons
    and documents, the same proposal and the same overlays. It may also set credits_retrieved = True: then it credits
    everything that a verified query retrieved (the paper's rule), which is recorded with each lesson. Its `gate` is the
    share of the right documents that must be among the first `retrieved`; else nothing is recorded. With `saturates`
    it may ask for an epoch whenever lessons come.
    """

    @property
    def depends_on_corpus(self) -> bool:
        """Read when documents are added: whether a new document may change what other documents learned, because
        BM25's weights change with the corpus. If so, overlays are made again."""
        ...

    @property
    def uses_traffic(self) -> bool:
        """Read before `propose`: whether it wants a sample of the searched queries."""
        ...

    def propose(self, data: TrainingData) -> Proposal:
        """Called by evolve, and again when lessons are forgotten or documents encoded anew: what should be learned from
        these lessons? It is published if it differs from the current epoch."""
        ...

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        """Called when an epoch is opened, once for each retriever whose choice is not "nothing": what the lessons of
        the log give to this retriever, with the choice of an earlier proposal."""
        ...


def credits_retrieved(policy: Policy) -> bool:
    return bool(getattr(policy, "credits_retrieved", False))
