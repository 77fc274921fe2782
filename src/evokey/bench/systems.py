"""Systems side by side: what is taught the same lessons and asked the same questions.

| name                | is                                                                              |
|---------------------|---------------------------------------------------------------------------------|
| none                | the untaught index                                                              |
| guarded, paper      | the policies                                                                    |
| nudge-n, nudge-m    | NUDGE (nudge-ft): dense vectors moved once, the step chosen on a fifth of the lessons |
| bm25s               | BM25 by another hand, untaught                                                  |
| expansion[:WHO]     | the untaught index, asked with recorded expansions: paid for with every query    |
| live[:EXPANDER]     | the same, by a language model that is asked while the searcher waits            |
| judged              | the documents that the set judges right: what answers can hope for              |
| no-rows, no-guard … | the guarded policy without one of its parts                                     |
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from evokey import registry
from evokey.bench.ablations import ABLATIONS, NEEDS_UNITS, NEEDS_WRONG
from evokey.bench.data import Dataset
from evokey.bench.lab import HYBRID, Lab
from evokey.bench.measures import Rank
from evokey.bench.protocols import Question
from evokey.errors import ExpansionFailed, InvalidInput
from evokey.evolution.paper import Paper, Replay
from evokey.evolution.policy import Policy
from evokey.expanders.recorded import Recorded
from evokey.inspect.accounting import displacements
from evokey.memory import Memory
from evokey.protocols import LLM, Expander, Look
from evokey.types import Document, Expansion, Vectors

UNTAUGHT, REFERENCE = "none", "guarded"
POLICIES = (REFERENCE, "paper")
PEERS = ("nudge-n", "nudge-m", "bm25s")
EXPANSION, LIVE, JUDGED = "expansion", "live", "judged"
NAMES = (UNTAUGHT, *POLICIES, *PEERS, EXPANSION, LIVE, JUDGED, *ABLATIONS)
EXPANDER, LIVE_TOKENS = "hyde", 128
"""How queries are expanded live, and the longest expansion."""
BATCH = 10
"""Lessons of a batch whose largest gain is looked at."""
ACTOR = "bench"
NEAR = 20
"""A mistaken lesson names one of so many first hits, or any document."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """What they say beside which documents are right."""

    units: str | None = None
    """Whose recorded expansions are taught with the queries."""
    wrong: int = 0
    """Of how many that the untaught index finds first the wrong ones are named."""


PLAIN = Lessons()


class System(Protocol):
    def teach(self, questions: Sequence[Question]) -> None: ...

    def evolve(self) -> Mapping[str, Any]:
        """Learn from all that was taught so far; returns what there is to say about it."""
        ...

    def rank(self, question: Question, depth: int) -> list[str]:
        """Ids of the best documents, best first."""
        ...

    def displacements(self) -> Mapping[str, Sequence[float]]:
        """By retriever, how far each touched key has moved: 1 − cosine, or the mass of learned weight."""
        ...

    def gains(self) -> Mapping[str, Sequence[float]]:
        """By retriever, the largest gain of every batch of lessons, for a rule that goes by such gains."""
        ...


def fits(name: str, encoder: str, units: str | None, wrong: int = 0) -> str | None:
    """Why a system cannot take part, or None."""
    plain, _, who = name.partition(":")
    if plain not in NAMES or (who and plain not in (EXPANSION, LIVE)):
        raise InvalidInput(
            f"there is no policy {name!r}; choose of: {', '.join(NAMES)}; expansion:NAME; live:EXPANDER; ablations"
        )
    parts = [] if encoder == HYBRID else encoder.split("+")
    kind = registry.encoder_kind(parts[0], {}) if len(parts) == 1 else "several"
    if name.startswith("nudge") and kind != "dense":
        return f"{name} moves dense vectors; {encoder} has others"
    if name == "bm25s" and encoder != "bm25":
        return "bm25s stands beside bm25 alone"
    if name == "no-words" and kind == "dense":
        return f"{encoder} does not go by words"
    if name in NEEDS_UNITS and units is None:
        return f"{name} is about expansion units: teach some with --units NAME"
    if name in NEEDS_WRONG and not wrong:
        return f"{name} is about documents that were named wrong: have some named with --wrong 10"
    return None


@contextmanager
def system(
    name: str, lab: Lab, lessons: Lessons = PLAIN, *, seed: int = 0, llm: Callable[[], LLM] | None = None
) -> Iterator[System]:
    """A system by its name, in its untaught state. llm: the model that expands queries live."""
    plain, _, who = name.partition(":")
    if name == JUDGED:
        yield Judged()
        return
    if name in PEERS:
        from evokey.bench import peers

        yield peers.peer(name, lab, seed)
        return
    policy: str | Policy = ABLATIONS[name]() if name in ABLATIONS else name if name in POLICIES else REFERENCE
    with lab.memory(policy) as memory:
        if name == UNTAUGHT:
            yield Plain(memory, lab)
        elif plain == EXPANSION:
            yield Expanded(memory, lab, recording(lab.data, who or None))
        elif plain == LIVE:
            if llm is None:
                raise InvalidInput("live expansion needs a language model: --llm llamacpp")
            yield Expanded(memory, lab, live_expander(llm(), who or EXPANDER))
        else:
            yield Taught(memory, lab, lessons)


def live_expander(llm: LLM, name: str = EXPANDER) -> Expander:
    """An expander that asks a language model while the searcher waits."""
    made: Expander = registry.build("expander", {"name": name, "max_tokens": LIVE_TOKENS}, llm=llm)
    return made


def add_noise(
    questions: Sequence[Question], rank: Rank, documents: Sequence[Document], share: float, seed: int
) -> list[Question]:
    """In a share of the questions, one wrong document replaces the right ones: one of the first hits, or any."""
    ids, found = [document.id for document in documents], []
    for question in questions:
        chance = random.Random(f"{seed} {question.id}")
        if chance.random() < share:
            candidates = rank(question, NEAR) if chance.random() < 0.5 else ids
            wrong = [id for id in candidates if id not in question.right] or ids
            question = replace(question, grades={chance.choice(wrong): 1.0})
        found.append(question)
    return found


def recording(data: Dataset, who: str | None) -> Recorded:
    """The recorded expansions of a set; without a name, the first."""
    if who is not None and who not in data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions by {who}; there are: {', '.join(data.expansions)}")
    if not data.expansions:
        raise InvalidInput(f"{data.name} has no recorded expansions (expansions/NAME.jsonl)")
    return Recorded(data.expansions[who or min(data.expansions)], queries=dict(data.queries))


class Still:
    """Learns nothing."""

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

    def rank(self, question: Question, depth: int) -> list[str]:
        return sorted(question.right, key=lambda id: (-question.grades[id], id))[:depth]


class Plain(Still):
    """The untaught index."""

    def __init__(self, memory: Memory, lab: Lab | None = None) -> None:
        self._memory, self._lab = memory, lab

    def rank(self, question: Question, depth: int) -> list[str]:
        return [hit.id for hit in self._memory.search(question.text, depth, vector=self._vector(question))]

    def _vector(self, question: Question) -> Vectors | None:
        return None if self._lab is None else self._lab.vector(question)


class Expanded(Plain):
    """The untaught index, asked with expansions; where there is none, with the query alone."""

    def __init__(self, memory: Memory, lab: Lab, expander: Expander) -> None:
        super().__init__(memory, lab)
        self._expander = expander

    def rank(self, question: Question, depth: int) -> list[str]:
        expansion = expand(self._expander, question.text, self._look)
        return [hit.id for hit in self._memory.search(question.text, depth, expansion=expansion)]

    def _look(self, text: str, k: int) -> list[Document]:
        return [hit.document for hit in self._memory.search(text, k)]


class Taught(Plain):
    """A memory that learns."""

    def __init__(self, memory: Memory, lab: Lab | None = None, lessons: Lessons = PLAIN) -> None:
        super().__init__(memory, lab)
        self._expander = None if lab is None or lessons.units is None else recording(lab.data, lessons.units)
        self._looked_at = lessons.wrong

    def teach(self, questions: Sequence[Question]) -> None:
        self._memory.feedback_many([self._lesson(one) for one in questions])

    def _lesson(self, question: Question) -> dict[str, Any]:
        expansion = None if self._expander is None else expand(self._expander, question.text)
        return {
            "query": question.text,
            "relevant": {id: grade for id, grade in question.grades.items() if grade > 0},
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
        return {name: report[name] for name in ("published", "reason", "choice", "weights", "documents")}

    def gains(self) -> Mapping[str, Sequence[float]]:
        """Of the paper's rule, in batches of BATCH lessons, keys evolving whenever these are saturated."""
        if not isinstance(self._memory.policy, Paper):
            return {}
        index = self._memory.index
        epoch = self._memory.epochs()[-1]
        successes = [
            one for one in self._memory.composer.log(epoch.lessons_to, epoch.omitted).successes if one.retrieved
        ]
        replays = {one.name: Replay(Paper(batch=BATCH, online=True), one, successes) for one in index.retrievers}
        for replay in replays.values():
            replay.run(())
        return {name: [round(gain, 6) for gain in replay.largest_gains] for name, replay in replays.items()}


def expand(expander: Expander, query: str, look: Look = lambda text, k: ()) -> Expansion | None:
    try:
        return expander.expand(query, look)
    except ExpansionFailed:
        return None
