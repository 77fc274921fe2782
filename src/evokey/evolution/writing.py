"""Epochs written to the ledger: published if they say anything new, refitted after forget, rolled back.

What is proposed is somebody else's matter: a memory proposes by its policy (publishing.py), a layer beside another
search by its own rule (layer/).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from evokey.errors import ServiceFailed
from evokey.evolution.proposing import on_hold
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import Omitted
from evokey.types import Epoch, EpochReport

log = logging.getLogger("evokey")
LEARNED = ("choice", "weights", "reach", "left_out")
"""What a report and an epoch both tell."""


@dataclass(frozen=True)
class EpochWriter(ABC):
    ledger: Ledger
    now: Callable[[], float]

    @property
    @abstractmethod
    def current(self) -> int:
        """The epoch that searches read."""

    @abstractmethod
    def propose(self, up_to: int, omitted: Omitted) -> EpochReport:
        """What the lessons up to a number, without some, are worth."""

    def differs(self, report: EpochReport, up_to: int, omitted: Omitted, current: Epoch) -> bool:
        """Whether there is something to publish that neither choice tells of."""
        return False

    @property
    def revisions(self) -> Mapping[str, str]:
        """Of encoders, which the next epoch has as the current one does."""
        return {}

    def steady(self) -> AbstractContextManager[None]:
        """What is proposed is read from one state."""
        return self.ledger.one_state()

    def evolve(self, *, dry_run: bool) -> EpochReport:
        """Publish what the lessons so far are worth, if that is anything new."""
        with self.steady():
            up_to, held = self.ledger.lessons.last, self.ledger.lessons.find_held()
            report = self.propose(up_to, held)
        if dry_run:
            return replace(report, reason=f"dry run: {report.reason}")
        return self.publish_if_new(report, up_to, held)

    def rollback(self, old: Epoch) -> Epoch:
        """Publish again what an older epoch had learned; lessons that it has not are on hold."""
        epochs, lessons = self.ledger.epochs, self.ledger.lessons
        with self.ledger.write():
            epochs.ask(old.lessons_to, old.omitted)
            lessons.release(lessons.find_held())
            known = lessons.numbers(old.lessons_to, old.omitted)
            held = lessons.hold(set(lessons.numbers(lessons.last)).difference(known))
            reason = f"rolled back to epoch {old.number}{on_hold(held)}"
            number = epochs.append(replace(old, kind="rollback", time=self.now(), report={"reason": reason}))
        return epochs.get(number)

    def refit_after_forget(self) -> None:
        """Learn again from what is left, and publish that, empty or not. What is to be forgotten does not wait for an
        encoder that fails: then the untaught index is published."""
        self.ledger.epochs.redact(self.current)
        self._refit("forget", self._propose_or_nothing)

    def _refit(self, kind: str, learn: Callable[[int, Omitted], EpochReport]) -> EpochReport | None:
        """Learn again all that evolve was ever asked to learn, and publish that."""
        (asked, omitted), current = self.ledger.epochs.asked, self.current
        if not asked and not current:
            return None
        up_to = min(asked, self.ledger.lessons.last)
        omitted |= self.ledger.lessons.find_held()
        report = learn(up_to, omitted)
        return self._publish(kind, report, up_to, omitted) if current or report.choice else report

    def _propose_or_nothing(self, up_to: int, omitted: Omitted) -> EpochReport:
        try:
            return self.propose(up_to, omitted)
        except ServiceFailed as error:
            log.warning("the remaining lessons are learned at the next evolve: %s", str(error))
            reason = "an encoder failed: the remaining lessons are learned at the next evolve"
            return EpochReport(False, reason, self.current, None, None, {}, {}, 0, 0)

    def publish_if_new(self, report: EpochReport, up_to: int, omitted: Omitted) -> EpochReport:
        epochs, lessons = self.ledger.epochs, self.ledger.lessons
        current = epochs.get(self.current)
        with self.ledger.write():
            epochs.ask(up_to, omitted)
            same = all(getattr(report, part) == getattr(current, part) for part in LEARNED)
            known = lessons.numbers(current.lessons_to, current.omitted)
            if current.number and same and lessons.numbers(up_to, omitted) == known:
                return replace(report, reason=f"nothing new since epoch {current.number}" + on_hold(len(omitted)))
            if not report.choice and not current.choice and not self.differs(report, up_to, omitted, current):
                return report
            return self._publish("evolve", report, up_to, omitted)

    def _publish(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> EpochReport:
        number = self.ledger.epochs.append(self.make_epoch(kind, report, up_to, omitted))
        log.info("epoch %d: %s", number, report.reason)
        return replace(report, published=True, epoch=number)

    def make_epoch(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> Epoch:
        """What a report proposes, as an epoch that has no number yet."""
        held = frozenset(number for number in omitted if number <= up_to)
        told = replace(report, pools_renewed=0, pools_seconds=0.0)  # what is written does not depend on the machine
        written = replace(told, actors_left_out={}, documents_left_out={}).to_dict()  # a name could not be forgotten
        chosen = (report.choice, report.weights, self.now(), written)
        epoch = Epoch(0, kind, up_to, *chosen, omitted=held, reach=report.reach, left_out=report.left_out)
        return replace(epoch, revisions=self.revisions)
