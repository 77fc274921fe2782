"""Layer: what learns beside a search function that is not ours. The verbs of a memory, without its documents.

search    is the question like a taught one? Then the engine's results are fused with what was learned
feedback  a lesson in the ledger, and the engine's results for its question (the pool)
evolve    lessons and pools → a new epoch, if held-out questions say that it helps
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from evokey import checks
from evokey import settings as settings_
from evokey.erasure import Erasure, Place
from evokey.errors import InvalidInput, MemoryClosed
from evokey.forgetting.forget import Forgetter
from evokey.forgetting.places import KeptFile, TaughtTexts
from evokey.inspect import backup
from evokey.layer import inspecting
from evokey.layer.credit import FEEDBACK, LayerCredit, make_lesson
from evokey.layer.engine import DEPTH, Engine
from evokey.layer.learned import Learned
from evokey.layer.likeness import Comparison
from evokey.layer.pools import EnginePools, PoolEntry
from evokey.layer.publisher import LayerPublisher
from evokey.ledger.ledger import Ledger
from evokey.ledger.repeating import idempotent, repeated
from evokey.ledger.shared import Shared
from evokey.loop.audience import Audience
from evokey.loop.rating import Rater
from evokey.postgres.address import Address
from evokey.settings import Settings
from evokey.types import (
    Document,
    Epoch,
    EpochDiff,
    EpochReport,
    Explanation,
    Forgotten,
    Hit,
    Lesson,
    Stats,
)
from evokey.verifiers import human
from evokey.verifiers.human import Human

STATES = 4
"""Epochs that are kept composed."""


class Heard(NamedTuple):
    """What somebody says of documents for a query, checked."""

    query: str
    grades: Mapping[str, float]
    actor: str | None
    filters: Mapping[str, Any]

    def lesson(self, time: float) -> Lesson:
        return replace(make_lesson(self.query, self.grades, self.actor, FEEDBACK), time=time)


class Layer(Audience):
    """A search function that learns. Use as a context manager, or close it."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        engine: Engine,
        *,
        now: Callable[[], float] = time.time,
        database: Shared | None = None,
    ) -> None:
        """database: where the layer is, if it is shared; the folder then holds what is derived from it on this
        machine."""
        self._address: Address | None = None if database is None else database.address
        self._folder, self._engine, self._now = folder, engine, now
        self._comparisons = [
            Comparison.of(one.name, settings_.build_encoder(settings, one), folder / "keys" / one.name)
            for one in settings.retrievers
        ]
        self.ledger = Ledger(folder if database is None else database)
        self._one_at_a_time, self._reading = threading.RLock(), threading.Lock()
        self._closed = False
        self._version, self._current = -1, 0
        self._states: dict[int, tuple[Any, Learned]] = {}
        try:
            self._pools = EnginePools(engine, self.ledger)
            shared = settings.shared_feedback
            self.publisher = LayerPublisher(self.ledger, now, self._pools, self._comparisons, shared)
            open_reviews = partial(Human, folder / settings_.HUMAN, now=now)
            self._rater = Rater(self.ledger, LayerCredit(self.ledger, self._pools, now), open_reviews, now)
            kept: list[Place] = [
                TaughtTexts(folder, self._comparisons),
                KeptFile(folder / settings_.HUMAN, human.forget),
            ]
            self._forgetter = Forgetter(self._pools, self.ledger, kept, self.publisher.refit_after_forget)
            self._forgetter.resume()
        except BaseException:
            self.ledger.close()
            raise

    # ---- answering

    def search(self, query: str, k: int = 10, *, epoch: int | None = None, **filters: Any) -> list[Hit]:
        """The k best documents, best first. The search function is called once, with your filters.

        Far from every taught question its results come back as they are. Near one, it is asked for at least a hundred,
        and these are fused with what was learned. A document that learned nothing keeps its score; the scores of
        others are on the same scale. Errors of the search function go through unchanged.
        """
        self._check_open()
        text, size = checks.query(query), checks.count(k)
        learned = self._state_at(epoch)
        near = learned.compare(text)
        depth = size if near is None else max(size, DEPTH)
        hits = self._engine.ask(text, depth, filters)
        self._pools.note(text, filters, hits, whole=depth >= DEPTH)
        if near is None:
            return hits
        return learned.rank(
            near, hits, size, lambda ids: self._engine.allow(ids, filters), limited=self._engine.limits(filters)
        )

    def explain(self, id: str, query: str | None = None, **filters: Any) -> Explanation:
        """What a document has learned and from whom; with a query, how that changes its score and rank."""
        self._check_open()
        wanted, text = checks.ids([id])[0], None if query is None else checks.query(query)
        return inspecting.explain(self._state_at(None), self.ledger, self._engine, (wanted, text), filters)

    def find_allowed(self, ids: Sequence[str], **filters: Any) -> dict[str, Document]:
        """Those of the documents that exist and that a caller with these filters may see, by id, as `allowed` says."""
        self._check_open()
        return self._engine.allow(checks.ids(ids), filters)

    # ---- learning

    def feedback(
        self,
        query: str,
        relevant: checks.Graded = (),
        irrelevant: Iterable[str] = (),
        actor: str | None = None,
        **filters: Any,
    ) -> Lesson:
        """Record a verdict: which documents were right for this query, and which were wrong.

        `relevant` is a list of ids, or {id: grade}. The engine's results for the query are kept for evolve; `filters`
        are passed to it. Where it fails, the lesson is recorded all the same, and evolve asks it again.
        """
        (lesson,) = self._record([self._check_feedback(query, relevant, irrelevant, actor, **filters)])
        return lesson

    def feedback_many(self, lessons: Iterable[Mapping[str, Any]]) -> list[Lesson]:
        """Many verdicts at once, each a mapping of feedback's arguments: all are recorded, or none."""
        return self._record([self._check_feedback(**lesson) for lesson in lessons])

    def _check_feedback(
        self,
        query: str,
        relevant: checks.Graded = (),
        irrelevant: Iterable[str] = (),
        actor: str | None = None,
        **filters: Any,
    ) -> Heard:
        who = None if actor is None else checks.actor(actor)
        return Heard(checks.query(query), checks.grades(relevant, irrelevant), who, filters)

    def _record(self, heard: Sequence[Heard]) -> list[Lesson]:
        """Write lessons with the engine's results for their questions, in one transaction; the engine is asked
        before."""
        self._check_open()
        return self._keep_lessons(heard, self._pools.take([(one.query, one.filters) for one in heard]))

    @repeated
    def _keep_lessons(self, heard: Sequence[Heard], pools: Sequence[list[PoolEntry] | None]) -> list[Lesson]:
        with self._write(), self.ledger.write():
            for one, hits in zip(heard, pools, strict=True):
                self._pools.number(list(one.grades))
                self._pools.note_texts(hits or (), one.grades)
                if hits is not None:
                    self._pools.put({one.query: hits})
            return [self.ledger.lessons.append(one.lesson(self._now()), None) for one in heard]

    @idempotent
    def lessons(
        self,
        query: str | None = None,
        actor: str | None = None,
        document: str | None = None,
        verifier: str | None = None,
        held: bool | None = None,
        after: int | None = None,
    ) -> list[Lesson]:
        """The lessons that match every given criterion, oldest first; held: only those on hold, or only the others;
        after: only those with a larger number."""
        self._check_open()
        more: dict[str, Any] = {} if verifier is None else {"verifier": verifier}
        more |= {} if after is None else {"after": after}
        return self.ledger.lessons.select({**checks.criteria(query, actor, document), **more}, held=held)

    @idempotent
    def hold(self, lessons: Iterable[int]) -> int:
        """Put lessons (numbers) on hold: from the next evolve on they take part in nothing, until they are released.
        Returns how many were not on hold."""
        with self._write():
            return self.ledger.lessons.hold(checks.numbers(lessons))

    @idempotent
    def release(self, lessons: Iterable[int]) -> int:
        """Let lessons on hold take part again, from the next evolve on. Returns how many were on hold."""
        with self._write():
            return self.ledger.lessons.release(checks.numbers(lessons))

    def protect(self, query: str, relevant: checks.Graded, **filters: Any) -> None:
        """Protect a query: no epoch is published in which these documents rank worse than in the engine's results.

        An empty list stops protecting it. Evolve may have to ask the engine for its results.
        """
        text, grades = checks.query(query), checks.grades(relevant, ()) if relevant else {}
        self._check_open()
        (hits,) = self._pools.take([(text, filters)]) if grades else (None,)
        self._keep_protected(text, grades, hits)

    @idempotent
    def _keep_protected(self, text: str, grades: Mapping[str, float], hits: list[PoolEntry] | None) -> None:
        with self._publish(), self.ledger.write():
            self._pools.number(list(grades))
            self.ledger.protected.put(text, grades)
            if hits is not None:
                self._pools.put({text: hits})

    @idempotent
    def protected_queries(self) -> Mapping[str, Mapping[str, float]]:
        """Protected queries, each with its documents and grades."""
        self._check_open()
        return self.ledger.protected.all()

    @repeated
    def delete(self, ids: Iterable[str]) -> int:
        """Documents are gone from the engine: what they were taught has no effect, in case they come back with new
        feedback. Needed only where no `allowed` says which ids exist."""
        wanted = checks.ids(ids)
        with self._write():
            known = self.ledger.documents.find(wanted)
            self.ledger.documents.delete(list(known))
        return len(known)

    # ---- evolving, and time travel

    @idempotent
    def evolve(self, dry_run: bool = False) -> EpochReport:
        """Let the lessons so far propose what is learned; publish it as a new epoch if held-out queries say it helps.

        The engine is asked only for questions whose results are not kept, before anything is locked."""
        self._check_open()
        self._fetch_missing()
        with self._publish():
            return self.publisher.evolve(dry_run=dry_run)

    def _fetch_missing(self) -> None:
        """What was fetched before a failure is kept."""
        found: dict[str, list[PoolEntry]] = {}
        try:
            found.update(self._pools.fetch(self.publisher.find_missing()))
        finally:
            if found:
                self._keep_pools(found)

    @idempotent
    def _keep_pools(self, found: Mapping[str, Sequence[PoolEntry]]) -> None:
        """Those of questions that nobody has forgotten meanwhile."""
        with self._publish(), self.ledger.write():
            missing = self.publisher.find_missing()
            self._pools.put({query: found[query] for query in missing if query in found})

    @idempotent
    def forget(self, query: str | None = None, actor: str | None = None, document: str | None = None) -> Forgotten:
        """Erase the lessons that match every given criterion, everywhere. They have no effect from now on; where some
        of their bytes cannot be erased now (a reader holds the write-ahead log), the result says so."""
        wanted = checks.criteria(query, actor, document)
        if not wanted:
            raise InvalidInput("name what to forget: query=…, actor=… or document=… (a document's id)")
        with self._publish():
            return self._forgetter.forget(Erasure(**wanted), traffic=False)

    @idempotent
    def epochs(self) -> list[Epoch]:
        """All states of what was learned, the untaught one (0) first; search any of them with epoch=…"""
        self._check_open()
        return self.ledger.epochs.all()

    @property
    def epoch(self) -> int:
        """The number of the epoch that searches read."""
        return self.ledger.epochs.current

    @repeated
    def rollback(self, epoch: int) -> Epoch:
        """Publish again what an older epoch had learned, as a new epoch. Its lessons take part from now on; all others
        are on hold until they are released."""
        with self._publish():
            return self.publisher.rollback(self._epoch(epoch))

    @idempotent
    def diff(self, a: int, b: int) -> EpochDiff:
        """What changed from epoch a to epoch b: documents by what they were taught, taught and protected queries by
        what they find. The engine is not asked: its results for these queries are kept."""
        self._check_open()
        return inspecting.diff(self._state_at(a), self._state_at(b), self.ledger)

    # ---- the layer itself

    @idempotent
    def stats(self) -> Stats:
        """What the layer holds."""
        self._check_open()
        return inspecting.count(self._state_at(None), self.ledger, self._folder)

    def backup(self, path: str | Path) -> None:
        """Copy the layer, as it is at one moment, to a new directory; others may write meanwhile. `forget` does not
        reach the copy."""
        self._check_open()
        if self._address is not None:
            raise InvalidInput(f"{self._address} is backed up with its database (pg_dump)")
        backup.copy(self._folder, Path(path))

    def close(self) -> None:
        """Write what is only in memory and let another process write."""
        with self._one_at_a_time:
            was_open, self._closed = not self._closed, True
            try:
                if was_open and self.ledger.locked and self.ledger.shown.noted:
                    self.ledger.shown.keep(self._now())
            finally:
                self.ledger.close()
                for one in self._comparisons:
                    one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _follow_lessons(self, new: int) -> None:
        """Nothing waits for them."""

    def _epoch(self, number: int) -> Epoch:
        return self.ledger.epochs.get(checks.epoch(number, self.ledger.epochs.current))

    @idempotent
    def _state_at(self, epoch: int | None) -> Learned:
        """What an epoch has learned, as the ledger is now."""
        with self._reading:
            version = self.ledger.version
            if version != self._version:
                self._refresh()
                self._version = version
            number = self._current if epoch is None else epoch
            if number not in self._states:
                with self.ledger.read():
                    self._states[number] = self._mark(), self.publisher.compose(self._epoch(number))
                while len(self._states) > STATES:
                    self._states.pop(next(one for one in self._states if one != number))
            return self._states[number][1]

    def _refresh(self) -> None:
        """Another commit: drop what no longer holds, and read the texts' hashes again."""
        with self.ledger.read():
            self._current, mark = self.ledger.epochs.current, self._mark()
            self._states = {
                number: (mark, self.publisher.read_texts(known))
                for number, (old, known) in self._states.items()
                if old == mark
            }

    def _mark(self) -> tuple[int, int, int]:
        """Changes when lessons are forgotten, or documents go or come back that lessons name."""
        ledger = self.ledger
        return ledger.forgets.count, ledger.documents.position().removals, ledger.lessons.set_aside()

    def _check_open(self) -> None:
        if self._closed:
            at = str(self._address or self._folder)
            raise MemoryClosed(f"this layer was closed; open it again with evokey.beside(…, at={at!r})")

    @contextmanager
    def _publish(self) -> Iterator[None]:
        """The same among all processes, for verbs that decide what an epoch says."""
        with self._one_at_a_time:
            self._check_open()
            with self.ledger.exclusive(), self._write():
                yield

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One verb that writes at a time, in this process and among all; others search meanwhile."""
        with self._one_at_a_time:
            self._check_open()
            self.ledger.lock()
            self._forgetter.resume()
            yield
