"""Epochs: published after evolve, adopted from another process, refitted after forget, rolled back.

All of it writes to the ledger alone; the index follows, and composes what an epoch has learned from the lessons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from evokey.evolution.composer import Composer
from evokey.evolution.policy import Policy
from evokey.evolution.proposing import Setting, propose
from evokey.evolution.writing import EpochWriter
from evokey.ledger.documents import Position
from evokey.ledger.lessons import NONE, Omitted
from evokey.search.index import Index
from evokey.search.retriever import Retriever
from evokey.search.view import Overlays
from evokey.types import Epoch, EpochReport, Numbers


@dataclass(frozen=True, slots=True)
class Draft:
    """What evolve would publish, and the state that it holds for: made in one process, published by another."""

    report: EpochReport
    up_to: int
    omitted: Omitted
    """Lessons on hold."""
    lessons: int
    epoch: int
    position: Position
    overlays: Overlays
    """Composed where the draft was made, for these documents."""
    restricted: Numbers
    """Documents that were restricted then."""


@dataclass(frozen=True)
class Publisher(EpochWriter):
    index: Index
    policy: Policy
    composer: Composer
    restricted: str | None
    """The field of the metadata that marks restricted documents, if any are."""

    @property
    def current(self) -> int:
        return self.index.epoch

    def propose(self, up_to: int, omitted: Omitted) -> EpochReport:
        return propose(self.setting(self.index.with_revisions(self.revisions)), self.composer.log(up_to, omitted))

    def setting(self, retrievers: Sequence[Retriever]) -> Setting:
        return Setting(self.index, self.ledger, self.policy, retrievers)

    @property
    def revisions(self) -> Mapping[str, str]:
        """As the ledger says now: inside a transaction that forgets, searches still have those before."""
        return self.ledger.epochs.get(self.ledger.epochs.current).revisions

    def steady(self) -> AbstractContextManager[None]:
        return self.index.still()

    def publish_saturated(self, new: int) -> None:
        """Publish an epoch for each lesson with which the policy says that it is due; new: how many lessons came."""
        saturates = getattr(self.policy, "saturates", None)
        if saturates is None:
            return
        held = self.ledger.lessons.find_held()
        due = self._due(saturates, held, new)
        while due is not None:
            self.publish_if_new(self.propose(due, held), due, held)
            self.index.catch_up()
            due = self._due(saturates, held, new)

    def _due(self, saturates: Callable[..., int | None], held: Omitted, new: int) -> int | None:
        return saturates(self.index.retrievers, self.composer.log(self.ledger.lessons.last, held), new)

    def draft(self, without: Omitted = NONE) -> Draft:
        """What evolve would do now; without some lessons. Writes nothing."""
        index, lessons, up_to = self.index, self.ledger.lessons, self.ledger.lessons.last
        held, count, forgets = lessons.find_held() | without, lessons.count_to(up_to), self.ledger.forgets.count
        log = self.composer.log(up_to, held)
        report = propose(self.setting(index.retrievers), log, keep=False)
        self.composer.drop_forgotten(log, forgets, index.retrievers)
        overlays = self.composer.compose(self.make_epoch("evolve", report, up_to, held), index.retrievers)
        return Draft(report, up_to, held, count, index.epoch, index.position, overlays, index.restricted)

    def holds(self, draft: Draft) -> bool:
        """Whether no lessons were forgotten, held or released, no epoch published, and no other documents restricted
        since a draft was made."""
        index, lessons = self.index, self.ledger.lessons
        if (index.epoch, lessons.count_to(draft.up_to), lessons.find_held()) != (
            draft.epoch,
            draft.lessons,
            draft.omitted,
        ):
            return False
        return np.array_equal(index.restricted, draft.restricted)

    def adopt(self, draft: Draft) -> EpochReport | None:
        """Publish a draft; None where it no longer holds."""
        index = self.index
        if not self.holds(draft):
            return None
        with index.publish() as give:
            report = self.publish_if_new(draft.report, draft.up_to, draft.omitted)
            if report.published and index.position == draft.position:
                give(report.epoch, draft.overlays)
        return report

    def refit_after_reencoding(self) -> EpochReport | None:
        self.ledger.pools.clear()
        return self._refit("reencode", self.propose)

    def differs(self, report: EpochReport, up_to: int, omitted: Omitted, current: Epoch) -> bool:
        """Whether restricted documents have other lessons than in the current epoch."""
        if self.restricted is None:
            return False
        own = self.composer.log(up_to, omitted, report.left_out).restricted_judgements
        return own != self.composer.log(current.lessons_to, current.omitted, current.left_out).restricted_judgements
