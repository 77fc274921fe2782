"""Voices: the named actors, and the owner, who names none. With several, no voice counts more by saying more.

Three rules, all functions of the set of verdicts. With one voice alone none of them applies.

- Who contradicts many counts less: where one voice says right and another wrong, each counts by 1 / (the number of its
  disputes), and "wrong" by half of that: one voice cannot undo what another one taught, it takes two.
- A voice's evidence on one document is that of three lessons at most.
- The queries by which choices are judged (the jury) are the same number for every voice that has so many.

An actor "key/user" is a user of an API key (any name with a slash is taken like that). Where lessons come from several
keys, a key is one voice: what its users say together. The rules hold among the users of a key, and then among keys, so
that a key with a thousand made-up users is not a thousand voices.

The owner is trusted: the rules do not limit what comes without a name, unless the settings say that unnamed feedback is
shared by many people.

Questions that a language model wrote (the actor `synthetic`) are no voice. What they say counts less than what people
say, not at all about a question that people have taught, and they judge nothing where a person has taught anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evokey.evolution.folds import sample
from evokey.ledger.lessons import Vote
from evokey.types import SYNTHETIC

EVIDENCE = 3
"""Lessons of one voice on one document that count in full; more share the weight of so many."""
USERS = 3
"""Users of one key that count in full as evidence on one document, where there are several keys."""
JURY, JURORS = 50, 2
"""The least size of a jury, where there are so many queries; and of a voice's part in it."""
WRONG = 0.5
"""What "wrong" counts beside "right" in a dispute."""
SYNTHETIC_WEIGHT = 0.25
"""What a verdict counts as evidence whose question a language model wrote."""
Voice = str | None
"""An actor; None: the owner."""
Pair = tuple[str, int]
"""A query and a document."""


@dataclass(frozen=True)
class Voices:
    """What each voice says last about each query and document; verdicts that were taken back are left out."""

    verdicts: Mapping[Pair, Mapping[Voice, float]]
    shared: bool = False
    """Whether unnamed feedback comes from many people."""
    users: Mapping[Voice, Voices] = field(default_factory=dict)
    """Where the voices are keys: the voices of those that have several users."""
    by_key: bool = False
    """Whether the voices are keys."""

    @classmethod
    def of(cls, votes: Sequence[Vote], *, shared: bool = False) -> Voices | None:
        """None if there is one voice alone."""
        votes, _ = split_synthetic(votes)
        actors = {vote.actor for vote in votes}
        if len(actors) < 2:
            return None
        keys = {key_of(actor) for actor in actors}
        return cls._of_keys(votes, shared) if 1 < len(keys) < len(actors) else cls(_latest(votes), shared)

    @classmethod
    def _of_keys(cls, votes: Sequence[Vote], shared: bool) -> Voices:
        by_key: dict[Voice, list[Vote]] = {}
        for vote in votes:
            by_key.setdefault(key_of(vote.actor), []).append(vote)
        several = {key: cls.of(own) for key, own in by_key.items()}
        users = {key: found for key, found in several.items() if found is not None}
        alone = _latest([vote._replace(actor=key_of(vote.actor)) for vote in votes if key_of(vote.actor) not in users])
        said = {pair: dict(grades) for pair, grades in alone.items()}
        for key, found in users.items():
            for pair in found.verdicts:
                grade = found.settle(pair)
                if grade:
                    said.setdefault(pair, {})[key] = grade
        return cls(said, shared, users, by_key=True)

    def voice_of(self, actor: Voice) -> Voice:
        """The voice that an actor is, or belongs to."""
        return key_of(actor) if self.by_key else actor

    def is_trusted(self, voice: Voice) -> bool:
        """Whether nothing limits what it says."""
        return voice is None and not self.shared

    @cached_property
    def disputes(self) -> Counter[Voice]:
        """Verdicts of each voice that another voice contradicts."""
        disputed = (grades for grades in self.verdicts.values() if min(grades.values()) < 0 < max(grades.values()))
        return Counter(who for grades in disputed for who in grades)

    def settle(self, pair: Pair) -> float:
        """The verdict on a pair: the mean, in which a voice of many disputes counts less."""
        grades = self.verdicts[pair]
        ordered = sorted(grades.items(), key=lambda one: (one[1], str(one[0])))
        if not ordered[0][1] < 0 < ordered[-1][1]:
            return sum(grade for _, grade in ordered) / len(ordered)
        weights = [self._weigh(who, grade) for who, grade in ordered]
        return sum(weight * grade for weight, (_, grade) in zip(weights, ordered, strict=True)) / sum(weights)

    def _weigh(self, voice: Voice, grade: float) -> float:
        """What a verdict counts in a dispute."""
        return 1.0 if self.is_trusted(voice) else (WRONG if grade < 0 else 1.0) / self.disputes[voice]

    def evidence(self) -> dict[Pair, float]:
        """The weight of each pair's verdict as evidence, where it is less than 1."""
        within = {key: found.evidence() for key, found in self.users.items()}
        masses: dict[tuple[Voice, int, bool], float] = {}
        for pair, who, grade in self._each:
            said = who, pair[1], grade > 0
            masses[said] = masses.get(said, 0.0) + within.get(who, {}).get(pair, 1.0)
        found = {}
        for pair, grades in self.verdicts.items():
            weight = sum(
                within.get(who, {}).get(pair, 1.0) * self._share(who, masses[who, pair[1], grade > 0])
                for who, grade in grades.items()
            )
            if weight < 1:
                found[pair] = weight
        return found

    def _share(self, voice: Voice, mass: float) -> float:
        """What one lesson of a voice counts, whose lessons on a document weigh so much."""
        most = self.most_evidence(voice)
        return 1.0 if mass <= most or self.is_trusted(voice) else most / mass

    def most_evidence(self, voice: Voice) -> int:
        """Lessons of a voice on one document that count in full: those of one user, or of a few users of a key."""
        return EVIDENCE * min(self._sizes.get(voice, 1), USERS)

    @cached_property
    def _sizes(self) -> Mapping[Voice, int]:
        """How many users a key has."""
        return {
            key: len({who for grades in found.verdicts.values() for who in grades}) for key, found in self.users.items()
        }

    @property
    def _each(self) -> Iterable[tuple[Pair, Voice, float]]:
        return ((pair, who, grade) for pair, grades in self.verdicts.items() for who, grade in grades.items())

    @cached_property
    def queries(self) -> Mapping[Voice, Sequence[str]]:
        """The queries for which each voice named a right document, in alphabetical order."""
        found: dict[Voice, set[str]] = {}
        for (query, _), who, grade in self._each:
            if grade > 0:
                found.setdefault(who, set()).add(query)
        for key, users in self.users.items():
            jury = users.jury()
            if jury is not None and key in found:
                found[key] &= jury
        return {who: sorted(found[who]) for who in sorted(found, key=_by_name)}

    @property
    def usual(self) -> int:
        """The number of queries of a usual voice: the median; of two, the larger one, unless the owner is one of them
        and need not be limited."""
        counts = sorted(len(queries) for queries in self.queries.values())
        owner = None in self.queries and self.is_trusted(None)
        return counts[(len(counts) - owner) // 2] if counts else 0

    def jury(self) -> frozenset[str] | None:
        """The queries by which choices are judged: of each voice as many as a usual one has; None: all of them."""
        everything = frozenset(query for queries in self.queries.values() for query in queries)
        most = max(self.usual, JURORS)
        jury = self._select(most)
        while len(jury) < min(JURY, len(everything)):
            most *= 2
            jury = self._select(most)
        return None if jury == everything else jury

    def _select(self, most: int) -> frozenset[str]:
        chosen = (queries if self.is_trusted(who) else sample(queries, most) for who, queries in self.queries.items())
        return frozenset(query for queries in chosen for query in queries)


def key_of(actor: Voice) -> Voice:
    """The API key that an actor "key/user" is a user of; of any other actor itself."""
    return None if actor is None else actor.partition("/")[0]


def _latest(votes: Iterable[Vote]) -> dict[Pair, dict[Voice, float]]:
    """The last word of each actor on each query and document, without what was taken back."""
    said: dict[Pair, dict[Voice, float]] = {}
    for vote in votes:
        for number, grade in vote.verdicts.items():
            said.setdefault((vote.query, number), {})[vote.actor] = grade
    found = {pair: {who: grade for who, grade in grades.items() if grade} for pair, grades in said.items()}
    return {pair: grades for pair, grades in found.items() if grades}


def split_synthetic(votes: Iterable[Vote]) -> tuple[list[Vote], list[Vote]]:
    """The votes of people, and those of questions that a language model wrote."""
    people, synthetic = list[Vote](), list[Vote]()
    for vote in votes:
        (synthetic if vote.actor == SYNTHETIC else people).append(vote)
    return people, synthetic


def drop(votes: Sequence[Vote], left_out: Collection[tuple[int, int]]) -> Sequence[Vote]:
    """The votes without some verdicts, each given by its lesson and the number of its document."""
    return [kept for vote in votes if (kept := _drop(vote, left_out)).verdicts] if left_out else votes


def _drop(vote: Vote, left_out: Collection[tuple[int, int]]) -> Vote:
    kept = {number: grade for number, grade in vote.verdicts.items() if (vote.lesson, number) not in left_out}
    return vote if len(kept) == len(vote.verdicts) else vote._replace(verdicts=kept)


def _by_name(voice: Voice) -> tuple[bool, str]:
    return voice is not None, voice or ""
