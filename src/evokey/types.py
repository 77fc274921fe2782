"""The values that travel between the stages. All are frozen; a stage returns new ones.

| value      | made by      | says                                                         |
|------------|--------------|--------------------------------------------------------------|
| Document   | the caller   | id, text, title, metadata, and sections                      |
| Hit        | search       | a document, its score, and the passage that answers          |
| Passage    | search       | a part of a document's text, and where it is                 |
| Expansion  | an expander  | a query in more words: its units                             |
| Answer     | a generator  | a text, and the documents it cites                           |
| Ruling     | a verifier   | whether an attempt succeeded, and which documents were right |
| Verdict    | feedback     | how right one document is for one query                      |
| Lesson     | feedback     | a query, its units and its verdicts: one verified fact       |
| Choice     | evolution    | how far one retriever's keys move, and the penalty of taught questions |
| EpochReport| evolve       | what was proposed, how it did on held-out queries, and why it was published or not |
| Shown      | show         | what a search or an answer showed, so that it can be rated   |
| Rating     | rate         | a vote on what was shown, and what it led to                 |
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]
Vectors = NDArray[np.float32]

SYNTHETIC = "synthetic"
"""The actor of lessons whose questions a language model wrote (seed)."""
_CITATION = re.compile(r"(?<![ \t])[ \t]*+\[\d+\]")


def digest(*texts: str) -> str:
    """A short, stable name for a text (or several)."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a document's text that the text itself does not tell by headings: a page of a PDF, a function
    of a program."""

    start: int
    end: int
    where: str
    """Unique in its document: "p. 12", "Memory > search"."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is found. Learning never changes it."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    """In the order of the text, none overlapping another. Empty: the headings of the text are all there is to know."""

    @property
    def abstract(self) -> str:
        """The abstract that came with the document, in its metadata."""
        found = self.metadata.get("abstract")
        return found if isinstance(found, str) else ""

    @property
    def hash(self) -> str:
        """Identity of the content; a lesson about this document holds for this content only."""
        sections = "\0".join(f"{one.start} {one.end} {one.where}" for one in self.sections)
        return digest(self.title, self.text, *([self.abstract] if self.abstract else []), *filter(None, [sections]))


@dataclass(frozen=True, slots=True)
class Source:
    """The file that a document was read from, as it was then."""

    path: str
    size: int = -1
    modified: int = 0
    """In nanoseconds, as the file system says."""
    hash: str = ""
    """Of the bytes."""
    reader: int = 0
    """Version of the reader."""


@dataclass(frozen=True, slots=True)
class KeyText:
    """A text by which a document is found: one row of its keys."""

    text: str
    start: int | None = None
    end: int | None = None
    """The passage of the document's text that the row stands for. None: it stands for none, as a list of keywords."""
    where: str = ""
    """Title and headings above the passage."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document: `text` is `document.text[start:end]`, always."""

    text: str
    start: int
    end: int
    where: str
    """Its headings ("Install > Linux"), page ("p. 12") or number ("part 3"), unique in its document; empty where the
    passage is all of it."""
    anchor: str = ""
    """The same as in a link: "linux". Unique too."""

    def name(self, document: str) -> str:
        """How the passage of a document (by id) is cited: "guide.md#install", "report.pdf p. 12"."""
        if self.where.startswith("p. "):
            return f"{document} {self.where}"
        return f"{document}#{self.anchor}" if self.anchor else document


@dataclass(frozen=True)
class Hit:
    id: str
    score: float
    document: Document
    locate: Callable[[], Passage] | None = field(default=None, repr=False, compare=False)
    """Finds the passage when it is first asked for; None: the whole text is the passage."""
    similar: tuple[str, ...] = ()
    """Ids of hits that say nearly the same and are shown as this one, where that was asked for."""
    epoch: int | None = None
    """The epoch that brought it, where the hits of two were interleaved; None: both did."""

    @property
    def passage(self) -> Passage:
        """The part of the document that answers the query: that of its best key, where it has several, or the best part
        of its text."""
        if self.locate is None:
            return Passage(self.document.text, 0, len(self.document.text), "")
        found = self.locate()
        object.__setattr__(self, "locate", lambda: found)  # found once; and what found it holds the index as it was
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process goes the passage, not the index that it is found in."""
        return _hit, (self.id, self.score, self.document, self.passage, self.similar, self.epoch)


def _hit(
    id: str, score: float, document: Document, passage: Passage, similar: tuple[str, ...], epoch: int | None = None
) -> Hit:
    return Hit(id, score, document, lambda: passage, similar, epoch)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Document numbers with their scores, best first."""

    numbers: Numbers
    scores: Scores

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a language model."""

    role: str
    """system, user or assistant"""
    text: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What some work cost. Adds up."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    money: float = 0.0
    """In US dollars, where the price is known."""
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model answered."""

    text: str
    model: str
    spent: Spent = Spent()
    finished: bool = True
    """False when the answer was cut off at its greatest length."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An atomic text of an expansion, meaning something alone."""

    text: str
    positive: bool = True
    """A negative unit steers the expanded query away, and is never added to a key."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """A query in more words."""

    query: str
    units: tuple[Unit, ...]
    expander: str
    search: str = "blend"
    """How the expanded query searches: blend (query and mean of the units), concat (one long text), fuse (rankings)."""
    model: str | None = None
    prompt: str | None = None
    """Hash of the prompt, where a model was asked."""
    spent: Spent = Spent()
    like: str | None = None
    """The earlier query of the same intent whose expansion this is."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The units that say what is sought."""
        return tuple(unit.text for unit in self.units if unit.positive)

    @property
    def unwanted(self) -> tuple[str, ...]:
        """The units that say what is not sought."""
        return tuple(unit.text for unit in self.units if not unit.positive)


@dataclass(frozen=True, slots=True)
class Citation:
    """A source of an answer: a document (its id), and the passage of it that was read."""

    document: str
    passage: Passage

    @property
    def name(self) -> str:
        """As people cite it: "guide.md#install", "report.pdf p. 12"."""
        return self.passage.name(self.document)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a generator wrote, from the documents it was shown."""

    query: str
    text: str
    citations: tuple[str, ...]
    """Ids of the documents it names as its sources, each one of the hits."""
    hits: tuple[Hit, ...]
    model: str
    spent: Spent = Spent()
    finished: bool = True
    sources: tuple[Citation, ...] = ()
    """The same documents as citations, each with the passage that was read."""

    @property
    def plain(self) -> str:
        """The text without its marks of citation, [1]: what is compared with another answer."""
        return _CITATION.sub("", self.text)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a verifier looks at: what was found, what was answered, and what is known to be right."""

    query: str
    hits: tuple[Hit, ...]
    answer: Answer | None = None
    expected: tuple[str, ...] = ()
    """Gold answers, any of which is right."""
    relevant: Mapping[str, float] | None = None
    """Judged documents: grade above 0 is right. None: nobody judged."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verifier's word on an attempt."""

    success: bool | None
    """None abstains: it cannot tell."""
    score: float | None = None
    grades: Mapping[str, float] = field(default_factory=dict)
    """Documents it vouches for (above 0) or against (below 0); others it says nothing about."""
    reason: str = ""
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How right a document is: a grade above 0 is right, below 0 wrong, 0 takes an earlier verdict back."""

    document: str
    grade: float
    hash: str
    passages: tuple[Section, ...] = ()
    """Parts of the document that it is about, by their anchors; none: the document as a whole."""

    @property
    def names(self) -> list[str]:
        """As feedback takes them: the document, or its passages behind '#'."""
        return [f"{self.document}#{one.where}" for one in self.passages] or [self.document]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One verified fact of the log, as texts: no vector, no weight, nothing that depends on a retriever."""

    number: int
    query: str
    units: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    actor: str | None
    verifier: str
    time: float
    held: bool = False
    """On hold: it takes part in no new epoch until it is released."""

    def to_dict(self) -> dict[str, Any]:
        """As feedback takes it, and what is known of it beside."""
        return {
            "number": self.number,
            "query": self.query,
            "relevant": {name: one.grade for one in self.verdicts if one.grade >= 0 for name in one.names},
            "irrelevant": [name for one in self.verdicts if one.grade < 0 for name in one.names],
            "units": list(self.units),
            "actor": self.actor,
            "verifier": self.verifier,
            "time": self.time,
            "held": self.held,
        }


@dataclass(frozen=True, slots=True)
class LearnReport:
    """What learn did with a query, step by step."""

    query: str
    expansion: Expansion | None
    found: tuple[str, ...]
    """Ids of the hits that the verifier saw."""
    answer: Answer | None
    ruling: Ruling
    lesson: Lesson | None
    """None when nothing was verified."""
    reason: str
    spent: Spent

    def to_dict(self) -> dict[str, Any]:
        sources = [one.name for one in self.answer.sources] if self.answer else []
        told = self.answer and {"text": self.answer.text, "citations": list(self.answer.citations), "sources": sources}
        return {
            "query": self.query,
            "units": [asdict(unit) for unit in self.expansion.units] if self.expansion else [],
            "like": self.expansion.like if self.expansion else None,
            "found": list(self.found),
            "answer": told,
            "success": self.ruling.success,
            "score": self.ruling.score,
            "why": self.ruling.reason,
            "lesson": self.lesson.number if self.lesson else None,
            "credited": {
                name: one.grade for one in (self.lesson.verdicts if self.lesson else ()) for name in one.names
            },
            "reason": self.reason,
            "spent": asdict(self.spent),
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """What the cross-fit chose for one retriever. The default is "nothing": the untaught index."""

    spread: float = 0.0
    """β: a query that credits n documents gives each n^-β."""
    step: float = 0.0
    """λ: how far keys move towards what they were taught; 0 leaves them."""
    unit_weight: float = 0.0
    """η: the weight of the expansion units together, beside the query's 1."""
    penalty: float | None = None
    """δ: taught questions are kept as keys, and this share of the query's self-similarity is taken off their score;
    None: they are not kept as keys."""
    lens_parameter: float | None = None
    """The ridge μ of a dense lens (smaller is stronger), or γ of a lens of words; None: no lens."""
    gate_quantile: float = 0.0
    """Where a lens stops acting, as a quantile of how near taught queries are to each other."""
    whitening: float = 0.0
    """ν: how mildly a lens evens out the directions in which documents differ most; 0: not at all."""
    last_anchor: int = 0
    """The newest document that a lens may use as an anchor."""
    demotion: float = 0.0
    """γ: how far keys move away from queries for which they were wrong; 0 leaves them."""
    half_life: float = 0.0
    """The days after which a lesson counts half, counted back from the newest lesson; 0: all count the same."""
    locality: float = 0.0
    """τ or θ: taught texts count only for questions that are really similar to them (local keys); 0: for all."""
    sharpness: float = 0.0
    """What was learned counts by P^s, P the probability that a question is about something taught; 0: it counts
    fully."""
    gate_weights: tuple[float, ...] = ()
    """The coefficients of P; with them, the penalty vanishes for a question that was taught in the same words."""
    kernel: float = 1.0
    """Beside a search that is not ours: the likeness of two questions counts by this power."""
    discount: float = 0.0
    """Beside a search that is not ours: how much documents lose that it returns for many questions."""

    @property
    def lens_id(self) -> tuple[float, float, float] | None:
        """What tells one lens from another."""
        return None if self.lens_parameter is None else (self.lens_parameter, self.gate_quantile, self.whitening)

    @property
    def credit(self) -> tuple[float, float, float]:
        """How lessons are credited: β, η and how soon they lose weight."""
        return self.spread, self.unit_weight, self.half_life

    @property
    def move(self) -> tuple[float, float, float, float, float, float]:
        """How keys move: the credit, how locally, λ and γ."""
        return *self.credit, self.locality, self.step, self.demotion

    @property
    def effective_penalty(self) -> float:
        """The penalty as a number: infinite where taught questions are not kept as keys."""
        return float("inf") if self.penalty is None else self.penalty

    @property
    def only_taught_keys(self) -> bool:
        """Whether taught queries are kept as keys, and nothing else is learned."""
        return self.penalty is not None and self.step == self.demotion == 0 and self.lens_parameter is None

    @property
    def nothing(self) -> bool:
        moves = self.step or self.demotion or self.discount
        return not moves and self.penalty is None and self.lens_parameter is None


@dataclass(frozen=True, slots=True)
class Reach:
    """Which questions learning acts on: those similar to a taught one. The untaught index answers all others.

    Similarity is a share of the larger self-similarity of the two questions.
    """

    retriever: str
    """The retriever whose vectors measure the similarity."""
    threshold: float
    """Learned keys act on a question at least this similar to the nearest taught query; -1: on all."""
    weights_threshold: float
    """The same for learned fusion weights."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Mean nDCG@10 before and after, over so many queries."""

    before: float
    after: float
    queries: int


LeftOut = frozenset[tuple[int, str]]
"""Verdicts, each by its lesson and document, from which an epoch does not learn: they harm what others ask
(docs/voices.md)."""
ALL_HEARD: LeftOut = frozenset()


@dataclass(frozen=True, slots=True)
class EpochReport:
    published: bool
    reason: str
    epoch: int
    """The epoch that searches read from now on."""
    held_out: Quality | None
    """Queries scored on what the other folds taught; None when there were too few to cross-fit."""
    taught: Quality | None
    """The taught queries themselves."""
    choice: Mapping[str, Choice]
    weights: Mapping[str, float]
    """The share of each retriever in the fused score."""
    lessons: int
    documents: int
    """Documents whose keys differ from the untaught index."""
    restricted: int = 0
    """Restricted documents that have learned, each from its own lessons; they are none of the others' numbers."""
    synthetic: int = 0
    """Of the questions in the lessons, those that a language model wrote."""
    reach: Reach | None = None
    """Which questions it acts on; None: on all of them."""
    unrelated: Quality | None = None
    """Questions about other things: those of the traffic that are far from every lesson (what they find untaught counts
    as right), or, where no such were searched, held-out queries had their own documents learned nothing."""
    left_out: LeftOut = ALL_HEARD
    """What is not learned, because it harms what others ask. to_dict tells how many these are."""
    actors_left_out: Mapping[str | None, int] = field(default_factory=dict)
    """Whose lessons these are, and how many of each; None: no actor was named."""
    documents_left_out: Mapping[str, int] = field(default_factory=dict)
    """Documents that do not learn from these lessons, and from how many."""
    pools_renewed: int = field(default=0, compare=False)
    """Untaught results of taught queries that were out of date, because documents have come or gone, and were looked
    up again."""
    pools_seconds: float = field(default=0.0, compare=False)
    """What that took; it grows with the corpus, the rest of evolve does not."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "left_out": len(self.left_out)}


@dataclass(frozen=True, slots=True)
class TunedEncoder:
    """What training did to one retriever. Questions that training did not see are asked after evolve has learned all
    other lessons: before with the encoder as it was, after with the tuned one."""

    retriever: str
    revision: str | None
    """None: it was not published."""
    better: bool
    reason: str
    held_out: Quality
    related: Quality | None
    """Those that share a right document with a lesson; None if there are none."""
    unrelated: Quality | None
    seconds: float
    """For training, encoding the documents and comparing."""


@dataclass(frozen=True, slots=True)
class TuningCost:
    """What is known before an encoder is trained."""

    retriever: str
    encoder: str
    """That training begins with."""
    licence: str | None
    """Of its weights; None: not known."""
    documents: int
    seconds: float
    """To encode them all anew, by a sample of them."""

    @property
    def text(self) -> str:
        licence = f"licence {self.licence}" if self.licence else "licence not known: look it up"
        return (
            f"{self.retriever}: {self.documents:,} documents are encoded anew, in about {self.seconds:,.0f} s; "
            f"training begins with {self.encoder} ({licence})"
        )


@dataclass(frozen=True, slots=True)
class TuneReport:
    published: bool
    reason: str
    epoch: int
    """The epoch that searches read from now on."""
    lessons: int
    """Questions that were taught."""
    encoders: Sequence[TunedEncoder]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One immutable state of what was learned: these lessons, with this choice."""

    number: int
    kind: str
    """evolve, tune, forget or rollback"""
    lessons_to: int
    """The last lesson it includes."""
    choice: Mapping[str, Choice]
    weights: Mapping[str, float]
    time: float
    report: Mapping[str, Any]
    redacted: bool = False
    omitted: frozenset[int] = frozenset()
    """Lessons up to the last one that it leaves out: they were on hold."""
    reach: Reach | None = None
    """Which questions it acts on; None: on all of them."""
    left_out: LeftOut = ALL_HEARD
    """What it does not learn from, because it harms what others ask."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Retrievers whose encoder was tuned, and the revision of each: the others have the encoder of the settings."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What separates two epochs for one document: the texts it was taught, and how far its keys had moved."""

    document: str
    taught_before: int
    taught_after: int
    moved_before: Mapping[str, float]
    moved_after: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query that two epochs answer differently: the first ten ids of each."""

    query: str
    before: Sequence[str]
    after: Sequence[str]
    quality_before: float | None
    """nDCG@10 by what its lessons or its protection say; None where nothing is known to be right."""
    quality_after: float | None


@dataclass(frozen=True, slots=True)
class EpochDiff:
    before: int
    after: int
    documents: Sequence[DocumentChange]
    queries: Sequence[QueryChange]
    queries_compared: int
    """How many taught and protected queries were compared."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Term:
    """A word's share in a document's score for a query."""

    word: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one taught text adds to a document's score for a query; negative if the document was wrong for it."""

    text: str
    amount: float


@dataclass(frozen=True, slots=True)
class View:
    """One retriever's score of a document for a query, and where it comes from."""

    retriever: str
    moved: float
    """How far the key has moved: 1 − cosine for dense keys, the learned weight in words for sparse ones."""
    before: float
    """By the base key alone."""
    after: float
    best_key: str
    """The key that scored best: base key, moved key or taught question."""
    nearest_taught: str | None
    """Of the taught questions kept as keys of this document, the nearest."""
    contributions: Sequence[Contribution]
    """What moved the key, strongest first."""
    terms: Sequence[Term]
    """Sparse retrievers: the share of each of the query's words, base key and moved key."""
    query_moved: float = 0.0
    """How far the lens moved the query: 1 − cosine."""
    query_moved_by: Sequence[Contribution] = ()
    """The taught queries that caused it, and how near they are."""
    probability: float | None = None
    """That the query is about something taught; None without a gate."""
    share: float = 1.0
    """How much of what was learned counts for this query."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a document has learned, from whom, and what that does to a query."""

    document: str
    lessons: Sequence[Lesson]
    """Those that name this document, right or wrong, oldest first; none for a caller who is not the owner."""
    query: str | None
    rank_before: int | None
    """Its rank in the untaught index and now; None beyond the first hundred."""
    rank_after: int | None
    views: Sequence[View]
    lesson_count: int = 0
    """How many lessons name it, shown here or not."""
    carried_over: int = 0
    """Lessons that were taught on an earlier text of the document, most of which is still there."""
    set_aside: int = 0
    """Lessons that were taught on another text of the document; they have no effect now."""
    left_out: int = 0
    """Lessons from which the document does not learn, because they harm what others ask."""
    in_reach: bool = True
    """Whether the query is similar enough to a taught one for learning to act on it."""
    passage: Passage | None = None
    """The part of the document that answers the query."""
    passage_reason: str = ""
    """Why it is this part."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forget did. Its lessons have no effect from then on, whether or not all their bytes are erased."""

    lessons: int
    """How many were touched."""
    erased: bool
    """Whether no byte of what was forgotten is left in the memory's directory."""
    pending: str | None
    """What the rest waits for. The next writer finishes it."""
    revisions: int = 0
    """Of encoders: those that were trained on some of these lessons went with them. Tune again."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Stats:
    documents: int
    empty_documents: int
    documents_without_keys: int
    """Documents that some retriever cannot find: its encoder failed, or its keys are not written yet."""
    lessons: int
    set_aside: int
    """Verdicts about a document that is gone or whose text is another one now; they wait."""
    carried_over: int
    """Verdicts about an earlier text of a document that hold because most of that text is still there."""
    held: int
    """Lessons on hold: they take part in no new epoch until they are released."""
    erasing: str | None
    """What an unfinished forget waits for; None: nothing that was forgotten is left in the directory."""
    pending: int
    """Lessons, not on hold, that the current epoch does not include: the next evolve learns from them."""
    epoch: int
    documents_touched: int
    retrievers: Sequence[str]
    recall: Mapping[str, float]
    """Of the ten best documents, the share that searches find, by retriever, where a store does not look at all."""
    policy: str
    calls: int
    """Calls of language models, to expand queries."""
    calls_saved: int
    """Expansions that needed none: the intent was known."""
    false_hits: int
    """Of these, those that verification found to be another intent."""
    tokens: int
    money: float
    """In US dollars, where prices are known."""
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal that can be searched before it is published."""

    number: int
    """Below 0: search it with epoch=…, or compare=…"""
    after: int
    """The epoch that it would follow."""
    time: float
    lessons: int
    """Lessons that it has learned from."""
    report: EpochReport


@dataclass(frozen=True, slots=True)
class Other:
    """Another epoch that took part in a search."""

    mode: str
    """interleaved: its hits were among those shown; shadow: they were only recorded."""
    epoch: int
    documents: tuple[str, ...]
    """Ids that it brought."""
    both: tuple[str, ...] = ()
    """Ids that both epochs brought, where they were interleaved."""
    rankings: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """What each of two interleaved epochs found, this one and the other: the first ids. None: not known."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a search or an answer showed."""

    id: str
    query: str
    actor: str | None
    """Who asked, where that is known."""
    time: float
    epoch: int
    documents: tuple[str, ...]
    """Ids, best first."""
    cited: tuple[str, ...] = ()
    """Passages that an upvote credits: those the answer cites, or else those that its sentences match."""
    answer: str | None = None
    other: Other | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """The vote of one actor on what was shown."""

    query_id: str
    actor: str | None
    query: str
    up: bool
    reason: str | None
    cited: tuple[str, ...]
    """What an upvote credits."""
    time: float
    epoch: int
    lesson: int | None = None
    """The lesson that an upvote led to; on hold while the vote is another one."""
    review: int | None = None
    """The question to people that a downvote opened."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A question that the documents do not answer, says somebody."""

    query: str
    votes: int
    time: float
    """When it was last said."""
