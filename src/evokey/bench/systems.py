"""Systems side by side: what is taught the same lessons and asked the same questions.

| name                | is                                                                              |
|---------------------|---------------------------------------------------------------------------------|
| none                | the untaught index                                                              |
| guarded, paper      | the policies, with options if any: paper:x=2,capacity=8                         |
| MODULE:CLASS        | a policy of one's own, with options if any: mymodule:Mine:step=2                |
| nudge-n, nudge-m    | NUDGE (nudge-ft): dense vectors moved once, the step chosen on a fifth of the lessons |
| fine-tune           | the encoder itself trained on the lessons (evokey[tune]), a fifth of them held out |
| adapter             | a trained linear map of query vectors, a fifth of the lessons held out          |
| bm25s               | BM25 by another hand, untaught                                                  |
| expansion[:WHO]     | the untaught index, asked with recorded expansions: paid for with every query    |
| live[:EXPANDER]     | the same, by an expander that works while the searcher waits (MODULE:CLASS too)  |
| judged              | the documents that the set judges right: what answers can hope for              |
| no-rows, no-guard … | the guarded policy without one of its parts                                     |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from evokey import registry
from evokey.bench import naming
from evokey.bench.ablations import ABLATIONS, NEEDS_UNITS, NEEDS_WRONG
from evokey.bench.data import Dataset
from evokey.bench.data.trec import Scored
from evokey.bench.lab import HYBRID, Lab
from evokey.bench.protocols import Question
from evokey.errors import ExpansionFailed, InvalidInput
from evokey.evolution.paper import Paper, Replay
from evokey.evolution.policy import Policy, credits_retrieved
from evokey.expanders.recorded import Recorded
from evokey.inspect.displacement import displacements
from evokey.ledger.lessons import Success
from evokey.memory import Memory
from evokey.protocols import LLM, Expander, Look
from evokey.registry import Named
from evokey.types import Document, Expansion, Hit, Vectors

UNTAUGHT, REFERENCE = "none", "guarded"
POLICIES = (REFERENCE, "paper")
FINE_TUNE, ADAPTER = "fine-tune", "adapter"
TRAINED = (FINE_TUNE, ADAPTER)
"""Peers that train, with options if any: fine-tune:learning_rate=5e-5,epochs=3."""
PEERS = ("nudge-n", "nudge-m", *TRAINED, "bm25s")
EXPANSION, LIVE, JUDGED = "expansion", "live", "judged"
NAMES = (UNTAUGHT, *POLICIES, *PEERS, EXPANSION, LIVE, JUDGED, *ABLATIONS)
EXPANDER, LIVE_TOKENS = "hyde", 128
"""How queries are expanded live, and the longest expansion."""
BATCH = 10
"""Lessons of a batch whose largest gain is looked at."""
ACTOR = "bench"


@dataclass(frozen=True, slots=True)
class Lessons:
    """What they say beside which documents are right."""

    units: str | None = None
    """Whose recorded expansions are taught with the queries."""
    wrong: int = 0
    """Of how many that the untaught index finds first the wrong ones are named."""
    verifier: str | None = None
    """Lessons are what this verifier accepts of what the memory finds; without one, the set's judgements teach."""
    llm: str | None = None
    """The language model that a verifier, or an expander that is not recorded, may ask."""


PLAIN = Lessons()


class System(Protocol):
    def teach(self, questions: Sequence[Question]) -> None: ...

    def evolve(self) -> Mapping[str, Any]:
        """Learn from all that was taught so far; returns what there is to say about it."""
        ...

    def search(self, question: Question, depth: int) -> Scored:
        """The best documents with their scores, best first."""
        ...

    def rank(self, question: Question, depth: int) -> list[str]:
        """Their ids."""
        ...

    def displacements(self) -> Mapping[str, Sequence[float]]:
        """By retriever, how far each touched key has moved: 1 − cosine, or the mass of learned weight."""
        ...

    def gains(self) -> Mapping[str, Sequence[float]]:
        """By retriever, the largest gain of every batch of lessons, for a rule that goes by such gains."""
        ...


def fits(name: str, encoder: str, units: str | None, wrong: int = 0) -> str | None:
    """Why a system cannot take part, or None."""
    _check_name(name)
    parts = [] if encoder == HYBRID else encoder.split("+")
    kind = naming.encoder_kind(parts[0]) if len(parts) == 1 else "several"
    if name.startswith("nudge") and kind != "dense":
        return f"{name} moves dense vectors; {encoder} has others"
    if naming.base(name) in TRAINED and kind != "dense":
        return f"{name} trains on dense vectors; {encoder} has others"
    if name == "bm25s" and encoder != "bm25":
        return "bm25s stands beside bm25 alone"
    if name == "no-words" and kind == "dense":
        return f"{encoder} does not go by words"
    if name in NEEDS_UNITS and units is None:
        return f"{name} is about expansion units: teach some with --units NAME"
    if name in NEEDS_WRONG and not wrong:
        return f"{name} is about documents that were named wrong: have some named with --wrong 10"
    return None


def _check_name(name: str) -> None:
    """A system of this file, or a policy that can be built with these options."""
    if name in NAMES or name.partition(":")[0] in (EXPANSION, LIVE):
        return
    base = naming.base(name)
    if base in TRAINED:
        from evokey.bench import trained

        trained.settings(name)
        return
    if base in NAMES and base not in POLICIES:
        raise InvalidInput(f"policy {base!r} cannot take options: {name}")
    if base in POLICIES or base in registry.installed_components().get("policy", {}) or ":" in base:
        registry.build("policy", naming.parse(name))
        return
    raise InvalidInput(
        f"there is no policy {name!r}; choose of: {', '.join(NAMES)}; expansion:NAME; live:EXPANDER; ablations; "
        f"or name your own, module:Class"
    )


@contextmanager
def system(
    name: str, lab: Lab, lessons: Lessons = PLAIN, *, seed: int = 0, llm: Callable[[], LLM] | None = None
) -> Iterator[System]:
    """A system by its name, in its untaught state. llm: the model that expands queries live."""
    plain, _, who = name.partition(":")
    if name == JUDGED:
        yield Judged()
        return
    if naming.base(name) in PEERS:
        from evokey.bench import peers

        yield peers.peer(name, lab, seed)
        return
    with lab.memory(_policy(name), **_learning(lessons, lab.data)) as memory:
        if name == UNTAUGHT:
            yield Plain(memory, lab)
        elif plain == EXPANSION:
            yield Expanded(memory, lab, recording(lab.data, who or None))
        elif plain == LIVE:
            yield Expanded(memory, lab, live_expander(llm, who or EXPANDER))
        else:
            yield Taught(memory, lab, lessons)


def _policy(name: str) -> Named | Policy:
    if name in ABLATIONS:
        return ABLATIONS[name]()
    return REFERENCE if name == UNTAUGHT or name.partition(":")[0] in (EXPANSION, LIVE) else naming.parse(name)


def _learning(lessons: Lessons, data: Dataset) -> dict[str, Any]:
    """Settings of a memory whose lessons go through the whole loop: an expander, recorded or not, and a verifier."""
    if lessons.verifier is None:
        return {}
    found: dict[str, Any] = {"verifier": naming.parse(lessons.verifier)}
    if lessons.llm is not None:
        found["llm"] = naming.parse(lessons.llm)
    if lessons.units is not None:
        file = data.expansions.get(lessons.units)
        recorded = {"name": Recorded.name, "file": str(file.resolve())} if file else None
        found["expander"] = recorded or naming.parse(lessons.units)
    return found


def live_expander(llm: Callable[[], LLM] | None, said: str = EXPANDER) -> Expander:
    """An expander that works while the searcher waits; one that asks a language model gets this one."""
    name, options = registry.name_and_options(naming.parse(said))
    taken = inspect.signature(registry.load("expander", name)).parameters
    if "llm" in taken and llm is None:
        raise InvalidInput("live expansion needs a language model: --llm llamacpp")
    short = {"max_tokens": LIVE_TOKENS} if "max_tokens" in taken else {}
    asked = llm() if llm is not None and "llm" in taken else None
    made: Expander = registry.build("expander", {"name": name, **short, **options}, llm=asked)
    return made


def recording(data: Dataset, who: str | None) -> Recorded:
    """The recorded expansions of a set; without a name, the first."""
    if who is not None and who not in data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions by {who}; there are: {', '.join(data.expansions)}")
    if not data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions (expansions/NAME.jsonl)")
    return Recorded(data.expansions[who or min(data.expansions)], queries=dict(data.queries))


class Still:
    """Learns nothing."""

    def search(self, question: Question, depth: int) -> Scored:
        raise NotImplementedError

    def rank(self, question: Question, depth: int) -> list[str]:
        return [id for id, _ in self.search(question, depth)]

    def teach(self, questions: Sequence[Question]) -> None:
        pass

    def evolve(self) -> Mapping[str, Any]:
        return {}

    def displacements(self) -> Mapping[str, Sequence[float]]:
        return {}

    def gains(self) -> Mapping[str, Sequence[float]]:
        return {}


class Judged(Still):
    """Finds what is right, best grade first, and nothing else."""

    def search(self, question: Question, depth: int) -> Scored:
        best = sorted(question.right, key=lambda id: (-question.grades[id], id))[:depth]
        return [(id, question.grades[id]) for id in best]


class Plain(Still):
    """The untaught index."""

    def __init__(self, memory: Memory, lab: Lab | None = None) -> None:
        self._memory, self._lab = memory, lab

    def search(self, question: Question, depth: int) -> Scored:
        return _pair_scores(self._memory.search(question.text, depth, vector=self._vector(question)))

    def _vector(self, question: Question) -> Vectors | None:
        return None if self._lab is None else self._lab.vector(question)


class Expanded(Plain):
    """The untaught index, asked with expansions; where there is none, with the query alone."""

    def __init__(self, memory: Memory, lab: Lab, expander: Expander) -> None:
        super().__init__(memory, lab)
        self._expander = expander

    def search(self, question: Question, depth: int) -> Scored:
        expansion = expand(self._expander, question.text, self._look)
        return _pair_scores(self._memory.search(question.text, depth, expansion=expansion))

    def _look(self, text: str, k: int) -> list[Document]:
        return [hit.document for hit in self._memory.search(text, k)]


class Taught(Plain):
    """A memory that learns."""

    def __init__(self, memory: Memory, lab: Lab | None = None, lessons: Lessons = PLAIN) -> None:
        super().__init__(memory, lab)
        plain = lab is None or lessons.units is None or lessons.verifier is not None
        self._expander = None if lab is None or plain else recording(lab.data, lessons.units)
        self._looked_at = lessons.wrong
        self._answers = lab.data.answers if lab is not None else {}
        self._verified = lessons.verifier is not None

    def teach(self, questions: Sequence[Question]) -> None:
        if self._verified:
            for one in questions:
                self._memory.learn(one.text, self._answers.get(one.id) or None, _right(one), ACTOR)
            return
        lessons = [self._lesson(one) for one in questions]
        if getattr(self._memory.policy, "online", False):  # keys evolve between lessons
            for lesson in lessons:
                self._memory.feedback(**lesson)
            return
        self._memory.feedback_many(lessons)

    def _lesson(self, question: Question) -> dict[str, Any]:
        expansion = None if self._expander is None else expand(self._expander, question.text)
        return {
            "query": question.text,
            "relevant": _right(question),
            "irrelevant": self._wrong(question),
            "units": None if expansion is None else expansion.texts,
            "actor": ACTOR,
            "vector": self._vector(question),
        }

    def _wrong(self, question: Question) -> list[str]:
        """Documents judged wrong by the set, and those that somebody would who looks through the first few."""
        judged = [id for id, grade in question.grades.items() if grade <= 0]
        if not self._looked_at:
            return judged
        seen = self._memory.search(question.text, self._looked_at, vector=self._vector(question), epoch=0)
        return list(dict.fromkeys([*judged, *(hit.id for hit in seen if hit.id not in question.right)]))

    def displacements(self) -> Mapping[str, Sequence[float]]:
        return {one.retriever: one.moved for one in displacements(self._memory)}

    def evolve(self) -> Mapping[str, Any]:
        report = self._memory.evolve().to_dict()
        found = {name: report[name] for name in ("published", "reason", "choice", "weights", "documents")}
        if credits_retrieved(self._memory.policy):
            found["passed"] = len(self._successes)
        return {**found, "lessons": len(self._memory.lessons())}

    @property
    def _successes(self) -> Sequence[Success]:
        """The lessons that passed the paper's gate."""
        epoch = self._memory.epochs()[-1]
        return self._memory.composer.log(epoch.lessons_to, epoch.omitted).successes

    def gains(self) -> Mapping[str, Sequence[float]]:
        """Of the paper's rule, in batches of BATCH lessons, keys evolving whenever these are saturated."""
        if not isinstance(self._memory.policy, Paper):
            return {}
        rule, retrievers = Paper(batch=BATCH, online=True), self._memory.index.retrievers
        replays = {one.name: Replay(rule, one, self._successes) for one in retrievers}
        for replay in replays.values():
            replay.run(())
        return {name: [round(gain, 6) for gain in replay.largest_gains] for name, replay in replays.items()}


def _right(question: Question) -> dict[str, float]:
    return {id: grade for id, grade in question.grades.items() if grade > 0}


def _pair_scores(hits: Sequence[Hit]) -> Scored:
    return [(hit.id, hit.score) for hit in hits]


def expand(expander: Expander, query: str, look: Look = lambda text, k: ()) -> Expansion | None:
    try:
        return expander.expand(query, look)
    except ExpansionFailed:
        return None
