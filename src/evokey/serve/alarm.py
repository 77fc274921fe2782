"""The alarm: figures that fall after an epoch was published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evokey.evolution.ndcg import ndcg
from evokey.serve.collections import Collection

WINDOW = 86_400.0
"""Seconds before and after an epoch that are compared."""
LEAST = 50
"""Votes, or searches, on each side that are needed to compare."""
SURE = 2.58
"""Standard errors by which a share must differ: chance does that once in a hundred times, either way."""


@dataclass(frozen=True, slots=True)
class Watched:
    """How things stood when an epoch was published."""

    epoch: int
    before_epoch: int
    since: float
    protected: float | None
    """Mean nDCG@10 of the protected queries in the epoch before."""

    @classmethod
    def begin(cls, memory: Collection, epoch: int, since: float) -> Watched:
        return cls(epoch, epoch - 1, since, protected_quality(memory, epoch - 1))


@dataclass(frozen=True, slots=True)
class Alarm:
    epoch: int
    before_epoch: int
    figure: str
    """protected queries, votes, or searches without hits"""
    before: float
    after: float
    time: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def watch(memory: Collection, watched: Watched, now: float) -> Alarm | None:
    """The first watched figure that has fallen, if any."""
    if last_epoch(memory) != watched.epoch:
        return None
    found = _compare_protected(memory, watched) or _votes(memory, watched) or _empty(memory, watched)
    return None if found is None else Alarm(watched.epoch, watched.before_epoch, *found, now)


def last_epoch(memory: Collection) -> int:
    """The one that was published last: memory.epoch is that of the last search here, and others publish, too."""
    with memory.ledger.read():
        return memory.ledger.epochs.current


def protected_quality(memory: Collection, epoch: int) -> float | None:
    """Mean nDCG@10 of the protected queries in an epoch; None: there are none."""
    protected = memory.protected_queries()
    if not protected:
        return None
    return sum(_quality(memory, query, grades, epoch) for query, grades in protected.items()) / len(protected)


def _quality(memory: Collection, query: str, grades: Mapping[str, float], epoch: int) -> float:
    number = {id: place for place, id in enumerate(grades)}
    found = [number.get(hit.id, len(number)) for hit in memory.search(query, 10, epoch=epoch)]
    return float(ndcg(found, {number[id]: grade for id, grade in grades.items()}))


def _compare_protected(memory: Collection, watched: Watched) -> tuple[str, float, float] | None:
    after = protected_quality(memory, watched.epoch)
    if watched.protected is None or after is None or after >= watched.protected - 1e-9:
        return None
    return "protected queries", watched.protected, after


def _votes(memory: Collection, watched: Watched) -> tuple[str, float, float] | None:
    """The share of upvotes, by the epoch that had answered."""
    votes = memory.ratings(watched.since - WINDOW)
    before = [one.up for one in votes if one.epoch == watched.before_epoch]
    after = [one.up for one in votes if one.epoch == watched.epoch]
    return _fall("votes", before, after)


def _empty(memory: Collection, watched: Watched) -> tuple[str, float, float] | None:
    """The share of searches with hits."""
    shown = memory.shown(watched.since - WINDOW)
    before = [bool(one.documents) for one in shown if one.epoch == watched.before_epoch]
    after = [bool(one.documents) for one in shown if one.epoch == watched.epoch]
    return _fall("searches without hits", before, after)


def _fall(figure: str, before: list[bool], after: list[bool]) -> tuple[str, float, float] | None:
    """A share that is smaller afterwards than chance explains (two proportions)."""
    if min(len(before), len(after)) < LEAST:
        return None
    was, now_ = sum(before) / len(before), sum(after) / len(after)
    pooled = (sum(before) + sum(after)) / (len(before) + len(after))
    error = math.sqrt(pooled * (1 - pooled) * (1 / len(before) + 1 / len(after)))
    return (figure, was, now_) if was - now_ > SURE * error else None
