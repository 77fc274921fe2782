"""One state of an embedded store, which never changes: its segments, where the rows of each document are, and exact
top-k over all of them. A document may own several rows; its score is its best row's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evokey.once import cached_property
from evokey.scoring.block import NO_NUMBERS, Block, Found, Keys, ordinals
from evokey.types import Numbers, Ranking, Scores

B = TypeVar("B", bound=Block[Any])
STRIDE = 64
_versions = count()


@dataclass(frozen=True)
class Segment(Generic[B]):
    block: B
    owners: Numbers
    """The document of each row."""
    covered: Numbers
    """The documents this segment answers for, those without a row included."""
    name: str | None = None
    """Its folder on disk, if it has one."""
    graph: Any = None
    """What finds rows without looking at all of them, where a store has that."""


@dataclass(frozen=True, eq=False)
class Rows(ABC, Generic[B]):
    """The segments, and where each document's rows are: side by side, in one segment."""

    block: ClassVar[type[Block[Any]]]
    segments: tuple[Segment[B], ...] = ()
    dead: frozenset[int] = frozenset()
    """Documents that are gone while their rows still lie in a segment."""
    encoder: Any = None
    """What weighs terms, where keys have these."""
    version: int = field(init=False, default_factory=_versions.__next__)
    owners: Numbers = field(init=False)
    """The document of each row, counted over all segments."""
    starts: Numbers = field(init=False)
    """The first row of each segment, and the end."""
    documents: Numbers = field(init=False)
    """The documents that have rows, in the order of these; a document's place. With one row each, it is the row."""
    firsts: Numbers = field(init=False)
    """The first row of each place, and the end."""
    place_of: Numbers = field(init=False)
    """By document number + 1: its place, or −1; so at both ends."""
    covered: NDArray[np.bool_] = field(init=False)
    """By document number: whether a segment answers for it."""
    dead_places: Numbers = field(init=False)

    def __post_init__(self) -> None:
        owners = np.concatenate([NO_NUMBERS, *(segment.owners for segment in self.segments)])
        sizes = [0, *(len(segment.owners) for segment in self.segments)]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        several = len(firsts) < len(owners)
        documents = owners[firsts] if several else owners
        place_of = np.full(int(owners.max(initial=-1)) + 3, -1, np.int64)
        place_of[documents + 1] = np.arange(len(documents))
        gone = np.fromiter(self.dead, np.int64, len(self.dead)) + 1
        gone = gone[gone < len(place_of)]
        dead_places = place_of[gone]
        place_of[gone] = -1
        numbers = covered_by(self.segments)
        covered = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
        covered[numbers] = True
        object.__setattr__(self, "owners", owners)
        object.__setattr__(self, "starts", np.cumsum(sizes))
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "firsts", np.append(firsts, len(owners)))
        object.__setattr__(self, "place_of", place_of)
        object.__setattr__(self, "covered", covered)
        object.__setattr__(self, "dead_places", dead_places[dead_places >= 0])

    def __len__(self) -> int:
        """How many documents can be found."""
        return len(self.documents) - len(self.dead_places)

    @property
    def several(self) -> bool:
        """Whether some document has more than one row."""
        return len(self.documents) < len(self.owners)

    @cached_property
    def dead_rows(self) -> Numbers:
        return self._rows(self.dead_places)

    def places(self, numbers: Numbers) -> Numbers:
        """Places of these documents, −1 where there is none."""
        return self.place_of.take(numbers + 1, mode="clip")

    def of(self, numbers: Numbers) -> Numbers:
        """All rows of these documents, each of which has some."""
        return self._rows(self.places(numbers))

    def sizes(self, numbers: Numbers) -> Numbers:
        places = self.places(numbers)
        sizes = np.where(places >= 0, self.firsts[places + 1] - self.firsts[places], 0)
        without = np.flatnonzero(places < 0)
        if len(without):
            dead = np.isin(numbers[without], np.fromiter(self.dead, np.int64, len(self.dead)))
            sizes[without[~self.covers(numbers[without]) | dead]] = -1
        return sizes

    def covers(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which of these documents a segment answers for, the dead included."""
        known = numbers < len(self.covered)
        known[known] = self.covered[numbers[known]]
        return known

    @property
    def dimension(self) -> int | None:
        return next((segment.block.dimension for segment in self.segments if len(segment.block)), None)

    def fetch(self, numbers: Numbers) -> Keys:
        sizes = self.sizes(numbers)
        here, covered = numbers[sizes > 0], numbers[sizes >= 0]
        return Keys(covered, np.repeat(here, sizes[sizes > 0]), self._take(here))

    def _take(self, numbers: Numbers) -> Block[Any]:
        """The rows of these documents (each must have some), as a block of their own."""
        if not len(numbers):
            return self.block.empty()
        blocks, places = [], []
        for segment, at, inside in self.by_segment(self.of(numbers)):
            blocks.append(segment.block.take(inside))
            places.append(at)
        back = np.argsort(np.concatenate([NO_NUMBERS, *places]), kind="stable")
        return self.block.join(blocks).take(back)

    def search(
        self, questions: Sequence[Any], k: int, *, without: Numbers = NO_NUMBERS, within: Numbers | None = None
    ) -> list[Found]:
        return [self._search(question, k, without, within) for question in questions]

    def _search(self, question: Any, k: int, without: Numbers, within: Numbers | None) -> Found:
        scan = self.scan(question)
        best = scan.top(k, without, within)
        return Found(best, scan.rows_of(without) if len(without) else None)

    @abstractmethod
    def scan(self, question: Any) -> Scan: ...

    def by_segment(self, rows: Numbers) -> Iterable[tuple[Segment[B], Numbers, Numbers]]:
        """Split rows by segment: (segment, positions in `rows`, rows within the segment)."""
        which = np.searchsorted(self.starts, rows, side="right") - 1
        for index in np.unique(which):
            at = np.flatnonzero(which == index)
            yield self.segments[index], at, rows[at] - self.starts[index]

    def _rows(self, places: Numbers) -> Numbers:
        if not self.several:
            return places
        sizes = self.firsts[places + 1] - self.firsts[places]
        return np.repeat(self.firsts[places], sizes) + ordinals(sizes)


class Scan:
    """One question against one state of a store; a document must score above the floor to be found at all."""

    def __init__(self, rows: Rows[Any], likeness: NDArray[Any]) -> None:
        self._rows, self._likeness, self.floor = rows, likeness, rows.block.floor
        scores = rows.block.total(likeness)
        self._scores = np.maximum.reduceat(scores, rows.firsts[:-1]) if rows.several else scores
        """Of each place: the best of its rows."""
        self._scores[rows.dead_places] = -np.inf

    def of(self, numbers: Numbers) -> Scores:
        """Scores of these documents; −inf for one that has no row."""
        found = self._rows.places(numbers)
        scores = np.full(len(found), -np.inf)
        present = found >= 0
        scores[present] = self._scores[found[present]]
        return scores

    def rows_of(self, numbers: Numbers) -> NDArray[Any] | None:
        """The likeness of all rows of these documents; None where some have no row."""
        if self._likeness is self._scores:
            return self.of(numbers)
        present = self._present(numbers)
        return self._likeness[self._rows.of(numbers)] if len(present) == len(numbers) else None

    def top(self, k: int, skip: Numbers, among: Numbers | None) -> Ranking:
        """The k best documents outside `skip` and, if given, inside `among`."""
        skipped = self._present(skip)
        kept = self._scores[skipped]
        self._scores[skipped] = -np.inf
        best = self._best(_promising(self._scores, k, self.floor) if among is None else self._present(among), k)
        self._scores[skipped] = kept
        return best

    def _present(self, numbers: Numbers) -> Numbers:
        places = self._rows.places(numbers)
        return places[places >= 0]

    def _best(self, places: Numbers, k: int) -> Ranking:
        """The k best of these places, equals by document number."""
        scores = self._scores[places]
        cut = np.partition(scores, len(scores) - k)[len(scores) - k] if k < len(scores) else -np.inf
        found = np.flatnonzero((scores >= cut) & (scores > self.floor))
        documents, scores = self._rows.documents[places[found]], scores[found].astype(np.float64)
        order = np.lexsort((documents, -scores))[:k]
        return Ranking(documents[order], scores[order])


def _promising(scores: NDArray[Any], k: int, floor: float) -> Numbers:
    """Places enough to hold the k best: dealt into columns, only those of the k best maxima (and their equals) can."""
    width = len(scores) // STRIDE
    if width <= k:
        return np.arange(len(scores))
    maxima = scores[: STRIDE * width].reshape(STRIDE, width).max(axis=0)
    bound = np.partition(maxima, width - k)[width - k]
    columns = np.flatnonzero((maxima >= bound) & (maxima > floor))
    dealt = (np.arange(0, STRIDE * width, width)[:, None] + columns).ravel()
    rows: Numbers = np.concatenate([dealt, np.arange(STRIDE * width, len(scores))])
    found: Numbers = rows[scores[rows] >= bound]
    return found


def covered_by(segments: Iterable[Segment[Any]]) -> Numbers:
    """The documents that these segments answer for."""
    return np.concatenate([NO_NUMBERS, *(segment.covered for segment in segments)])
