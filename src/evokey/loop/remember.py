"""What was verified becomes a lesson in the ledger, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from evokey import checks
from evokey.erasure import Erasure
from evokey.errors import InvalidInput, UnknownDocument
from evokey.evolution import pools
from evokey.evolution.policy import Policy, credits_retrieved
from evokey.ledger.ledger import Ledger
from evokey.loop.expand import Expanding
from evokey.loop.think import Thought
from evokey.passages.parts import resolve
from evokey.search.index import Index
from evokey.search.passages import passages_of
from evokey.search.upkeep import keep_traffic
from evokey.types import (
    Attempt,
    Document,
    Expansion,
    Hit,
    LearnReport,
    Lesson,
    Passage,
    Ruling,
    Section,
    Shown,
    Spent,
    Unit,
    Vectors,
    Verdict,
)
from evokey.verifiers.labels import Labels

RATING = "rating"
"""Who says so in a lesson that came from a vote."""
RETRIEVED = 100
"""How much of what a verified query finds is recorded for a policy that credits that."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody, or a verifier, says of documents for a query, checked."""

    query: str
    grades: Mapping[str, float]
    units: Sequence[str]
    actor: str | None
    vector: Vectors | None
    by: str
    found: tuple[str, ...] | None = None
    """What the query found together with its units, where a verifier has called that a success."""
    passages: Mapping[str, Sequence[Passage]] = field(default_factory=dict)
    """The parts of documents (by id) that it is about, where it is not about all of them."""


@dataclass(frozen=True)
class Recorder:
    index: Index
    ledger: Ledger
    policy: Policy
    expanding: Callable[[], Expanding]
    now: Callable[[], float]
    _waiting: list[list[str]] = field(default_factory=list, init=False)
    """Queries whose pools are to be made at the end of a transaction."""

    def record(self, said: Feedback) -> Lesson:
        """Write a lesson, all that goes with it, and the pools of its query, in one transaction."""
        ledger, numbers = self.ledger, self.ledger.documents.numbers(said.grades)
        apart = set(self.index.restricted.tolist())
        hashes = {one.id: one.hash for one in ledger.documents.fetch(numbers.values()).values()}
        verdicts = tuple(
            Verdict(id, grade, hashes[id], sections(said.passages.get(id, ()))) for id, grade in said.grades.items()
        )
        public = [id for id, grade in said.grades.items() if grade > 0 and numbers[id] not in apart]
        with ledger.write():
            self.index.catch_up()  # where several write, another may have been first
            new = Lesson(0, said.query, tuple(said.units), verdicts, said.actor, said.by, self.now())
            lesson = ledger.lessons.append(new, said.vector, self._retrieve(said))
            self.expanding().check_intent(said.query, public)
            self.index.remember()
            keep_traffic(self.index, ledger)
            if self._waiting:
                self._waiting[-1].append(said.query)
            else:
                self._make_pools([said.query])
        return lesson

    @contextmanager
    def pools_together(self) -> Iterator[None]:
        """Inside a transaction: pools wait until all its lessons are written, and are made side by side."""
        self._waiting.append([])
        try:
            yield
            self._make_pools(list(dict.fromkeys(self._waiting[-1])))
        finally:
            self._waiting.pop()

    def _make_pools(self, queries: Sequence[str]) -> None:
        for one in self.index.retrievers:
            self.ledger.pools.put(one.key_space, pools.make_all(one, queries, self.index.position))

    def name_passages(self, said: Feedback) -> Feedback:
        """The same, where "guide.md#install" names a passage of a document: an exact id of a document goes first."""
        known, passages = self.ledger.documents, dict[str, list[Passage]]()
        grades: dict[str, float] = {}
        for name, grade in said.grades.items():
            id, mark, part = name.rpartition("#")
            passage = None
            if mark and part and not known.has(name) and known.has(id):
                passage, name = self._passage(id, part), id
                passages.setdefault(id, []).append(passage)
            if name in grades and (grades[name] > 0) != (grade > 0):
                raise InvalidInput(
                    f"parts of document {name!r} are given as right and as wrong; a lesson has one verdict on a "
                    f"document: name the right parts alone, and the wrong ones in a lesson on another query"
                )
            grades[name] = max(grade, grades.get(name, grade), key=abs)
        return replace(said, grades=grades, passages=passages) if passages else said

    # ---- what votes credit

    def find_living(self, shown: Shown, most: int) -> list[Document]:
        """The first of the shown documents that are still here."""
        living = [id for id in shown.documents if self.ledger.documents.has(id)]
        return [self.ledger.documents.get(id) for id in living[:most]]

    def find_credited(self, names: Sequence[str]) -> list[str]:
        """Of passages those that are still here; one whose heading is gone is its document."""
        found = dict[str, None]()
        for name in names:
            try:
                self.name_passages(Feedback("", {name: 1.0}, (), None, None, RATING))
            except UnknownDocument:
                name = name.rpartition("#")[0]
            document = name if self.ledger.documents.has(name) else name.rpartition("#")[0]
            if self.ledger.documents.has(document):
                found[name] = None
        return list(found)

    def record_vote(self, query: str, names: Sequence[str], actor: str | None) -> int:
        """The number of a lesson in which these are right."""
        if self.index.given is not None:
            raise InvalidInput("this memory takes its vectors from the caller: teach it by feedback, with a vector")
        said = Feedback(query, dict.fromkeys(names, 1.0), (), actor, None, RATING)
        return self.record(self.name_passages(said)).number

    def _passage(self, id: str, name: str) -> Passage:
        number = self.ledger.documents.numbers([id])[id]
        document = self.ledger.documents.fetch([number])[number]
        return resolve(document, name, passages_of(self.index.retrievers, number, document))

    def check(self, said: Feedback) -> Feedback:
        if said.units and self.index.given is not None:
            raise InvalidInput("units need an encoder; this memory takes its vectors from the caller (encoder 'given')")
        return said

    def _retrieve(self, said: Feedback) -> list[str]:
        """What the paper's rule credits, and no other policy asks for: what the verifier saw, or what the query finds
        now together with its units, if enough of the right documents are among that."""
        if not credits_retrieved(self.policy):
            return []
        if said.found is not None:
            return list(said.found)
        hits = self._search(said)
        gate, k = getattr(self.policy, "gate", 0.0), getattr(self.policy, "retrieved", len(hits) or 1)
        ruling = Labels(k=k, threshold=gate).verify(Attempt(said.query, hits, relevant=said.grades))
        return [hit.id for hit in hits] if ruling.success else []

    def _search(self, said: Feedback) -> tuple[Hit, ...]:
        view, units = self.index.view(), tuple(Unit(text) for text in said.units)
        if units:
            best = view.rank_expanded(Expansion(said.query, units, said.by), RETRIEVED)
        else:
            best = view.rank(said.query, RETRIEVED, None, said.vector)
        documents = self.ledger.documents.fetch(best.numbers.tolist())
        pairs = zip(best.numbers.tolist(), best.scores.tolist(), strict=True)
        return tuple(Hit(documents[number].id, score, documents[number]) for number, score in pairs)

    def remember(self, thought: Thought, actor: str | None) -> LearnReport:
        """Keep what was paid for, and make a lesson of what was verified."""
        grades, lesson = thought.credits(everything=credits_retrieved(self.policy)), None
        found = tuple(hit.id for hit in thought.hits)
        with self.ledger.write():
            if thought.forgets != self.ledger.forgets.count:
                thought = self._discard(thought)
            if thought.expansion is not None:
                self.expanding().keep(thought.expansion, asked=not thought.known)
            self.ledger.expansions.count(thought.spent - (thought.expansion.spent if thought.expansion else Spent()))
            living = {id: grade for id, grade in grades.items() if self.ledger.documents.has(id)}
            if any(grade > 0 for grade in living.values()) and thought.ruling.success:
                units = checks.units(thought.expansion.texts if thought.expansion else ())
                who = None if actor is None else checks.actor(actor)
                said = Feedback(thought.query, living, units, who, None, thought.by, found, thought.passages)
                lesson = self.record(self.check(said))
        told = (thought.query, thought.expansion, found, thought.answer, thought.ruling, lesson)
        return LearnReport(*told, _outcome(thought, lesson), thought.spent)

    def _discard(self, thought: Thought) -> Thought:
        """What is left of a thought when something was forgotten since it began: it may be what was forgotten, so
        whatever the parts have kept of it is erased too, unless lessons have it."""
        if thought.query not in self.ledger.lessons.texts() | set(self.ledger.protected.all()):
            self.ledger.forgets.note(Erasure((thought.query,)))
        why = "something was forgotten in the meantime; try again"
        return Thought(thought.query, None, (), None, Ruling(None, reason=why, spent=thought.spent), trouble=why)


def sections(passages: Sequence[Passage]) -> tuple[Section, ...]:
    """Passages as a lesson stores them, in the order of the text; one that is the whole document is none."""
    found = {(one.start, one.end): Section(one.start, one.end, one.anchor) for one in passages if one.anchor}
    return tuple(found[place] for place in sorted(found))


def _outcome(thought: Thought, lesson: Lesson | None) -> str:
    """What learn did, in words."""
    if lesson is not None:
        return f"verified: {len(lesson.verdicts)} documents credited as lesson {lesson.number}"
    if thought.trouble is not None:
        return f"nothing learned: {thought.trouble}"
    if thought.ruling.success is None:
        return f"nothing learned: the verifier abstains ({thought.ruling.reason or 'it cannot tell'})"
    if thought.ruling.success:
        return "nothing learned: verified, but no document can be credited"
    return f"nothing learned: not verified ({thought.ruling.reason or 'it failed'})"
