"""What the embedded stores share: blocks of rows in memory or memory-mapped, their owners, and exact top-k.

A store is a list of segments; adding appends one, small neighbours are merged, removing only marks rows dead. Every
change makes a new immutable state, so a search that has begun goes on undisturbed. Scores do not depend on how rows
happen to be laid out: each row is scored by itself. A document may own several rows; its score is its best row's.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import _sparsetools

from evokey.errors import EncoderMismatch
from evokey.stores.segments import Arrays, Manifest, read_manifest, read_segment, write_manifest, write_segment
from evokey.stores.soundness import check_numbers
from evokey.types import Numbers, Ranking, Scores

Question = TypeVar("Question")
NO_NUMBERS: Numbers = np.zeros(0, np.int64)
STRIDE = 64
UNREADABLE = Manifest("", ())
UNREAD = "keys in %s cannot be read (%s): they are made again from the ledger"
log = logging.getLogger("evokey")


class Block(ABC, Generic[Question]):
    """Rows that can be scored against a question.

    How like a row is to a question may have several parts (one for each vector of the question, in late interaction):
    a score is their total.
    """

    floor = -np.inf
    """A row must score above this to be found at all."""
    parts = 1
    """How many parts a likeness may have, about."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def likeness(self, question: Question) -> NDArray[Any]:
        """Of all rows, each computed by itself: the same bits wherever the row lies."""

    @abstractmethod
    def table(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """The likeness of all rows (second axis) to many questions (first axis)."""

    @staticmethod
    def total(likeness: NDArray[Any]) -> NDArray[Any]:
        """Likeness → scores."""
        return likeness

    @staticmethod
    def pulled(texts: NDArray[Any], evidence: sparse.csr_array) -> Any:
        """What the evidence of texts brings to each row, whatever the step: here q·V.

        Likeness of texts to one question, or to several (first axis); so are the rows of `grown`.
        """
        if texts.ndim == 1 and texts.dtype == evidence.dtype == np.float64:
            return product(evidence, texts)
        return np.ascontiguousarray((evidence @ texts.T).T)  # beside tables of the same layout

    @staticmethod
    def grown(base: NDArray[Any], pulled: Any, step: float, norms: Scores) -> NDArray[Any]:
        """Scores of rows grown by λ times what is pulled, k⁰ ⊕ λV: here ⊕ is addition, with the norm ν."""
        moved = np.asarray(step, base.dtype) * pulled.astype(base.dtype, copy=False)
        moved += base
        moved /= norms.astype(base.dtype, copy=False)
        return np.asarray(moved)

    def joined(
        self,
        scan: Scan,
        question: Question,
        touched: Numbers,
        evidence: sparse.csr_array,
        step: float,
        norms: Scores,
        penalty: float | None,
        k: int,
    ) -> Ranking | None:
        """The k best documents of a scan: those touched, whose one row each has grown by the evidence of these texts,
        and which the texts recall, with a penalty, and all others. Where that can be had in one go."""
        return None

    @abstractmethod
    def take(self, rows: Numbers) -> Self: ...

    @classmethod
    @abstractmethod
    def join(cls, blocks: Sequence[Self]) -> Self: ...

    @classmethod
    @abstractmethod
    def empty(cls) -> Self: ...

    @abstractmethod
    def arrays(self) -> Arrays: ...

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self: ...

    @classmethod
    @abstractmethod
    def check(cls, arrays: Arrays, rows: int) -> None:
        """Arrays of a file that may have been made by anybody: raise ValueError where reading these as so many rows
        would lead out of them."""

    def scores(self, question: Question) -> Scores:
        """Of all rows."""
        return np.asarray(self.total(self.likeness(question)), np.float64)

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the rows alone, not what was worked out from them."""
        return type(self).from_arrays, (self.arrays(),)


B = TypeVar("B", bound=Block[Any])


class Origin(Protocol):
    """The ledger, as far as keys depend on it."""

    @property
    def writer(self) -> str:
        """The last that has written documents."""
        ...

    def owns(self, writer: str, newest: int) -> bool:
        """Whether documents up to a number, as that writer left them, are those that the ledger has now."""
        ...


@dataclass(frozen=True)
class Segment(Generic[B]):
    block: B
    owners: Numbers
    """The document of each row."""
    covered: Numbers
    """The documents this segment answers for, those without a row included."""
    name: str | None = None
    """Its folder on disk, if it has one."""


@dataclass(frozen=True)
class Rows(Generic[B]):
    """An immutable state: the segments, and where each document's rows are. They lie side by side, in one segment."""

    segments: tuple[Segment[B], ...]
    dead: frozenset[int]
    """Documents that are gone while their rows still lie in a segment."""
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
        numbers = _covered(self.segments)
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

    def having(self, numbers: Numbers) -> Numbers:
        """Those of the documents that have rows."""
        return numbers[self.places(numbers) >= 0]

    def of(self, numbers: Numbers) -> Numbers:
        """All rows of these documents, each of which has some."""
        return self._rows(self.places(numbers))

    def sizes(self, numbers: Numbers) -> Numbers:
        """How many rows each of these documents has."""
        places = self.places(numbers)
        return np.where(places >= 0, self.firsts[places + 1] - self.firsts[places], 0)

    def uncovered(self, numbers: Numbers) -> Numbers:
        """Those of the documents that no segment answers for."""
        known = numbers < len(self.covered)
        return numbers[~known | ~self.covered[np.where(known, numbers, 0)]] if len(self.covered) else numbers

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


def product(matrix: sparse.csr_array, vector: Scores) -> Scores:
    """As `matrix @ vector`, without what that takes to find out what it was given: it is most of a small product."""
    found = np.zeros(matrix.shape[0])
    _sparsetools.csr_matvec(*matrix.shape, matrix.indptr, matrix.indices, matrix.data, vector, found)
    return found


def ordinals(sizes: Numbers) -> Numbers:
    """0, 1, 2 … for each of the sizes: [2, 3] → [0, 1, 0, 1, 2]."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


class Scan:
    """One question against one state of a store; a document must score above the floor to be found at all."""

    def __init__(self, rows: Rows[B], likeness: NDArray[Any], block: type[B]) -> None:
        self._rows, self._likeness, self.floor = rows, likeness, block.floor
        scores = block.total(likeness)
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

    def likeness(self, numbers: Numbers, ordinals: Numbers) -> NDArray[Any]:
        """Likeness of some rows, each given by its document and its ordinal there; −inf where it is not."""
        places = self._rows.places(numbers)
        rows = self._rows.firsts[places] + ordinals
        present = (places >= 0) & (rows < self._rows.firsts[places + 1])
        found = np.full((len(numbers), *self._likeness.shape[1:]), -np.inf)
        found[present] = self._likeness[rows[present]]
        return found

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


class EmbeddedStore(Generic[B]):
    """Segments in a folder (or in memory alone, without one)."""

    block: type[B]
    persist_at = 1_000
    """Rows held in memory only, before they are written by themselves: making them again is cheap up to here."""

    def __init__(self, folder: Path | None, identity: str) -> None:
        self._folder, self._identity = folder, identity
        self.rows: Rows[B] = Rows((), frozenset())
        self.origin: Origin | None = None
        """The ledger that the documents are in; without one, keys are taken as they are."""
        self._loaded: Manifest | None = None

    def load(self, live: Numbers) -> bool:
        """Take up what is on disk, if it changed. Documents that do not live are dead: those that another process has
        added since the ledger was read, until they are revived."""
        for read in (self._read, self._read_if_sound):
            manifest = self._manifest()
            if manifest is None or manifest == self._loaded:
                return False
            try:
                self._take_up(manifest, self._segments(manifest, read), live)
                return True
            except (OSError, ValueError, KeyError) as error:
                # Either swept away by the writer since we read the manifest, or damaged.
                log.info("keys in %s are read again (%s)", self._folder, str(error))
        raise AssertionError("the second reading leaves out what it cannot read")

    def _take_up(self, manifest: Manifest, segments: tuple[Segment[B], ...], live: Numbers) -> None:
        covered = _covered(segments)
        if not self._belong(manifest, covered):
            segments, covered = (), NO_NUMBERS
        self.rows = Rows(segments, frozenset(np.setdiff1d(covered, live).tolist()))
        self._loaded = manifest

    def _manifest(self) -> Manifest | None:
        if self._folder is None:
            return None
        try:
            return read_manifest(self._folder)
        except (OSError, ValueError, KeyError) as error:
            if self._loaded != UNREADABLE:
                log.warning(UNREAD, self._folder, str(error))
            return UNREADABLE

    def _segments(self, manifest: Manifest, read: Callable[[Path, str], Segment[B] | None]) -> tuple[Segment[B], ...]:
        assert self._folder is not None
        if manifest is not UNREADABLE and manifest.encoder != self._identity:
            raise EncoderMismatch(
                f"the keys in {self._folder} were made by {manifest.encoder}, the settings now say {self._identity}. "
                f"Vectors of two encoders do not mix: go back to the first, or encode everything again with: "
                f"evokey doctor --reencode"
            )
        held = {segment.name: segment for segment in self.rows.segments}
        found = (held.get(name) or read(self._folder, name) for name in manifest.segments)
        return tuple(one for one in found if one is not None)

    def _belong(self, manifest: Manifest, covered: Numbers) -> bool:
        """Whether keys were made for the documents that this ledger knows by these numbers."""
        if self.origin is None or not len(covered) or self.origin.owns(manifest.writer, int(covered.max())):
            return True
        log.warning(
            "keys in %s were made for other documents (the ledger beside them was restored or replaced): they are "
            "made again from the ledger",
            self._folder,
        )
        return False

    def _read_if_sound(self, folder: Path, name: str) -> Segment[B] | None:
        """One segment that cannot be read costs no other: keys may have been paid for."""
        try:
            return self._read(folder, name)
        except (OSError, ValueError, KeyError) as error:
            log.warning(UNREAD, folder, str(error))
            return None

    @property
    def changed(self) -> bool:
        """Whether another process has written keys since they were loaded."""
        return self._manifest() not in (None, UNREADABLE, self._loaded)

    def add(self, covered: Numbers, owners: Numbers, block: B) -> None:
        if not len(covered):
            return
        segments = [*self.rows.segments, Segment(block, owners, covered)]
        while len(segments) > 1 and self._mergeable(segments[-2], segments[-1]):
            segments[-2:] = [self._merged(segments[-2:])]
        self.rows = Rows(tuple(segments), self.rows.dead)

    def remove(self, numbers: Iterable[int]) -> None:
        self.rows = Rows(self.rows.segments, self.rows.dead | frozenset(numbers))

    def revive(self, numbers: Iterable[int]) -> None:
        """Find documents whose keys were read before the ledger said that they live."""
        back = self.rows.dead.intersection(numbers)
        if back:
            self.rows = Rows(self.rows.segments, self.rows.dead - back)

    def save(self, *, force: bool = False) -> None:
        """Write what is in memory only: when it has grown large, or now if forced."""
        unsaved = [segment for segment in self.rows.segments if segment.name is None]
        waiting = sum(len(segment.covered) for segment in unsaved)
        if self._folder is None or not waiting or not (force or waiting >= self.persist_at):
            return
        kept = [segment for segment in self.rows.segments if segment.name is not None]
        while kept and len(kept[-1].covered) < 2 * sum(len(segment.covered) for segment in unsaved):
            unsaved.insert(0, kept.pop())
        merged = self._merged(unsaved)
        arrays = {"owners": merged.owners, "covered": merged.covered, **merged.block.arrays()}
        merged = replace(merged, name=write_segment(self._folder, arrays))
        segments = (*kept, merged)
        names = tuple(segment.name for segment in segments if segment.name is not None)
        manifest = Manifest(self._identity, names, "" if self.origin is None else self.origin.writer)
        write_manifest(self._folder, manifest)
        self._loaded = manifest
        still_there = set(_covered(segments).tolist())
        self.rows = Rows(segments, frozenset(self.rows.dead & still_there))

    def take(self, numbers: Numbers) -> B:
        """The rows of these documents (each must have some), as a block of their own."""
        if not len(numbers):
            return self.block.empty()
        blocks, places = [], []
        for segment, at, inside in self.rows.by_segment(self.rows.of(numbers)):
            blocks.append(segment.block.take(inside))
            places.append(at)
        back = np.argsort(np.concatenate([NO_NUMBERS, *places]), kind="stable")
        return self.block.join(blocks).take(back)

    def copies(self, twins: Mapping[int, int]) -> tuple[Numbers, Numbers, B]:
        """The keys of documents as those of their twins, which this store answers for: covered, owners and rows."""
        new, old = (np.array(list(numbers), np.int64) for numbers in (twins.keys(), twins.values()))
        found = self.rows.places(old) >= 0
        owners = np.repeat(new[found], self.rows.sizes(old[found]))
        return new, owners, self.take(old[found])

    def scores(self, numbers: Numbers, questions: Sequence[Any]) -> list[Scores]:
        """Of the rows of these documents (each must have some), for each question; to the last bit or nearly so."""
        block: Any = self.take(numbers)
        return [block.scores(question) for question in questions]

    def _read(self, folder: Path, name: str) -> Segment[B]:
        # Plain arrays over the mapped files: numpy's own class for these slows every small slice.
        arrays = {key: np.asarray(array) for key, array in read_segment(folder, name).items()}
        check_numbers(arrays["owners"], arrays["covered"])
        self.block.check(arrays, len(arrays["owners"]))
        block: B = self.block.from_arrays(arrays)
        return Segment(block, arrays["owners"], arrays["covered"], name)

    @staticmethod
    def _mergeable(first: Segment[B], second: Segment[B]) -> bool:
        return first.name is None and len(first.covered) < 2 * len(second.covered)

    def _merged(self, segments: Sequence[Segment[B]]) -> Segment[B]:
        """One segment of the living rows of several."""
        dead = np.fromiter(self.rows.dead, np.int64, len(self.rows.dead))
        alive = [np.flatnonzero(~np.isin(segment.owners, dead)) for segment in segments]
        block: B = self.block.join([segment.block.take(rows) for segment, rows in zip(segments, alive, strict=True)])
        owners = np.concatenate([segment.owners[rows] for segment, rows in zip(segments, alive, strict=True)])
        return Segment(block, owners, np.setdiff1d(_covered(segments), dead))


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


def _covered(segments: Iterable[Segment[Any]]) -> Numbers:
    return np.concatenate([NO_NUMBERS, *(segment.covered for segment in segments)])
