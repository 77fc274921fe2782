"""The searchable state of a memory: retrievers that follow the ledger, and the overlays of its epochs.

Another process, or another thread, may have written: `catch_up` notices and brings everything up to what the ledger
says now. A search reads one epoch: the base keys, and beside them the overlay of what that epoch has learned.

Keys of new documents are made in the transaction that writes these (`encode`): what an encoder refuses is not stored.
Whoever follows later makes keys only where that costs nothing, and takes all others from disk, where the writer has put
them. A document whose keys are nowhere is kept all the same, and is `lacking`; the writer tries again (`complete`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from evokey.errors import ServiceFailed
from evokey.evolution import restricted as restricted_
from evokey.evolution.policy import Log, Policy
from evokey.ledger.documents import Entry, Position
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import NONE, Omitted
from evokey.search.fusion import DEPTH, Fusion
from evokey.search.indexing import Progress, Watch, attempt, encode, named, reason
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.reach import Neighbours
from evokey.search.retriever import GivenRetriever, Keys, Retriever, search
from evokey.stores.embedded import NO_NUMBERS
from evokey.types import Choice, Epoch, Expansion, Numbers, Ranking, Reach, Vectors

EPOCHS_KEPT = 4
"""Overlays of so many epochs stay composed."""
NEVER = -1
NOTHING = Choice()
log = logging.getLogger("evokey")


@dataclass(frozen=True, slots=True)
class Overlays:
    """What one epoch has learned, for every retriever."""

    of: Mapping[str, Overlay]
    weights: Mapping[str, float]
    near: Neighbours | None = None
    """The taught queries that a question must be near to; None: it need not."""
    beyond: Overlays | None = None
    """What answers the others: the untaught index, and restricted documents' own rows."""


class Index:
    def __init__(
        self,
        ledger: Ledger,
        retrievers: Sequence[Retriever],
        fusion: Fusion,
        policy: Policy,
        restricted: str | None = None,
    ) -> None:
        """restricted: the field of the metadata that marks restricted documents, if any are."""
        self._field, self.restricted, self._regrouped = restricted, NO_NUMBERS, 0
        self._ledger, self.retrievers, self.fusion, self._policy = ledger, retrievers, fusion, policy
        for one in retrievers:
            one.store.origin = ledger.writers
        self.given = next((one for one in retrievers if isinstance(one, GivenRetriever)), None)
        self._mutex = threading.RLock()
        self._version = NEVER
        self._composed: dict[int, Overlays] = {}
        self._read: tuple[Any, Log] | None = None
        self._remembered: tuple[int, Any] = (0, None)
        """The last lesson whose vector is known, and its mark."""
        self.position, self.epoch, self._redacted = Position(), 0, 0
        self.live: Numbers = np.zeros(0, np.int64)
        self.lacking: dict[str, Numbers] = {}
        """Documents without keys, by retriever."""
        self._ready: dict[str, list[Keys]] = {}
        """Keys of documents that are about to be committed."""
        self._given_up = False
        self.catch_up()

    # ---- answering

    def ranked(
        self, query: str, k: int, overlays: Overlays, among: Numbers | None = None, vector: Vectors | None = None
    ) -> Ranking:
        overlays, known = self.within_reach(query, overlays, vector)
        questions = [
            known.get(one.name) or one.question(query, overlays.of[one.name].learned, vector) for one in self.retrievers
        ]
        return self._ranked(questions, k, overlays, among)

    def within_reach(
        self, query: str, overlays: Overlays, vector: Vectors | None = None
    ) -> tuple[Overlays, dict[str, Any]]:
        """What was learned, as far as it reaches this query; and the question that was made to find out, by
        retriever."""
        near, beyond = overlays.near, overlays.beyond
        if near is None or beyond is None:
            return overlays, {}
        measure = next(one for one in self.retrievers if one.name == near.reach.retriever)
        question = measure.question(query, {}, vector)
        nearest = near.nearest(query, question)
        if nearest < near.reach.threshold:
            return beyond, {measure.name: question}
        if nearest < near.reach.weights_threshold:
            overlays = Overlays(overlays.of, self._untaught_weights)
        return overlays, {measure.name: question}

    def alternatives(self, query: str, k: int, among: Numbers | None, vector: Vectors | None) -> list[Ranking]:
        """What the untaught index finds, and what each of several retrievers finds alone."""
        taught, _ = self.within_reach(query, self.overlays(), vector)
        rankings = [self.ranked(query, k, self.overlays(0), among, vector)]
        if len(self.retrievers) > 1:
            for one in self.retrievers:
                overlay = taught.of[one.name]
                rankings.append(search(one, one.question(query, overlay.learned, vector), k, overlay, among))
        return rankings

    def expanded(self, expansion: Expansion, k: int, overlays: Overlays, among: Numbers | None = None) -> Ranking:
        """What a query finds together with its units: as one question, or each by itself and the rankings fused."""
        if expansion.search == "fuse" and expansion.texts:
            texts = [expansion.query, *expansion.texts]
            rankings = [self.ranked(text, max(k, DEPTH), overlays, among) for text in texts]
            weights = [1.0, *(1 / len(expansion.texts) for _ in expansion.texts)]
            return self.fusion.fused(rankings, [1.0] * len(texts), weights, k)
        overlays, _ = self.within_reach(expansion.query, overlays)
        questions = [one.expanded(expansion, overlays.of[one.name].learned) for one in self.retrievers]
        return self._ranked(questions, k, overlays, among)

    def _ranked(self, questions: Sequence[Any], k: int, overlays: Overlays, among: Numbers | None) -> Ranking:
        depth = k if len(self.retrievers) == 1 else max(k, DEPTH)
        rankings = [
            search(one, question, depth, overlays.of[one.name], among)
            for one, question in zip(self.retrievers, questions, strict=True)
        ]
        if len(rankings) == 1:
            return rankings[0]
        weights = [overlays.weights[one.name] for one in self.retrievers]
        return self.fusion.fused(rankings, [question.trust for question in questions], weights, k)

    def overlays(self, number: int | None = None) -> Overlays:
        """What an epoch has learned (None: the current one), composed from the ledger. Keys and documents follow to the
        state that it is composed from: another process may have written since the last look."""
        found = self._composed.get(self.epoch if number is None else number)
        if found is not None:
            return found
        with self._mutex, self._ledger.read():
            if not self._ledger.in_write:
                self._follow()
            return self._compose(self.epoch if number is None else number)

    def _compose(self, number: int) -> Overlays:
        if number not in self._composed:
            self._keep(number, self.composed(self._ledger.epochs.get(number)))
        return self._composed[number]

    def _keep(self, number: int, overlays: Overlays) -> None:
        while len(self._composed) >= EPOCHS_KEPT:
            self._composed.pop(next(iter(self._composed)))
        self._composed[number] = overlays

    def composed(self, epoch: Epoch) -> Overlays:
        """What an epoch has learned."""
        untaught = {one.name: UNTAUGHT for one in self.retrievers}
        if not epoch.choice and (self._field is None or not epoch.lessons_to):
            return Overlays(untaught, self._untaught_weights)
        since, log = self._ledger.forgets.count, self.log(epoch.lessons_to, epoch.omitted)
        taught, beyond = untaught | {}, untaught
        for one in self.retrievers:
            own = epoch.choice.get(one.name, NOTHING)  # an epoch older than an encoder taught it nothing
            if not own.nothing:
                taught[one.name] = self._policy.overlay(one, log, own)
            if log.own is not None:
                restricted = restricted_.overlay(one, log.own, own)
                taught[one.name] = taught[one.name].beside(restricted)
                beyond[one.name] = UNTAUGHT.beside(restricted)
        weights = epoch.weights if epoch.weights.keys() == taught.keys() else self._untaught_weights
        near = self._neighbours(epoch.reach, log)
        self.drop_forgotten(log, since)
        return Overlays(taught, weights, near, Overlays(beyond, self._untaught_weights) if near else None)

    def _neighbours(self, reach: Reach | None, log: Log) -> Neighbours | None:
        """The taught queries that a question must be near to."""
        measure = next((one for one in self.retrievers if reach is not None and one.name == reach.retriever), None)
        return None if reach is None or measure is None else Neighbours(measure, log.taught.judged, reach)

    def drop_forgotten(self, log: Log, since: int) -> None:
        """Keep nothing encoded of what was forgotten while it was read; since: how many forgets there had been."""
        if self._ledger.forgets.count == since:
            return
        heard = [log.taught] if log.own is None else [log.taught, log.own]
        said = {text for one in heard for text in (*one.queries, *one.wrong, *chain(*one.units.values()))}
        for one in self.retrievers:
            one.forget(sorted(said - self._ledger.lessons.texts()))

    @contextmanager
    def published(self) -> Iterator[Callable[[int, Overlays], None]]:
        """While an epoch is published, searches go on with the one before, and none of them composes the new one: what
        it has learned may be given, as another process composed it."""
        with self._mutex:
            yield self._keep
            self.catch_up()

    @property
    def public(self) -> Numbers | None:
        """The documents that are not restricted; None if none is."""
        return np.setdiff1d(self.live, self.restricted) if len(self.restricted) else None

    @property
    def _untaught_weights(self) -> Mapping[str, float]:
        return dict(zip(self.fusion.names, self.fusion.untaught, strict=True))

    def log(self, up_to: int, omitted: Omitted = NONE) -> Log:
        """The lessons up to a number, without some. The last reading is kept for as long as it says what the ledger
        says: a published epoch is composed from what was read to propose it."""
        state = up_to, omitted, self._ledger.lessons.extent(up_to), self._ledger.documents.position(), self._regrouped
        with self._mutex:
            if self._read is None or self._read[0] != state:
                self._read = state, Log(self._ledger, up_to, omitted, self._field)
            return self._read[1]

    # ---- following the ledger

    def catch_up(self, *, wait: bool = True) -> None:
        """Bring everything up to what the ledger says now. Without waiting: unless another thread is at it."""
        if not self.behind:
            return
        taken: list[bool] = []
        try:
            taken.extend(map(self._mutex.acquire, (wait,)))  # in one step: taken and noted, whatever interrupts
            version = self._ledger.version
            if taken[0] and self.behind:
                with self._ledger.read():
                    self._follow()
                self._version = version
        finally:
            if taken and taken[0]:  # no call before the release: an interrupt could come with its return
                self._mutex.release()

    @contextmanager
    def steady(self) -> Iterator[None]:
        """To look at a memory as a whole. What others write meanwhile is taken up afterwards; searches go on."""
        with self._mutex:
            self.catch_up()
            yield

    @property
    def behind(self) -> bool:
        """Whether the ledger has changed, or keys have come that were nowhere before."""
        if self._ledger.version != self._version:
            return True
        return bool(self.lacking) and any(one.store.changed for one in self.retrievers if one.name in self.lacking)

    def _follow(self) -> None:
        position, epoch = self._ledger.documents.position(), self._ledger.epochs.current
        added, removed = self._ledger.documents.changes(self.position)
        live = np.concatenate([self.live, np.array(added, np.int64)])
        if removed:
            live = live[~np.isin(live, np.array(removed, np.int64))]
        lacking = self.lacking
        if added or removed or lacking or self._version == NEVER:
            self._ledger.words.stale = True
            self.lacking = {
                one.name: missing
                for one in self.retrievers
                if len(missing := self._index(one, live, added, removed, position.newest))
            }
        sparse = [one for one in self.retrievers if one.kind == "sparse"]
        lensed = {name for one in self._composed.values() for name, overlay in one.of.items() if overlay.lens}
        # Which chunk a text matches follows BM25's weights, and so do the words that a lens of words brings.
        weighed = any(self._policy.weighs or one.store.rows.several or one.name in lensed for one in sparse)
        changed = bool(weighed and added) or self._ledger.documents.touch_lessons(self.position.newest, removed)
        set_apart = NO_NUMBERS if self._field is None else self._ledger.documents.restricted(self._field)
        if not np.array_equal(set_apart, self.restricted):
            self.restricted, changed = set_apart, True
            self._regrouped += 1
        if changed or lacking or self._ledger.epochs.redacted != self._redacted:
            self._composed = {}
        self.remember()
        self.position, self.live, self._redacted = position, live, self._ledger.epochs.redacted
        if epoch != self.epoch and self._version != NEVER:
            with suppress(ServiceFailed):  # a search that needs the encoder says so itself
                self._compose(epoch)  # composed before it is searched: searches go on with the epoch before
        self.epoch = epoch

    def _index(
        self, retriever: Retriever, live: Numbers, added: Sequence[int], removed: Sequence[int], newest: int
    ) -> Numbers:
        """Bring one retriever up to date; the documents whose keys it lacks then."""
        loaded = retriever.store.load(live)
        if removed and not loaded:
            retriever.store.remove(removed)
        if added and not loaded:
            retriever.store.revive(added)
        ready = self._ready.get(retriever.name, [])
        if ready and max(int(keys.covered.max()) for keys in ready) <= newest:
            self._take(retriever, self._ready.pop(retriever.name))
        everything = loaded or retriever.name in self.lacking or self._version == NEVER
        wanted = live if everything else np.array(added, np.int64)
        missing = retriever.store.rows.uncovered(wanted)
        if len(missing) and retriever.cost == "nothing":
            self._take(retriever, self._made(retriever, missing, Watch(len(missing), 1)))
            missing = retriever.store.rows.uncovered(missing)
        return missing

    def _take(self, retriever: Retriever, made: Sequence[Keys]) -> None:
        for keys in made:
            if len(retriever.store.rows.uncovered(keys.covered)) == len(keys.covered):
                retriever.store.add(*keys)

    def _made(self, retriever: Retriever, numbers: Numbers, watch: Watch) -> list[Keys]:
        """The keys of documents that are in the ledger, as far as the encoder makes them."""
        encoding = attempt(retriever, self._ledger.documents, numbers, self._ledger.words, watch)
        if encoding.failure is not None:
            log.warning("some documents have no keys by %s yet: %s", retriever.name, reason(encoding.failure))
        if encoding.refused:
            why = reason(next(iter(encoding.refused.values())))
            log.warning("%s has no keys by %s: %s", named(list(encoding.refused)), retriever.name, why)
        return encoding.keys

    # ---- keys of documents

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Around a transaction that encodes. If it is rolled back, its keys go: other documents get these numbers."""
        try:
            yield
        except BaseException:
            self._ready = {}
            self._ledger.words.restart()
            raise

    def encode(self, entries: Sequence[Entry], progress: Progress | None = None) -> None:
        """Make the keys of documents that this transaction writes, or raise."""
        if not entries:
            return
        self._ledger.words.stale = True
        watch = Watch(len(entries), len(self.retrievers), progress)
        costly = any(one.cost != "nothing" for one in self.retrievers)
        twins = self._ledger.documents.twins(entries) if costly else {}
        self._ready = {one.name: self._encoded(one, entries, twins, watch) for one in self.retrievers}

    def _encoded(
        self, retriever: Retriever, entries: Sequence[Entry], twins: Mapping[int, int], watch: Watch
    ) -> list[Keys]:
        """The keys of these documents: those of an equal document where they cost something, and else made."""
        if retriever.cost == "nothing":
            return encode(retriever, entries, self._ledger.words, watch)
        rows = retriever.store.rows
        old = np.array(list(twins.values()), np.int64)
        known = set(np.setdiff1d(old, rows.uncovered(old)).tolist()) - rows.dead
        equal = {number: twin for number, twin in twins.items() if twin in known}
        new = [entry for entry in entries if entry.number not in equal]
        made = encode(retriever, new, self._ledger.words, watch)
        return [Keys(*retriever.store.copies(equal)), *made] if equal else made

    @property
    def without_keys(self) -> set[int]:
        """Documents that some retriever cannot find."""
        return set[int]().union(*(numbers.tolist() for numbers in self.lacking.values()))

    def complete(self, *, again: bool = False) -> bool:
        """Make keys that documents lack, as far as their encoders make them; whether some were made. For the process
        that writes. What failed before is tried again only if asked: deleting does not wait for a service twice."""
        if not self.lacking or (self._given_up and not again):
            return False
        watch = Watch(max(map(len, self.lacking.values())), len(self.lacking))
        found = False
        for one in self.retrievers:
            if one.name not in self.lacking:
                continue
            made = self._made(one, self.lacking[one.name], watch)
            with self._mutex:
                self._take(one, made)
                missing = one.store.rows.uncovered(self.lacking[one.name])
                found = found or len(missing) < len(self.lacking[one.name])
                rest = {name: numbers for name, numbers in self.lacking.items() if name != one.name}
                self.lacking = rest | ({one.name: missing} if len(missing) else {})
        self._given_up = bool(self.lacking)
        if found:
            with self._mutex:
                self._composed = {}
        return found

    def remember(self) -> None:
        """Query vectors that callers handed in live in the lessons alone. Those that came since are added, unless some
        were forgotten."""
        if self.given is None:
            return
        if self._field is not None:
            self.given.remember_apart(self._ledger.lessons.public_vectors(self._field), self._ledger.lessons.vectors())
            return
        number, mark = self._remembered
        afresh = mark != self._ledger.lessons.mark(number)
        self.given.remember(self._ledger.lessons.vectors(0 if afresh else number), afresh=afresh)
        last = self._ledger.lessons.last
        self._remembered = last, self._ledger.lessons.mark(last)

    def save(self, *, force: bool = False) -> None:
        """Write base keys that are only in memory: when they are many, or now if forced."""
        with self._mutex:
            for one in self.retrievers:
                one.save(force=force)
