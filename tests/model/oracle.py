"""A slow, plain model of a memory, written from the formulas of docs/architecture.md and from nothing else.

It keeps documents, lessons and epochs as Python values and works every answer out from them anew. It shares with evokey
the encoders (stems, WordLlama vectors) and the values `Document` and `Choice`; no store, no overlay, no fusion.
What an evolve *chooses* is not worked out here: a test takes that from the memory's report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median
from typing import Any, Protocol

import lenses
import numpy as np

from evokey.encoders.bm25 import BM25
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.ledger.signature import THERE, Signature
from evokey.types import Choice, Document, LeftOut, Reach, Vectors

K1, B = 0.9, 0.4
SPARSE_WEIGHT = 0.75
LEAST_TRUST, LAST = 1e-3, 1e-6
RESEMBLANCE = 0.5
DEPTH = 10
"""How much of a ranking nDCG looks at."""
SMALL = 100
"""Rankings are fused to this depth; the oracle holds fewer documents, so it never cuts."""
NEIGHBOURS = 5
"""Taught questions that the gate looks at."""
SAME, SHUT, OPEN = 0.9, 0.01, 0.99
ROUNDING = 1e-6

Content = tuple[str, str]
"""Title and text: what a lesson about a document holds for."""
Grades = Mapping[str, Mapping[str, float]]
"""Query → document → how right."""
Ranking = list[tuple[str, float]]
Votes = dict[str, dict[str, dict[str | None, float]]]
"""Query → document → actor → grade."""
"""All documents that are found, best first."""


@dataclass(frozen=True)
class Verdict:
    grade: float
    content: Content


@dataclass(frozen=True)
class Lesson:
    number: int
    query: str
    units: tuple[str, ...]
    actor: str | None
    verdicts: Mapping[str, Verdict]
    time: float
    """In days."""


@dataclass(frozen=True)
class Epoch:
    lessons: frozenset[int] = frozenset()
    """The numbers of the lessons it was made of; some may be forgotten since."""
    choice: Mapping[str, Choice] = field(default_factory=dict)
    """Empty: the untaught index."""
    weights: Mapping[str, float] = field(default_factory=dict)
    reach: Reach | None = None
    left_out: LeftOut = frozenset()


@dataclass(frozen=True)
class Question:
    score: Callable[[Any], float]
    """q·row, through the lens if there is one."""
    said: Callable[[Any], float]
    """The same as the question was said."""
    self_similarity: float = 1.0
    trust: float = 1.0
    turned: float = 0.0
    """How far."""
    because: lenses.Because = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What explain says."""

    before: float
    after: float
    turned: float
    because: lenses.Because


class Retriever(Protocol):
    floor: float
    """A document must score above this to be found."""
    rows: Mapping[str, Any]
    """Base keys by document."""

    def row(self, text: str) -> Any: ...

    def words(self, text: str) -> Iterable[str]: ...

    def question(self, text: str, learned: Mapping[str, int], lens: Any = None) -> Question: ...

    def lens(self, grades: Grades, choice: Choice, anchors: Iterable[str]) -> lenses.Lens | None: ...

    def norm(self, base: Any, moved: Sequence[tuple[float, Any]]) -> float: ...


class Sparse:
    """BM25, its statistics counted over the documents that have a word at all."""

    floor = 0.0

    def __init__(self, texts: Mapping[str, str]) -> None:
        bags = {id: _bag(text) for id, text in texts.items()}
        self.rows = {id: bag for id, bag in bags.items() if bag}
        self._average = sum(bag.total() for bag in self.rows.values()) / max(len(self.rows), 1)
        self._frequency = Counter(word for bag in self.rows.values() for word in bag)

    def row(self, text: str) -> Counter[str]:
        return _bag(text)

    def words(self, text: str) -> Iterable[str]:
        return _bag(text)

    def norm(self, base: Any, moved: Sequence[tuple[float, Any]]) -> float:
        return 1.0

    def question(self, text: str, learned: Mapping[str, int], lens: lenses.Words | None = None) -> Question:
        asked = _bag(text)
        idf = {word: self._idf(self._frequency[word] or learned.get(word, 0)) for word in sorted(asked)}
        plain = {word: asked[word] * idf[word] for word in idf}
        factors = {word: lens.factors.get(word, 1.0) if lens and self._frequency[word] else 1.0 for word in idf}
        weights = {word: plain[word] * factors[word] for word in idf}

        def score(row: Counter[str]) -> float:
            return sum((weights[word] * self._held(row, word) for word in weights if row[word]), 0.0)

        unheard = math.log(1 + (len(self.rows) + 0.5) / 0.5)
        mass = sum(asked[word] * (idf[word] or unheard) for word in idf)
        known = sum(plain.values()) / mass if mass else 0.0
        found = Question(score, score, score(asked), trust=min(1.0, max(0.0, (known - 0.25) / 0.5)))
        if lens is None or all(factor == 1.0 for factor in factors.values()):
            return found
        product = sum(plain[word] * weights[word] for word in idf)
        lengths = math.hypot(*plain.values()) * math.hypot(*weights.values())
        far = max(0.0, 1 - product / lengths) if lengths else 0.0
        return replace(found, turned=far, because=lens.because(frozenset(asked)))

    def lens(self, grades: Grades, choice: Choice, anchors: Iterable[str]) -> lenses.Words | None:
        ways = {}
        for query in lenses.sampled(list(grades), lenses.EXAMPLES):
            right, words = grades[query], frozenset(_bag(query))
            total = sum(right.values())
            having = {word: sum(g for id, g in right.items() if self.rows[id][word]) / total for word in words}
            ways[query] = words, having
        assert choice.lens_parameter is not None
        return lenses.Words.made(ways, choice.lens_parameter)

    def _held(self, row: Counter[str], word: str) -> float:
        """How much of a word a row holds."""
        pivot = K1 * (1 - B + B * row.total() / max(self._average, 1e-9))
        return row[word] / (row[word] + pivot)

    def _idf(self, frequency: int) -> float:
        return math.log(1 + (len(self.rows) - frequency + 0.5) / (frequency + 0.5)) if frequency else 0.0


class Dense:
    floor = -math.inf

    def __init__(self, texts: Mapping[str, str]) -> None:
        vectors = {id: _vector(text) for id, text in texts.items()}
        self.rows = {id: vector for id, vector in vectors.items() if vector.any()}

    def row(self, text: str) -> Vectors:
        return _vector(text)

    def words(self, text: str) -> Iterable[str]:
        return ()

    def question(self, text: str, learned: Mapping[str, int], lens: lenses.Dense | None = None) -> Question:
        asked = _vector(text)
        said: Callable[[Any], float] = lambda row: float(np.vecdot(row, asked))  # noqa: E731
        through = lens.turned(asked.astype(np.float64)) if lens else None
        if lens is None or through is None:
            return Question(said, said)
        because = lens.because(asked.astype(np.float64))
        far = 1 - float(asked.astype(np.float64) @ through)
        return Question(lambda row: float(row.astype(np.float64) @ through), said, turned=far, because=because)

    def lens(self, grades: Grades, choice: Choice, anchors: Iterable[str]) -> lenses.Dense | None:
        ways = {}
        for query in lenses.sampled(list(grades), lenses.EXAMPLES):
            total = np.sum([grade * self.rows[id].astype(np.float64) for id, grade in grades[query].items()], axis=0)
            ways[query] = _vector(query).astype(np.float64), total / np.linalg.norm(total)
        held = [self.rows[id].astype(np.float64) for id in anchors if id in self.rows]
        assert choice.lens_parameter is not None
        return lenses.Dense.made(ways, held, choice.lens_parameter, choice.gate_quantile, choice.whitening)

    def norm(self, base: Vectors, moved: Sequence[tuple[float, Vectors]]) -> float:
        pull = np.sum([weight * row.astype(np.float64) for weight, row in moved], axis=0)
        return math.sqrt(max(1 + 2 * float(base @ pull) + float(pull @ pull), 1e-12))


KINDS: Mapping[str, type[Sparse] | type[Dense]] = {"bm25": Sparse, "wordllama": Dense}


class Learned:
    """What one choice makes of the lessons, for one retriever."""

    def __init__(
        self,
        retriever: Retriever,
        grades: Grades,
        wrong: Grades,
        units: Mapping[str, Sequence[str]],
        weights: Mapping[tuple[str, str], float],
        ages: Mapping[tuple[str, str], float],
        choice: Choice,
        anchors: Iterable[str],
    ) -> None:
        self._retriever, self._choice = retriever, choice
        here = {
            q: {id: g * weights.get((q, id), 1.0) for id, g in right.items() if id in retriever.rows}
            for q, right in grades.items()
        }
        here = {query: right for query, right in here.items() if right}
        self.lens = None if choice.lens_parameter is None else retriever.lens(here, choice, anchors)
        self.evidence: dict[str, dict[str, float]] = {}
        """ω: document → taught text → weight. A text without weight is no recall row either."""
        taught: dict[str, set[str]] = {}
        for query, credited in grades.items():
            for id in credited.keys() & retriever.rows.keys():
                omega = credited[id] * weights.get((query, id), 1.0) * len(credited) ** -choice.spread
                omega *= 0.5 ** (ages[query, id] / choice.half_life) if choice.half_life else 1.0
                self._teach(id, query, omega)
                for unit, share in _shares(retriever, units.get(query, ()), id):
                    self._teach(id, unit, omega * choice.unit_weight * share)
                    taught.setdefault(id, set()).update(retriever.words(unit))
                taught.setdefault(id, set()).update(retriever.words(query))
        self.words = Counter(word for words in taught.values() for word in words)
        self._asked = {q: credited.keys() & retriever.rows.keys() for q, credited in sorted(grades.items())}
        """Taught questions, and the documents that were right."""
        self._mass = {id: sum(texts.values()) for id, texts in self.evidence.items()}
        self.against: dict[str, dict[str, float]] = {}
        """Document → query that it was wrong for → how wrong; empty where that has no say."""
        for query, blamed in wrong.items() if choice.demotion else ():
            for id in blamed.keys() & retriever.rows.keys():
                self.against.setdefault(id, {})[query] = blamed[id] * weights.get((query, id), 1.0)
        self._blame = {id: sum(queries.values()) for id, queries in self.against.items()}

    def _teach(self, id: str, text: str, omega: float) -> None:
        if omega > 0:
            texts = self.evidence.setdefault(id, {})
            texts[text] = texts.get(text, 0.0) + omega

    def touched(self, id: str) -> bool:
        return id in self.evidence or id in self.against

    def opening(self, question: Question, among: set[str]) -> tuple[float, float]:
        """How much counts of what was learned, and of the penalty of taught questions, if these documents are
        searched."""
        weights, rows = self._choice.gate_weights, self._retriever.rows
        if not weights:
            return 1.0, 1.0
        base = {id: question.score(row) for id, row in rows.items() if id in among or self.touched(id)}
        signals = self._signals(question, base)
        probability = 1 / (1 + math.exp(-sum(w * s for w, s in zip(weights, [1.0, *signals], strict=True))))
        other = min(1.0, max(0.0, (1 - signals[0]) / (1 - SAME)))
        share = max(probability**self._choice.sharpness, 1 - other)
        return (0.0 if share < SHUT else 1.0 if share > OPEN else share), other

    def _signals(self, question: Question, base: Mapping[str, float]) -> list[float]:
        own, taught = question.self_similarity, {q: about for q, about in self._asked.items() if about}
        if own <= 0 or not taught:
            return [0.0] * 8
        like = {q: max(question.said(self._retriever.row(q)) / own, -1.0) for q in taught}
        first, *others = near = sorted(like, key=lambda q: (-round(like[q] / ROUNDING), q))[:NEIGHBOURS]
        agreeing = [not taught[first].isdisjoint(taught[other]) for other in others]
        best = sorted((score for score in base.values() if score > self._retriever.floor), reverse=True)[:DEPTH]
        found = [max(score / own, -1.0) for score in best] or [0.0]
        ahead = sum(score > max(base[id] for id in taught[first]) / own + ROUNDING for score in found)
        return [
            like[first],
            like[others[0]] if others else 0.0,
            sum(like[q] for q in near) / len(near),
            found[0],
            found[0] - (found[-1] if len(found) == DEPTH else 0.0),
            like[first] - found[0],
            sum(agreeing) / len(agreeing) if agreeing else 0.0,
            math.log1p(ahead),
        ]

    def score(self, id: str, question: Question, opening: tuple[float, float]) -> float:
        base = question.score(self._retriever.rows[id])
        if not self.touched(id):
            return base
        best, (share, penalty) = self._moved(id, base, question), opening
        if self._choice.penalty is not None and id in self.evidence:
            nearest = max(question.said(self._retriever.row(text)) for text in self.evidence[id])
            best = max(best, nearest - self._choice.penalty * penalty * question.self_similarity)
        return base + share * (best - base)

    def _moved(self, id: str, base: float, question: Question) -> float:
        pulls: list[tuple[float, Any]] = []
        for said, masses, scale in (
            (self.evidence, self._mass, self._choice.step),
            (self.against, self._blame, -self._choice.demotion),
        ):
            if id in said and scale:
                share = scale / (masses[id] + median(masses.values()))
                pulls += [(share * omega, self._retriever.row(text)) for text, omega in sorted(said[id].items())]
        if self._choice.locality:
            return base + sum(alpha * self._local(question, row) for alpha, row in pulls)
        drawn = base + sum(alpha * question.score(row) for alpha, row in pulls)
        return drawn / self._retriever.norm(self._retriever.rows[id], pulls) if pulls else base

    def _local(self, question: Question, row: Any) -> float:
        """How much of a text counts for a question."""
        alike, width = question.score(row), self._choice.locality
        if isinstance(self._retriever, Dense):
            return math.exp((alike - 1) / width)
        return max(alike - width * question.self_similarity, 0.0)


class Oracle:
    def __init__(self, encoders: Sequence[str]) -> None:
        self.encoders = tuple(encoders)
        self.documents: dict[str, Document] = {}
        """In the order in which their contents came."""
        self.numbers: dict[str, int] = {}
        """Contents are numbered as they come; those of the documents that are here."""
        self._newest = 0
        self.lessons: list[Lesson] = []
        self.epochs: list[Epoch] = [Epoch()]
        self.held: set[int] = set()
        """Lessons on hold."""
        self.asked: frozenset[int] | None = None
        """The lessons that evolve was last asked to learn; None: it was never asked."""
        self._worked_out: dict[Any, Any] = {}

    @property
    def untaught_weights(self) -> dict[str, float]:
        if set(self.encoders) == {"bm25", "wordllama"}:
            return {"bm25": SPARSE_WEIGHT, "wordllama": 1 - SPARSE_WEIGHT}
        return {name: 1 / len(self.encoders) for name in self.encoders}

    # ---- documents

    def add(self, documents: Sequence[Document]) -> None:
        self._worked_out.clear()
        for document in {one.id: one for one in documents}.values():
            old = self.documents.get(document.id)
            if old is None or content(old) != content(document):
                self.documents.pop(document.id, None)
                self._newest += 1
                self.numbers[document.id] = self._newest
            self.documents[document.id] = document

    def delete(self, ids: Iterable[str]) -> None:
        self._worked_out.clear()
        for id in set(ids):
            del self.documents[id], self.numbers[id]

    # ---- lessons

    def teach(
        self,
        number: int,
        query: str,
        grades: Mapping[str, float],
        units: Sequence[str] = (),
        actor: str | None = None,
        time: float = 0.0,
    ) -> None:
        self._worked_out.clear()
        verdicts = {id: Verdict(grade, content(self.documents[id])) for id, grade in grades.items()}
        self.lessons.append(Lesson(number, query.strip(), tuple(unit.strip() for unit in units), actor, verdicts, time))

    def forget(self, query: str | None = None, actor: str | None = None, document: str | None = None) -> int:
        """Returns how many lessons were touched."""
        self._worked_out.clear()
        kept, count = [], 0
        for lesson in self.lessons:
            meant = query in (None, lesson.query) and actor in (None, lesson.actor)
            if not meant or (document is not None and document not in lesson.verdicts):
                kept.append(lesson)
                continue
            count += 1
            left = {id: said for id, said in lesson.verdicts.items() if document is not None and id != document}
            if left:
                kept.append(replace(lesson, verdicts=left))
        self.lessons = kept
        self.held &= {lesson.number for lesson in kept}
        return count

    def publish(self, epoch: Epoch) -> None:
        self.epochs.append(epoch)

    def known(self, epoch: Epoch) -> tuple[Any, ...]:
        """What an epoch comes to: the lessons in it that are not forgotten, and what was chosen."""
        lessons = [lesson.number for lesson in self.lessons if lesson.number in epoch.lessons]
        verdicts = {(lesson.number, id) for lesson in self.lessons for id in lesson.verdicts}
        return lessons, epoch.choice, epoch.weights, epoch.reach, sorted(epoch.left_out & verdicts)

    @property
    def taking_part(self) -> frozenset[int]:
        """The lessons that are not on hold."""
        return frozenset(lesson.number for lesson in self.lessons if lesson.number not in self.held)

    def rollback(self, to: Epoch) -> None:
        """Its lessons take part, and no others."""
        self.held = {lesson.number for lesson in self.lessons if lesson.number not in to.lessons}
        self.asked = to.lessons
        self.publish(to)

    @property
    def set_aside(self) -> int:
        return sum(not self._holds(id, said) for lesson in self.lessons for id, said in lesson.verdicts.items())

    def pending(self, epoch: int) -> int:
        return len(self.taking_part - self.epochs[epoch].lessons)

    def taught(self, numbers: frozenset[int], left_out: LeftOut = frozenset()) -> Grades:
        """The documents that were right for each query, by these lessons."""
        return self._judged(numbers, left_out, 1)

    def wrong(self, numbers: frozenset[int], left_out: LeftOut = frozenset()) -> Grades:
        """The documents that were wrong for each query, and how wrong."""
        return self._judged(numbers, left_out, -1)

    def _votes(self, numbers: frozenset[int], left_out: LeftOut) -> Votes:
        """The last verdict of each actor."""
        votes: Votes = {}
        for lesson in self.lessons:
            for id, said in lesson.verdicts.items():
                heard = lesson.number in numbers and (lesson.number, id) not in left_out
                if heard and self._holds(id, said):
                    votes.setdefault(lesson.query, {}).setdefault(id, {})[lesson.actor] = said.grade
        return votes

    def evidence(self, numbers: frozenset[int], left_out: LeftOut) -> dict[tuple[str, str], float]:
        """What a verdict on a query and a document weighs: many lessons of one actor on a document weigh as three, if
        there are other actors. The owner is trusted."""
        votes = self._votes(numbers, left_out)
        if len(_actors(votes)) < 2:
            return {}
        said = [(q, id, who, g > 0) for q, about in votes.items() for id in about for who, g in about[id].items() if g]
        count, found = Counter((id, who, right) for _, id, who, right in said), dict[tuple[str, str], float]()
        for query, id, who, right in said:
            share = 1.0 if who is None else min(1.0, 3 / count[id, who, right])
            found[query, id] = min(1.0, found.get((query, id), 0.0) + share)
        return found

    def ages(self, numbers: frozenset[int], left_out: LeftOut) -> dict[tuple[str, str], float]:
        """How much older than the newest verdict the last on each query and document is."""
        latest: dict[tuple[str, str], float] = {}
        for lesson in self.lessons:
            for id, said in lesson.verdicts.items():
                heard = lesson.number in numbers and (lesson.number, id) not in left_out
                if heard and self._holds(id, said):
                    latest[lesson.query, id] = lesson.time
        newest = max(latest.values(), default=0.0)
        return {pair: newest - time for pair, time in latest.items()}

    def _judged(self, numbers: frozenset[int], left_out: LeftOut, side: int) -> Grades:
        votes = self._votes(numbers, left_out)
        disputes = _disputes(votes) if len(_actors(votes)) > 1 else Counter[str | None]()
        means = {query: {id: _mean(said, disputes) for id, said in about.items()} for query, about in votes.items()}
        judged = {
            query: {id: side * mean for id, mean in found.items() if side * mean > 0} for query, found in means.items()
        }
        return {query: found for query, found in judged.items() if found}

    def units(self, numbers: frozenset[int], left_out: LeftOut = frozenset()) -> dict[str, list[str]]:
        """All units that these lessons gave with a query; those of a lesson that is left out in part are, too."""
        found: dict[str, set[str]] = {}
        apart = {number for number, _ in left_out}
        for lesson in self.lessons:
            if lesson.number in numbers - apart:
                found.setdefault(lesson.query, set()).update(lesson.units)
        return {query: sorted(units) for query, units in found.items()}

    def _holds(self, id: str, said: Verdict) -> bool:
        """Whether a document still has the text that a verdict is about, or most of it."""
        if id not in self.documents:
            return False
        now = content(self.documents[id])
        return now == said.content or Signature.of("\n".join(said.content)).share_in("\n".join(now)) >= THERE

    # ---- answering

    def search(self, query: str, where: Mapping[str, Any] | None = None, epoch: Epoch | None = None) -> Ranking:
        """Everything that is found, best first, by the given epoch or the current one."""
        state = self.reached(query, self.epochs[-1] if epoch is None else epoch)
        among = {id for id, document in self.documents.items() if _meets(document, where or {})}
        rankings, trusts = [], []
        for name in self.encoders:
            retriever, learned = self._retriever(name), self._learned(name, state)
            question = self._question(name, query, state)
            opening = learned.opening(question, among) if learned else (1.0, 1.0)
            scores = {
                id: learned.score(id, question, opening) if learned else question.score(retriever.rows[id])
                for id in self.documents
                if id in among and id in retriever.rows
            }
            rankings.append(self._ordered({id: score for id, score in scores.items() if score > retriever.floor}))
            trusts.append(question.trust)
        if len(rankings) == 1:
            return rankings[0]
        weights = state.weights if state.choice else self.untaught_weights
        fused: dict[str, float] = {}
        for name, ranking, trust in zip(self.encoders, rankings, trusts, strict=True):
            for id, score in _stretched(ranking):
                fused[id] = fused.get(id, 0.0) + weights[name] * max(trust, LEAST_TRUST) * score
        return self._ordered({id: score for id, score in fused.items() if score > 0})

    def reached(self, query: str, epoch: Epoch) -> Epoch:
        """An epoch as far as it reaches a query."""
        if epoch.reach is None:
            return epoch
        said = epoch.lessons, epoch.left_out
        taught = {*self.taught(*said), *self.wrong(*said)}
        likeness = [float(np.vecdot(_vector(query), _vector(text))) for text in taught]
        nearest = 1.0 if query in taught else max(likeness, default=-math.inf)
        if nearest < epoch.reach.threshold:
            return Epoch(epoch.lessons)
        return epoch if nearest >= epoch.reach.weights_threshold else replace(epoch, weights=self.untaught_weights)

    def view(self, name: str, query: str, id: str) -> View | None:
        """What one retriever makes of a document now; None if it has no key."""
        state = self.reached(query, self.epochs[-1])
        retriever, learned = self._retriever(name), self._learned(name, state)
        if id not in retriever.rows:
            return None
        question = self._question(name, query, state)
        row = retriever.rows[id]
        opening = learned.opening(question, set(self.documents)) if learned else (1.0, 1.0)
        after = learned.score(id, question, opening) if learned else question.score(row)
        untaught = self._retriever(name).question(query, learned.words if learned else {})
        return View(untaught.score(row), after, question.turned, question.because)

    def _question(self, name: str, query: str, epoch: Epoch) -> Question:
        learned = self._learned(name, epoch)
        if learned is None:
            return self._retriever(name).question(query, {})
        return self._retriever(name).question(query, learned.words, learned.lens)

    def lensed(self, epoch: Epoch) -> bool:
        """Whether questions pass a lens."""
        return any(one is not None and one.lens for one in (self._learned(name, epoch) for name in self.encoders))

    def touched(self, epoch: Epoch) -> set[str]:
        """Documents whose keys an epoch may have changed."""
        learned = [self._learned(name, epoch) for name in self.encoders]
        return {id for one in learned if one is not None for id in (*one.evidence, *one.against)}

    def quality(self, grades: Grades, epoch: Epoch, margin: float = 1e-5) -> tuple[float, float]:
        """Mean nDCG@10 of these queries: its least and its most, however close scores may fall."""
        bounds = [_ndcg_bounds(self.search(query, epoch=epoch), right, margin) for query, right in grades.items()]
        return tuple(sum(bound[side] for bound in bounds) / max(len(bounds), 1) for side in (0, 1))  # type: ignore[return-value]

    def _ordered(self, scores: Mapping[str, float]) -> Ranking:
        """Best first; among equals the older."""
        age = {id: place for place, id in enumerate(self.documents)}
        return sorted(scores.items(), key=lambda item: (-item[1], age[item[0]]))

    def _retriever(self, name: str) -> Retriever:
        if name not in self._worked_out:
            texts = {id: f"{one.title} {one.text}".strip() for id, one in self.documents.items()}
            self._worked_out[name] = KINDS[name]({id: text for id, text in texts.items() if text})
        return self._worked_out[name]

    def _learned(self, name: str, epoch: Epoch) -> Learned | None:
        choice = epoch.choice.get(name, Choice())
        if choice.nothing:
            return None
        key = (name, choice, epoch.lessons, epoch.left_out)
        if key not in self._worked_out:
            heard = epoch.lessons, epoch.left_out
            said = self.taught(*heard), self.wrong(*heard), self.units(*heard), self.evidence(*heard), self.ages(*heard)
            anchors = [id for id, number in self.numbers.items() if number <= choice.last_anchor]
            self._worked_out[key] = Learned(self._retriever(name), *said, choice, anchors)
        return self._worked_out[key]


def content(document: Document) -> Content:
    return document.title, document.text


def _actors(votes: Votes) -> set[str | None]:
    return {who for about in votes.values() for said in about.values() for who in said}


def _disputes(votes: Votes) -> Counter[str | None]:
    """How many verdicts of each actor somebody contradicts."""
    every = ({who: g for who, g in said.items() if g} for about in votes.values() for said in about.values())
    return Counter(who for said in every if len({g > 0 for g in said.values()}) > 1 for who in said)


def _mean(said: Mapping[str | None, float], disputes: Counter[str | None]) -> float:
    """The mean verdict. Who is contradicted often counts less where somebody contradicts, and "wrong" half; the owner
    does not."""
    votes = sorted((grade, str(who), who) for who, grade in said.items() if grade)
    if not votes:
        return 0.0
    disputed = disputes and votes[0][0] < 0 < votes[-1][0]
    weights = [
        (0.5 if grade < 0 else 1.0) / disputes[who] if disputed and who is not None else 1.0 for grade, _, who in votes
    ]
    return sum(weight * grade for weight, (grade, *_) in zip(weights, votes, strict=True)) / sum(weights)


def _shares(retriever: Retriever, units: Sequence[str], id: str) -> list[tuple[str, float]]:
    """How units share a query's credit to a document: by how well each finds it, none under half of the best."""
    gains = {unit: np.float32(retriever.question(unit, {}).score(retriever.rows[id])) for unit in units}
    best = max(gains.values(), default=0.0)
    kept = {unit: float(gain) for unit, gain in gains.items() if gain > 0 and gain >= RESEMBLANCE * best}
    return [(unit, gain / sum(kept.values())) for unit, gain in kept.items()]


def _stretched(ranking: Ranking) -> Ranking:
    """From 1, the best, down to almost 0: where a ranking would end if it went on."""
    assert len(ranking) < SMALL
    if not ranking:
        return []
    high, low = ranking[0][1], min(ranking[-1][1], 0.0)
    if high <= low:
        return [(id, 1.0) for id, _ in ranking]
    return [(id, LAST + (1 - LAST) * (score - low) / (high - low)) for id, score in ranking]


def _ndcg_bounds(ranking: Ranking, right: Mapping[str, float], margin: float) -> tuple[float, float]:
    found = dict(ranking)
    gained = [0.0, 0.0]
    for id in right.keys() & found.keys():
        near = margin * max(1.0, abs(found[id]))
        others = [score for other, score in ranking if other != id]
        worst = sum(score >= found[id] - near for score in others)
        best = sum(score > found[id] + near for score in others)
        for side, rank in enumerate((worst, best)):
            gained[side] += right[id] / math.log2(rank + 2) if rank < DEPTH else 0.0
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(right.values(), reverse=True)[:DEPTH]))
    return gained[0] / ideal, min(gained[1] / ideal, 1.0)


def _meets(document: Document, where: Mapping[str, Any]) -> bool:
    return all(_has(document.metadata.get(name), wanted) for name, wanted in where.items())


def _has(value: Any, wanted: Any) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    return any(one in (wanted if isinstance(wanted, list) else [wanted]) for one in values if one is not None)


@cache
def _bag(text: str) -> Counter[str]:
    return Counter(BM25_ENCODER.documents([text])[0])


@cache
def _vector(text: str) -> Vectors:
    return WORDLLAMA.documents([text])[0]


BM25_ENCODER, WORDLLAMA = BM25(), WordLlamaEncoder()
