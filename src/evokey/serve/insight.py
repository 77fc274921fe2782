"""Insight: what people ask and do not find, what is worth teaching, and how well the memory does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evokey.serve.collections import Collection
from evokey.types import Epoch, Gap, Rating, Shown

NAMED = 20
"""Entries of each list."""
PRIOR = 2.0
"""Votes that the quality of held-out queries counts for, where nobody has voted."""
USUAL = 0.5
"""The quality that is assumed where nothing was ever measured."""


@dataclass(frozen=True, slots=True)
class Asked:
    query: str
    times: int
    up: int
    down: int
    expected_gain: float
    """Times it was asked, times how much better its answer could be, by votes and by the quality of other queries."""


@dataclass(frozen=True, slots=True)
class Seen:
    document: str
    searches: int
    share: float
    """Of all searches."""


@dataclass(frozen=True, slots=True)
class Teacher:
    actor: str | None
    lessons: int


@dataclass(frozen=True, slots=True)
class Quality:
    epoch: int
    kind: str
    time: float
    held_out_before: float | None
    held_out_after: float | None
    taught_before: float | None
    taught_after: float | None


@dataclass(frozen=True, slots=True)
class Insight:
    searches: int
    without_hits: Sequence[Asked]
    voted_down: Sequence[Asked]
    gaps: Sequence[Gap]
    worth_teaching: Sequence[Asked]
    everywhere: Sequence[Seen]
    actors: Sequence[Teacher]
    quality: Sequence[Quality]
    calls: int
    tokens: int
    money: float


def report(memory: Collection, since: float) -> Insight:
    """What is kept of the searches after a time, and of all lessons and epochs."""
    shown, votes, lessons, told = memory.shown(since), memory.ratings(since), memory.lessons(), memory.stats()
    epochs = memory.epochs()
    asked = _rank_by_gain(shown, votes, _usual(epochs))
    taught = {one.query for one in lessons if not one.held}
    empty = {one.query for one in shown if not one.documents}
    teachers = Counter(one.actor for one in lessons).most_common(NAMED)
    return Insight(
        searches=len(shown),
        without_hits=[one for one in asked if one.query in empty][:NAMED],
        voted_down=sorted((one for one in asked if one.down), key=lambda one: -one.down)[:NAMED],
        gaps=memory.gaps()[:NAMED],
        worth_teaching=[one for one in asked if one.query not in taught and one.query not in empty][:NAMED],
        everywhere=_everywhere(shown),
        actors=[Teacher(actor, count) for actor, count in teachers],
        quality=[_quality(one) for one in epochs if one.report],
        calls=told.calls,
        tokens=told.tokens,
        money=told.money,
    )


def _rank_by_gain(shown: Sequence[Shown], votes: Sequence[Rating], usual: float) -> list[Asked]:
    """Queries by expected gain: often asked, and not known to be answered well."""
    times, said = Counter(one.query for one in shown), defaultdict[str, list[bool]](list)
    for one in votes:
        said[one.query].append(one.up)
    found = [_one(query, count, said[query], usual) for query, count in times.items()]
    return sorted(found, key=lambda one: (-one.expected_gain, one.query))


def _one(query: str, times: int, votes: Sequence[bool], usual: float) -> Asked:
    quality = (PRIOR * usual + sum(votes)) / (PRIOR + len(votes))
    return Asked(query, times, sum(votes), len(votes) - sum(votes), times * (1 - quality))


def _usual(epochs: Sequence[Epoch]) -> float:
    """The quality of held-out queries in the last epoch that measured it."""
    measured = [one.report["held_out"]["after"] for one in epochs if one.report.get("held_out")]
    return float(measured[-1]) if measured else USUAL


def _everywhere(shown: Sequence[Shown]) -> list[Seen]:
    """Documents among the first ten of the most different queries."""
    queries = {one.query: one.documents[:10] for one in shown}
    counts = Counter(id for documents in queries.values() for id in documents)
    return [Seen(id, count, count / len(queries)) for id, count in counts.most_common(NAMED)]


def _quality(epoch: Epoch) -> Quality:
    told: Mapping[str, Any] = epoch.report
    held, taught = told.get("held_out") or {}, told.get("taught") or {}
    return Quality(
        epoch.number, epoch.kind, epoch.time,
        held.get("before"), held.get("after"), taught.get("before"), taught.get("after"),
    )  # fmt: skip
