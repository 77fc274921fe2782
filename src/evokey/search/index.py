"""The searchable state of a memory: retrievers that follow the ledger, and the overlays of its epochs.

Another process, or another thread, may have written: `catch_up` notices and brings everything up to what the ledger
says now. All of it is one immutable state, published at once: a search reads it once (`view`), and never mixes two.

Keys of new documents are made in the transaction that writes these (`encode`): what an encoder refuses is not stored.
Whoever follows later makes keys only where that costs nothing, and takes all others from disk, where the writer has put
them. A document whose keys are nowhere is kept all the same, and is `lacking`; the writer tries again (`complete`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from evokey import checks
from evokey.errors import ServiceFailed
from evokey.ledger.documents import Entry, Position
from evokey.ledger.ledger import Ledger
from evokey.scoring.block import NO_NUMBERS, Keys
from evokey.search.background import Background
from evokey.search.fusion import Fusion
from evokey.search.indexing import Progress, Watch, attempt, encode, named, reason
from evokey.search.overlay import Touched
from evokey.search.retriever import DenseRetriever, GivenRetriever, Retriever
from evokey.search.shelving import fill_shelves, use_shelves
from evokey.search.variants import Revise, Variants
from evokey.search.view import Overlays, View
from evokey.types import Epoch, Numbers

EPOCHS_KEPT = 4
"""Overlays of so many epochs stay composed."""
NEVER = -1
log = logging.getLogger("evokey")


class Composer(Protocol):
    """Makes overlays of lessons."""

    def compose(self, epoch: Epoch, retrievers: Sequence[Retriever]) -> Overlays:
        """What an epoch has learned."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What overlays are composed on, beside the lessons of their epoch: once it is another, they are stale."""

    redacted: int = 0
    """How often lessons were taken from past epochs."""
    spoken: int = 0
    """How often documents came or went that lessons may speak of, and keys came that were missing."""
    regrouped: int = 0
    """How often other documents were restricted."""
    newest: int = 0
    """The newest document."""

    def holds(self, overlays: Overlays, now: Ground) -> bool:
        """Whether what was composed on this is still good now."""
        return self == (now if overlays.weighed else replace(now, newest=self.newest))


@dataclass(frozen=True, slots=True)
class State:
    """What the ledger said at one moment, made searchable."""

    retrievers: Sequence[Retriever] = ()
    """Frozen: with the base keys of that moment."""
    position: Position = field(default_factory=Position)
    live: Numbers = field(default_factory=lambda: NO_NUMBERS)
    restricted: Numbers = field(default_factory=lambda: NO_NUMBERS)
    epoch: int = 0
    lacking: Mapping[str, Numbers] = field(default_factory=dict)
    """Documents without keys, by retriever."""
    ground: Ground = Ground()
    composed: Mapping[int, tuple[Ground, Overlays]] = field(default_factory=dict)
    """What epochs have learned, and on which ground it was composed."""
    searched: Mapping[int, Sequence[Retriever]] = field(default_factory=dict)
    """By epoch: the retrievers with the revisions of that epoch, as far as somebody asked for it."""

    def keep(self, number: int, overlays: Overlays, retrievers: Sequence[Retriever]) -> State:
        """With what an epoch has learned; the oldest makes room."""
        kept = {**self.composed, number: (self.ground, overlays)}
        searched = {**self.searched, number: retrievers}
        return replace(self, composed=dict(list(kept.items())[-EPOCHS_KEPT:]), searched=searched)

    def without(self, number: int) -> State:
        composed = {known: one for known, one in self.composed.items() if known != number}
        searched = {known: one for known, one in self.searched.items() if known != number}
        return replace(self, composed=composed, searched=searched)

    def drop_stale(self) -> State:
        kept = {number: one for number, one in self.composed.items() if one[0].holds(one[1], self.ground)}
        return replace(self, composed=kept)


class Index:
    def __init__(
        self,
        ledger: Ledger,
        retrievers: Sequence[Retriever],
        fusion: Fusion,
        composer: Composer,
        restricted: str | None = None,
        revise: Revise | None = None,
    ) -> None:
        """restricted: the field of the metadata that marks restricted documents, if any are. revise: opens a retriever
        with a revision of its encoder."""
        self._ledger, self._retrievers, self.fusion, self._composer = ledger, retrievers, fusion, composer
        self._field = restricted
        for one in retrievers:
            one.store.open(ledger.writers)
        self._variants = Variants(ledger, retrievers, revise)
        self.background = Background(retrievers)
        self.given = next((one for one in retrievers if isinstance(one, GivenRetriever)), None)
        self._mutex = threading.RLock()
        self._version = NEVER
        self.state = State()
        self._remembered: tuple[int, Any] = (0, None)
        """The last lesson whose vector is known, and its mark."""
        self._ready: dict[str, list[Keys]] = {}
        """Keys of documents that are about to be committed."""
        self._given_up = False
        self._staged: tuple[Epoch, int] | None = None
        """The candidate, and how many forgets there were when it was staged."""
        self.catch_up()

    @property
    def takes_vectors(self) -> DenseRetriever | None:
        """The retriever whose keys may come with the documents: the one dense retriever, where each has one key."""
        dense = [one for one in self._retrievers if isinstance(one, DenseRetriever)]
        return dense[0] if len(dense) == 1 and (self.given or dense[0].takes_vectors) else None

    # ---- what is searched

    @property
    def retrievers(self) -> Sequence[Retriever]:
        return self.state.retrievers

    @property
    def originals(self) -> Sequence[Retriever]:
        """Those that are not frozen."""
        return self._retrievers

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def position(self) -> Position:
        return self.state.position

    @property
    def live(self) -> Numbers:
        return self.state.live

    @property
    def restricted(self) -> Numbers:
        return self.state.restricted

    @property
    def lacking(self) -> Mapping[str, Numbers]:
        """Documents without keys, by retriever."""
        return self.state.lacking

    @property
    def public(self) -> Numbers | None:
        """The documents that are not restricted; None if none is."""
        state = self.state
        return np.setdiff1d(state.live, state.restricted) if len(state.restricted) else None

    def view(self, number: int | None = None) -> View:
        """The keys, and what an epoch has learned (None: the current one), composed from the ledger. Keys and documents
        follow to the state that it is composed from: another process may have written since the last look."""
        state = self.state
        wanted = state.epoch if number is None else number
        found, retrievers = state.composed.get(wanted), state.searched.get(wanted)
        if found is None or retrievers is None:
            with self._mutex, self._ledger.read():
                if not self._ledger.in_write:
                    self._follow()
                wanted = self.state.epoch if number is None else number
                state = self.state = self._compose(self.state, wanted)
                found, retrievers = state.composed[wanted], state.searched[wanted]
        return View(retrievers, self.fusion, found[1])

    def _compose(self, state: State, number: int) -> State:
        if number in state.composed and number in state.searched:
            return state
        epoch = self._find_epoch(number)
        retrievers, known = self.with_revisions(epoch.revisions, state), state.composed.get(number)
        if known is not None:
            return state.keep(number, known[1], retrievers)
        overlays = self._composer.compose(epoch, retrievers)
        if epoch is not self.candidate:
            overlays = use_shelves(overlays, retrievers, number, state.ground.redacted)
        return state.keep(number, overlays, retrievers)

    def _find_epoch(self, number: int) -> Epoch:
        candidate = self.candidate
        if candidate is not None and candidate.number == number:
            return candidate
        return self._ledger.epochs.get(number if number >= 0 else self.check_epoch(number))

    def with_revisions(self, revisions: Mapping[str, str], state: State | None = None) -> Sequence[Retriever]:
        """The retrievers with these revisions of their encoders, with all keys."""
        state = state or self.state
        if {one.name: one.revision for one in state.retrievers if one.revision} == revisions:
            return state.retrievers
        with self._mutex:
            return [self._variants.freeze(one, revisions.get(one.name, ""), state.live) for one in state.retrievers]

    # ---- the candidate: an epoch that is not published

    @property
    def candidate(self) -> Epoch | None:
        staged = self._staged
        return None if staged is None else staged[0]

    def stage(self, candidate: Epoch, overlays: Overlays | None) -> None:
        """Make an epoch searchable that is not published; overlays: what it has learned, if that is known."""
        with self._mutex:
            self.unstage()
            self._staged = candidate, self._ledger.forgets.count
            if overlays is not None:
                self.state = self.state.keep(candidate.number, overlays, self.with_revisions(candidate.revisions))

    def unstage(self) -> None:
        with self._mutex:
            if self._staged is not None:
                self.state, self._staged = self.state.without(self._staged[0].number), None

    def _unstage_stale(self, epoch: int) -> None:
        """The candidate goes when another epoch is published, or lessons are forgotten."""
        if self._staged is not None and (epoch, self._ledger.forgets.count) != (self.state.epoch, self._staged[1]):
            self.unstage()

    def check_epoch(self, number: int) -> int:
        """The number of an epoch, or of the candidate."""
        candidate = self.candidate
        return number if candidate is not None and number == candidate.number else checks.epoch(number, self.epoch)

    @contextmanager
    def publish(self) -> Iterator[Callable[[int, Overlays], None]]:
        """While an epoch is published, searches go on with the one before, and none of them composes the new one: what
        it has learned may be given, as another process composed it."""
        with self._mutex:
            yield self._give
            self.catch_up()

    def _give(self, number: int, overlays: Overlays) -> None:
        overlays = use_shelves(overlays, self.state.retrievers, number, self.state.ground.redacted)
        self.state = self.state.keep(number, overlays, self.state.retrievers)

    def fill_shelves(self) -> None:
        """Where what was learned is much, it goes to the stores that keep that; what they have of old epochs goes. For
        the process that publishes."""
        state, epoch = self.state, self.epoch
        overlays = self.view(epoch).overlays
        fill_shelves(overlays, state.searched.get(epoch, state.retrievers), epoch, state.ground.redacted)

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
        with self._mutex, self._ledger.one_state():
            self.catch_up()
            yield

    @contextmanager
    def still(self) -> Iterator[None]:
        """The same where several processes write. Where only this one does, nothing comes meanwhile: nobody waits."""
        with self.steady() if self._ledger.shared else nullcontext():
            yield

    @property
    def behind(self) -> bool:
        """Whether the ledger has changed, or keys have come that were nowhere before, or were indexed since."""
        if self._ledger.version != self._version:
            return True
        if self.background.is_ahead(self.state.retrievers):
            return True
        lacking = self.state.lacking
        return bool(lacking) and any(one.store.changed for one in self._retrievers if one.name in lacking)

    def _follow(self) -> None:
        old, position, epoch = self.state, self._ledger.documents.position(), self._ledger.epochs.current
        changed = self._change_revisions(self._ledger.epochs.get(epoch).revisions)
        added, removed = self._ledger.documents.changes(old.position)
        live = np.concatenate([old.live, np.array(added, np.int64)]) if added else old.live
        if removed:
            live = live[~np.isin(live, np.array(removed, np.int64))]
        lacking = old.lacking
        if added or removed or lacking or changed or self._version == NEVER or self.background.changed:
            self._ledger.words.stale = True
            come = live.tolist() if changed else added
            missing = {one.name: self._index(one, live, come, removed, position.newest) for one in self._retrievers}
            lacking = {name: numbers for name, numbers in missing.items() if len(numbers)}
        restricted = NO_NUMBERS if self._field is None else self._ledger.documents.find_restricted(self._field)
        spoken = bool(old.lacking) or changed or self._ledger.documents.touch_lessons(old.position.newest, removed)
        regrouped = not np.array_equal(restricted, old.restricted)
        counts = old.ground.spoken + spoken, old.ground.regrouped + regrouped
        ground = Ground(self._ledger.epochs.redacted, *counts, position.newest)
        self.remember()
        frozen = [one.freeze(live) for one in self._retrievers]
        self._unstage_stale(epoch)
        composed, searched = self.state.composed, {epoch: frozen}
        state = State(frozen, position, live, restricted, epoch, lacking, ground, composed, searched).drop_stale()
        if epoch != old.epoch and self._version != NEVER:
            with suppress(ServiceFailed):  # a search that needs the encoder says so itself
                state = self._compose(state, epoch)  # before it is searched: searches go on with the epoch before
        self.state = state

    def _change_revisions(self, revisions: Mapping[str, str]) -> bool:
        """Search with these revisions of the encoders from now on; whether they are others than before."""
        wanted = [self._variants.get(one, revisions.get(one.name, "")) for one in self._retrievers]
        if wanted == list(self._retrievers):
            return False
        self._retrievers, self._ready = wanted, {}
        self._variants.keep_only(self._ledger.epochs.revisions)
        self.background = Background(wanted)
        return True

    def _index(
        self, retriever: Retriever, live: Numbers, added: Sequence[int], removed: Sequence[int], newest: int
    ) -> Numbers:
        """Bring one retriever up to date; the documents whose keys it lacks then."""
        taken_up = self._variants.follow(retriever, live, added, removed)
        ready = self._ready.get(retriever.name, [])
        if ready and max(int(keys.covered.max()) for keys in ready) <= newest:
            _write(retriever, self._ready.pop(retriever.name))
        everything = taken_up or retriever.name in self.state.lacking or self._version == NEVER
        missing = _missing(retriever, live if everything else np.array(added, np.int64))
        if len(missing) and retriever.cost == "nothing":
            _write(retriever, self._make(retriever, missing, Watch(len(missing), 1)))
            missing = _missing(retriever, missing)
        return missing

    def _make(self, retriever: Retriever, numbers: Numbers, watch: Watch) -> list[Keys]:
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
        watch = Watch(len(entries), len(self._retrievers), progress)
        costly = any(one.cost != "nothing" for one in self._retrievers)
        twins = self._ledger.documents.twins(entries) if costly else {}
        for one in self._retrievers:
            made = self._encode(one, entries, twins, watch)
            if getattr(one.store, "transactional", False):
                _write(one, made)  # who sees the documents finds them
            else:
                self._ready[one.name] = made

    def _encode(
        self, retriever: Retriever, entries: Sequence[Entry], twins: Mapping[int, int], watch: Watch
    ) -> list[Keys]:
        """The keys of these documents: those of an equal document where they cost something, and else made."""
        if retriever.cost == "nothing":
            return encode(retriever, entries, self._ledger.words, watch)
        held = retriever.base.fetch(np.unique(np.array(list(twins.values()), np.int64)))
        known = set(held.covered.tolist())
        equal = {number: twin for number, twin in twins.items() if twin in known}
        new = [entry for entry in entries if entry.number not in equal]
        made = encode(retriever, new, self._ledger.words, watch)
        return [_copies(held, equal), *made] if equal else made

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
        for one in self._retrievers:
            if one.name not in self.lacking:
                continue
            made = self._make(one, self.lacking[one.name], watch)
            with self._mutex:
                _write(one, made)
                found = self._take_up(one) or found
        self._given_up = bool(self.lacking)
        return found

    def _take_up(self, retriever: Retriever) -> bool:
        """Publish keys that were lacking; whether there are any."""
        state, before = self.state, self.state.lacking[retriever.name]
        missing = _missing(retriever, before)
        if len(missing) == len(before):
            return False
        lacking = {name: missing if name == retriever.name else rest for name, rest in state.lacking.items()}
        self.state = replace(
            state,
            retrievers=(frozen := [one.freeze(state.live) for one in self._retrievers]),
            searched={state.epoch: frozen},
            lacking={name: numbers for name, numbers in lacking.items() if len(numbers)},
            ground=replace(state.ground, spoken=state.ground.spoken + 1),
        ).drop_stale()
        return True

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
            for one in self._retrievers:
                one.save(force=force)


def _missing(retriever: Retriever, numbers: Numbers) -> Numbers:
    """Those of the documents whose keys a store lacks."""
    return numbers[retriever.base.sizes(numbers) < 0] if len(numbers) else numbers


def _write(retriever: Retriever, made: Sequence[Keys]) -> None:
    for keys in made:
        retriever.store.write(keys)


def _copies(held: Keys, twins: Mapping[int, int]) -> Keys:
    """The keys of documents as those of their twins."""
    new, touched = np.array(list(twins), np.int64), Touched.of(held.documents, held.sizes)
    spans = [touched.rows(twin) for twin in twins.values()]
    rows = np.concatenate([NO_NUMBERS, *(np.arange(span.start, span.stop) for span in spans)])
    return Keys(new, np.repeat(new, [span.stop - span.start for span in spans]), held.block.take(rows))
