"""Learning from the traffic, in the background.

Queries that searches are asked go through the loop (expand, search, answer, verify) in a process of its own, which
reads the memory and writes nothing: searches here do not wait for it. What it verified is remembered here, which takes
milliseconds. When some batches in a row bring little that is new (the paper's saturation rule), or many lessons wait,
that process also proposes new keys and composes them; here they are only published.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evokey.erasure import Erasure
from evokey.errors import InvalidSettings, MemoryBusy
from evokey.evolution.ndcg import ndcg
from evokey.evolution.publishing import Draft
from evokey.evolution.saturation import Saturation
from evokey.loop.pipe import Thinker
from evokey.loop.think import Thought
from evokey.postgres.address import Address
from evokey.settings import Settings, required_allowances
from evokey.types import EpochReport, LearnReport

T = TypeVar("T")
log = logging.getLogger("evokey")
WAITING = 1_000
"""Queries that wait at the most; of more the oldest are dropped."""
REMEMBERED = 10_000
"""Queries not asked again by this learner."""
PENDING = 256
"""Lessons after which keys evolve even if every batch still brings much."""
SHARE = 0.02
"""Of this process's time, at the most: searches here wait while the learner's own thread computes."""
BUSY = 1.0
"""Seconds after which a write is tried again that another process held up."""
QUIET = 2.0
"""Seconds without a query after which keys evolve with what there is."""


@dataclass(slots=True)
class Progress:
    """What a learner has done so far."""

    seen: int = 0
    thought: int = 0
    learned: int = 0
    abstained: int = 0
    calls: int = 0
    epochs: int = 0
    dropped: int = 0


class Learner:
    def __init__(
        self,
        thinker: Thinker,
        remember: Callable[[Thought], LearnReport],
        adopt: Callable[[Draft], EpochReport | None],
        *,
        batch: int,
        budget: int | None,
        patience: int = 3,
        margin: float = 0.05,
    ) -> None:
        self._remember, self._adopt, self._batch, self._budget = remember, adopt, batch, budget
        self._fresh = Saturation(patience, margin)
        self.progress = Progress()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._mutex = threading.RLock()
        self._change = threading.Condition(self._mutex)
        self._ending = self._resting = False
        self._thinker = thinker
        self._thread = threading.Thread(target=self._run, name="evokey learner", daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        return not self._thread.is_alive()

    def offer(self, query: str) -> None:
        """A query of the traffic. Costs next to nothing; one that was seen before is not thought about again."""
        with self._mutex:  # itself: an interrupt as a condition takes it would leave it taken
            self.progress.seen += 1
            if query in self._asked or query in self._waiting or self._resting:
                return
            self._waiting[query] = None
            if len(self._waiting) > WAITING:
                self._waiting.popitem(last=False)
                self.progress.dropped += 1
            self._change.notify()

    def forget(self, erasure: Erasure) -> None:
        """Queries that wait are no longer thought about."""
        with self._change:
            for query in erasure.queries:
                self._waiting.pop(query, None)
                self._asked.pop(query, None)
            self._change.notify_all()

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until no query waits and nothing is being thought about."""
        with self._change:
            return self._change.wait_for(lambda: not self._waiting or self._resting or self.stopped, timeout)

    def stop(self) -> None:
        """End after the query at hand."""
        with self._change:
            self._ending = True
            self._change.notify_all()
        self._thinker.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(30)

    def _run(self) -> None:
        saturation, pending, gains = self._fresh, 0, list[float]()
        try:
            while (query := self._next(pending > 0)) is not None:
                began = time.thread_time()
                if query:
                    report = self._learn(query)
                    if report is not None and report.lesson is not None:
                        gains.append(shortfall(report))
                        pending += 1
                if len(gains) >= self._batch:
                    saturation, gains = saturation.after(max(gains)), []
                if pending and (saturation.saturated or pending >= PENDING or not query):
                    self._evolve()
                    saturation, pending, gains = self._fresh, 0, []
                self._rest((time.thread_time() - began) / SHARE)
        except (EOFError, OSError, RuntimeError) as error:
            if not self._ending:
                log.warning("background learning stopped: %s", str(error) or type(error).__name__)
        finally:
            self._thinker.stop()
            with self._change:
                self._change.notify_all()

    def _next(self, learned: bool) -> str | None:
        """The query that waited longest; "" when lessons wait and all is quiet; None at the end."""
        with self._change:
            while not self._ending:
                if self._waiting and not self._resting:
                    query = next(iter(self._waiting))
                    self._asked[query] = None
                    if len(self._asked) > REMEMBERED:
                        self._asked.popitem(last=False)
                    return query
                if not self._change.wait(QUIET) and learned:
                    return ""
            return None

    def _rest(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: self._ending, seconds)

    def _learn(self, query: str) -> LearnReport | None:
        try:
            thought: Thought = self._thinker.ask("think", query)
            report = self._insist(lambda: self._remember(thought))
            self._count(report)
            return report
        finally:
            with self._change:
                self._waiting.pop(query, None)
                self._change.notify_all()

    def _insist(self, write: Callable[[], T]) -> T:
        """Write; again and again while another process is the one that writes."""
        waiting = False
        while not self._ending:
            try:
                return write()
            except MemoryBusy as error:
                if not waiting:
                    log.warning("background learning waits to write: %s", str(error))
                waiting = True
                self._rest(BUSY)
        raise EOFError("stopped")

    def _count(self, report: LearnReport) -> None:
        self.progress.thought += 1
        self.progress.calls += report.spent.calls
        self.progress.learned += report.lesson is not None
        self.progress.abstained += report.ruling.success is None
        if self._budget is not None and self.progress.calls >= self._budget:
            with self._change:
                self._resting = True
                self._waiting.clear()
            log.warning("background learning is paused: its budget of %d calls is used up", self._budget)

    def _evolve(self) -> None:
        draft: Draft = self._thinker.ask("propose")
        report = self._insist(lambda: self._adopt(draft))
        if report is not None and report.published:
            self.progress.epochs += 1


def make_thinker(folder: Path, settings: Settings, address: Address | None = None) -> Thinker:
    """A process that opens the memory in this folder, or at this address, and is allowed what this one is."""
    if settings.objects:
        raise InvalidSettings(
            "a separate process cannot use the objects that this memory was opened with: "
            f"{', '.join(sorted(kind for kind, _ in settings.objects))}. Name them by 'module:Class' instead"
        )
    return Thinker(address or folder, required_allowances(settings, folder))


def shortfall(report: LearnReport) -> float:
    """How much a lesson has to teach: 1 − nDCG@10 of what was found, against what it credits."""
    assert report.lesson is not None
    number = {id: place for place, id in enumerate(report.found)}
    grades = {
        number.get(one.document, len(number) + place): one.grade
        for place, one in enumerate(report.lesson.verdicts)
        if one.grade > 0
    }
    return 1 - float(ndcg(list(range(len(report.found))), grades)) if grades else 0.0
