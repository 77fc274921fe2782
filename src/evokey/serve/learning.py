"""The background learner of a service, and the alarm that watches what an epoch does.

Lessons that arrive are learned from by number, by schedule, or when they bring little that is new (saturation). After
an epoch of evolve, whoever published it, three figures are watched: protected queries, recent votes and searches
without hits. One that falls raises an alarm and, if asked for, rolls the epoch back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from filelock import FileLock, Timeout

from evokey.errors import EvokeyError
from evokey.evolution.saturation import Saturation
from evokey.memory import Memory
from evokey.serve.alarm import WINDOW, Alarm, Watched, last_epoch, watch
from evokey.serve.collections import Collection, Collections
from evokey.serve.jobs import Jobs
from evokey.serve.metrics import Metrics
from evokey.serve.options import Options
from evokey.types import Lesson

log = logging.getLogger("evokey.serve")
LOCK = "service.lock"
PAUSE = 2.0
"""Seconds between two looks."""
BATCH = 16
"""Lessons that are taken together for saturation."""


@dataclass
class Clock:
    """What is known of one collection."""

    evolved: float
    lesson: int
    """The last lesson that was looked at."""
    saturation: Saturation = field(default_factory=Saturation)
    gains: list[float] = field(default_factory=list)
    epoch: int = 0
    """The last epoch that was looked at."""
    watched: Watched | None = None
    alarms: list[Alarm] = field(default_factory=list)


class BackgroundLearning:
    def __init__(
        self,
        options: Options,
        collections: Collections,
        jobs: Jobs,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._collections, self._jobs, self._metrics = options.learning, collections, jobs, metrics
        self._leading = FileLock(options.folder / LOCK)
        self._now, self._ending = now, threading.Event()
        self._clocks: dict[str, Clock] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._leading.release()

    def alarms(self, collection: str) -> list[Alarm]:
        return list(self._clocks[collection].alarms) if collection in self._clocks else []

    def _run(self) -> None:
        while not self._ending.wait(PAUSE):
            if not self._lead():
                continue
            for name, memory in self._collections.open_ones().items():
                try:
                    self.look(name, memory)
                except EvokeyError as error:
                    log.warning("background learning of %s: %s", name, type(error).__name__)

    def _lead(self) -> bool:
        """Whether this is the one worker that learns; when it ends, another one does."""
        try:
            self._leading.acquire(blocking=False)
        except Timeout:
            return False
        return True

    def look(self, name: str, memory: Collection) -> None:
        """Begin to evolve if that is due, and watch the epoch that was published last."""
        if self._options.traffic and isinstance(memory, Memory) and memory.learner is None:
            memory.watch()
        clock = self._clock(name, memory)
        if self._options.on and not self._jobs.running(name) and self._due(clock, memory):
            clock.evolved, clock.saturation, clock.gains = self._now(), clock.saturation.restart(), []
            self._jobs.start(name, memory)
        self._note_epoch(clock, memory)
        self._watch(name, clock, memory)

    def _clock(self, name: str, memory: Collection) -> Clock:
        return self._clocks.setdefault(name, Clock(self._now(), memory.last_lesson))

    def _due(self, clock: Clock, memory: Collection) -> bool:
        pending = _count_pending(memory)
        if not pending:
            return False
        by_number = self._options.lessons is not None and pending >= self._options.lessons
        waited = self._now() - clock.evolved
        by_schedule = self._options.minutes is not None and waited >= 60 * self._options.minutes
        return by_number or by_schedule or (self._options.saturation and self._is_saturated(clock, memory))

    def _is_saturated(self, clock: Clock, memory: Collection) -> bool:
        """Whether some batches in a row brought lessons of which the memory finds nearly all already."""
        for lesson in memory.lessons(after=clock.lesson):
            clock.gains.append(_shortfall(memory, lesson))
            clock.lesson = lesson.number
        while len(clock.gains) >= BATCH:
            batch, clock.gains = clock.gains[:BATCH], clock.gains[BATCH:]
            clock.saturation = clock.saturation.after(max(batch))
        return clock.saturation.saturated

    def _note_epoch(self, clock: Clock, memory: Collection) -> None:
        """Begin to watch a new epoch: this worker may have published it, another one, or the command line. Going back
        is what an alarm asks for, so a rollback is not watched; nor what is old when the service starts."""
        number = last_epoch(memory)
        if number == clock.epoch:
            return
        epoch = memory.ledger.epochs.get(number)
        new = epoch.kind == "evolve" and epoch.time > self._now() - WINDOW
        clock.watched = Watched.begin(memory, number, epoch.time) if new else None
        clock.epoch = number

    def _watch(self, name: str, clock: Clock, memory: Collection) -> None:
        if clock.watched is None:
            return
        alarm = watch(memory, clock.watched, self._now())
        if alarm is None:
            return
        clock.watched = None
        clock.alarms.append(alarm)
        self._metrics.alarms.labels(name, alarm.figure).inc()
        log.warning("collection %s: %s fell after epoch %d", name, alarm.figure, alarm.epoch)
        if self._options.rollback:
            memory.rollback(alarm.before_epoch)


def _count_pending(memory: Collection) -> int:
    """Lessons that the current epoch does not include. Of all that stats tells this alone: it is asked every moment."""
    ledger = memory.ledger
    with ledger.read():
        epoch = ledger.epochs.get(ledger.epochs.current)
        return ledger.lessons.count_pending(epoch.lessons_to, epoch.omitted)


def _shortfall(memory: Collection, lesson: Lesson) -> float:
    """How much a lesson has to teach: the share of its right documents that its query does not find among ten."""
    right = {one.document for one in lesson.verdicts if one.grade > 0}
    found = {hit.id for hit in memory.search(lesson.query)} if right else set()
    return 1 - len(right & found) / len(right) if right else 0.0
