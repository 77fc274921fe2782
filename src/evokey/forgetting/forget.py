"""Forget, in an order that survives a crash at any moment.

The ledger deletes lessons, notes what is to be erased and learns again from what is left, in one transaction. Then the
places outside of the ledger erase, then the ledger's free space and its write-ahead log are emptied, then the note
goes. Each step may be repeated. A crash, a file in use or a reader of the log leaves the note, and the next writer goes
on from there.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from evokey.erasure import Erasure, Place
from evokey.errors import MemoryBusy, StorageFailed, StoreFailed
from evokey.ledger.ledger import Ledger
from evokey.types import Forgotten

PATIENCE = 2.0
"""Seconds for which forget waits for readers of the ledger."""
PAUSE = 10.0
"""Seconds between attempts to finish a forget that had to wait."""
READ = "another process is reading the ledger; the next write after it is done empties the write-ahead log"


class Follower(Protocol):
    """What follows the ledger."""

    def catch_up(self) -> Any: ...

    def remember(self) -> None:
        """Lessons are gone."""
        ...


@dataclass
class Forgetter:
    index: Follower
    ledger: Ledger
    places: list[Place]
    """Outside of the ledger."""
    refit: Callable[[], None]
    """Learns again from the lessons that are left."""
    _tried: float = field(default=0.0, init=False)
    """When an unfinished forget was last gone on with."""

    def forget(self, wanted: Erasure, *, traffic: bool) -> Forgotten:
        """Erase the lessons that match, everywhere; and the whole sample of the traffic, if asked."""
        with self.ledger.write():
            self.index.catch_up()  # where several write, another may have been first
            lessons, dropped = self._delete(wanted, traffic=traffic)
        self.ledger.traffic.go_on()
        self.ledger.shown.go_on()
        pending = self._erase(PATIENCE)
        return Forgotten(lessons, pending is None, pending, dropped)

    def resume(self) -> None:
        """Finish what an earlier forget left, if this process may write now; but do not try all the time."""
        if self.ledger.forgets.waits_for is None or self.ledger.in_write:
            return
        if self._tried and time.monotonic() < self._tried + PAUSE:
            return
        self._tried = time.monotonic()
        with self.ledger.lock_if_free() as locked:
            if locked:
                self._erase()

    def _delete(self, wanted: Erasure, *, traffic: bool) -> tuple[int, int]:
        """The part of the ledger: delete, note what is to be erased elsewhere, and learn again. Counts lessons, and
        revisions of encoders that some of them were trained on."""
        ledger, said = self.ledger, {wanted.query} if wanted.query else set()
        before, queries = ledger.lessons.texts() | said, ledger.lessons.queries() | said
        if traffic:
            queries |= set(ledger.traffic.queries())
        if wanted.actor is not None and wanted.query is wanted.document is None:
            queries |= ledger.shown.queries(wanted.actor) | ledger.ratings.queries(wanted.actor)
        lost: list[int] = []
        if not wanted.query is wanted.actor is wanted.document is None:
            lost = ledger.lessons.forget(query=wanted.query, actor=wanted.actor, document=wanted.document)
        left = ledger.lessons.texts() | set(ledger.protected.all())
        gone = sorted(queries - left)
        units = (before | ledger.expansions.forget(gone)) - left - set(gone)
        ledger.traffic.forget(None if traffic else gone)
        erasure = replace(wanted, queries=tuple(gone), units=tuple(sorted(units)))
        ledger.shown.forget(erasure)
        ledger.ratings.forget(erasure)
        ledger.seeded.forget(wanted)
        ledger.forgets.note(erasure)
        dropped = ledger.epochs.find_trained(lost)
        ledger.drop_revisions(dropped)
        if lost:
            self.index.remember()
            self.refit()
        return len(lost), len(dropped)

    def _erase(self, patience: float = 0.0) -> str | None:
        """Erase what is noted, as far as that is possible now. Returns what it waits for; None: nothing is left.

        patience: seconds for which readers of the ledger are waited for.
        """
        if self.ledger.forgets.waits_for is None:
            return None
        try:
            reason = self._erase_everywhere(patience)
        except (OSError, sqlite3.Error, StorageFailed, MemoryBusy) as error:
            reason = f"a file cannot be changed now ({error}); the next write tries again"
        except StoreFailed as error:
            reason = f"a store does not answer ({error}); the next write tries again"
        if reason is not None:
            with suppress(StorageFailed, MemoryBusy):  # it is told in any case
                self.ledger.forgets.wait(reason)
        return reason

    def _erase_everywhere(self, patience: float) -> str | None:
        erasures = self.ledger.forgets.erasures()
        for place in self.places if erasures else ():
            for erasure in erasures:
                place.forget(erasure)
        if not self.ledger.scrub(patience):
            return READ
        self.ledger.forgets.finish()
        return None
