"""Who teaches and who is tested: a protocol splits the judged queries of a data set in two.

| protocol    | teaches                                     | tests                                  |
|-------------|---------------------------------------------|----------------------------------------|
| holdout     | a share of the test queries, at random      | the others                             |
| official    | the set's own train queries                 | its test queries                       |
| same-intent | one wording of each intent                  | its other wordings                     |
| stream      | as holdout, in batches                      | the others, after every batch          |
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from evokey.bench.data import Dataset
from evokey.errors import InvalidInput

PROTOCOLS = ("holdout", "official", "same-intent", "stream")
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
        edges = [round(place * len(self.taught) / count) for place in range(count + 1)]
        parts = [self.taught[low:high] for low, high in pairwise(edges)]
        return [part for part in parts if part]


def split(data: Dataset, protocol: str, *, rate: float = 0.5, seed: int = 0, most: int | None = None) -> Split:
    """The split of a set. `most`: use at most so many judged queries, drawn at random."""
    if protocol in ("holdout", "stream"):
        return _holdout(data, rate, seed, most)
    if protocol == "official":
        return _official(data, seed, most)
    if protocol == "same-intent":
        return _same_intent(data, seed, most)
    raise InvalidInput(f"there is no protocol {protocol!r}; choose one of: {', '.join(PROTOCOLS)}")


def _holdout(data: Dataset, rate: float, seed: int, most: int | None) -> Split:
    if not 0 < rate < 1:
        raise InvalidInput(f"the rate is the share of queries that teach, between 0 and 1, not {rate}")
    dealt = shuffle(questions(data), seed)[:most]
    if len(dealt) < 2:
        raise InvalidInput(f"{data.name} has {len(dealt)} judged queries; a holdout needs two or more")
    edge = min(max(round(rate * len(dealt)), 1), len(dealt) - 1)
    return Split(tuple(dealt[:edge]), tuple(dealt[edge:]))


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
    intents = [one for one in (_by_form(data) or _by_right(data)) if len(one) > 1]
    if not intents:
        raise InvalidInput(
            f"{data.name} has no intent in several words: neither query_forms.jsonl nor queries that share all their "
            f"right documents; use --protocol holdout"
        )
    chance.shuffle(intents)
    taught, tested = [], []
    for wordings in intents[:most]:
        chosen = chance.randrange(len(wordings))
        taught.append(wordings[chosen])
        tested += [one for place, one in enumerate(wordings) if place != chosen and one.text != wordings[chosen].text]
    return Split(tuple(taught), tuple(tested))


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
