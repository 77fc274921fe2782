"""Memory: the one object users meet. It reads like the way of the data: add, search, feedback, evolve, forget.

Truth goes to the ledger first; the retrievers then catch up with it, here and in every other process that has the
memory open. A search reads one epoch: the base index, and beside it the overlay of what that epoch has learned.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from evokey import checks, explain, fusion, registry
from evokey import settings as settings_
from evokey.errors import InvalidInput, InvalidVector, MemoryClosed
from evokey.evolution import pools as pools_
from evokey.evolution.attribution import attribute
from evokey.evolution.evidence import Taught, taught
from evokey.evolution.guarded import Proposal
from evokey.ledger.documents import Documents, Position
from evokey.ledger.epochs import Epochs
from evokey.ledger.lessons import Lessons, Pools
from evokey.ledger.sqlite import Database
from evokey.overlay import UNTAUGHT, Overlay
from evokey.retriever import GivenRetriever, Retriever, search
from evokey.types import (
    Document,
    Epoch,
    EpochReport,
    Explanation,
    Hit,
    Lesson,
    Numbers,
    Ranking,
    Stats,
    Vectors,
    Verdict,
)

log = logging.getLogger("evokey")
EPOCHS_KEPT = 4
"""Overlays of so many epochs stay composed in memory."""
INDEX_BATCH = 2_000
"""Documents read from the ledger at a time."""


def open(
    path: str | Path,
    *,
    encoder: str | Sequence[str] | None = None,
    keys: str | None = None,
    store: str | None = None,
    policy: str | None = None,
    expander: str | None = None,
    now: Callable[[], float] = time.time,
) -> Memory:
    """Open the memory in a directory, or make it on first use; or the one a TOML file describes.

    The settings are those of a new memory. An existing one keeps its own; asking for different ones is an error.
    """
    said = {"encoder": encoder, "keys": keys, "store": store, "policy": policy, "expander": expander}
    folder, settings = settings_.resolved(
        Path(path), {name: value for name, value in said.items() if value is not None}
    )
    folder.mkdir(parents=True, exist_ok=True)
    memory = Memory(folder, settings, now=now)
    settings_.kept(folder, settings)
    return memory


@dataclass(frozen=True, slots=True)
class Overlays:
    """What one epoch has learned, for every retriever."""

    of: Mapping[str, Overlay]
    weights: Mapping[str, float]


class Memory:
    """An index that learns. Use as a context manager, or close it."""

    def __init__(self, folder: Path, settings: settings_.Settings, *, now: Callable[[], float] = time.time) -> None:
        self._folder, self._settings, self._now = folder, settings, now
        self._retrievers: list[Retriever] = settings_.retrievers(settings, folder)
        self._database = Database(folder)
        self._documents, self._lessons = Documents(self._database), Lessons(self._database)
        self._epochs, self._pools = Epochs(self._database), Pools(self._database)
        self._mutex = threading.RLock()
        self._closed = False
        self._version = -1
        self._position = Position()
        self._live: Numbers = np.zeros(0, np.int64)
        self._current = 0
        self._composed: dict[int, Overlays] = {}
        self._policy = registry.load("policy", settings.policy)()
        self._untaught_weights = fusion.untaught_weights({one.name: one.kind for one in self._retrievers})
        self._catch_up()

    # ---- documents

    def add(self, documents: Iterable[Document | Mapping[str, Any]], vectors: Any = None) -> int:
        """Insert documents, or replace those with the same id. Returns how many were given."""
        self._check_open()
        batch = [checks.document(one) for one in documents]
        matrix = None if vectors is None else checks.vectors(vectors, len(batch))
        self._check_vectors(matrix is not None, batch)
        with self._mutex:
            self._catch_up()
            if matrix is not None:
                self._given().check_dimension(matrix)
            self._documents.put(batch, matrix)
            self._catch_up(wrote=True)
        for one in batch:
            if not f"{one.title}{one.text}".strip():
                log.warning("document %r is empty: it is stored, but no search will find it", one.id)
        return len(batch)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents. What they were taught waits, in case they come back."""
        self._check_open()
        wanted = checks.ids(ids)
        with self._mutex:
            self._catch_up()
            gone = self._documents.delete(wanted)
            self._catch_up(wrote=True)
        return len(gone)

    def get(self, id: str) -> Document:
        self._check_open()
        return self._documents.get(id)

    def __len__(self) -> int:
        self._check_open()
        return len(self._documents)

    # ---- answering

    def search(
        self,
        query: str,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        epoch: int | None = None,
        vector: Any = None,
    ) -> list[Hit]:
        """The k best documents, best first. `where` filters on metadata: {"lang": "en"} or {"lang": ["en", "de"]}."""
        self._check_open()
        text, size = checks.query(query), checks.count(k)
        asked = None if vector is None else checks.vectors([vector], 1)[0]
        with self._mutex:
            self._catch_up()
            among = None if where is None else self._documents.where(checks.filter(where))
            overlays = self._overlays(epoch)
        best = self._ranked(text, size, overlays, among, asked)
        found = self._documents.fetch(best.numbers.tolist())
        return [
            Hit(found[number].id, score, found[number])
            for number, score in zip(best.numbers.tolist(), best.scores.tolist(), strict=True)
            if number in found  # another thread may just have deleted it
        ]

    def search_many(
        self, queries: Sequence[str], k: int = 10, where: Mapping[str, Any] | None = None, vectors: Any = None
    ) -> list[list[Hit]]:
        """A list of hits for each query."""
        asked = [None] * len(queries) if vectors is None else checks.vectors(vectors, len(queries))
        return [self.search(query, k, where, vector=vector) for query, vector in zip(queries, asked, strict=True)]

    def _ranked(self, query: str, k: int, overlays: Overlays, among: Numbers | None, vector: Any = None) -> Ranking:
        questions = [one.question(query, overlays.of[one.name].learned, vector) for one in self._retrievers]
        depth = k if len(self._retrievers) == 1 else max(k, fusion.DEPTH)
        rankings = [
            search(one, question, depth, overlays.of[one.name], among)
            for one, question in zip(self._retrievers, questions, strict=True)
        ]
        if len(rankings) == 1:
            return rankings[0]
        weights = [overlays.weights[one.name] for one in self._retrievers]
        return fusion.fused(rankings, [question.trust for question in questions], weights, k)

    # ---- learning

    def feedback(
        self,
        query: str,
        relevant: checks.Graded = (),
        irrelevant: Iterable[str] = (),
        units: Sequence[str] | None = None,
        actor: str | None = None,
        vector: Any = None,
    ) -> Lesson:
        """Record an outside verdict: which documents were right for this query, and which were wrong.

        `relevant` is a list of ids, or {id: grade}. Nothing is learned until evolve.
        """
        self._check_open()
        text = checks.query(query)
        grades = checks.grades(relevant, irrelevant)
        phrases = checks.units(units or ())
        who = None if actor is None else checks.actor(actor)
        asked = None if vector is None else checks.vectors([vector], 1)[0]
        with self._mutex:
            self._catch_up()
            found = self._documents.fetch(self._documents.numbers(grades).values()).values()
            hashes = {document.id: document.hash for document in found}
            verdicts = [Verdict(id, grade, hashes[id]) for id, grade in grades.items()]
            if asked is not None:
                self._remember({text: asked})
            taken = {one.name: {text: pools_.take(one, text, self._position)} for one in self._retrievers}
            with self._database.write():
                lesson = self._lessons.append(
                    text, phrases, verdicts, actor=who, verifier="feedback", time=self._now(), vector=asked
                )
                for name, pool in taken.items():
                    self._pools.put(name, pool)
        return lesson

    def evolve(self, dry_run: bool = False) -> EpochReport:
        """Let the lessons so far propose new keys; publish them as a new epoch if held-out queries say they help."""
        self._check_open()
        with self._mutex:
            self._catch_up()
            return self._evolve("evolve", self._lessons.last, dry_run)

    def forget(self, query: str | None = None, actor: str | None = None, document: str | None = None) -> int:
        """Erase the lessons that match every given criterion, everywhere, at once. Returns how many were touched."""
        self._check_open()
        if query is actor is document is None:
            raise InvalidInput("say what to forget: query=…, actor=… or document=… (a document's id)")
        with self._mutex:
            self._catch_up()
            current = self._epochs.current
            with self._database.write():
                count = self._lessons.forget(
                    query=None if query is None else checks.query(query), actor=actor, document=document
                )
                if count and current:
                    self._epochs.redact(current)
                    self._evolve("forget", self._epochs.get(current).lessons_to)
            self._composed.clear()
            self._database.scrub()
        return count

    def _evolve(self, kind: str, up_to: int, dry_run: bool = False) -> EpochReport:
        current = self._epochs.get(self._epochs.current)
        lessons = self._taught(up_to)
        report = self._judged(lessons, current)
        same = (report.choice, report.weights, up_to) == (current.choice, current.weights, current.lessons_to)
        if kind == "evolve" and (same or (not report.choice and not current.choice)):
            return replace(report, reason=report.reason if not same else f"nothing new since epoch {current.number}")
        if dry_run:
            return replace(report, reason=f"dry run, would be published: {report.reason}")
        report = replace(report, published=True, epoch=current.number + 1)
        number = self._epochs.append(kind, up_to, report.choice, report.weights, self._now(), report.to_dict())
        self._current = number
        log.info("epoch %d: %s", number, report.reason)
        return replace(report, epoch=number)

    def _judged(self, lessons: Taught, current: Epoch) -> EpochReport:
        """Ask the policy what these lessons are worth; an empty choice means the untaught index."""
        empty = EpochReport(False, "", current.number, None, None, {}, {}, len(lessons.queries), 0)
        if not lessons.queries:
            return replace(empty, reason="no lesson says which document was right: nothing to learn")
        pools = {
            one.name: pools_.fresh(one, lessons.queries, self._pools, self._position, self._live)
            for one in self._retrievers
        }
        proposal = self._policy.propose(self._retrievers, self._untaught_weights, lessons, pools)
        judged = replace(empty, held_out=proposal.held_out, taught=proposal.taught)
        if not proposal.changes:
            return replace(judged, reason="no choice is better than the untaught index: nothing to publish")
        touched = {number for grades in lessons.grades.values() for number in grades}
        return replace(
            judged, reason=_reason(proposal), choice=proposal.choice, weights=proposal.weights, documents=len(touched)
        )

    def _taught(self, up_to: int) -> Taught:
        return taught(self._lessons.credits(up_to), self._lessons.units(up_to))

    def _overlays(self, number: int | None) -> Overlays:
        """What an epoch has learned, composed from the ledger; the current one if none is named."""
        number = self._current if number is None else checks.epoch(number, self._current)
        if number not in self._composed:
            while len(self._composed) >= EPOCHS_KEPT:
                self._composed.pop(next(iter(self._composed)))
            self._composed[number] = self._composed_of(self._epochs.get(number))
        return self._composed[number]

    def _composed_of(self, epoch: Epoch) -> Overlays:
        overlays = {one.name: UNTAUGHT for one in self._retrievers}
        if not epoch.choice:
            return Overlays(overlays, self._untaught_weights)
        lessons = self._taught(epoch.lessons_to)
        for one in self._retrievers:
            if not epoch.choice[one.name].nothing and lessons.queries:
                overlays[one.name] = attribute(one, lessons).overlay(epoch.choice[one.name])
        return Overlays(overlays, epoch.weights)

    def explain(self, id: str, query: str | None = None, vector: Any = None) -> Explanation:
        """What a document has learned and from whom; with a query, how that changes its score and rank."""
        self._check_open()
        number = self._documents.numbers([id])[id]
        lessons = self._lessons.about(id)
        if query is None:
            return Explanation(id, lessons, None, None, None, [])
        text = checks.query(query)
        asked = None if vector is None else checks.vectors([vector], 1)[0]
        with self._mutex:
            self._catch_up()
            before, after = self._overlays(0), self._overlays(None)
        ranks = {
            when: _rank(self._ranked(text, fusion.DEPTH, known, None, asked), number)
            for when, known in (("rank_before", before), ("rank_after", after))
        }
        views = [
            explain.view(one, one.question(text, after.of[one.name].learned, asked), number, after.of[one.name])
            for one in self._retrievers
        ]
        return Explanation(id, lessons, text, views=views, **ranks)

    # ---- the memory itself

    def stats(self) -> Stats:
        self._check_open()
        with self._mutex:
            self._catch_up()
            overlays = self._overlays(None)
            touched = {number for overlay in overlays.of.values() for number in overlay.documents.tolist()}
            return Stats(
                documents=len(self._documents),
                empty_documents=self._documents.count_empty(),
                lessons=len(self._lessons),
                set_aside=self._lessons.set_aside(),
                pending=self._lessons.count_after(self._epochs.get(self._current).lessons_to),
                epoch=self._current,
                documents_touched=len(touched),
                retrievers=[one.name for one in self._retrievers],
                policy=self._settings.policy,
                bytes=sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file()),
            )

    def close(self) -> None:
        """Write what is only in memory and let another process write."""
        with self._mutex:
            if self._closed:
                return
            try:
                if self._database.writing:
                    for one in self._retrievers:
                        one.store.save(force=True)
            finally:
                self._closed = True
                self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed(f"this memory was closed; open it again with evokey.open({str(self._folder)!r})")

    def _catch_up(self, *, wrote: bool = False) -> None:
        """Bring the retrievers up to what the ledger says now: after our own write, or when another process wrote."""
        version = self._database.version
        if version == self._version and not wrote:
            return
        with self._database.read():
            position, self._current = self._documents.position(), self._epochs.current
            added, removed = self._documents.changes(self._position)
            if self._version != -1 and self._documents.touch_lessons(self._position.newest, removed):
                self._composed.clear()
            gone = np.array(removed, np.int64)
            live = np.concatenate([self._live, np.array(added, np.int64)])
            self._live = live[~np.isin(live, gone)] if removed else live
            if added or removed or self._version == -1:
                for one in self._retrievers:
                    self._index(one, added, removed)
            self._remember(
                self._lessons.vectors() if any(isinstance(r, GivenRetriever) for r in self._retrievers) else {}
            )
            self._version, self._position = version, position
        if wrote:
            for one in self._retrievers:
                one.store.save()

    def _index(self, retriever: Retriever, added: Sequence[int], removed: Sequence[int]) -> None:
        loaded = retriever.store.load(self._live)
        if not loaded:
            retriever.store.remove(removed)
        missing = retriever.store.missing(self._live).tolist() if loaded else added
        for start in range(0, len(missing), INDEX_BATCH):
            retriever.index(list(self._documents.entries(missing[start : start + INDEX_BATCH])))

    def _remember(self, vectors: Mapping[str, Vectors]) -> None:
        for one in self._retrievers:
            if isinstance(one, GivenRetriever):
                one.remember(vectors)

    def _given(self) -> GivenRetriever:
        return next(one for one in self._retrievers if isinstance(one, GivenRetriever))

    def _check_vectors(self, given: bool, documents: Sequence[Document]) -> None:
        needed = any(isinstance(one, GivenRetriever) for one in self._retrievers)
        if needed and not given and documents:
            raise InvalidVector(
                "this memory takes its vectors from the caller (encoder 'given'): pass vectors=… to add"
            )
        if given and not needed:
            raise InvalidVector("this memory makes its own vectors; vectors=… is for encoder='given'")


def _rank(ranking: Ranking, number: int) -> int | None:
    found = np.flatnonzero(ranking.numbers == number)
    return int(found[0]) + 1 if len(found) else None


def _reason(proposal: Proposal) -> str:
    taught = f"taught queries {proposal.taught.before:.3f} → {proposal.taught.after:.3f}"
    if proposal.held_out is None:
        return f"{taught} (nDCG@10); too few queries to cross-fit, so recall rows alone"
    held = proposal.held_out
    return f"held-out queries {held.before:.3f} → {held.after:.3f}, {taught} (nDCG@10)"
