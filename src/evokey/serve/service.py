"""The running service: its collections, keys, jobs, learner and counters, and what happens when it ends."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from evokey.errors import EvokeyError
from evokey.serve.board import Board
from evokey.serve.collections import Collection, Collections
from evokey.serve.jobs import Jobs
from evokey.serve.keys import KeyRing
from evokey.serve.learning import BackgroundLearning
from evokey.serve.limits import DailyLessons, Pace
from evokey.serve.metrics import Metrics
from evokey.serve.options import Options
from evokey.serve.threads import Threads
from evokey.serve.tracing import Tracer

log = logging.getLogger("evokey.serve")
PAUSE = 2.0
"""Seconds between two writes of what was shown."""


@dataclass
class Service:
    options: Options
    collections: Collections
    keys: KeyRing
    jobs: Jobs
    learning: BackgroundLearning
    metrics: Metrics
    tracer: Tracer
    threads: Threads = field(default_factory=Threads)
    pace: Pace = field(default_factory=Pace)
    daily: DailyLessons = field(default_factory=DailyLessons)
    _ending: threading.Event = field(default_factory=threading.Event)
    _keeper: threading.Thread | None = None

    @classmethod
    def build(cls, options: Options) -> Service:
        collections, metrics, keys = Collections(options), Metrics(), KeyRing(options.folder)
        jobs = Jobs(Board(options.folder))
        learning = BackgroundLearning(options, collections, jobs, metrics)
        return cls(options, collections, keys, jobs, learning, metrics, Tracer(on=options.tracing))

    @property
    def ready(self) -> bool:
        return not self._ending.is_set()

    def start(self) -> None:
        for name in self.collections.names() if self.options.at is not None else ():
            self.collections.get(name)
        self._keeper = threading.Thread(target=self._keep, name="keep-shown", daemon=True)
        self._keeper.start()
        self.learning.start()

    def stop(self) -> None:
        """Nothing that was acknowledged is lost: what is only in memory is written as the memories are closed."""
        self._ending.set()
        self.learning.stop()
        self.jobs.stop()
        if self._keeper is not None:
            self._keeper.join()
        self._keep_all()
        self.collections.close()

    def _keep(self) -> None:
        while not self._ending.wait(PAUSE):
            self._keep_all()

    def _keep_all(self) -> None:
        for name, memory in self.collections.open_ones().items():
            try:
                _keep_shown(memory)
            except EvokeyError as error:
                log.warning("what %s showed could not be written: %s", name, type(error).__name__)


def _keep_shown(memory: Collection) -> None:
    if memory.ledger.shown.noted:
        memory.keep_shown()
