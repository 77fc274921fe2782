"""Memory: the one object users meet. It reads like the way of the data: add, search, feedback, evolve, forget.

Truth goes to the ledger first; the index then follows it, here and in every other process that has the memory open.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evokey import checks, registry
from evokey import settings as settings_
from evokey.erasure import Erasure
from evokey.errors import ConnectionLost, InvalidInput, MemoryClosed, storing
from evokey.evolution.candidate import Candidates
from evokey.evolution.composer import Composer
from evokey.evolution.policy import Policy
from evokey.evolution.proposing import check_public
from evokey.evolution.publishing import Draft, Publisher
from evokey.filters import Where
from evokey.forgetting.forget import Forgetter
from evokey.forgetting.places import Shelves, Weights, places
from evokey.inspect import backup, explain, stats
from evokey.inspect import diff as compare
from evokey.ledger.ledger import Ledger
from evokey.ledger.repeating import idempotent, repeated
from evokey.ledger.shared import Shared
from evokey.loop.audience import Audience
from evokey.loop.components import Components
from evokey.loop.pipe import Thinker
from evokey.loop.rating import Rater
from evokey.loop.remember import Feedback, Recorder
from evokey.loop.think import Steps, Thought
from evokey.loop.watch import Learner, make_thinker
from evokey.postgres.address import Address, find_address
from evokey.registry import Described
from evokey.search.given import add_in_batches, document_vectors, query_vector
from evokey.search.grouping import GROUPS
from evokey.search.index import Index
from evokey.search.interleaving import Team, interleave
from evokey.search.operators import parse
from evokey.search.retriever import GivenRetriever
from evokey.search.searcher import Request, Searcher, Show
from evokey.search.upkeep import (
    fill_shelves,
    keep_traffic,
    make_missing_keys,
    make_missing_keys_at_open,
    save_keys,
    watch_recall,
)
from evokey.seeding.confirming import WAYS
from evokey.seeding.report import SeedReport
from evokey.seeding.seeder import Seeder, SeedOptions, check_seedable
from evokey.tuning.revisions import Revisions
from evokey.tuning.tuner import Tuner
from evokey.types import (
    Answer,
    Candidate,
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
    Source,
    Stats,
    TuneReport,
    TuningCost,
)
from evokey.verifiers.human import Human

log = logging.getLogger("evokey")
NOTHING: Mapping[str, Any] = {}
NOT_SETTINGS = ("path", "name", "allow", "now")
"""What open takes beside settings."""


def open(
    path: str | Path | Address,
    *,
    name: str | None = None,
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
    shared_feedback: bool | None = None,
    allow: Sequence[str] = (),
    now: Callable[[], float] = time.time,
) -> Memory:
    """Open the memory in a directory, or make it on first use; or the one a TOML file describes; or the one with a name
    in a PostgreSQL database, by its URL, for many processes on many machines (docs/scaling.md).

    The settings are those of a new memory. An existing one keeps its own; asking for different ones is an error.
    Each component is a name, a mapping with name and options, or an object (of a store, its class). What is passed as
    an object must be passed again whenever the memory is opened: the settings on disk only note its class.
    `restricted` names a field of the metadata: lessons on documents that have it teach these documents alone, and
    change nothing for a caller whose `where` leaves them out (docs/permissions.md). `shared_feedback`: feedback
    without an actor comes from many people, and is trusted no more than a named actor (docs/voices.md). `allow` lists
    what the settings in the directory may reach outside it: hosts, keys, code, models, files (docs/security.md).
    """
    given = {name: value for name, value in locals().items() if name not in NOT_SETTINGS and value is not None}
    address = find_address(path, name)
    if address is not None:
        return open_shared(address, given, allow, now)
    assert not isinstance(path, Address)
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


def open_shared(
    address: Address,
    given: Mapping[str, Any] = NOTHING,
    allow: Sequence[str] = (),
    now: Callable[[], float] = time.time,
    *,
    make: bool = True,
) -> Memory:
    """The memory at an address; make: on first use."""
    database = registry.load("ledger", "postgres")(address, make=make)
    try:
        folder, settings = settings_.resolve_shared(database, given, allow)
        return Memory(folder, settings, now=now, database=database)
    except BaseException:
        database.close()
        raise


def _say_nothing(stage: str, share: float) -> None:
    pass


class Memory(Audience):
    """An index that learns. Use as a context manager, or close it."""

    def __init__(
        self,
        folder: Path,
        settings: settings_.Settings,
        *,
        policy: Policy | None = None,
        now: Callable[[], float] = time.time,
        database: Shared | None = None,
    ) -> None:
        """policy: one that has no name in the settings, such as a variant under test. database: where the memory is, if
        it is shared; the folder then holds what is derived from it on this machine."""
        self._folder, self._settings, self._now = folder, settings, now
        self._address: Address | None = None if database is None else database.address
        self.policy: Policy = policy or settings_.build(settings, "policy")
        retrievers = settings_.build_retrievers(settings, folder, database)
        given = any(isinstance(one, GivenRetriever) for one in retrievers)
        size = 0 if given else settings.traffic  # there, a text cannot be asked again
        self.ledger = Ledger(folder if database is None else database, traffic=size)
        self._one_at_a_time = threading.RLock()
        self._closed = False
        self._learner: Learner | None = None
        try:
            fusion = settings_.build(settings, "fusion", kinds={one.name: one.kind for one in retrievers})
            restricted = settings.restricted
            if restricted is not None and (nested := self.ledger.documents.nested(restricted)) is not None:
                raise checks.nested(nested, restricted)
            self.composer = Composer(self.ledger, self.policy, fusion, restricted, shared=settings.shared_feedback)
            revisions = Revisions(settings, folder)
            self.index = Index(self.ledger, retrievers, fusion, self.composer, restricted, revisions.open)
            self.searcher = Searcher(self.index, self.ledger, settings_.build(settings, "reranker"))
            self.components = Components(settings, folder, self.ledger, now)
            self._recorder = Recorder(self.index, self.ledger, self.policy, self.components.expanding, now)
            open_reviews = partial(Human, folder / settings_.HUMAN, now=now)  # self.reviews would make a cycle
            self._rater = Rater(self.ledger, self._recorder, open_reviews, now)
            self._publisher = Publisher(self.ledger, now, self.index, self.policy, self.composer, restricted)
            self.tuner = Tuner(self._publisher, revisions)
            self._candidates = Candidates(self.index, self.ledger, self._publisher)
            apart = (Weights(folder, self.ledger), Shelves(self.index, self.ledger))
            kept = [*places(settings, folder, retrievers), *apart]
            self._forgetter = Forgetter(self.index, self.ledger, kept, self._publisher.refit_after_forget)
            self._forgetter.resume()
            make_missing_keys_at_open(self.index, self.ledger)
            if database is not None:
                save_keys(self.index)  # what this machine has made, the next process on it finds
        except BaseException:
            self.ledger.close()
            raise

    @property
    def place(self) -> Path | Address:
        """Where the memory is."""
        return self._folder if self._address is None else self._address

    @property
    def folder(self) -> Path:
        """On this machine: all of the memory; or, where it is in a database, what is derived from it."""
        return self._folder

    @property
    def settings(self) -> settings_.Settings:
        return self._settings

    # ---- documents

    def add(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        vectors: Any = None,
        progress: Callable[[float], None] | None = None,
        sources: Mapping[str, Source] | None = None,
        batch: int | None = None,
    ) -> int:
        """Insert documents, or replace those with the same id: all of them, or none and an error. Returns how many were
        given. `vectors`: one for each document, made by the memory's own dense encoder, or by the caller's (encoder
        'given'). `progress` is told the share that is encoded, from 0 to 1; the logger "evokey" says so too (INFO).
        `sources` notes the file that a document was read from, by id. With `batch`, documents are taken and stored so
        many at a time: an error leaves the batches before it stored, and there may be more than memory holds.
        """
        self._check_open()
        if batch is None:
            return self._add(list(documents), vectors, progress, sources)
        return add_in_batches(
            documents, vectors, checks.count(batch), partial(self._add, progress=None, sources=sources)
        )

    @idempotent
    def _add(
        self,
        documents: Sequence[Document | Mapping[str, Any]],
        vectors: Any,
        progress: Callable[[float], None] | None,
        sources: Mapping[str, Source] | None,
    ) -> int:
        taken = [checks.document(one) for one in documents]
        if self._settings.restricted is not None:
            checks.readable(taken, self._settings.restricted)
        matrix = document_vectors(self.index.takes_vectors, taken, vectors)
        files = {one.id: sources[one.id] for one in taken if one.id in sources} if sources else {}
        with self._write():
            with self.index.adding(), self.ledger.write():
                entries, _ = self.ledger.documents.put(taken, matrix)
                self.ledger.sources.put([one.id for one in taken], files)
                self.index.encode(entries, progress)
            self._follow()
            make_missing_keys(self.index, self.ledger, again=True)
        save_keys(self.index)
        for one in taken:
            if matrix is None and not f"{one.title}{one.text}".strip():
                log.warning("document %r is empty: it is stored, but no search will find it", one.id)
        return len(taken)

    @contextmanager
    def workers(self, count: int) -> Iterator[None]:
        """Meanwhile documents are encoded in so many processes. Encoders that are services, and those that were passed
        as objects, go on as before. A script needs `if __name__ == "__main__":` for this."""
        with ExitStack() as stack:
            for one, described in settings_.describe_encoders(self._settings, self.index.originals):
                stack.enter_context(one.workers(described, checks.count(count)))
            yield

    @repeated
    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents. What they were taught waits, in case they come back."""
        wanted = checks.ids(ids)
        with self._write():
            gone = self.ledger.documents.delete(wanted)
            self._follow()
        return len(gone)

    @idempotent
    def get(self, id: str, where: Where | None = None) -> Document:
        """A document by its id. One outside of `where`, the filter of a caller who is not the owner, is unknown."""
        self._check_open()
        (number,) = self.ledger.documents.numbers([checks.ids([id])[0]], self.searcher.filter(where)).values()
        return self.ledger.documents.fetch([number])[number]

    @idempotent
    def documents(self, after: int = 0, count: int = 50, where: Where | None = None) -> list[tuple[int, Document]]:
        """A page of the documents in the order they came, each with its number: `after` is the last number of the page
        before."""
        self._check_open()
        page = self.ledger.documents.page(after, checks.count(count), self.searcher.filter(where))
        return list(self.ledger.documents.fetch(page).items())

    def sources(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Of those ids that are here, the file each document was read from; None if it was handed in by id."""
        self._check_open()
        return self.ledger.sources.paths(checks.ids(ids))

    def files(self, paths: Iterable[str]) -> dict[str, tuple[str, Source]]:
        """Of those files that a document was read from, its id, and the file as it was then."""
        self._check_open()
        return self.ledger.sources.at(checks.ids(paths, "paths"))

    def files_below(self, folder: str) -> dict[str, str]:
        """Ids of the documents that were read from files below a folder, by path."""
        self._check_open()
        return self.ledger.sources.below(folder)

    @idempotent
    def note_files(self, sources: Mapping[str, Source]) -> None:
        """Files of documents, by id, that were touched and hold what they held."""
        with self._write():
            self.ledger.sources.note(sources)

    def __len__(self) -> int:
        self._check_open()
        return len(self.ledger.documents)

    # ---- answering

    @idempotent
    def search(
        self,
        query: str,
        k: int = 10,
        where: Where | None = None,
        epoch: int | None = None,
        vector: Any = None,
        expansion: Expansion | None = None,
        explore: int = 0,
        group: str = "document",
        fold: bool = False,
        operators: bool = False,
        compare: int | None = None,
    ) -> list[Hit]:
        """The k best documents, best first. `where` filters on metadata: {"lang": "en"} or {"lang": ["en", "de"]}, or
        Haystack's filters with AND, OR, NOT (evokey/filters.py).

        With an expansion (of expand) the query searches together with its units. `explore` gives up so many of the
        last places to documents that one retriever alone, or the untaught index, would have brought: only what is
        shown can be verified, so a memory that shows its favourites alone never hears of its mistakes.

        `hit.passage` is the part of the document that answers. `group="passage"` gives the k best passages, of which
        several may be of one document. `fold` shows near-duplicates as one hit, which names the others (`similar`).
        `operators`: a document must have each "phrase in quotes", and none of each -word. `compare` interleaves the
        hits with those of another epoch, and each says which epoch brought it (docs/service.md#compare).
        """
        self._check_open()
        text, size, asked = checks.query(query), checks.count(k), query_vector(self.index.given, vector)
        parsed = parse(text) if operators else None
        text = text if parsed is None else parsed.query
        show = Show(checks.one_of("group", group, GROUPS), bool(fold), None if parsed is None else parsed.accepts)
        slots = min(checks.count(explore), size - 1) if explore else 0
        self.ledger.traffic.note(text)
        if self._learner is not None and expansion is None:
            self._learner.offer(text)
        request = Request(text, size, where, epoch, asked, expansion, slots, show)
        if compare is None:
            return self.searcher.search(request)
        other = replace(request, epoch=self.index.check_epoch(compare))
        mine = Team(self.index.epoch if epoch is None else epoch, self.searcher.search(request))
        return interleave(mine, Team(compare, self.searcher.search(other)), size, self.searcher.chance)

    def search_many(
        self, queries: Sequence[str], k: int = 10, where: Where | None = None, vectors: Any = None
    ) -> list[list[Hit]]:
        """A list of hits for each query."""
        asked = [None] * len(queries) if vectors is None else checks.vectors(vectors, len(queries))
        return [self.search(query, k, where, vector=vector) for query, vector in zip(queries, asked, strict=True)]

    @repeated
    def expand(self, query: str, expander: Described | None = None) -> Expansion:
        """A query in more words, by the memory's expander or another. An intent that was paid for is not paid again."""
        self._check_open()
        text, expanding = checks.query(query), self.components.expanding(expander)
        forgets = self.ledger.forgets.count
        known = expanding.known(text)
        found = known or expanding.ask(text, self.searcher.look)
        if found.model is not None:
            with self._write(), self.ledger.write():
                if self.ledger.forgets.count == forgets:  # else its query, or the one it is like, may be forgotten
                    expanding.keep(found, asked=known is None)
        return found

    @idempotent
    def explain(self, id: str, query: str | None = None, vector: Any = None, where: Where | None = None) -> Explanation:
        """What a document has learned and from whom; with a query, how that changes its score and rank.

        `where` is the filter of a caller who is not the owner: a document outside it is unknown, and who taught what
        is not told, only how many lessons there are.
        """
        self._check_open()
        with self.index.steady():
            among, wanted = self.searcher.filter(where), checks.ids([id])[0]
            text = None if query is None else checks.query(query)
            asked = None if query is None else query_vector(self.index.given, vector)
            found = explain.explain(self.index, self.ledger, wanted, text, asked, among)
        return found if where is None else explain.without_names(found)

    def ask(self, query: str, k: int = 5, where: Where | None = None) -> Answer:
        """An answer from the documents that the plain query finds, with its sources. Never expands."""
        self._check_open()
        generator = self.components.answering()
        return generator.answer(checks.query(query), self.search(query, checks.count(k), where))

    def ask_stream(self, query: str, k: int = 5, where: Where | None = None) -> Generator[str, None, Answer]:
        """The same, piece by piece; the return value is the whole answer."""
        self._check_open()
        generator = self.components.answering()
        return generator.stream(checks.query(query), self.search(query, checks.count(k), where))

    # ---- learning

    @repeated
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

        `relevant` is a list of ids, or {id: grade}. "guide.md#install" names a passage of a document by its heading or
        page: its keys learn, and the document with a share. Nothing is learned until evolve; only the policy "paper"
        with online=True also publishes an epoch whenever its batches are saturated.
        """
        grades, text, phrases = checks.grades(relevant, irrelevant), checks.query(query), checks.units(units or ())
        who = None if actor is None else checks.actor(actor)
        asked = query_vector(self.index.given, vector)
        said = self._recorder.check(Feedback(text, grades, phrases, who, asked, "feedback"))
        with self._write():
            lesson = self._recorder.record(self._recorder.name_passages(said))
            self._follow_lessons(1)
        return lesson

    @repeated
    def feedback_many(self, lessons: Iterable[Mapping[str, Any]]) -> list[Lesson]:
        """Many verdicts at once, each a mapping of feedback's arguments: all are recorded, or none."""
        with self._write():
            with self.ledger.write(), self._recorder.pools_together():
                recorded = [self.feedback(**lesson) for lesson in lessons]
            self._follow_lessons(len(recorded))
        return recorded

    def _follow_lessons(self, new: int) -> None:
        """After lessons were recorded; a policy that works online may publish what they teach."""
        self._follow()
        if not self.ledger.in_write and hasattr(self.policy, "saturates"):
            with self.ledger.exclusive():
                self._publisher.publish_saturated(new)

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
        return Steps(self.components, self.search, self.searcher.look).think(query, expected, relevant)

    @repeated
    def remember(self, thought: Thought, actor: str | None = None) -> LearnReport:
        """The second part of learn: keep what was paid for, and make a lesson of what was verified."""
        with self._write():
            report = self._recorder.remember(thought, actor)
            self._follow_lessons(report.lesson is not None)
        return report

    def seed(
        self,
        llm: Described | None = None,
        per_passage: int = 2,
        limit: int | None = 500,
        dry_run: bool = False,
        confirm: str = "search",
        k: int = 10,
        where: Where | None = None,
        progress: Callable[[SeedReport], None] | None = None,
    ) -> SeedReport:
        """A start without feedback: a language model (`llm`, or the memory's own) writes questions for passages, at
        most `limit` of them (None: all), of all documents or inside of `where`. A question is kept if it is confirmed:
        by a search that finds its document among the first k hits, or by the memory's judge (`confirm="judge"`). It
        is then a lesson of the actor 'synthetic', which counts less than a person's (docs/seeding.md). Passages that
        were asked about are left out next time; forget(actor="synthetic") erases all of it.

        `dry_run` only estimates the cost. `progress` is told the report: the estimate before the first call, then what
        was done so far.
        """
        self._check_open()
        check_seedable(self.index, self.policy)
        most = None if limit is None else checks.count(limit)
        options = SeedOptions(checks.count(per_passage), most, checks.one_of("confirm", confirm, WAYS), checks.count(k))
        settings = self._settings if llm is None else settings_.change(self._settings, llm=llm)
        components = Components(settings, self._folder, self.ledger, self._now)
        seeder = Seeder(self.index, self._recorder, components, options)
        self.index.catch_up()
        plan = seeder.plan(self.searcher.filter(where))
        report = SeedReport(seeder.estimate(plan), dry_run)
        if progress is not None:
            progress(report)
        for so_far in seeder.run([] if dry_run else plan, report, self._record):
            report = so_far
            if progress is not None:
                progress(report)
        return report

    @contextmanager
    def _record(self) -> Iterator[None]:
        """Lessons are written inside, all or none."""
        with self._write():
            with self.ledger.write():
                yield
            self._follow()

    def watch(self, *, batch: int = 16, budget: int | None = None) -> Learner:
        """Learn from the traffic from now on, in the background: every new query that search is asked is expanded,
        answered and verified in a process of its own; after some batches the keys evolve. Stop it, or close the memory.

        budget: calls of language models after which it rests.
        """
        self._check_open()
        if self._learner is None or self._learner.stopped:
            thinker = make_thinker(self._folder, self._settings, self._address)
            self._learner = Learner(thinker, self.remember, self.adopt, batch=batch, budget=budget)
            self._forgetter.places.append(self._learner)
        return self._learner

    @property
    def learner(self) -> Learner | None:
        """The one that watch started, while it runs."""
        return None if self._learner is None or self._learner.stopped else self._learner

    def start_thinker(self) -> Thinker:
        """A process that reads this memory and proposes what evolve would do, while this one goes on answering: give
        what it answers to ask("propose") to adopt, and stop it."""
        self._check_open()
        return make_thinker(self._folder, self._settings, self._address)

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

    @property
    def last_lesson(self) -> int:
        """The number of the newest lesson; 0: there is none."""
        self._check_open()
        return self.ledger.lessons.last

    @idempotent
    def hold(self, lessons: Iterable[int]) -> int:
        """Put lessons (numbers) on hold: from the next evolve on they take part in nothing, until they are released.
        Returns how many were not on hold."""
        numbers = checks.numbers(lessons)
        with self._publish():
            count = self.ledger.lessons.hold(numbers)
            self._follow()
        return count

    @idempotent
    def release(self, lessons: Iterable[int]) -> int:
        """Let lessons on hold take part again, from the next evolve on. Returns how many were on hold."""
        numbers = checks.numbers(lessons)
        with self._publish():
            count = self.ledger.lessons.release(numbers)
            self._follow()
        return count

    def traffic(self, where: Where | None = None) -> list[str]:
        """The queries kept of all that were searched: a sample, to see what learning would do to other questions.

        They are other people's questions: with `where`, the filter of a caller who is not the owner, none are told.
        """
        self._check_open()
        return [] if where is not None else self.ledger.traffic.queries()

    @idempotent
    def protect(self, query: str, relevant: checks.Graded) -> None:
        """Protect a query: no epoch is published in which these documents rank worse than in the untaught index.

        An empty list stops protecting it.
        """
        text, grades = checks.query(query), checks.grades(relevant, ()) if relevant else {}
        with self._publish():
            numbers = self.ledger.documents.numbers(grades)
            check_public(self.index, self._settings.restricted, numbers)
            self.ledger.protected.put(text, grades)
            self._follow()

    def protected_queries(self) -> Mapping[str, Mapping[str, float]]:
        """Protected queries, each with its documents and grades."""
        self._check_open()
        return self.ledger.protected.all()

    # ---- evolving, and time travel

    @idempotent
    def evolve(self, dry_run: bool = False) -> EpochReport:
        """Let the lessons so far propose new keys; publish them as a new epoch if held-out queries say they help."""
        with self._publish():
            keep_traffic(self.index, self.ledger)
            report = self._publisher.evolve(dry_run=dry_run)
            self._follow()
            watch_recall(self.index, self.ledger)
        return report

    def tune(self, dry_run: bool = False, progress: Callable[[str, float], None] | None = None) -> TuneReport:
        """Train the encoder from the lessons, and publish the result as a new epoch if questions that training did not
        see find more with it than evolve reaches without it; unrelated ones must not find less (docs/tuning.md).

        Documents are encoded anew; searches go on meanwhile, and nothing else is written. `progress` is told what is
        being done, and the share of it that is done.
        """
        with self._publish():
            keep_traffic(self.index, self.ledger)
            report = self.tuner.tune(dry_run=dry_run, progress=progress or _say_nothing)
            self._follow()
        return report

    def tuning_costs(self) -> list[TuningCost]:
        """What tune will take to encode the documents anew, and the licence of the weights that training begins with;
        an error if nothing here can be tuned."""
        self._check_open()
        self.index.catch_up()
        return self.tuner.costs()

    @idempotent
    def propose(self, without: Iterable[int] = ()) -> Draft:
        """What evolve would do now, without some lessons (numbers). Writes nothing: a learner proposes in one process,
        and another adopts; a bench asks what the other lessons teach."""
        self._check_open()
        self.index.catch_up()
        return self._publisher.draft(frozenset(without))

    @repeated
    def adopt(self, draft: Draft) -> EpochReport | None:
        """Publish what another process proposed; None where it no longer holds for the memory as it is."""
        with self._publish():
            report = self._publisher.adopt(draft)
            self._follow()
        return report

    def stage(self, draft: Draft) -> Candidate | None:
        """Keep a proposal as the candidate: it is searched with epoch=, or interleaved with compare=, its number. It
        stays until an epoch is published or lessons are forgotten. None: it no longer holds for the memory as it is."""
        with self._write():
            return self._candidates.stage(draft)

    @property
    def candidate(self) -> Candidate | None:
        self._check_open()
        return self._candidates.current

    @repeated
    def publish_candidate(self) -> EpochReport | None:
        """Publish the candidate as it was compared; None where there is none, or where it no longer holds."""
        with self._publish():
            report = self._candidates.publish()
            self._follow()
        return report

    def drop_candidate(self) -> None:
        self._candidates.drop()

    @idempotent
    def preview(self, draft: Draft) -> EpochDiff:
        """What a draft would change for the queries that were taught, protected or searched, against the epoch that
        searches read now."""
        self._check_open()
        with self.index.steady():
            return compare.preview(self.index, self.composer, self.ledger, draft)

    @idempotent
    def refit(self) -> EpochReport | None:
        """Learn again all that evolve was ever asked to learn, and publish that: after a change of encoder."""
        with self._publish():
            with self.ledger.write():
                report = self._publisher.refit_after_reencoding()
            self._follow()
        return report

    @idempotent
    def forget(
        self, query: str | None = None, actor: str | None = None, document: str | None = None, traffic: bool = False
    ) -> Forgotten:
        """Erase the lessons that match every given criterion, everywhere. They have no effect from now on; where some
        of their bytes cannot be erased now (a reader holds the write-ahead log), the result says so.

        Forgotten queries also leave the sample of the traffic; `traffic` erases all of it.
        """
        wanted = checks.criteria(query, actor, document)
        if not wanted and not traffic:
            raise InvalidInput("name what to forget: query=…, actor=…, document=… (a document's id) or traffic=True")
        with self._publish():
            forgotten = self._forgetter.forget(Erasure(**wanted), traffic=traffic)
            self._follow()
            make_missing_keys(self.index, self.ledger)
        return forgotten

    def epochs(self) -> list[Epoch]:
        """All states of what was learned, the untaught one (0) first; search any of them with epoch=…"""
        self._check_open()
        return self.ledger.epochs.all()

    @property
    def epoch(self) -> int:
        """The number of the epoch that searches read."""
        return self.index.epoch

    @repeated
    def rollback(self, epoch: int) -> Epoch:
        """Publish again what an older epoch had learned, as a new epoch. Its lessons take part from now on; all others
        are on hold until they are released."""
        with self._publish():
            old = self.ledger.epochs.get(checks.epoch(epoch, self.index.epoch))
            new = self._publisher.rollback(old)
            self._follow()
            make_missing_keys(self.index, self.ledger)  # of documents that came since, by another revision
        return new

    @idempotent
    def diff(self, a: int, b: int, where: Where | None = None) -> EpochDiff:
        """What changed from epoch a to epoch b: documents by what they were taught, queries by what they find.

        With `where`, the filter of a caller who is not the owner, the documents inside it and no queries.
        """
        self._check_open()
        with self.index.steady():
            before, after = (self.ledger.epochs.get(checks.epoch(number, self.index.epoch)) for number in (a, b))
            return compare.diff(self.index, self.composer, self.ledger, (before, after), self.searcher.filter(where))

    # ---- the memory itself

    @idempotent
    def stats(self, where: Where | None = None) -> Stats:
        """What the memory holds. With `where`, the filter of a caller who is not the owner, what concerns the documents
        inside it; what was spent and how large the files are is then 0."""
        self._check_open()
        self.index.catch_up()
        among = self.searcher.filter(where)
        return stats.count(self.index, self.ledger, self._folder, str(self._settings.policy["name"]), among)

    def save(self) -> None:
        """Write base keys that are only in memory; close does it too. Nothing is lost without: they are made again. A
        store that indexes keys in the background (`ann`) has indexed all of them when this returns."""
        with self._write():
            make_missing_keys(self.index, self.ledger, again=True)
            with storing(self._folder):
                self.index.save(force=True)
                self.index.background.finish()
            fill_shelves(self.index)

    def backup(self, path: str | Path) -> None:
        """Copy the memory, as it is at one moment, to a new directory; others may write meanwhile. The copy is a memory
        like any other. To restore it, put it in the place of the damaged directory. `forget` does not reach it."""
        self._check_open()
        if self._address is not None:
            raise InvalidInput(
                f"{self._address} is backed up with its database (pg_dump); or copy it into a directory: evokey migrate"
            )
        backup.copy(self._folder, Path(path))

    def close(self) -> None:
        """Write what is only in memory and let another process write."""
        if self._learner is not None:
            self._learner.stop()
        with self._one_at_a_time:
            was_open, self._closed = not self._closed, True
            self.components.close()
            try:
                if was_open and self.ledger.locked:
                    keep_traffic(self.index, self.ledger)
                    if self.ledger.shown.noted:
                        self.ledger.shown.keep(self._now())
                    save_keys(self.index, force=True)
            finally:
                self.index.background.stop()
                self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed(f"this memory was closed; open it again with evokey.open({str(self.place)!r})")

    def _follow(self) -> None:
        """After something was written: the index takes it up, now or, if the database is gone by then, later."""
        with suppress(ConnectionLost):
            self.index.catch_up()

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One verb that writes at a time in this process; others search meanwhile. It begins with the lock, a forget
        that was left unfinished, the state of the ledger as it is now, and keys that documents lack."""
        with self._one_at_a_time:
            self._check_open()
            self.ledger.lock()
            self._forgetter.resume()
            self.index.catch_up()
            make_missing_keys(self.index, self.ledger)
            yield

    @contextmanager
    def _publish(self) -> Iterator[None]:
        """The same among all processes, for verbs that decide what an epoch says: where several may write, lessons and
        documents still come in meanwhile."""
        with self._one_at_a_time:
            self._check_open()
            with self.ledger.exclusive(), self._write():
                yield
                fill_shelves(self.index)
