"""The candidate: a proposal that is searched beside the published epoch, and is published or dropped later.

It lives in this process alone, and goes when an epoch is published or lessons are forgotten. Its number is below 0, so
that what was shown of it is never taken for an epoch's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evokey.evolution.publishing import Draft, Publisher
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.types import Candidate, EpochReport


@dataclass
class Candidates:
    index: Index
    ledger: Ledger
    publisher: Publisher
    _draft: Draft | None = field(default=None, init=False)

    def stage(self, draft: Draft) -> Candidate | None:
        """Keep a proposal as the candidate, in the place of another one; None where it no longer holds."""
        if not self.publisher.holds(draft):
            return None
        number = min(self.ledger.shown.lowest_epoch(), 0) - 1
        epoch = self.publisher.make_epoch("candidate", draft.report, draft.up_to, draft.omitted)
        overlays = draft.overlays if draft.position == self.index.position else None
        self.index.stage(replace(epoch, number=number), overlays)
        self._draft = draft
        return self.current

    @property
    def current(self) -> Candidate | None:
        draft, epoch = self._draft, self.index.candidate
        if draft is None or epoch is None:
            self._draft = None
            return None
        return Candidate(epoch.number, draft.epoch, epoch.time, draft.lessons, draft.report)

    def publish(self) -> EpochReport | None:
        """Publish the candidate as it was compared, whatever lessons came since; None where there is none, or where it
        no longer holds."""
        draft = self._draft
        if draft is None or self.index.candidate is None:
            return None
        report = self.publisher.adopt(draft)
        self.drop()
        return report

    def drop(self) -> None:
        self._draft = None
        self.index.unstage()
