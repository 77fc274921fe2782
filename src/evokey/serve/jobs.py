"""Jobs: evolving takes seconds to minutes, so it is begun by one request and watched by others.

A process of its own proposes what evolve would do; here it is only published. Searches and feedback go on meanwhile.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from evokey.errors import EvokeyError
from evokey.evolution.publishing import Draft
from evokey.loop.pipe import Thinker
from evokey.memory import Memory
from evokey.serve.board import Board
from evokey.serve.collections import Collection
from evokey.serve.layers import LayerCollection
from evokey.types import EpochReport

KEPT = 100
"""Jobs that are remembered: the newest."""
ATTEMPTS = 3
"""How often a proposal is made again that no longer held when it was to be published."""
STEPS = {"waiting": 0.0, "proposing": 0.1, "publishing": 0.9, "done": 1.0, "failed": 1.0}


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    collection: str
    dry_run: bool
    state: str
    """waiting, proposing, publishing, done or failed"""
    begun: float
    ended: float | None = None
    report: dict[str, Any] | None = None
    preview: dict[str, Any] | None = None
    """Of a dry run: the taught questions that would find something else."""
    error: str | None = None

    @property
    def progress(self) -> float:
        return STEPS[self.state]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"progress": self.progress}


class Jobs:
    """One evolves at a time: each takes a processor for itself."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "evolve")
        self._drafts: dict[str, tuple[str, Draft]] = {}
        """The proposal of the last dry run of each collection, and its job."""
        self._thinker: Thinker | None = None
        self._ending = False

    def start(self, collection: str, memory: Collection, *, dry_run: bool = False) -> Job:
        """Begin to evolve; a job that waits to do the same is returned instead of a second one."""
        with self._mutex:
            for known in self._jobs.values():
                if (known.collection, known.dry_run, known.state) == (collection, dry_run, "waiting"):
                    return known
            job = Job(uuid.uuid4().hex, collection, dry_run, "waiting", time.time())
            self._jobs[job.id] = job
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
        self._board.put(job)
        self._pool.submit(self._run, job, memory)
        return job

    def get(self, collection: str, id: str) -> Job | None:
        """A job of any worker; its preview is with the worker that ran it."""
        return next((one for one in self.all(collection) if one.id == id), None)

    def all(self, collection: str) -> list[Job]:
        """The newest first."""
        return [self._jobs.get(one["id"]) or Job(**one) for one in self._board.all(collection)]

    def take_draft(self, collection: str, id: str) -> Draft | None:
        """What a dry run proposed, if it was the last one here. It is given once."""
        known = self._drafts.get(collection)
        if known is None or known[0] != id:
            return None
        del self._drafts[collection]
        return known[1]

    def running(self, collection: str) -> bool:
        return any(one.ended is None for one in self.all(collection))

    def stop(self) -> None:
        """End what runs; the lessons are in the ledger, and the next evolve learns from them."""
        self._ending = True
        thinker = self._thinker
        if thinker is not None:
            thinker.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job, memory: Collection) -> None:
        try:
            report, preview = self._evolve(job, memory)
            told = None if preview is None else preview.to_dict()
            self._set(job, state="done", ended=time.time(), report=report.to_dict(), preview=told)
        except (EvokeyError, EOFError, OSError, RuntimeError) as error:
            why = "the service is ending" if self._ending else str(error) or type(error).__name__
            self._set(job, state="failed", ended=time.time(), error=why)

    def _evolve(self, job: Job, memory: Collection) -> tuple[EpochReport, Any]:
        if isinstance(memory, LayerCollection):  # its search function is here, and in no other process
            self._set(job, state="proposing")
            return memory.evolve(dry_run=job.dry_run), None
        for _ in range(ATTEMPTS):
            self._set(job, state="proposing")
            draft = self._propose(memory)
            if job.dry_run:
                self._drafts[job.collection] = job.id, draft
                report = replace(draft.report, reason=f"dry run: {draft.report.reason}")
                return report, memory.preview(draft)
            self._set(job, state="publishing")
            adopted = memory.adopt(draft)
            if adopted is not None:
                return adopted, None
        return memory.evolve(), None

    def _propose(self, memory: Memory) -> Draft:
        self._thinker = thinker = memory.start_thinker()
        try:
            draft: Draft = thinker.ask("propose")
            return draft
        finally:
            thinker.stop()
            self._thinker = None

    def _set(self, job: Job, **changes: Any) -> None:
        with self._mutex:
            if job.id not in self._jobs:
                return
            self._jobs[job.id] = new = replace(self._jobs[job.id], **changes)
        self._board.put(new)
