"""How long the parts of a run take."""

from __future__ import annotations

import statistics
import time
from typing import Any

from evokey.bench.data.trec import Scored
from evokey.bench.measures import MEASURED_DEPTH
from evokey.bench.protocols import Question
from evokey.bench.systems import System


class Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        """Seconds of processors, which a busy machine does not stretch."""
        self._searches: list[float] = []

    def call(self, what: str, work: Any, *given: Any) -> Any:
        began, busy = time.perf_counter(), time.process_time()
        found = work(*given)
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - began
        self.cpu[what] = self.cpu.get(what, 0.0) + time.process_time() - busy
        return found

    def search(self, system: System, question: Question) -> Scored:
        """Without the documents to leave out."""
        began = time.perf_counter()
        found = system.search(question, MEASURED_DEPTH + len(question.excluded))
        self._searches.append(time.perf_counter() - began)
        return [one for one in found if one[0] not in question.excluded][:MEASURED_DEPTH]

    @property
    def search_ms(self) -> float | None:
        """The median."""
        return 1000 * statistics.median(self._searches) if self._searches else None
