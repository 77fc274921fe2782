"""All verbs of a memory in any order, beside an oracle that knows only the formulas: they must agree after every step.

A second Memory object, open on the same folder, must agree as well. `make test` runs a small profile; more with

    EVOKEY_MODEL_STEPS=20000 python -m pytest tests/model --log-cli-level=INFO

(operations in all; EVOKEY_MODEL_SEED starts elsewhere). A failure prints the steps that lead to it (the
fewest that do, in the large profile), and a line @reproduce_failure(…) that, put on the machine, plays it again.
"""

from __future__ import annotations

import logging
import math
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any, ClassVar

import lenses
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from oracle import Epoch, Oracle, Ranking

import evokey
from evokey import Choice, Document, EpochReport, EvokeyError
from evokey.evolution import grid, lens_training
from evokey.evolution.voices import JURY
from evokey.registry import COMPONENTS, Component
from evokey.stores.embedded import EmbeddedStore

STEPS = int(os.environ.get("EVOKEY_MODEL_STEPS", "0"))
"""Operations in all, shared by the machines; 0 is the small profile."""
SEED = int(os.environ.get("EVOKEY_MODEL_SEED", "0"))
FEW, FEW_PENALTIES = 20, (0.2, 0.1, 0.0)
FEW_GATE = (-4.0, 8.0, *[0.0] * 7)
EXACT, CLOSE, NEAR = 1e-12, 1e-6, 1e-4
"""How far scores may be apart: of the untaught index, of what was taught, and through a lens, whose gate magnifies the
rounding of single precision."""
DAY = 86_400.0
NAMED = 3
"""Taught queries that an explanation names as the reason why a question was turned."""
SHM = Path("/dev/shm")
log = logging.getLogger(__name__)

IDS = [f"d{number}" for number in range(8)]
WORDS = "apple apples river stone light music garden winter".split()
UNHEARD = ["zebra", "quark"]
"""Words that no document has: only teaching brings them."""
ACTORS = [None, "ada", "bob", "cyd", "dee", "eve"]
GRADES = [0.0, 0.5, 1.0, 3.0]
PROBES = ["apple river", "zebra", "light quark garden", "the of", "stone stone winter", "music"]

nth = st.integers(0, 30)
"""Stands for one of what there is, counted round."""
bodies = st.one_of(
    st.lists(st.sampled_from([*WORDS, "the"]), min_size=1, max_size=4).map(" ".join),
    st.sampled_from(["", " ", "\n", "the of", "apple river", "stone"]),
)
questions = st.lists(st.sampled_from([*WORDS, *UNHEARD, "the"]), min_size=1, max_size=3).map(" ".join)
metadata = st.fixed_dictionaries(
    {}, optional={"lang": st.sampled_from(["en", "de"]), "year": st.integers(1, 3), "tags": st.just(["hot", "leaf"])}
)
documents = st.builds(
    Document, st.sampled_from(IDS), bodies, st.sampled_from(["", "", "river", "garden stone"]), metadata
)
filters = st.sampled_from(
    [None, {}, {"lang": "en"}, {"lang": ["en", "de"]}, {"year": [1, 2], "lang": "de"}, {"tags": "hot"}, {"lang": []}]
)


@dataclass(frozen=True)
class Saying:
    """A feedback before it is known which documents there are."""

    query: str
    right: Sequence[tuple[int, float]]
    wrong: Sequence[int] = ()
    units: Sequence[str] = ()
    actor: str | None = None

    def about(self, ids: Sequence[str]) -> dict[str, Any]:
        """Arguments of feedback, where these are the documents."""
        relevant = {ids[at % len(ids)]: grade for at, grade in self.right}
        irrelevant = {ids[at % len(ids)] for at in self.wrong} - relevant.keys()
        if not relevant and not irrelevant:
            relevant = {ids[0]: 1.0}
        return {
            "query": self.query,
            "relevant": relevant,
            "irrelevant": sorted(irrelevant),
            "units": list(self.units),
            "actor": self.actor,
        }


sayings = st.builds(
    Saying,
    questions,
    st.lists(st.tuples(nth, st.sampled_from(GRADES)), max_size=3),
    st.lists(nth, max_size=1),
    st.lists(st.sampled_from(WORDS) | questions, max_size=3),
    st.sampled_from(ACTORS),
)


@dataclass
class Tally:
    """What the machines have done, by the names of the rules."""

    steps: int = 0
    left_out: int = 0
    cross_fits: int = 0
    published: int = 0
    lensed: int = 0
    """Steps after which questions pass a lens."""
    turned: int = 0
    """Explanations in which one was turned."""


class Machine(RuleBasedStateMachine):
    encoder: ClassVar[str | list[str]]
    policy: ClassVar[str] = "guarded"
    lens: ClassVar[str] = "none"
    """Which lenses the guarded policy may choose."""
    tally: ClassVar[Tally]

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="evokey-model-", dir=SHM if SHM.is_dir() else None))
        self.oracle = Oracle([self.encoder] if isinstance(self.encoder, str) else self.encoder)
        self.protected: dict[str, dict[str, float]] = {}
        self.redacted = 0
        self.day = 0
        """A lesson a day."""
        self.seen: list[Document] = []
        self.numbers = 0
        """The largest number a lesson ever had."""
        self.writer, self.reader = self.open(), self.open()
        self.turn = 0

    def open(self, name: str = "kb") -> evokey.Memory:
        policy = {"name": "guarded", "lens": self.lens} if self.policy == "guarded" else self.policy
        return evokey.open(self.home / name, encoder=self.encoder, policy=policy, now=lambda: DAY * self.day)

    def teardown(self) -> None:
        self.writer.close()
        self.reader.close()
        shutil.rmtree(self.home)

    @property
    def ids(self) -> list[str]:
        return list(self.oracle.documents)

    @property
    def current(self) -> int:
        return len(self.oracle.epochs) - 1

    # ---- documents

    @initialize(first=st.lists(documents, max_size=6), schooled=st.sampled_from([False, False, True]), lot=nth)
    def begin(self, first: list[Document], schooled: bool, lot: int) -> None:
        EmbeddedStore.persist_at = (4, 1_000)[lot % 2]
        self.add(first)
        if first and (schooled or self.policy == "chance"):  # by lot, that is quick
            self.course(lot)
            self.evolve(dry_run=False)

    @rule(batch=st.lists(documents, min_size=1, max_size=4))
    def add(self, batch: list[Document]) -> None:
        assert self.writer.add(batch) == len(batch)
        self.oracle.add(batch)
        self.seen += batch

    @precondition(lambda self: self.seen)
    @rule(at=nth, described=metadata)
    def add_an_old_text_again(self, at: int, described: Mapping[str, Any]) -> None:
        """The same content, or one that a document had before, with other metadata."""
        old = self.seen[-1 - at % len(self.seen)]
        self.add([Document(old.id, old.text, old.title, described)])

    @precondition(lambda self: self.oracle.documents)
    @rule(which=st.lists(nth, min_size=1, max_size=2))
    def delete(self, which: list[int]) -> None:
        ids = [self.ids[at % len(self.ids)] for at in which]
        assert self.writer.delete(ids) == len(set(ids))
        self.oracle.delete(ids)

    # ---- learning

    def taught(self, lesson: evokey.Lesson, said: Mapping[str, Any]) -> None:
        """Tell the oracle."""
        assert lesson.number > self.numbers
        self.numbers = lesson.number
        grades = said["relevant"] | dict.fromkeys(said["irrelevant"], -1.0)
        assert {verdict.document: verdict.grade for verdict in lesson.verdicts} == grades
        self.oracle.teach(lesson.number, said["query"], grades, said["units"], said["actor"], lesson.time / DAY)

    @precondition(lambda self: self.oracle.documents)
    @rule(saying=sayings)
    def feedback(self, saying: Saying) -> None:
        said = saying.about(self.ids)
        self.day += 1
        self.taught(self.writer.feedback(**said), said)

    @precondition(lambda self: self.oracle.documents)
    @rule(several=st.lists(sayings, min_size=1, max_size=4))
    def feedback_many(self, several: list[Saying]) -> None:
        said = [saying.about(self.ids) for saying in several]
        self.day += 1
        for lesson, one in zip(self.writer.feedback_many(said), said, strict=True):
            self.taught(lesson, one)

    @precondition(lambda self: self.oracle.documents and self.policy == "chance")
    @rule(lot=nth)
    def study(self, lot: int) -> None:
        self.course(lot)
        self.evolve(dry_run=False)

    @precondition(lambda self: self.oracle.documents)
    @rule(several=st.lists(sayings, min_size=1, max_size=3))
    def learn(self, several: list[Saying]) -> None:
        self.feedback_many(several)
        self.evolve(dry_run=False)

    def course(self, lot: int) -> None:
        """Enough lessons for a cross-fit: documents are asked for with one of their own words and a strange one."""
        rng, said = random.Random(lot), []
        for _ in range(FEW + 2):
            id = rng.choice(self.ids)
            own = self.oracle.documents[id].text.split() or ["stone"]
            query = " ".join([rng.choice(own), *rng.sample([*WORDS, *UNHEARD], 2)])
            units = rng.sample(WORDS, 2) if lot % 2 else []
            said.append(
                Saying(query, [(self.ids.index(id), 1.0)], units=units, actor=rng.choice(ACTORS)).about(self.ids)
            )
        if lot % 3 == 0:  # somebody wants one document to be found by everything
            for _ in range(2 * FEW):
                query = " ".join(rng.sample(WORDS, 2))
                said.append(Saying(query, [(0, 1.0)], actor="eve").about(self.ids))
        for lesson, one in zip(self.writer.feedback_many(said), said, strict=True):
            self.taught(lesson, one)

    @rule(dry_run=st.sampled_from([False, False, True]))
    def evolve(self, dry_run: bool) -> None:
        oracle, current, numbers = self.oracle, self.oracle.epochs[-1], self.oracle.taking_part
        report = self.writer.evolve(dry_run=dry_run)
        self.check_report(report, numbers)
        assert ("on hold" in report.reason) == bool(oracle.held)
        new = Epoch(numbers, report.choice, report.weights, report.reach, report.left_out)
        self.tally.left_out += bool(report.left_out)
        unchanged = bool(self.current) and oracle.known(new) == oracle.known(current)
        publishes = not dry_run and not unchanged and bool(report.choice or current.choice)
        assert report.published == publishes
        assert report.epoch == self.current + publishes
        if not dry_run:
            oracle.asked = numbers
        if publishes:
            oracle.publish(new)
            self.tally.published += 1

    def check_report(self, report: EpochReport, numbers: frozenset[int]) -> None:
        grades = self.oracle.taught(numbers, report.left_out)
        assert report.lessons == len(grades)
        pushed = (
            self.oracle.wrong(numbers, report.left_out) if any(one.demotion for one in report.choice.values()) else {}
        )
        touched = {id for said in (*grades.values(), *pushed.values()) for id in said}
        assert report.documents == (len(touched) if report.choice else 0)
        assert report.choice.keys() == report.weights.keys() == (set(self.oracle.encoders) if report.choice else set())
        if not grades:
            assert not report.choice and report.taught is None
        if self.policy == "guarded" and grades:
            self.check_choice(report, numbers, few=len(grades) < FEW)

    def check_choice(self, report: EpochReport, numbers: frozenset[int], *, few: bool) -> None:
        """What a report says of the taught queries is what a search gives, and no protected query is worse."""
        if few and report.choice:
            rows = [Choice(penalty=penalty, gate_weights=FEW_GATE) for penalty in FEW_PENALTIES]
            bold = Choice(spread=0.5, step=1.0, penalty=0.1, sharpness=1.0, gate_weights=FEW_GATE)
            assert report.choice in [dict.fromkeys(self.oracle.encoders, one) for one in (bold, *rows)]
            assert report.weights == self.oracle.untaught_weights
        assert (report.held_out is None) == few
        self.tally.cross_fits += not few
        before = Epoch()
        after = Epoch(numbers, report.choice, report.weights, report.reach, report.left_out)
        taught = self.oracle.taught(numbers, report.left_out)
        assert report.taught is not None
        assert report.taught.queries == len(taught) or JURY <= report.taught.queries < len(taught)
        for value, epoch in ((report.taught.before, before), (report.taught.after, after)):
            if self.oracle.lensed(epoch) or report.taught.queries < len(taught):
                continue  # judged among the documents that a query finds untaught; or by some of the queries
            low, high = self.oracle.quality(taught, epoch)
            assert low - CLOSE <= value <= high + CLOSE
        for query, right in self.protected_now.items():
            worst = self.oracle.quality({query: right}, before)[0]
            assert self.oracle.quality({query: right}, after)[1] >= worst - CLOSE, f"{query!r} was protected"

    @property
    def protected_now(self) -> dict[str, dict[str, float]]:
        """Protected queries, by the documents that are there."""
        living = {
            q: {id: g for id, g in right.items() if id in self.oracle.documents} for q, right in self.protected.items()
        }
        return {query: right for query, right in living.items() if right}

    @precondition(lambda self: self.oracle.lessons or self.protected)
    @rule(query=st.none() | nth, actor=st.sampled_from(ACTORS), document=st.none() | nth)
    def forget(self, query: int | None, actor: str | None, document: int | None) -> None:
        asked = sorted({lesson.query for lesson in self.oracle.lessons} | self.protected.keys())
        about = sorted({id for lesson in self.oracle.lessons for id in lesson.verdicts} | set(IDS[:1]))
        criteria = {
            "query": None if query is None else asked[query % len(asked)],
            "actor": actor,
            "document": None if document is None else about[document % len(about)],
        }
        if all(value is None for value in criteria.values()):
            criteria["actor"] = "ada"
        touched = self.oracle.forget(**criteria)
        assert self.writer.forget(**criteria) == evokey.Forgotten(touched, True, None)
        if criteria["actor"] is None and criteria["document"] is None:
            self.protected.pop(criteria["query"] or "", None)
        if touched and (self.oracle.asked or self.current):
            self.redacted = self.current
            self.refit()

    @precondition(lambda self: self.oracle.lessons)
    @rule(which=st.lists(nth, min_size=1, max_size=4), release=st.booleans())
    def hold_or_release(self, which: list[int], release: bool) -> None:
        """In effect with the next epoch; older ones stay as they are."""
        oracle = self.oracle
        numbers = {oracle.lessons[at % len(oracle.lessons)].number for at in which}
        changed = numbers & oracle.held if release else numbers - oracle.held
        assert (self.writer.release if release else self.writer.hold)(numbers) == len(changed)
        oracle.held = oracle.held - numbers if release else oracle.held | numbers

    def refit(self) -> None:
        """After a forget: as in a memory that never had these lessons, nor those on hold, bit for bit."""
        learned = (self.oracle.asked or frozenset()) - self.oracle.held
        with self.twin(learned) as twin:
            report = twin.evolve()
            if self.current or report.choice:
                choice, left_out = self.writer.epochs()[-1].choice, self.writer.epochs()[-1].left_out
                assert unanchored(choice) == unanchored(report.choice)  # the same documents have other numbers there
                assert len(left_out) == len(report.left_out)
                self.oracle.publish(Epoch(learned, choice, report.weights, report.reach, left_out))
            assert self.writer.stats().epoch == self.current
            for query in PROBES:
                assert plain(self.writer.search(query)) == plain(twin.search(query))

    def twin(self, learned: frozenset[int]) -> evokey.Memory:
        """A new memory with the same documents, protected queries and traffic, and these of the lessons."""
        shutil.rmtree(self.home / "twin", ignore_errors=True)
        twin, today = self.open("twin"), self.day
        here: dict[str, Document] = {}
        for lesson in self.oracle.lessons:
            if lesson.number not in learned:
                continue
            said = {id: Document(id, *reversed(verdict.content)) for id, verdict in lesson.verdicts.items()}
            twin.add([document for id, document in said.items() if here.get(id) != document])
            here |= said
            grades = {id: verdict.grade for id, verdict in lesson.verdicts.items()}
            right = {id: grade for id, grade in grades.items() if grade >= 0}
            self.day = int(lesson.time)
            twin.feedback(lesson.query, right, grades.keys() - right.keys(), units=lesson.units, actor=lesson.actor)
        self.day = today
        twin.delete(here)
        twin.add(self.oracle.documents.values())
        for query, right in self.protected_now.items():
            twin.protect(query, right)
        for query in self.writer.traffic():
            twin.search(query)
        return twin

    # ---- time travel

    @precondition(lambda self: hasattr(self.writer, "rollback"))
    @rule(to=nth)
    def rollback(self, to: int) -> None:
        old = self.oracle.epochs[to % len(self.oracle.epochs)]
        epoch = self.writer.rollback(to % len(self.oracle.epochs))
        self.oracle.rollback(old)
        assert (epoch.number, epoch.kind) == (self.current, "rollback")

    @precondition(lambda self: hasattr(self.writer, "diff"))
    @rule(a=nth, b=nth)
    def diff(self, a: int, b: int) -> None:
        """Queries that two epochs answer differently are named, with what each finds."""
        first, second = (at % len(self.oracle.epochs) for at in (a, b))
        found = self.reader.diff(first, second)
        numbers = self.oracle.epochs[first].lessons | self.oracle.epochs[second].lessons
        asked = self.protected_now | dict(self.oracle.taught(numbers))
        assert found.queries_compared == len(asked)
        rankings = {q: [[hit.id for hit in self.writer.search(q, epoch=at)] for at in (first, second)] for q in asked}
        assert {change.query: [change.before, change.after] for change in found.queries} == {
            query: both for query, both in rankings.items() if both[0] != both[1]
        }
        touched = self.oracle.touched(self.oracle.epochs[first]) | self.oracle.touched(self.oracle.epochs[second])
        assert {change.document for change in found.documents} <= touched

    @precondition(lambda self: hasattr(self.writer, "protect") and self.oracle.documents)
    @rule(query=questions, right=st.lists(st.tuples(nth, st.sampled_from([1.0, 2.0])), max_size=2))
    def protect(self, query: str, right: list[tuple[int, float]]) -> None:
        grades = {self.ids[at % len(self.ids)]: grade for at, grade in right}
        self.writer.protect(query, grades)
        self.protected.pop(query, None)
        if grades:
            self.protected[query] = grades

    # ---- answering

    @rule(query=questions, k=st.integers(1, 9), where=filters, epoch=st.none() | nth)
    def search(self, query: str, k: int, where: Mapping[str, Any] | None, epoch: int | None) -> None:
        number = None if epoch is None else epoch % len(self.oracle.epochs)
        self.check_search(query, k, where, number)

    def check_search(
        self, query: str, k: int, where: Mapping[str, Any] | None = None, epoch: int | None = None
    ) -> None:
        hits = self.writer.search(query, k=k, where=where, epoch=epoch)
        assert self.reader.search(query, k=k, where=where, epoch=epoch) == hits
        state = self.oracle.epochs[self.current if epoch is None else epoch]
        expected = self.oracle.search(query, where, state)
        near = NEAR if self.oracle.lensed(state) else CLOSE
        check_ranking([(hit.id, hit.score) for hit in hits], expected, k, near)
        if not state.choice and len(self.oracle.encoders) == 1:
            assert [hit.id for hit in hits] == [id for id, _ in expected[:k]]
            assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected[:k]], rel=EXACT)
        assert [hit.document for hit in hits] == [self.oracle.documents[hit.id] for hit in hits]

    @precondition(lambda self: self.oracle.documents)
    @rule(said=questions | nth, at=nth)
    def explain(self, said: str | int, at: int) -> None:
        """With any question, or one that was taught."""
        id, taught = self.ids[at % len(self.ids)], sorted({lesson.query for lesson in self.oracle.lessons})
        query = said if isinstance(said, str) else [*taught, "apple"][said % (len(taught) + 1)]
        views = self.reader.explain(id, query).views
        assert views == self.writer.explain(id, query).views
        for view in views:
            expected = self.oracle.view(view.retriever, query, id)
            if expected is None:
                continue
            self.tally.turned += expected.turned > 0
            found = [view.before, view.after, view.query_moved]
            assert found == pytest.approx([expected.before, expected.after, expected.turned], rel=NEAR, abs=NEAR)
            named = {pull.text: pull.amount for pull in view.query_moved_by}
            most = sorted(expected.because.values(), reverse=True)[:NAMED]
            assert list(named.values()) == pytest.approx(most, abs=NEAR)
            assert named == pytest.approx({text: expected.because[text] for text in named}, abs=NEAR)

    # ---- processes

    @rule(event=st.sampled_from(["writer", "reader", "hand over", "keys lost"]))
    def reopen(self, event: str) -> None:
        """A process ends and another begins, the reader becomes the writer, or the (derived) keys are gone."""
        if event == "reader":
            self.reader.close()
            self.reader = self.open()
            return
        self.writer.close()
        if event == "keys lost":
            shutil.rmtree(self.home / "kb" / "keys", ignore_errors=True)
        if event == "hand over":
            self.writer, self.reader = self.reader, self.open()
        else:
            self.writer = self.open()

    @rule(at=nth)
    def refuse(self, at: int) -> None:
        """Input that cannot be taken changes nothing; the invariants see to that."""
        memory, id = self.writer, next(iter(self.ids), "nobody")
        fine = {"query": "apple", "relevant": [id]}
        attempts: list[Callable[[], Any]] = [
            lambda: memory.add([Document(id, "changed"), {"id": "", "text": "stone"}]),
            lambda: memory.add([{"id": "d0", "text": "stone", "metadata": {"year": math.nan}}]),
            lambda: memory.add([Document("d0", "stone")], vectors=[[1.0]]),
            lambda: memory.delete([id, "nobody"]),
            lambda: memory.get("nobody"),
            lambda: memory.search("  "),
            lambda: memory.search("apple", k=0),
            lambda: memory.search("apple", epoch=self.current + 1),
            lambda: memory.search("apple", where={"operator": "XOR", "conditions": []}),
            lambda: memory.feedback("apple", [id, "nobody"]),
            lambda: memory.feedback(" ", [id]),
            lambda: memory.feedback("apple", {id: math.nan}),
            lambda: memory.feedback("apple", {id: math.inf}),
            lambda: memory.feedback("apple", {id: -1.0}),
            lambda: memory.feedback("apple", [id], irrelevant=[id]),
            lambda: memory.feedback("apple"),
            lambda: memory.feedback("apple", [id], units=["stone", " "]),
            lambda: memory.feedback("apple", [id], actor=""),
            lambda: memory.feedback_many([fine, {"query": "apple", "relevant": ["nobody"]}]),
            lambda: memory.feedback_many([fine, {"query": "", "relevant": [id]}]),
            lambda: memory.forget(),
            lambda: memory.forget(query=" "),
            lambda: memory.rollback(self.current + 1),
            lambda: memory.diff(0, self.current + 1),
            lambda: memory.protect("apple", ["nobody"]),
        ]
        with pytest.raises(EvokeyError):
            attempts[at % len(attempts)]()

    # ---- what always holds

    @invariant()
    def agree(self) -> None:
        self.turn += 1
        self.tally.steps += 1
        self.tally.lensed += self.oracle.lensed(self.oracle.epochs[-1])
        for memory in (self.writer, self.reader):
            assert len(memory) == len(self.oracle.documents)
            self.check_stats(memory)
            self.check_epochs(memory)
        for id in self.ids[self.turn % 3 :: 3]:
            assert self.writer.get(id) == self.reader.get(id) == self.oracle.documents[id]
        taught = sorted({lesson.query for lesson in self.oracle.lessons})
        queries = [PROBES[self.turn % len(PROBES)], *taught[self.turn % 5 :: max(5, len(taught))]]
        for query in queries:
            self.check_search(query, k=10)
            self.check_search(query, k=10, epoch=0)
        self.check_search(queries[-1], k=3, epoch=self.turn % len(self.oracle.epochs))

    def check_stats(self, memory: evokey.Memory) -> None:
        stats, oracle = memory.stats(), self.oracle
        texts = [f"{one.title}{one.text}".strip() for one in oracle.documents.values()]
        assert (stats.documents, stats.lessons, stats.epoch) == (len(texts), len(oracle.lessons), self.current)
        assert (stats.set_aside, stats.pending) == (oracle.set_aside, oracle.pending(self.current))
        assert stats.held == len(oracle.held)
        assert {one.number for one in memory.lessons(held=True)} == oracle.held
        assert stats.empty_documents == texts.count("")
        assert stats.documents_touched == len(oracle.touched(oracle.epochs[-1]))

    def check_epochs(self, memory: evokey.Memory) -> None:
        if not hasattr(memory, "epochs"):
            return
        known = self.oracle.known
        lessons = [frozenset(range(1, one.lessons_to + 1)) - one.omitted for one in memory.epochs()]
        kept = [
            known(Epoch(had, one.choice, one.weights, one.reach, one.left_out))
            for had, one in zip(lessons, memory.epochs(), strict=True)
        ]
        assert kept == [known(one) for one in self.oracle.epochs]
        assert [one.number for one in memory.epochs() if one.redacted] == list(range(1, self.redacted + 1))
        assert memory.protected_queries() == self.protected


def unanchored(choice: Mapping[str, Choice]) -> dict[str, Choice]:
    return {name: replace(one, last_anchor=0) for name, one in choice.items()}


def plain(hits: Iterable[evokey.Hit]) -> Ranking:
    return [(hit.id, hit.score) for hit in hits]


def check_ranking(found: Ranking, expected: Ranking, k: int, near: float) -> None:
    """The k best with their scores; documents whose scores differ by almost nothing may change places."""
    scores = dict(expected)
    assert len(found) == min(k, len(expected)) == len(dict(found))
    assert dict(found) == pytest.approx({id: scores[id] for id, _ in found}, rel=near, abs=near)
    worth = [scores[id] for id, _ in found]
    left = [score for id, score in expected if id not in dict(found)]
    assert all(later <= earlier + near for earlier, later in pairwise(worth))
    assert max(left, default=-math.inf) <= min(worth, default=math.inf) + near


MACHINES = {
    "bm25": ("bm25", "guarded", "none"),
    "hybrid": (["bm25", "wordllama"], "guarded", "none"),
    "hybrid, lenses allowed": (["bm25", "wordllama"], "guarded", "all"),
    "bm25 by lot": ("bm25", "chance", "all"),
    "wordllama by lot": ("wordllama", "chance", "all"),
    "hybrid by lot": (["bm25", "wordllama"], "chance", "all"),
}
SMALLER_GRID = {"SPREADS": (0.0, 1.0), "STEPS": (0.5, 4.0), "UNITS": (0.0, 1.0), "PENALTIES": (None, 0.2, 0.0)}
"""Fewer choices are tried faster, and chosen among by the same rule."""


@pytest.mark.parametrize("name", MACHINES)
def test_a_memory_answers_as_the_formulas_say_whatever_was_done_to_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPONENTS["policy"], "chance", Component("chance:Chance"))
    monkeypatch.setattr(EmbeddedStore, "persist_at", EmbeddedStore.persist_at)
    monkeypatch.setattr(logging.getLogger("evokey"), "disabled", True)
    for axis, values in SMALLER_GRID.items():
        monkeypatch.setattr(grid, axis, values)
    for bound in ("MIN_QUERIES", "EXAMPLES", "CENTRES"):
        monkeypatch.setattr(lens_training, bound, getattr(lenses, bound))
    encoder, policy, lens = MACHINES[name]
    tally = Tally()
    machine = type("Memory", (Machine,), {"encoder": encoder, "policy": policy, "lens": lens, "tally": tally})
    wanted = STEPS / len(MACHINES) if STEPS else 1
    for number in count(SEED + 1_000 * list(MACHINES).index(name)):
        run_state_machine_as_test(seed(number)(machine), settings=profile(25 if STEPS else 7))
        if tally.steps >= wanted:
            break
    log.info("%s: %s", name, tally)


def profile(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=25,
        phases=[Phase.generate, Phase.shrink] if STEPS else [Phase.generate],  # minutes, when something fails
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
