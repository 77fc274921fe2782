"""Who teaches and who is tested: a protocol splits the judged queries of a data set in two.

| protocol    | teaches                                  | tests                                                      |
|-------------|------------------------------------------|------------------------------------------------------------|
| holdout     | a share of the test queries, at random   | the others                                                 |
| official    | the set's own train queries              | its test queries                                           |
| same-intent | one wording of each intent               | its other wordings                                         |
| once        | one wording each of half of the intents  | their other wordings, and queries that share no document   |
| topic       | a share of one cluster of the queries    | the others of all clusters                                 |
| stream      | as holdout, in batches                   | the others, after every batch                              |
| curve       | as holdout, 1, 3, 10, 30, 100, 300       | the others, after each of these numbers of lessons         |
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evokey.bench import topics
from evokey.bench.data import Dataset
from evokey.errors import InvalidInput

PROTOCOLS = ("holdout", "official", "same-intent", "once", "topic", "stream", "curve")
RATED = ("holdout", "topic", "stream", "curve")
"""Those that take a rate."""
IN_STEPS = ("stream", "curve")
"""Those that ask again after each part of the lessons."""
CURVE = (1, 3, 10, 30, 100, 300)
"""Numbers of lessons."""
GROUPS = ("taught", "untaught", "related", "unrelated")
Grades = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """A query with its judged documents."""

    id: str
    text: str
    grades: Grades
    excluded: frozenset[str] = frozenset()
    """Documents to leave out of its ranking."""

    @property
    def right(self) -> frozenset[str]:
        return frozenset(id for id, grade in self.grades.items() if grade > 0)


@dataclass(frozen=True, slots=True)
class Split:
    """Both sides, each in the order in which it is asked."""

    taught: tuple[Question, ...]
    tested: tuple[Question, ...]

    def groups(self) -> dict[str, list[Question]]:
        """Questions that are reported apart.

        taught: they taught. untaught: tested, with a text that was not taught. Of these, related: share a right
        document with a taught one; unrelated: share none, so that no lesson names what they look for.
        """
        said = {one.text for one in self.taught}
        touched = frozenset[str]().union(*(one.right for one in self.taught))
        untaught = [one for one in self.tested if one.text not in said]
        return {
            "taught": list(self.taught),
            "untaught": untaught,
            "related": [one for one in untaught if one.right & touched],
            "unrelated": [one for one in untaught if not one.right & touched],
        }

    def batches(self, count: int) -> list[tuple[Question, ...]]:
        """The taught questions, in so many parts of nearly equal size; none is empty."""
        return self._parts(round(place * len(self.taught) / count) for place in range(count + 1))

    def steps(self) -> list[tuple[Question, ...]]:
        """The taught questions, in parts after which there were 1, 3, 10 … lessons; what is beyond is left out."""
        return self._parts((0, *CURVE))

    def _parts(self, edges: Iterable[int]) -> list[tuple[Question, ...]]:
        parts = [self.taught[low:high] for low, high in pairwise(edges)]
        return [part for part in parts if part]


def split(data: Dataset, protocol: str, *, rate: float = 0.5, seed: int = 0, most: int | None = None) -> Split:
    """The split of a set. `most`: use at most so many judged queries, drawn at random."""
    if protocol in RATED:
        if not 0 < rate < 1:
            raise InvalidInput(f"the rate is the share of queries that teach, between 0 and 1, not {rate}")
        dealt = shuffle(questions(data), seed)[:most]
        if len(dealt) < 2:
            raise InvalidInput(f"{data.name} has {len(dealt)} judged queries; a holdout needs two or more")
        return _topic(dealt, rate, seed) if protocol == "topic" else _holdout(dealt, rate)
    if protocol == "official":
        return _official(data, seed, most)
    if protocol in ("same-intent", "once"):
        return (_once if protocol == "once" else _same_intent)(data, seed, most)
    raise InvalidInput(f"there is no protocol {protocol!r}; choose one of: {', '.join(PROTOCOLS)}")


def _holdout(dealt: Sequence[Question], rate: float) -> Split:
    edge = min(max(round(rate * len(dealt)), 1), len(dealt) - 1)
    return Split(tuple(dealt[:edge]), tuple(dealt[edge:]))


def _topic(dealt: Sequence[Question], rate: float, seed: int) -> Split:
    """A share of the questions of one cluster teaches; the rest of it is tested, and so are all other clusters."""
    inside = topics.cluster([one.text for one in dealt], seed)
    ours = [one for one, chosen in zip(dealt, inside, strict=True) if chosen]
    others = [one for one, chosen in zip(dealt, inside, strict=True) if not chosen]
    part = _holdout(ours, rate)
    return Split(part.taught, (*part.tested, *others))


def _official(data: Dataset, seed: int, most: int | None) -> Split:
    train = data.splits.get("train", {})
    if not train:
        raise InvalidInput(
            f"{data.name} has no train judgements (qrels/train.tsv), which the official protocol teaches; "
            f"use --protocol holdout"
        )
    taught = shuffle(questions(data, train), seed)[:most]
    return Split(tuple(taught), tuple(questions(data)))


def _same_intent(data: Dataset, seed: int, most: int | None) -> Split:
    chance = random.Random(seed)
    intents = _in_several_words(data, _intents(data))
    chance.shuffle(intents)
    taught, tested = [], []
    for wordings in intents[:most]:
        chosen = chance.randrange(len(wordings))
        taught.append(wordings[chosen])
        tested += [one for place, one in enumerate(wordings) if place != chosen and one.text != wordings[chosen].text]
    return Split(tuple(taught), tuple(tested))


def _once(data: Dataset, seed: int, most: int | None) -> Split:
    """Of questions that share some right documents with a lesson, only other wordings of taught intents are tested."""
    chance, intents = random.Random(seed), _intents(data)
    several = _in_several_words(data, intents)
    chance.shuffle(several)
    ours = several[: max(len(several) // 2, 1)][:most]
    taught = [chance.choice(wordings) for wordings in ours]
    pairs = zip(ours, taught, strict=True)
    reworded = [one for wordings, lesson in pairs for one in wordings if one.text != lesson.text]
    touched = frozenset[str]().union(*(one.right for one in taught))
    unrelated = [one for wordings in intents for one in wordings if not one.right & touched]
    return Split(tuple(taught), (*reworded, *unrelated))


def _intents(data: Dataset) -> list[list[Question]]:
    """Each with its wordings."""
    return _by_form(data) or _by_right(data)


def _in_several_words(data: Dataset, intents: Iterable[list[Question]]) -> list[list[Question]]:
    found = [one for one in intents if len(one) > 1]
    if not found:
        raise InvalidInput(
            f"{data.name} has no intent in several words: neither query_forms.jsonl nor queries that share all their "
            f"right documents; use --protocol holdout"
        )
    return found


def _by_form(data: Dataset) -> list[list[Question]]:
    """Queries with the further wordings that came with the set."""
    found = []
    for one in questions(data):
        others = [form for form in dict.fromkeys(data.forms.get(one.id, ())) if form.strip() and form != one.text]
        forms = [Question(f"{one.id}#{n}", form, one.grades, one.excluded) for n, form in enumerate(others, 1)]
        found.append([one, *forms])
    return found if any(len(one) > 1 for one in found) else []


def _by_right(data: Dataset) -> list[list[Question]]:
    """Queries whose right documents are the same are wordings of one intent."""
    found: dict[frozenset[str], list[Question]] = defaultdict(list)
    for one in questions(data):
        found[one.right].append(one)
    return list(found.values())


def questions(data: Dataset, judged: Mapping[str, Grades] | None = None) -> list[Question]:
    """The judged queries that have a right document, by id; without judgements, those of the chosen split."""
    judged = data.judged if judged is None else judged
    return [
        Question(id, data.queries[id], judged[id], data.excluded.get(id, frozenset()))
        for id in sorted(judged)
        if any(grade > 0 for grade in judged[id].values())
    ]


def shuffle(questions: Iterable[Question], seed: int) -> list[Question]:
    found = sorted(questions, key=lambda one: one.id)
    random.Random(seed).shuffle(found)
    return found
