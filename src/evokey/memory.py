"""Memory: the one object users meet. It reads like the way of the data: add, search, feedback, evolve, forget.

Truth goes to the ledger first; the index then follows it, here and in every other process that has the memory open.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as Generator_
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from evokey import checks, forgetting
from evokey import settings as settings_
from evokey.erasure import Erasure
from evokey.errors import InvalidInput, InvalidSettings, InvalidVector, MemoryClosed, ServiceFailed, storing
from evokey.evolution import pools as pools_
from evokey.evolution.judgements import Judgements
from evokey.evolution.policy import Policy, Proposal
from evokey.evolution.restricted import Own
from evokey.forgetting import Eraser
from evokey.inspect import backup, explain
from evokey.inspect import diff as compare
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import Omitted
from evokey.loop.expand import Expanding
from evokey.loop.loop import Loop, Thought
from evokey.loop.watch import Learner, Proposed, Thinker
from evokey.protocols import LLM, Expander, Generator, Reranker, Verifier
from evokey.registry import Described
from evokey.search.fusion import DEPTH
from evokey.search.index import Index
from evokey.search.retriever import GivenRetriever
from evokey.types import (
    Answer,
    Attempt,
    Document,
    Epoch,
    EpochDiff,
    EpochReport,
    Expansion,
    Explanation,
    Forgotten,
    Hit,
    LearnReport,
    Lesson,
    Numbers,
    Ranking,
    Ruling,
    Spent,
    Stats,
    Vectors,
    Verdict,
)

log = logging.getLogger("evokey")
RETRIEVED = 100
"""How much of what a verified query finds is recorded for the paper's rule."""
RERANKED = 50
"""How many of the hits a reranker looks at."""
ATTEMPTS = 5
"""How often a search is made again whose documents were replaced meanwhile."""
ASKED = 256
"""Queries of the traffic that a policy is shown."""
READERS = 2.0
"""Seconds for which forget waits for readers of the ledger."""
TRIED_EVERY = 10.0
"""Seconds between attempts to finish a forget that had to wait."""


def open(
    path: str | Path,
    *,
    encoder: Described | Sequence[Described] | None = None,
    keys: Described | None = None,
    store: Described | None = None,
    policy: Described | None = None,
    expander: Described | None = None,
    fusion: Described | None = None,
    reranker: Described | None = None,
    llm: Described | None = None,
    generator: Described | None = None,
    verifier: Described | None = None,
    traffic: int | None = None,
    restricted: str | None = None,
    allow: Sequence[str] = (),
    now: Callable[[], float] = time.time,
) -> Memory:
    """Open the memory in a directory, or make it on first use; or the one a TOML file describes.

    The settings are those of a new memory. An existing one keeps its own; asking for different ones is an error.
    Each component is a name, a mapping with name and options, or an object (of a store, its class). What is passed as
    an object must be passed again whenever the memory is opened: the settings on disk only note its class.
    `restricted` names a field of the metadata: lessons on documents that have it teach these documents alone, and
    change nothing for a caller whose `where` leaves them out (docs/permissions.md). `allow` lists what the settings in
    the directory may reach outside it: hosts, keys, code, models, files (docs/security.md).
    """
    said = {
        "encoder": encoder,
        "keys": keys,
        "store": store,
        "policy": policy,
        "expander": expander,
        "fusion": fusion,
        "reranker": reranker,
        "llm": llm,
        "generator": generator,
        "verifier": verifier,
        "traffic": traffic,
        "restricted": restricted,
    }
    given = {name: value for name, value in said.items() if value is not None}
    folder, settings = settings_.resolve(Path(path), given, allow)
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    memory = Memory(folder, settings, now=now)
    try:
        with storing(folder):
            settings_.write_new(folder, settings)
    except BaseException:
        memory.close()
        raise
    return memory


class Memory:
    """An index that learns. Use as a context manager, or close it."""

    def __init__(
        self,
        folder: Path,
        settings: settings_.Settings,
        *,
        policy: Policy | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """policy: one that has no name in the settings, such as a variant under test."""
        self._folder, self._settings, self._now = folder, settings, now
        retrievers = settings_.build_retrievers(settings, folder)
        given = any(isinstance(one, GivenRetriever) for one in retrievers)
        kept = 0 if given else settings.traffic  # there, a text alone cannot be asked again
        self.ledger = Ledger(folder, traffic=kept)
        self._policy: Policy = policy or settings_.build(settings, "policy")
        self._reranker: Reranker | None = settings_.build(settings, "reranker")
        self._expanders: dict[str, Expanding] = {}
        self._tried_again = 0.0
        """When an unfinished forget was last gone on with."""
        self._writing = threading.RLock()
        self._closed = False
        self._learner: Learner | None = None
        self._verifiers: dict[str, Verifier] = {}
        self._chance = np.random.default_rng()
        try:
            kinds = {one.name: one.kind for one in retrievers}
            fusion, field = settings_.build(settings, "fusion", kinds=kinds), settings.restricted
            if field is not None and (nested := self.ledger.documents.nested(field)) is not None:
                raise checks.nested(nested, field)
            self.index = Index(self.ledger, retrievers, fusion, self._policy, field)
            self._go_on_forgetting()
            self._complete_at_open()
        except BaseException:
            self.ledger.close()
            raise

    # ---- documents

    def add(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        vectors: Any = None,
        progress: Callable[[float], None] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> int:
        """Insert documents, or replace those with the same id: all of them, or none and an error. Returns how many were
        given. `progress` is told the share that is encoded, from 0 to 1; the logger "evokey" says so too, in its INFO.
        `sources` notes the file that a document was read from: its path, by id.
        """
        self._check_open()
        batch = [checks.document(one) for one in documents]
        if self._settings.restricted is not None:
            checks.readable(batch, self._settings.restricted)
        matrix = self._vectors_for(batch, vectors)
        files = {one.id: sources[one.id] for one in batch if one.id in sources} if sources else {}
        with self._exclusive():
            with self.index.adding(), self.ledger.write():
                entries, _ = self.ledger.documents.put(batch, matrix)
                self.ledger.sources.put([one.id for one in batch], files)
                self.index.encode(entries, progress)
            self.index.catch_up()
            self._complete(again=True)
        self._save()
        for one in batch:
            if matrix is None and not f"{one.title}{one.text}".strip():
                log.warning("document %r is empty: it is stored, but no search will find it", one.id)
        return len(batch)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents. What they were taught waits, in case they come back."""
        self._check_open()
        wanted = checks.ids(ids)
        with self._exclusive():
            return len(self.ledger.documents.delete(wanted))

    def get(self, id: str) -> Document:
        self._check_open()
        return self.ledger.documents.get(checks.ids([id])[0])

    def sources(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Of those ids that are here, the file each document was read from; None if it was handed in by id."""
        self._check_open()
        return self.ledger.sources.paths(checks.ids(ids))

    def ids_from(self, paths: Iterable[str]) -> dict[str, str]:
        """Of those files that documents here were read from, the document's id."""
        self._check_open()
        return self.ledger.sources.ids(checks.ids(paths, "paths"))

    def __len__(self) -> int:
        self._check_open()
        return len(self.ledger.documents)

    # ---- answering

    def search(
        self,
        query: str,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        epoch: int | None = None,
        vector: Any = None,
        expansion: Expansion | None = None,
        explore: int = 0,
    ) -> list[Hit]:
        """The k best documents, best first. `where` filters on metadata: {"lang": "en"} or {"lang": ["en", "de"]}.

        With an expansion (of expand) the query searches together with its units. `explore` gives up so many of the
        last places to documents that one retriever alone, or the untaught index, would have brought: only what is
        shown can be verified, so a memory that shows its favourites alone never hears of its mistakes.
        """
        self._check_open()
        text, size, asked = checks.query(query), checks.count(k), self._vector(vector)
        slots = min(checks.count(explore), size - 1) if explore else 0
        self.ledger.traffic.note(text)
        if self._learner is not None and expansion is None:
            self._learner.offer(text)

        def rank() -> Ranking:
            overlays, among = self.index.overlays(self._epoch(epoch)), self._among(where)
            if expansion is None or not expansion.units:
                best = self.index.ranked(text, self._depth(size), overlays, among, asked)
            else:
                best = self.index.expanded(replace(expansion, query=text), self._depth(size), overlays, among)
            return self._explored(text, best, slots, among, asked) if explore else best

        return self._hits(text, rank, size, filtered=where is not None)

    def _among(self, where: Mapping[str, Any] | None) -> Numbers | None:
        """The documents that a caller's filter lets through; None: all."""
        return None if where is None else self.ledger.documents.where(checks.filter(where))

    def _depth(self, size: int) -> int:
        return size if self._reranker is None else max(size, RERANKED)

    def _hits(self, text: str, rank: Callable[[], Ranking], size: int, *, filtered: bool = False) -> list[Hit]:
        best, found = self._fetched(rank, filtered=filtered)
        hits = [
            Hit(document.id, score, document)
            for number, score in zip(best.numbers.tolist(), best.scores.tolist(), strict=True)
            if (document := found.get(number)) is not None
        ]
        return hits if self._reranker is None else self._reranked(self._reranker, text, hits)[:size]

    def _fetched(self, rank: Callable[[], Ranking], *, filtered: bool) -> tuple[Ranking, Mapping[int, Document]]:
        """A ranking and its documents. One that was replaced or deleted in between would be missing, and a filter may
        be of a newer state than the index: the ranking is made again from what the ledger says now, and after some
        attempts left as it is."""
        for attempt in range(ATTEMPTS):
            self.index.catch_up(wait=attempt > 0)
            best = rank()
            found = self.ledger.documents.fetch(best.numbers.tolist())
            if len(found) == len(best) and not (filtered and self.index.behind):
                break
        return best, found

    def _explored(
        self, query: str, best: Ranking, slots: int, among: Numbers | None, vector: Vectors | None
    ) -> Ranking:
        """The last places go, by lot, to what other rankings have among their first."""
        if not len(best):
            return best
        kept = max(len(best) - slots, 1)
        others = self.index.alternatives(query, 2 * len(best), among, vector)
        fresh = np.setdiff1d(np.concatenate([one.numbers for one in others]), best.numbers[:kept])
        chosen = self._chance.permutation(fresh)[:slots] if len(fresh) else best.numbers[kept:]
        scores = np.full(len(chosen), best.scores[kept - 1] if len(best) else 0.0)
        return Ranking(np.concatenate([best.numbers[:kept], chosen]), np.concatenate([best.scores[:kept], scores]))

    def _reranked(self, reranker: Reranker, query: str, hits: list[Hit]) -> list[Hit]:
        """The best hits in the reranker's order; as they were if it does not answer."""
        head = hits[:RERANKED]
        try:
            scores = reranker.scores(query, [hit.document for hit in head])
        except ServiceFailed as error:
            log.warning("hits are not reranked: %s", str(error))
            return hits
        order = np.argsort(-scores, kind="stable")
        lowest = float(scores.min()) if len(head) else 0.0
        tail = [replace(hit, score=lowest - place - 1) for place, hit in enumerate(hits[RERANKED:])]
        return [*(replace(head[at], score=float(scores[at])) for at in order), *tail]

    def search_many(
        self, queries: Sequence[str], k: int = 10, where: Mapping[str, Any] | None = None, vectors: Any = None
    ) -> list[list[Hit]]:
        """A list of hits for each query."""
        asked = [None] * len(queries) if vectors is None else checks.vectors(vectors, len(queries))
        return [self.search(query, k, where, vector=vector) for query, vector in zip(queries, asked, strict=True)]

    def expand(self, query: str, expander: Described | None = None) -> Expansion:
        """A query in more words, by the memory's expander or another. An intent that was paid for is not paid again."""
        self._check_open()
        text, expanding = checks.query(query), self._expanding(expander)
        forgets = self.ledger.forgets.count
        known = expanding.known(text)
        found = known or expanding.ask(text, self._look)
        if found.model is not None:
            with self._exclusive(), self.ledger.write():
                if self.ledger.forgets.count == forgets:  # else its query, or the one it is like, may be forgotten
                    expanding.keep(found, asked=known is None)
        return found

    def _expanding(self, expander: Described | None = None) -> Expanding:
        settings = self._settings if expander is None else settings_.change(self._settings, expander=expander)
        name = getattr(expander, "identity", None) or repr(sorted(settings.expander.items()))
        if name not in self._expanders:
            right = partial(self.ledger.lessons.right, restricted=settings.restricted)

            def make() -> Expander:
                made: Expander = settings_.build(settings, "expander", llm=self._llm)
                return made

            self._expanders[name] = Expanding(make, self.ledger.expansions, right, self._now)
        return self._expanders[name]

    def _look(self, text: str, k: int) -> list[Document]:
        """What an expander may read. Expansions are reused, whoever asks: so no restricted document."""
        asked = checks.query(text)

        def rank() -> Ranking:
            overlays = self.index.overlays()
            return self.index.ranked(asked, self._depth(k), overlays, self.index.public)

        return [hit.document for hit in self._hits(asked, rank, k)]

    def explain(
        self, id: str, query: str | None = None, vector: Any = None, where: Mapping[str, Any] | None = None
    ) -> Explanation:
        """What a document has learned and from whom; with a query, how that changes its score and rank.

        `where` is the filter of a caller who is not the owner: a document outside it is unknown, and who taught what
        is not told, only how many lessons there are.
        """
        self._check_open()
        with self.index.steady():
            among = self._among(where)
            number = self.ledger.documents.numbers(checks.ids([id]), among)[id]
            told = self._explained(id, number, query, vector, among)
        return told if where is None else explain.without_names(told)

    def _explained(self, id: str, number: int, query: str | None, vector: Any, among: Numbers | None) -> Explanation:
        lessons = self.ledger.lessons.about(id)
        if query is None:
            return Explanation(id, lessons, None, None, None, [], len(lessons))
        text, asked = checks.query(query), self._vector(vector)
        before = self.index.overlays(0)
        learned = self.index.overlays()
        after, _ = self.index.within_reach(text, learned, asked)
        in_reach = learned.beyond is None or after is not learned.beyond
        ranks = {
            when: _rank(self.index.ranked(text, DEPTH, known, among, asked), number)
            for when, known in (("rank_before", before), ("rank_after", after))
        }
        views = [
            explain.view(one, one.question(text, after.of[one.name].learned, asked), number, after.of[one.name])
            for one in self.index.retrievers
        ]
        return Explanation(id, lessons, text, views=views, lesson_count=len(lessons), in_reach=in_reach, **ranks)

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
        grades = checks.grades(relevant, irrelevant)
        return self._lesson(checks.query(query), grades, checks.units(units or ()), actor, vector, "feedback")

    def _lesson(
        self, text: str, grades: Mapping[str, float], phrases: Sequence[str], actor: str | None, vector: Any, by: str
    ) -> Lesson:
        who = None if actor is None else checks.actor(actor)
        asked = self._vector(vector)
        if phrases and self.index.given is not None:
            raise InvalidInput("units need an encoder; this memory takes its vectors from the caller (encoder 'given')")
        with self._exclusive():
            numbers, apart = self.ledger.documents.numbers(grades), set(self.index.restricted.tolist())
            own = {id for id, number in numbers.items() if number in apart}
            hashes = {one.id: one.hash for one in self.ledger.documents.fetch(numbers.values()).values()}
            verdicts = [Verdict(id, grade, hashes[id]) for id, grade in grades.items()]
            with self.ledger.write():
                lesson = self.ledger.lessons.append(
                    text,
                    phrases,
                    verdicts,
                    actor=who,
                    verifier=by,
                    time=self._now(),
                    vector=asked,
                    retrieved=self._retrieved(text, phrases, asked),
                )
                self._expanding().judged(text, [id for id, grade in grades.items() if grade > 0 and id not in own])
                self.index.remember()
                self._keep_traffic()
                for one in self.index.retrievers:
                    self.ledger.pools.put(one.name, {text: pools_.make(one, text, self.index.position)})
        return lesson

    def _retrieved(self, query: str, units: Sequence[str], vector: Vectors | None) -> list[str]:
        """What the (expanded) query finds now: the paper's rule credits that, and no other policy asks."""
        if not self._credits_retrieved:
            return []
        overlays = self.index.overlays()
        found = self.index.ranked(" ".join([query, *units]), RETRIEVED, overlays, None, vector)
        documents = self.ledger.documents.fetch(found.numbers.tolist())
        return [documents[number].id for number in found.numbers.tolist()]

    def feedback_many(self, lessons: Iterable[Mapping[str, Any]]) -> list[Lesson]:
        """Many verdicts at once, each a mapping of feedback's arguments: all are recorded, or none."""
        with self._exclusive(), self.ledger.write():
            return [self.feedback(**lesson) for lesson in lessons]

    def learn(
        self,
        query: str,
        expected: str | Sequence[str] | None = None,
        relevant: checks.Graded | None = None,
        actor: str | None = None,
    ) -> LearnReport:
        """Expand, search, answer, verify; what was verified becomes a lesson. Nothing is learned until evolve.

        `expected` is a gold answer, or several; `relevant` are judged documents, as in feedback. With neither, a judge
        or a person decides.
        """
        self._check_open()
        text, answers = checks.query(query), checks.answers(expected)
        grades = None if relevant is None else checks.grades(relevant, ())
        if grades:
            self.ledger.documents.numbers(grades)
        return self.remember(self.think(text, answers, grades), actor)

    def think(self, query: str, expected: Sequence[str] = (), relevant: Mapping[str, float] | None = None) -> Thought:
        """The first part of learn: everything up to the ruling. Writes nothing."""
        self._check_open()
        expanding, forgets = self._expanding(), self.ledger.forgets.count
        loop = Loop(
            expanding.known,
            lambda text: expanding.ask(text, self._look),
            self.search,
            self._choose_generator,
            self._verifier,
        )
        return replace(loop.think(query, expected, relevant), forgets=forgets)

    def remember(self, thought: Thought, actor: str | None = None) -> LearnReport:
        """The second part of learn: keep what was paid for, and make a lesson of what was verified."""
        grades = thought.credited(everything=self._credits_retrieved)
        lesson = None
        with self._exclusive(), self.ledger.write():
            if thought.forgets != self.ledger.forgets.count:
                thought = self._discarded(thought)
            if thought.expansion is not None:
                self._expanding().keep(thought.expansion, asked=not thought.known)
            self.ledger.expansions.count(thought.spent - (thought.expansion.spent if thought.expansion else Spent()))
            living = {id: grade for id, grade in grades.items() if self.ledger.documents.has(id)}
            if any(grade > 0 for grade in living.values()) and thought.ruling.success:
                units = thought.expansion.texts if thought.expansion else ()
                lesson = self._lesson(thought.query, living, checks.units(units), actor, None, thought.by)
        found = tuple(hit.id for hit in thought.hits)
        told = (thought.query, thought.expansion, found, thought.answer, thought.ruling, lesson)
        return LearnReport(*told, _outcome(thought, lesson), thought.spent)

    def _discarded(self, thought: Thought) -> Thought:
        """What is left of a thought when something was forgotten since it began: it may be what was forgotten, so
        whatever the parts have kept of it is erased too, unless lessons have it."""
        if thought.query not in self.ledger.lessons.texts() | set(self.ledger.protected.all()):
            self.ledger.forgets.note(Erasure((thought.query,)))
        why = "something was forgotten while it was thought about; ask again"
        return Thought(thought.query, None, (), None, Ruling(None, reason=why, spent=thought.spent), trouble=why)

    def watch(self, *, batch: int = 16, budget: int | None = None) -> Learner:
        """Learn from the traffic from now on, in the background: every new query that search is asked is expanded,
        answered and verified in a process of its own; after some batches the keys evolve. Stop it, or close the memory.

        budget: calls of language models after which it rests.
        """
        self._check_open()
        if self._settings.objects:
            raise InvalidSettings(
                "a process of its own cannot be given the objects that this memory was opened with: "
                f"{', '.join(sorted(kind for kind, _ in self._settings.objects))}. Name them by 'module:Class' instead"
            )
        if self._learner is None or self._learner.stopped:
            thinker = Thinker(self._folder, settings_.required_allowances(self._settings, self._folder))
            self._learner = Learner(thinker, self.remember, self._adopt, batch=batch, budget=budget)
        return self._learner

    def propose(self) -> Proposed:
        """What evolve would do now. Writes nothing: a learner proposes in one process, and another adopts."""
        self._check_open()
        self.index.catch_up()
        index, up_to = self.index, self.ledger.lessons.last
        held, lessons, forgets = (
            self.ledger.lessons.held(),
            self.ledger.lessons.count_to(up_to),
            self.ledger.forgets.count,
        )
        report = self._proposed(up_to, held, keep=False)
        index.drop_forgotten(index.log(up_to, held), forgets)
        overlays = index.composed(self._draft("evolve", report, up_to, held))
        return Proposed(report, up_to, held, lessons, index.epoch, index.position, overlays, index.restricted)

    def _adopt(self, proposed: Proposed) -> EpochReport | None:
        """Publish what another process proposed, unless lessons were forgotten, held or released, an epoch published,
        or other documents restricted since."""
        with self._exclusive():
            current = self.ledger.epochs.get(self.index.epoch)
            state = self.index.epoch, self.ledger.lessons.count_to(proposed.up_to), self.ledger.lessons.held()
            if state != (proposed.epoch, proposed.lessons, proposed.omitted):
                return None
            if not np.array_equal(self.index.restricted, proposed.restricted):
                return None
            with self.index.published() as give:
                report = self._taken(proposed.report, proposed.up_to, proposed.omitted, current)
                if report.published and self.index.position == proposed.position:
                    give(report.epoch, proposed.overlays)
            return report

    def ask(self, query: str, k: int = 5, where: Mapping[str, Any] | None = None) -> Answer:
        """An answer from the documents that the plain query finds, with its sources. Never expands."""
        self._check_open()
        return self._asked().answer(checks.query(query), self.search(query, checks.count(k), where))

    def ask_stream(
        self, query: str, k: int = 5, where: Mapping[str, Any] | None = None
    ) -> Generator_[str, None, Answer]:
        """The same, piece by piece; the return value is the whole answer."""
        self._check_open()
        return self._asked().stream(checks.query(query), self.search(query, checks.count(k), where))

    def _asked(self) -> Generator:
        if self._generator is None:
            raise InvalidSettings(
                "this memory has no language model to answer with; name one when it is made: "
                "evokey.open(…, llm={'name': 'openai', 'model': …}), or in its evokey.toml"
            )
        return self._generator

    def _choose_generator(self, closed: bool) -> Generator | None:
        return settings_.build_generator(self._settings, self._llm, closed=True) if closed else self._generator

    @cached_property
    def _generator(self) -> Generator | None:
        return settings_.build_generator(self._settings, self._llm)

    def _verifier(self, attempt: Attempt) -> Verifier:
        name = settings_.choose_verifier(self._settings, attempt, answering=self._settings.llm is not None)
        if name not in self._verifiers:
            self._verifiers[name] = settings_.build_verifier(self._settings, name, self._llm, self._folder)
        return self._verifiers[name]

    @cached_property
    def _llm(self) -> LLM | None:
        found: LLM | None = settings_.build(self._settings, "llm")
        return found

    @property
    def _credits_retrieved(self) -> bool:
        return bool(getattr(self._policy, "credits_retrieved", False))

    def evolve(self, dry_run: bool = False) -> EpochReport:
        """Let the lessons so far propose new keys; publish them as a new epoch if held-out queries say they help."""
        self._check_open()
        with self._exclusive():
            self._keep_traffic()
            up_to, held = self.ledger.lessons.last, self.ledger.lessons.held()
            report = self._proposed(up_to, held)
            current = self.ledger.epochs.get(self.index.epoch)
            if dry_run:
                return replace(report, reason=f"dry run: {report.reason}")
            return self._taken(report, up_to, held, current)

    def _taken(self, report: EpochReport, up_to: int, omitted: Omitted, current: Epoch) -> EpochReport:
        """Publish a proposal, if it changes anything."""
        with self.ledger.write():
            self.ledger.epochs.ask(up_to, omitted)
            same = (report.choice, report.weights, report.reach) == (current.choice, current.weights, current.reach)
            known = self.ledger.lessons.numbers(current.lessons_to, current.omitted)
            if current.number and same and self.ledger.lessons.numbers(up_to, omitted) == known:
                new = f"nothing new since epoch {current.number}"
                return replace(report, reason=new + _on_hold(len(omitted)))
            if not report.choice and not current.choice and not self._own_differ(up_to, omitted, current):
                return report
            return self._published("evolve", report, up_to, omitted)

    def lessons(
        self,
        query: str | None = None,
        actor: str | None = None,
        document: str | None = None,
        verifier: str | None = None,
        held: bool | None = None,
    ) -> list[Lesson]:
        """The lessons that match every given criterion, oldest first; held: only those on hold, or only the others."""
        self._check_open()
        given = {
            "query": None if query is None else checks.query(query),
            "actor": None if actor is None else checks.actor(actor, new=False),
            "document": None if document is None else checks.ids([document])[0],
            "verifier": verifier,
        }
        return self.ledger.lessons.select({name: one for name, one in given.items() if one is not None}, held=held)

    def hold(self, lessons: Iterable[int]) -> int:
        """Put lessons (numbers) on hold: from the next evolve on they take part in nothing, until they are released.
        Returns how many were not on hold."""
        numbers = checks.numbers(lessons)
        with self._exclusive():
            return self.ledger.lessons.hold(numbers)

    def release(self, lessons: Iterable[int]) -> int:
        """Let lessons on hold take part again, from the next evolve on. Returns how many were on hold."""
        numbers = checks.numbers(lessons)
        with self._exclusive():
            return self.ledger.lessons.release(numbers)

    def _own_differ(self, up_to: int, omitted: Omitted, current: Epoch) -> bool:
        """Whether restricted documents have other lessons than in the current epoch."""
        if self._settings.restricted is None:
            return False
        before = self.index.log(current.lessons_to, current.omitted).own
        return self.index.log(up_to, omitted).own != before  # the later reading is kept, and composed from

    def forget(
        self, query: str | None = None, actor: str | None = None, document: str | None = None, traffic: bool = False
    ) -> Forgotten:
        """Erase the lessons that match every given criterion, everywhere. They have no effect from now on; where some
        of their bytes cannot be erased now (a reader holds the write-ahead log), the result says so.

        Forgotten queries also leave the sample of the traffic; `traffic` erases all of it.
        """
        self._check_open()
        if query is actor is document is None and not traffic:
            raise InvalidInput("say what to forget: query=…, actor=…, document=… (a document's id) or traffic=True")
        wanted = Erasure(
            query=None if query is None else checks.query(query),
            actor=None if actor is None else checks.actor(actor, new=False),
            document=None if document is None else checks.ids([document])[0],
        )
        with self._exclusive():
            with self.ledger.write():
                lessons = self._forget(wanted, traffic=traffic)
            self.ledger.traffic.go_on()
            pending = self._erase(READERS)
        return Forgotten(lessons, pending is None, pending)

    def _forget(self, wanted: Erasure, *, traffic: bool) -> int:
        """The part of the ledger, in one transaction: delete, note what is to be erased elsewhere, and learn again."""
        before = self.ledger.lessons.texts() | ({wanted.query} if wanted.query else set())
        asked = self.ledger.lessons.queries() | ({wanted.query} if wanted.query else set())
        if traffic:
            asked |= set(self.ledger.traffic.queries())
        count = 0
        if not wanted.query is wanted.actor is wanted.document is None:
            count = self.ledger.lessons.forget(query=wanted.query, actor=wanted.actor, document=wanted.document)
        left = self.ledger.lessons.texts() | set(self.ledger.protected.all())
        queries = sorted(asked - left)
        units = (before | self.ledger.expansions.forget(queries)) - left - set(queries)
        self.ledger.traffic.forget(None if traffic else queries)
        self.ledger.forgets.note(replace(wanted, queries=tuple(queries), units=tuple(sorted(units))))
        if count:
            self.index.remember()
            self._refit("forget")
        return count

    def _erase(self, patience: float = 0.0) -> str | None:
        """Erase what is noted, in all places; returns what it waits for, if it does."""
        places = forgetting.places(self._settings, self._folder, self.index.retrievers)
        if self._learner is not None:
            places.append(self._learner)
        return Eraser(self.ledger, places).finish(patience)

    def _go_on_forgetting(self) -> None:
        """Finish what an earlier forget left, if this process may write now; but do not try all the time."""
        if self.ledger.forgets.waits_for is None or self.ledger.in_write:
            return
        if self._tried_again and time.monotonic() < self._tried_again + TRIED_EVERY:
            return
        self._tried_again = time.monotonic()
        with self.ledger.lock_if_free() as locked:
            if locked:
                self._erase()

    def traffic(self, where: Mapping[str, Any] | None = None) -> list[str]:
        """The queries kept of all that were searched: a sample, to see what learning would do to other questions.

        They are other people's questions: with `where`, the filter of a caller who is not the owner, none are told.
        """
        self._check_open()
        return [] if where is not None else self.ledger.traffic.queries()

    def _keep_traffic(self) -> None:
        """Note in the ledger what was searched; erase what made room, wherever it was kept encoded."""
        self._let_go(self.ledger.traffic.keep())

    def _let_go(self, queries: Sequence[str]) -> None:
        if queries:
            gone = sorted(set(queries) - self.ledger.lessons.texts() - set(self.ledger.protected.all()))
            for one in self.index.retrievers:
                one.forget(gone)

    def protect(self, query: str, relevant: checks.Graded) -> None:
        """Protect a query: no epoch is published in which these documents rank worse than in the untaught index.

        An empty list stops protecting it.
        """
        self._check_open()
        text = checks.query(query)
        grades = checks.grades(relevant, ()) if relevant else {}
        with self._exclusive():
            numbers = self.ledger.documents.numbers(grades)
            self._check_public(numbers)
            self.ledger.protected.put(text, grades)

    def protected_queries(self) -> Mapping[str, Mapping[str, float]]:
        """Protected queries, each with its documents and grades."""
        self._check_open()
        return self.ledger.protected.all()

    # ---- time travel

    def epochs(self) -> list[Epoch]:
        """All states of what was learned, the untaught one (0) first; search any of them with epoch=…"""
        self._check_open()
        return self.ledger.epochs.all()

    def rollback(self, epoch: int) -> Epoch:
        """Publish again what an older epoch had learned, as a new epoch. Its lessons take part from now on; all others
        are on hold until they are released."""
        self._check_open()
        with self._exclusive():
            old = self.ledger.epochs.get(checks.epoch(epoch, self.index.epoch))
            with self.ledger.write():
                self.ledger.epochs.ask(old.lessons_to, old.omitted)
                self.ledger.lessons.release(self.ledger.lessons.held())
                known = self.ledger.lessons.numbers(old.lessons_to, old.omitted)
                held = self.ledger.lessons.hold(
                    set(self.ledger.lessons.numbers(self.ledger.lessons.last)).difference(known)
                )
                reason = f"rolled back to epoch {old.number}{_on_hold(held)}"
                made = replace(old, kind="rollback", time=self._now(), report={"reason": reason})
                number = self.ledger.epochs.append(made)
        return self.ledger.epochs.get(number)

    def diff(self, a: int, b: int, where: Mapping[str, Any] | None = None) -> EpochDiff:
        """What changed from epoch a to epoch b: documents by what they were taught, queries by what they find.

        With `where`, the filter of a caller who is not the owner, the documents inside it and no queries.
        """
        self._check_open()
        with self.index.steady():
            before, after = (self.ledger.epochs.get(checks.epoch(number, self.index.epoch)) for number in (a, b))
            return compare.diff(self.index, self.ledger, (before, after), self._among(where))

    def refit(self) -> EpochReport | None:
        """Learn again all that evolve was ever asked to learn, and publish that: after a change of encoder."""
        with self._exclusive(), self.ledger.write():
            self.ledger.pools.clear()
            return self._refit("reencode")

    def _refit(self, kind: str) -> EpochReport | None:
        """Learn again from what is left, up to where evolve was last asked, and publish that, empty or not."""
        (asked, omitted), current = self.ledger.epochs.asked, self.index.epoch
        if not asked and not current:
            return None
        if kind == "forget":
            self.ledger.epochs.redact(current)
        up_to = min(asked, self.ledger.lessons.last)
        omitted |= self.ledger.lessons.held()
        learn = self._proposed_if_possible if kind == "forget" else self._proposed
        report = learn(up_to, omitted)
        return self._published(kind, report, up_to, omitted) if current or report.choice else report

    def _proposed_if_possible(self, up_to: int, omitted: Omitted) -> EpochReport:
        """The same, or nothing: what is to be forgotten does not wait for an encoder that fails."""
        try:
            return self._proposed(up_to, omitted)
        except ServiceFailed as error:
            log.warning("the lessons that are left are learned at the next evolve: %s", str(error))
            reason = "an encoder failed: the lessons that are left are learned at the next evolve"
            return EpochReport(False, reason, self.index.epoch, None, None, {}, {}, 0, 0)

    def _draft(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> Epoch:
        """A proposal as an epoch that has no number yet."""
        told = (report.choice, report.weights, self._now(), report.to_dict())
        left_out = frozenset(number for number in omitted if number <= up_to)
        return Epoch(0, kind, up_to, *told, omitted=left_out, reach=report.reach)

    def _published(self, kind: str, report: EpochReport, up_to: int, omitted: Omitted) -> EpochReport:
        number = self.ledger.epochs.append(self._draft(kind, report, up_to, omitted))
        log.info("epoch %d: %s", number, report.reason)
        return replace(report, published=True, epoch=number)

    def _proposed(self, up_to: int, omitted: Omitted, *, keep: bool = True) -> EpochReport:
        """What evolve would publish of these lessons, and how many others are on hold."""
        heard = self.index.log(up_to, omitted)
        report, apart = self._judged(heard.taught, keep=keep), _named(heard.own)
        reason = report.reason + _learned_apart(apart) + _on_hold(len(self.ledger.lessons.held()))
        return replace(report, reason=reason, restricted=apart)

    def _judged(self, lessons: Judgements, *, keep: bool) -> EpochReport:
        """Ask the policy what the lessons are worth; an empty choice means the untaught index."""
        empty = EpochReport(False, "", self.index.epoch, None, None, {}, {}, len(lessons.queries), 0)
        if not lessons.queries:
            return replace(empty, reason="no lesson says which document was right: nothing to learn")
        proposal = self._proposal(lessons, keep=keep)
        judged = replace(empty, held_out=proposal.held_out, taught=proposal.taught, unrelated=proposal.unrelated)
        if not proposal.changes:
            return replace(judged, reason="no choice is better than the untaught index: nothing to publish")
        pushed = lessons.wrong if any(one.demotion for one in proposal.choice.values()) else {}
        touched = set[int]().union(*lessons.grades.values(), *pushed.values())
        return replace(
            judged,
            reason=_reason(proposal),
            choice=proposal.choice,
            weights=proposal.weights,
            reach=proposal.reach,
            documents=len(touched),
        )

    def _proposal(self, lessons: Judgements, *, keep: bool) -> Proposal:
        index, protected = self.index, Judgements(self._public_protected(), {})
        known = {*lessons.queries, *protected.queries}
        heard = self.ledger.traffic.queries() if self._policy.hears else []
        traffic = tuple(query for query in heard if query not in known)[:ASKED]
        wanted = list(dict.fromkeys([*lessons.queries, *protected.queries, *traffic]))
        pools = {
            one.name: pools_.update(one, wanted, self.ledger.pools, index.position, index.live, keep=keep)
            for one in index.retrievers
        }
        return self._policy.propose(index.retrievers, index.fusion, lessons, pools, protected, traffic)

    def _check_public(self, numbers: Mapping[str, int]) -> None:
        apart = set(self.index.restricted.tolist())
        for id, number in numbers.items():
            if number in apart:
                raise InvalidInput(
                    f"document {id!r} is restricted (metadata {self._settings.restricted!r}): the guard chooses for "
                    f"everybody, so a restricted document cannot be protected. Protect public documents only."
                )

    def _public_protected(self) -> dict[str, dict[int, float]]:
        """Protected queries that the guard listens to: it must not hear of restricted documents."""
        protected, apart = self.ledger.protected.numbered(), set(self.index.restricted.tolist())
        public = {query: {n: grade for n, grade in said.items() if n not in apart} for query, said in protected.items()}
        return {query: said for query, said in public.items() if said}

    # ---- the memory itself

    def stats(self, where: Mapping[str, Any] | None = None) -> Stats:
        """What the memory holds. With `where`, the filter of a caller who is not the owner, what concerns the documents
        inside it; what was spent and how large the files are is then 0."""
        self._check_open()
        self.index.catch_up()
        epoch = self.ledger.epochs.get(self.index.epoch)
        touched = self._touched(epoch.number)
        found = Stats(
            documents=len(self.ledger.documents),
            empty_documents=self.ledger.documents.count_empty(),
            documents_without_keys=len(self.index.without_keys),
            lessons=len(self.ledger.lessons),
            set_aside=self.ledger.lessons.set_aside(),
            held=len(self.ledger.lessons.held()),
            erasing=self.ledger.forgets.waits_for,
            pending=self.ledger.lessons.count_pending(epoch.lessons_to, epoch.omitted),
            epoch=epoch.number,
            documents_touched=len(touched),
            retrievers=[one.name for one in self.index.retrievers],
            policy=str(self._settings.policy["name"]),
            **self._bill(),
            bytes=_size(self._folder),
        )
        among = self._among(where)
        return found if among is None else self._stats_among(among, found, touched, epoch)

    def _touched(self, epoch: int) -> set[int]:
        try:
            overlays = self.index.overlays(epoch)
        except ServiceFailed as error:
            log.warning("documents that were taught something are not counted: %s", str(error))
            return set()
        return {number for overlay in overlays.of.values() for number in overlay.all_documents.tolist()}

    def _stats_among(self, among: Numbers, found: Stats, touched: set[int], epoch: Epoch) -> Stats:
        """What concerns these documents; what was spent and how large the files are is the owner's."""
        inside = among.tolist()
        return replace(
            found,
            documents=len(inside),
            empty_documents=self.ledger.documents.count_empty(inside),
            documents_without_keys=len(self.index.without_keys.intersection(inside)),
            lessons=self.ledger.lessons.count_about(inside),
            held=self.ledger.lessons.count_about(inside, held=True),
            set_aside=self.ledger.lessons.set_aside(inside),
            pending=self.ledger.lessons.count_pending(epoch.lessons_to, epoch.omitted, inside),
            documents_touched=len(touched.intersection(inside)),
            calls=0,
            calls_saved=0,
            false_hits=0,
            tokens=0,
            money=0.0,
            bytes=0,
        )

    def _bill(self) -> dict[str, Any]:
        bill = self.ledger.expansions.bill()
        spent = bill.spent
        return {
            "calls": spent.calls,
            "calls_saved": bill.saved,
            "false_hits": bill.false_hits,
            "tokens": spent.prompt_tokens + spent.answer_tokens,
            "money": round(spent.money, 6),
        }

    def save(self) -> None:
        """Write base keys that are only in memory; close does it too. Nothing is lost without: they are made again."""
        self._check_open()
        with self._exclusive():
            self._complete(again=True)
            with storing(self._folder):
                self.index.save(force=True)

    def _save(self, *, force: bool = False) -> None:
        """Keys are derived: failing to write them loses nothing that was acknowledged."""
        try:
            self.index.save(force=force)
        except OSError as error:
            log.warning(
                "keys could not be written (%s); they stay in memory and are made again when needed", str(error)
            )

    def backup(self, path: str | Path) -> None:
        """Copy the memory, as it is at one moment, to a new directory; others may write meanwhile. The copy is a memory
        like any other. To restore it, put it in the place of the damaged directory. `forget` does not reach it."""
        self._check_open()
        backup.copy(self._folder, Path(path))

    def close(self) -> None:
        """Write what is only in memory and let another process write."""
        if self._learner is not None:
            self._learner.stop()
        with self._writing:
            was_open, self._closed = not self._closed, True
            self._expanders.clear()  # they know this memory: without them it goes, and its files with it
            try:
                if was_open and self.ledger.locked:
                    self._keep_traffic()
                    self._save(force=True)
            finally:
                self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed(f"this memory was closed; open it again with evokey.open({str(self._folder)!r})")

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One writing verb at a time, in this process and among all; others search meanwhile."""
        with self._writing:
            self._check_open()
            self.ledger.lock()
            self._go_on_forgetting()
            self.index.catch_up()
            self._complete()
            yield
            self.index.catch_up()

    def _complete_at_open(self) -> None:
        """Keys that only cost time are made now, unless another process writes: it makes them. Money is spent only by a
        process that writes."""
        lacking, costs = self.index.lacking, {one.name: one.cost for one in self.index.retrievers}
        if {costs[name] for name in lacking} == {"time"}:
            with self.ledger.lock_if_free() as free:
                if free:
                    self.index.catch_up()
                    self._complete()
        for name, numbers in self.index.lacking.items():
            log.warning(
                "%d documents have no keys by %s, and it does not find them. Keys are made at the next write, or now "
                "with: evokey doctor --rebuild", len(numbers), name,
            )  # fmt: skip

    def _complete(self, *, again: bool = False) -> None:
        """Make keys that are nowhere: a crash, or an encoder that failed, left documents without."""
        if self.index.complete(again=again):
            self.ledger.pools.clear()  # they were taken among fewer documents
            self._save()

    def _epoch(self, number: int | None) -> int | None:
        return None if number is None else checks.epoch(number, self.index.epoch)

    def _vector(self, given: Any) -> Vectors | None:
        """A vector that came beside a query, checked."""
        if given is None:
            return None
        if self.index.given is None:
            raise InvalidVector("this memory makes its own vectors; vector=… is for encoder='given'")
        vector = checks.vectors([given], 1)
        self.index.given.check_dimension(vector)
        return np.asarray(vector[0])

    def _vectors_for(self, documents: Sequence[Document], given: Any) -> Vectors | None:
        """The vectors that came beside documents, checked."""
        needed = self.index.given is not None
        if needed and given is None and documents:
            raise InvalidVector(
                "this memory takes its vectors from the caller (encoder 'given'): pass vectors=… to add"
            )
        if given is not None and not needed:
            raise InvalidVector("this memory makes its own vectors; vectors=… is for encoder='given'")
        return None if given is None or not documents else checks.vectors(given, len(documents))


def _size(folder: Path) -> int:
    """Bytes of all files. Some may go while they are counted: a writer sweeps old keys away."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total


def _rank(ranking: Ranking, number: int) -> int | None:
    found = np.flatnonzero(ranking.numbers == number)
    return int(found[0]) + 1 if len(found) else None


def _outcome(thought: Thought, lesson: Lesson | None) -> str:
    """What learn did, in words."""
    if lesson is not None:
        return f"verified: {len(lesson.verdicts)} documents credited as lesson {lesson.number}"
    if thought.trouble is not None:
        return f"nothing learned: {thought.trouble}"
    if thought.ruling.success is None:
        return f"nothing learned: the verifier abstains ({thought.ruling.reason or 'it cannot tell'})"
    if thought.ruling.success:
        return "nothing learned: verified, but no document can be named that it is owed to"
    return f"nothing learned: not verified ({thought.ruling.reason or 'it failed'})"


def _on_hold(lessons: int) -> str:
    """What is added to a reason."""
    if not lessons:
        return ""
    return f"; {lessons} lesson{'s are' if lessons > 1 else ' is'} on hold (evokey lessons --held)"


def _named(own: Own | None) -> int:
    """How many restricted documents lessons speak of."""
    return 0 if own is None else len(set[int]().union(*own.grades.values(), *own.wrong.values()))


def _learned_apart(documents: int) -> str:
    """What is added to a reason."""
    if not documents:
        return ""
    return f"; {documents} restricted document{'s' if documents > 1 else ''} learned apart, each from its own lessons"


def _reason(proposal: Proposal) -> str:
    if proposal.taught is None:
        return "what was verified is learned: this policy has no guard"
    taught = f"taught queries {proposal.taught.before:.3f} → {proposal.taught.after:.3f}"
    if proposal.held_out is None:
        return f"{taught} (nDCG@10); too few queries to cross-fit, so recall rows alone"
    held, others = proposal.held_out, proposal.unrelated
    unrelated = "" if others is None else f", unrelated ones {others.before:.3f} → {others.after:.3f}"
    return f"held-out queries {held.before:.3f} → {held.after:.3f}, {taught}{unrelated} (nDCG@10)"
