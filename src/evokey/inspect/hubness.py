"""Documents that everything finds: how often each is among the first ten, before teaching and after.

N₁₀ is how often a document is among the first ten, over the taught queries and over neutral ones (titles
of documents spread evenly over the collection), before teaching and after. Where few documents are found by everything,
the skewness of N₁₀ is high; a memory that makes hubs of taught documents would raise it for neutral queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evokey.memory import Memory
from evokey.search.index import Index
from evokey.search.view import View
from evokey.types import Document, Scores

K = 10
WORDS = 12
"""Words of a text that stand for a title where there is none."""


@dataclass(frozen=True, slots=True)
class Hub:
    document: str
    title: str
    before: int
    after: int
    taught: int


@dataclass(frozen=True, slots=True)
class Point:
    """So many documents that are found so often before and after."""

    before: int
    after: int
    touched: bool
    documents: int


@dataclass(frozen=True, slots=True)
class Hubness:
    """N₁₀ of all documents over some queries, before teaching and after."""

    queries: int
    skewness_before: float
    skewness_after: float
    largest_before: int
    largest_after: int
    never_before: float
    """Share of the documents that no query finds among its first ten."""
    never_after: float
    hubs: Sequence[Hub]
    points: Sequence[Point]


def count_found(queries: Sequence[str], view: View) -> list[Counter[int]]:
    """Before and after: how often each document is among the first ten. The last counter holds the queries."""
    counts: list[Counter[int]] = [Counter(), Counter(), Counter({0: len(queries)})]
    for query in queries:
        for count, one in zip(counts, (view.untaught, view), strict=False):
            count.update(one.rank(query, K).numbers.tolist())
    return counts


class Reader:
    """Reads documents by number, out of a memory."""

    def __init__(self, memory: Memory, index: Index) -> None:
        self._memory, self._index = memory, index

    def documents(self, numbers: Iterable[int]) -> dict[int, Document]:
        return self._memory.ledger.documents.fetch(numbers)

    def ids(self, counts: Mapping[int, int]) -> dict[str, int]:
        return {document.id: counts[number] for number, document in self.documents(counts).items()}

    def titles(self, most: int) -> list[str]:
        """Titles of documents spread evenly over the collection, each once; none where texts cannot be encoded."""
        live = self._index.live
        if self._index.given is not None or not len(live):
            return []
        places = np.unique(np.linspace(0, len(live) - 1, min(most, len(live))).round().astype(int))
        found = self.documents(np.sort(live)[places].tolist())
        texts = [one.title.strip() or " ".join(one.text.split()[:WORDS]) for _, one in sorted(found.items())]
        return [text for text in dict.fromkeys(texts) if text]

    def hubness(self, found: Sequence[Counter[int]], learned: Mapping[int, int], named: int) -> Hubness:
        before, after, queries = found
        numbers = sorted(before.keys() | after.keys())
        hubs = sorted(numbers, key=lambda one: (-max(before[one], after[one]), -after[one], one))[:named]
        titles = self.documents(hubs)
        points = Counter((before[one], after[one], one in learned) for one in numbers)
        unseen = learned.keys() - set(numbers)
        points[0, 0, True] = len(unseen)
        points[0, 0, False] = len(self._index.live) - len(numbers) - len(unseen)
        was, now = self._counts(before), self._counts(after)
        return Hubness(
            queries=queries[0],
            skewness_before=skewness(was),
            skewness_after=skewness(now),
            largest_before=int(was.max(initial=0)),
            largest_after=int(now.max(initial=0)),
            never_before=_share_never_found(was),
            never_after=_share_never_found(now),
            hubs=[
                Hub(titles[one].id, titles[one].title, before[one], after[one], learned.get(one, 0))
                for one in hubs
                if one in titles  # another thread may have deleted it
            ],
            points=[Point(*point, documents) for point, documents in sorted(points.items()) if documents],
        )

    def _counts(self, found: Counter[int]) -> Scores:
        counts = np.zeros(len(self._index.live))
        counts[: len(found)] = list(found.values())
        return counts


def skewness(counts: Scores) -> float:
    """The third standardised moment; 0 where all are equal."""
    deviations = counts - counts.mean() if len(counts) else counts
    spread = float(np.sqrt((deviations**2).mean())) if len(counts) else 0.0
    return float((deviations**3).mean() / spread**3) if spread else 0.0


def _share_never_found(counts: Scores) -> float:
    return float((counts == 0).mean()) if len(counts) else 0.0
