"""Epochs: published after evolve, adopted from another process, refitted after forget, rolled back.

All of it writes to the ledger alone; the index follows, and composes what an epoch has learned from the lessons.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evokey.errors import ServiceFailed
from evokey.evolution.composer import Composer
from evokey.evolution.policy import Log, Policy
from evokey.evolution.proposing import on_hold, propose
from evokey.ledger.documents import Position
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import Omitted
from evokey.search.index import Index
from evokey.search.view import Overlays
from evokey.types import Epoch, EpochReport, Numbers

log = logging.getLogger("evokey")
LEARNED = ("choice", "weights", "reach", "left_out")
"""What a report and an epoch both tell."""


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
class Publisher:
    index: Index
    ledger: Ledger
    policy: Policy
    composer: Composer
    now: Callable[[], float]
    restricted: str | None
    """The field of the metadata that marks restricted documents, if any are."""

    def evolve(self, *, dry_run: bool) -> EpochReport:
        """Publish what the lessons so far are worth, if that is anything new."""
        with self.index.still():
            up_to, held = self.ledger.lessons.last, self.ledger.lessons.held()
            report = self._propose(up_to, held)
        if dry_run:
            return replace(report, reason=f"dry run: {report.reason}")
        return self._publish_if_new(report, up_to, held)

    def publish_saturated(self, new: int) -> None:
        """Publish an epoch for each lesson with which the policy says that it is due; new: how many lessons came."""
        saturates = getattr(self.policy, "saturates", None)
        if saturates is None:
            return
        held = self.ledger.lessons.held()
        due = self._due(saturates, held, new)
        while due is not None:
            self._publish_if_new(self._propose(due, held), due, held)
            self.index.catch_up()
            due = self._due(saturates, held, new)

    def _due(self, saturates: Callable[..., int | None], held: Omitted, new: int) -> int | None:
        return saturates(self.index.retrievers, self.composer.log(self.ledger.lessons.last, held), new)

    def draft(self) -> Draft:
        """What evolve would do now. Writes nothing."""
        index, lessons, up_to = self.index, self.ledger.lessons, self.ledger.lessons.last
        held, count, forgets = lessons.held(), lessons.count_to(up_to), self.ledger.forgets.count
        log = self.composer.log(up_to, held)
        report = propose(index, self.ledger, self.policy, log, keep=False)
        self.composer.drop_forgotten(log, forgets, index.retrievers)
        overlays = self.composer.compose(self._epoch("evolve", report, up_to, held), index.retrievers)
        return Draft(report, up_to, held, count, index.epoch, index.position, overlays, index.restricted)

    def adopt(self, draft: Draft) -> EpochReport | None:
        """Publish a draft, unless lessons were forgotten, held or released, an epoch published, or other documents
        restricted since."""
        index, lessons = self.index, self.ledger.lessons
        if (index.epoch, lessons.count_to(draft.up_to), lessons.held()) != (draft.epoch, draft.lessons, draft.omitted):
            return None
        if not np.array_equal(index.restricted, draft.restricted):
            return None
        with index.publish() as give:
            report = self._publish_if_new(draft.report, draft.up_to, draft.omitted)
            if report.published and index.position == draft.position:
                give(report.epoch, draft.overlays)
        return report

    def rollback(self, old: Epoch) -> Epoch:
        """Publish again what an older epoch had learned; lessons that it has not are on hold."""
        epochs, lessons = self.ledger.epochs, self.ledger.lessons
        with self.ledger.write():
            epochs.ask(old.lessons_to, old.omitted)
            lessons.release(lessons.held())
            known = lessons.numbers(old.lessons_to, old.omitted)
            held = lessons.hold(set(lessons.numbers(lessons.last)).difference(known))
            reason = f"rolled back to epoch {old.number}{on_hold(held)}"
            number = epochs.append(replace(old, kind="rollback", time=self.now(), report={"reason": reason}))
        return epochs.get(number)

    def refit_after_forget(self) -> None:
        """Learn again from what is left, and publish that, empty or not. What is to be forgotten does not wait for an
        encoder that fails: then the untaught index is published."""
        self.ledger.epochs.redact(self.index.epoch)
        self._refit("forget", self._propose_or_nothing)

    def refit_after_reencoding(self) -> EpochReport | None:
        self.ledger.pools.clear()
        return self._refit("reencode", self._propose)

    def _refit(self, kind: str, learn: Callable[[int, Omitted], EpochReport]) -> EpochReport | None:
        """Learn again all that evolve was ever asked to learn, and publish that."""
        (asked, omitted), current = self.ledger.epochs.asked, self.index.epoch
        if not asked and not current:
            return None
        up_to = min(asked, self.ledger.lessons.last)
        omitted |= self.ledger.lessons.held()
        report = learn(up_to, omitted)
        return self._publish(kind, report, up_to, omitted) if current or report.choice else report

    def _propose(self, up_to: int, omitted: Omitted) -> EpochReport:
        return propose(self.index, self.ledger, self.policy, self.composer.log(up_to, omitted))

    def _propose_or_nothing(self, up_to: int, omitted: Omitted) -> EpochReport:
        try:
            return self._propose(up_to, omitted)
        except ServiceFailed as error:
            log.warning("the remaining lessons are learned at the next evolve: %s", str(error))
            reason = "an encoder failed: the remaining lessons are learned at the next evolve"
            return EpochReport(False, reason, self.index.epoch, None, None, {}, {}, 0, 0)

    def _publish_if_new(self, report: EpochReport, up_to: int, omitted: Omitted) -> EpochReport:
        epochs, lessons = self.ledger.epochs, self.ledger.lessons
        current = epochs.get(self.index.epoch)
        with self.ledger.write():
            epochs.ask(up_to, omitted)
            same = all(getattr(report, part) == getattr(current, part) for part in LEARNED)
            known = lessons.numbers(current.lessons_to, current.omitted)
            if current.number and same and lessons.numbers(up_to, omitted) == known:
                return replace(report, reason=f"nothing new since epoch {current.number}" + on_hold(len(omitted)))
            log = self.composer.log(up_to, omitted, report.left_out)
            if not report.choice and not current.choice and not self._own_differ(log, current):
                return report
            return self._publish("evolve", report, up_to, omitted)

    def _own_differ(self, log: Log, current: Epoch) -> bool:
        """Whether restricted documents have other lessons in a log than in the current epoch."""
        if self.restricted is None:
            return False
        own = log.restricted_judgements
        return own != self.composer.log(current.lessons_to, current.omitted, current.left_out).restricted_judgements

    def _publish(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> EpochReport:
        number = self.ledger.epochs.append(self._epoch(kind, report, up_to, omitted))
        log.info("epoch %d: %s", number, report.reason)
        return replace(report, published=True, epoch=number)

    def _epoch(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> Epoch:
        """What a report proposes, as an epoch that has no number yet."""
        held = frozenset(number for number in omitted if number <= up_to)
        written = replace(report, actors_left_out={}, documents_left_out={}).to_dict()  # a name could not be forgotten
        chosen = (report.choice, report.weights, self.now(), written)
        return Epoch(0, kind, up_to, *chosen, omitted=held, reach=report.reach, left_out=report.left_out)
