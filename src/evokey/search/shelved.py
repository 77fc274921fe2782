"""A large overlay whose rows a store keeps: they are on a shelf of the engine, beside the base and never in it.

On the shelf are the moved keys of the touched documents, and the taught texts. A search asks three things: the base for
the best documents, whatever they have learned; the shelf for the nearest rows; and then the vectors of those documents
that may be among the first. These are scored by the overlay's own arithmetic. Every other document is bounded by the
last of each answer, and is no better: so a ranking has the bits that it has where the overlay is in this process.

The overlay of an epoch can be composed from the ledger at any time. So a shelf that is not whole, or is gone, costs
memory and nothing else: the overlay answers by itself. A shelf is never changed: another epoch is another shelf.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.errors import StoreFailed
from evokey.protocols import Shelf, Snapshot
from evokey.scoring.block import NO_NUMBERS, ordinals
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.search.gate import FIRST, NEAREST, NOBODY, WIDE_OPEN, Opening, Taught, open_for
from evokey.search.overlay import Overlay, Touched
from evokey.types import Numbers, Ranking, Scores, Vectors

ATTEMPTS, WIDER = 4, 4
"""How often a search is made again where too little was found to be sure, and how much wider each time."""
SLACK = 1e-5
"""By how much the scores of an engine may differ from ours: its sums run in another order."""
AHEAD = 5
"""Documents that are read beyond k, before it is known how much counts what they learned."""
AGAIN = 1.0
"""Seconds after which it is looked again whether a shelf is whole."""
PIECE = 10_000
"""Rows made at a time."""


class OnDemand(DenseBlock):
    """Rows that are kept elsewhere, and read when somebody looks at all of them."""

    def __init__(self, vectors: Vectors, read: Callable[[], Vectors]) -> None:
        self._shape, self._read, self._held = vectors.shape, read, vectors if len(vectors) else None

    def release(self) -> None:
        self._held = None

    @property
    def held(self) -> bool:
        return self._held is not None

    @property
    def vectors(self) -> Vectors:  # type: ignore[override]
        held = self._held
        if held is None:
            held = self._held = self._read()
        return held

    def __len__(self) -> int:
        return int(self._shape[0])

    @property
    def dimension(self) -> int | None:
        return int(self._shape[1]) if len(self) else None

    def take(self, rows: Numbers) -> DenseBlock:  # type: ignore[override]
        return DenseBlock(np.ascontiguousarray(self.vectors[rows]))

    def __reduce__(self) -> tuple[Any, ...]:
        return DenseBlock, (self.vectors,)


@dataclass(frozen=True, slots=True)
class Near:
    """What the shelf and the base say of a question: the best of each, and what bounds all others."""

    base: Ranking
    """The best documents by their untaught keys, and what no other scores more than."""
    base_bound: float
    moved: Mapping[int, float]
    """Touched documents, by their place: the score of the best moved key."""
    moved_bound: float
    texts: Numbers
    """The nearest taught texts."""
    likeness: Scores
    texts_bound: float


class Shelved:
    """Ranks by an overlay whose rows are on a shelf."""

    def __init__(self, name: str, shelf: Shelf, overlay: Overlay) -> None:
        self.name, self._shelf, self._overlay = name, shelf, overlay
        self._moved = int(overlay.touched.starts[-1]) if overlay.step else 0
        """How many rows of the shelf are moved keys; taught texts follow."""
        self._whole, self._looked = False, -np.inf

    @property
    def whole(self) -> bool:
        """Whether the shelf has all rows. Then they need not be in this process."""
        now = time.monotonic()
        if not self._whole and now - self._looked >= AGAIN:
            self._looked = now
            self._whole = self._shelf.count() == self._moved + len(self._overlay.names)
            if self._whole:
                self._release()
        return self._whole

    def _release(self) -> None:
        for block in (self._overlay.base, self._overlay.texts):
            if isinstance(block, OnDemand):
                block.release()

    def write(self) -> None:
        """Put the rows on the shelf, unless they are there."""
        self._whole, self._looked = False, -np.inf
        if not self.whole:
            self._shelf.write(self._rows())
            self._whole = True
            self._release()

    def _rows(self) -> Iterator[Vectors]:
        overlay = self._overlay
        assert overlay.base is not None and overlay.texts is not None
        texts, keys = overlay.texts.vectors, overlay.base.vectors
        for start in range(0, self._moved, PIECE):
            some = slice(start, min(start + PIECE, self._moved))
            pulled = overlay.step * (overlay.pull[some] @ texts.astype(np.float64))
            moved = (keys[some].astype(np.float64) + pulled) / overlay.norms[some, None]
            yield moved.astype(np.float32)
        for start in range(0, len(texts), PIECE):
            yield texts[start : start + PIECE]

    # ---- ranking

    def rank(self, base: Snapshot, question: DenseQuestion, k: int, among: Numbers | None) -> Ranking | None:
        """The k best documents; None where that cannot be told by what is on the shelf."""
        try:
            if not self.whole:
                return None
            count = 2 * max(k, FIRST) + FIRST
            for _ in range(ATTEMPTS):
                found = self._rank(base, question, k, among, count)
                if found is not None:
                    return found
                count *= WIDER
        except StoreFailed:
            self._whole, self._looked = False, -np.inf
            if self.whole:  # it was something else
                raise
        return None

    def _rank(
        self, base: Snapshot, question: DenseQuestion, k: int, among: Numbers | None, count: int
    ) -> Ranking | None:
        near, own = self._ask(base, question, among, count), question.self_similarity
        read = Reading(base, self._shelf, self._moved, self._overlay, question, near.base)
        likely = [place for place, _ in self._candidates(near, WIDE_OPEN, own, among)[: k + AHEAD]]
        read.read(np.array(sorted(likely), np.int64), self._nearest(near))  # in one go, whatever the gate says
        opening = self._open(base, question, near, read, filtered=among is not None)
        if opening is None:
            return None
        if not opening.share:
            return Ranking(near.base.numbers[:k], near.base.scores[:k])
        left = ~np.isin(near.base.numbers, self._overlay.documents, assume_unique=True)
        best = Ranking(near.base.numbers[left][:k], near.base.scores[left][:k])
        places = self._candidates(near, opening, own, among)
        for some in (places[:k], places[k:]):  # those that promise most, and then those that still may be among them
            reaching = [place for place, most in some if len(best) < k or most >= best.scores[-1]]
            best = self._score(read, best, reaching, question, opening, k)
        bound = self._most(near, opening, own)
        return best if bound == -np.inf or (len(best) == k and best.scores[-1] >= bound) else None

    def _ask(self, base: Snapshot, question: DenseQuestion, among: Numbers | None, count: int) -> Near:
        (found,) = base.search([question], count, within=among)
        ranking = found.ranking
        asked = question.asked or question
        rows, scores, bound = self._shelf.near(asked.vector, 4 * count)
        said = rows >= self._moved
        texts, likeness, texts_bound = rows[said] - self._moved, scores[said], bound
        if asked is not question and self._moved:
            rows, scores, bound = self._shelf.near(question.vector, 4 * count)
            said = rows >= self._moved
        places = np.searchsorted(self._overlay.touched.starts, rows[~said], side="right") - 1
        moved: dict[int, float] = {}
        for place, score in zip(places.tolist(), scores[~said].tolist(), strict=True):
            moved.setdefault(place, score)  # the best comes first
        last = float(ranking.scores[-1]) if len(ranking) == count else -np.inf
        return Near(ranking, last, moved, bound, texts, likeness, texts_bound)

    def _nearest(self, near: Near) -> Numbers:
        """The taught texts that may be the nearest of those that are about some document."""
        known = self._overlay.known.texts
        if not len(known):
            return NO_NUMBERS
        about = known[np.minimum(np.searchsorted(known, near.texts), len(known) - 1)] == near.texts
        texts, likeness = near.texts[about], near.likeness[about]
        least = likeness[NEAREST - 1] - 2 * SLACK if len(texts) >= NEAREST else -np.inf
        return np.sort(texts[likeness >= least])

    def _open(
        self, base: Snapshot, question: DenseQuestion, near: Near, read: Reading, *, filtered: bool
    ) -> Opening | None:
        """How far the gate is open; None where too few taught texts were found to tell."""
        choice, known = self._overlay.choice, self._overlay.known
        if not choice.gate_weights:
            return WIDE_OPEN
        texts, asked = self._nearest(near), question.asked or question
        exact = np.asarray(DenseBlock(read.texts(texts)).likeness(asked), np.float64)
        nearest = np.sort(exact)[-NEAREST:]
        if len(texts) < len(known.texts) and (len(nearest) < NEAREST or nearest[0] - SLACK <= near.texts_bound):
            return None
        documents = [known.documents[one] for one in np.searchsorted(known.texts, texts).tolist()]
        places = np.array(sorted(frozenset[int]().union(*documents)), np.int64)
        untaught = np.full(int(places.max(initial=-1)) + 1, -np.inf)
        untaught[places] = read.untaught(places)
        best = self._leading(base, question, near) if filtered else near.base.scores[:FIRST]
        if best is None:
            return None
        taught = Taught(np.arange(len(texts)), documents)
        return open_for(choice, taught.signals(exact, asked.self_similarity, untaught, best))

    def _leading(self, base: Snapshot, question: DenseQuestion, near: Near) -> Scores | None:
        """The first untaught scores: of documents that a filter lets through, and of all that have learned. None where
        too few of the former were found to tell."""
        (own,) = base.search([question], FIRST, within=self._overlay.documents)
        left = ~np.isin(near.base.numbers, self._overlay.documents)
        best = np.concatenate([near.base.scores[left], own.ranking.scores])
        best = np.sort(best)[: -FIRST - 1 : -1]
        return best if best.min(initial=np.inf) >= near.base_bound else None

    def _candidates(self, near: Near, opening: Opening, own: float, among: Numbers | None) -> list[tuple[int, float]]:
        """The touched documents that were found in any way, by their places, and the most that each may score; the best
        first."""
        untaught = dict(zip(near.base.numbers.tolist(), near.base.scores.tolist(), strict=True))
        documents = self._overlay.documents
        numbers = np.array([*untaught], np.int64)
        at = np.searchsorted(documents, numbers)
        hit = np.flatnonzero(documents[np.minimum(at, len(documents) - 1)] == numbers)
        recalled: dict[int, float] = {}
        for text, score in zip(near.texts.tolist(), near.likeness.tolist(), strict=True):
            for place in self._taught[text]:
                recalled.setdefault(place, score)
        places = {*at[hit].tolist(), *near.moved, *recalled}
        if among is not None:
            kept = np.array(sorted(places), np.int64)
            places = set(kept[np.isin(documents[kept], among)].tolist())
        most = {
            place: self._bound(
                opening,
                own,
                untaught.get(int(documents[place]), near.base_bound),
                near.moved.get(place, near.moved_bound),
                recalled.get(place, near.texts_bound),
            )
            for place in places
        }
        return sorted(most.items(), key=lambda one: (-one[1], one[0]))

    def _most(self, near: Near, opening: Opening, own: float) -> float:
        """What no document scores more than that was not found."""
        if near.base_bound == -np.inf:  # all that may be found
            return -np.inf
        return max(near.base_bound, self._bound(opening, own, near.base_bound, near.moved_bound, near.texts_bound))

    def _bound(self, opening: Opening, own: float, untaught: float, moved: float, recalled: float) -> float:
        """The most that a document may score, by the most that its parts may."""
        overlay, best = self._overlay, untaught
        if self._moved:
            best = moved + SLACK
        penalty = overlay.penalty_for(opening)
        if penalty is not None:
            best = max(best, recalled + SLACK - penalty * own)
        if opening.share == 1.0 or best == -np.inf:
            return best
        return untaught + opening.share * (best - untaught) if untaught > -np.inf else best

    @cached_property
    def _taught(self) -> Sequence[Sequence[int]]:
        """By text: the places of the documents that were taught it."""
        by_text = self._overlay.evidence.tocsc()
        places = np.searchsorted(self._overlay.touched.starts, by_text.indices, side="right") - 1
        return ByText(by_text.indptr.astype(np.int64), places.astype(np.int64))

    def _score(
        self,
        read: Reading,
        best: Ranking,
        places: Sequence[int],
        question: DenseQuestion,
        opening: Opening,
        k: int,
    ) -> Ranking:
        """The k best of a ranking and of these touched documents, scored as they are in one process."""
        part, likeness = read.part(np.array(sorted(places), np.int64))
        if not len(likeness):
            return best
        numbers = np.concatenate([best.numbers, part.documents])
        scores = np.concatenate([best.scores, part.scores(question, likeness, opening._replace(likeness=None))])
        order = np.lexsort((numbers, -scores))[:k]
        return Ranking(numbers[order], scores[order])


class Reading:
    """What is read for one question: how like it the rows of touched documents are, and taught texts; each once."""

    def __init__(
        self,
        base: Snapshot,
        shelf: Shelf,
        moved: int,
        overlay: Overlay,
        question: DenseQuestion,
        found: Ranking,
    ) -> None:
        """moved: rows of the shelf before the taught texts. found: documents whose scores are known."""
        self._base, self._shelf, self._first, self._overlay, self._question = base, shelf, moved, overlay, question
        self._texts: dict[int, Vectors] = {}
        self._likeness: dict[int, Scores] = {}
        """Of all rows of a document; of none if it has gone."""
        if not overlay.touched.several:
            scores = found.scores.astype(np.float32)[:, None]
            self._likeness = dict(zip(found.numbers.tolist(), scores, strict=True))

    def read(self, places: Numbers, texts: Numbers) -> None:
        """All that is needed to score touched documents, by their places; and some more texts."""
        self.likeness(places)
        self.texts(np.union1d(texts, self._texts_of(self._rows(places))))

    def texts(self, texts: Numbers) -> Vectors:
        missing = [one for one in texts.tolist() if one not in self._texts]
        if missing:
            found = self._shelf.fetch(np.array(missing, np.int64) + self._first)
            self._texts |= dict(zip(missing, found, strict=True))
        return np.stack([self._texts[one] for one in texts.tolist()]) if len(texts) else np.zeros((0, 0), np.float32)

    def likeness(self, places: Numbers) -> list[Scores]:
        touched = self._overlay.touched
        numbers = touched.documents[places].tolist()
        missing = [number for number in numbers if number not in self._likeness]
        if missing:
            keys = self._base.fetch(np.array(missing, np.int64))
            self._likeness |= dict.fromkeys(missing, np.zeros(0, np.float32))
            if len(keys.owners):
                parts = np.split(keys.block.likeness(self._question), np.cumsum(keys.sizes)[:-1])
                self._likeness |= dict(zip(keys.documents.tolist(), parts, strict=True))
        return [self._likeness[number] for number in numbers]

    def untaught(self, places: Numbers) -> list[float]:
        """Scores of documents; −∞ for one that has gone."""
        return [float(rows.max(initial=-np.inf)) for rows in self.likeness(places)]

    def part(self, places: Numbers) -> tuple[Overlay, NDArray[np.float32]]:
        """The overlay of some touched documents, those aside that have gone; and how like the question their rows
        are."""
        overlay, touched = self._overlay, self._overlay.touched
        sizes, likeness = np.diff(touched.starts)[places], self.likeness(places)
        here = np.array([len(rows) for rows in likeness], np.int64) == sizes
        places, sizes = places[here], sizes[here]
        rows = self._rows(places)
        evidence, pull, texts = overlay.evidence[rows], overlay.pull[rows], self._texts_of(rows)
        part = replace(
            overlay,
            touched=Touched.of(touched.documents[places], sizes),
            base=DenseBlock.empty(),  # its likeness is known
            names=tuple(overlay.names[at] for at in texts.tolist()),
            texts=DenseBlock(self.texts(texts)),
            evidence=_narrow(evidence, texts),
            norms=overlay.norms[rows],
            against=None if overlay.against is None else _narrow(pull, texts),
            known=NOBODY,
        )
        known = [rows for rows, whole in zip(likeness, here.tolist(), strict=True) if whole]
        return part, np.concatenate([np.zeros(0, np.float32), *known])

    def _rows(self, places: Numbers) -> Numbers:
        starts = self._overlay.touched.starts
        sizes = starts[places + 1] - starts[places]
        return np.repeat(starts[places], sizes) + ordinals(sizes)

    def _texts_of(self, rows: Numbers) -> Numbers:
        """The texts that rows were taught, or are pushed away by."""
        evidence, pull = self._overlay.evidence[rows], self._overlay.pull[rows]
        return np.union1d(evidence.indices, pull.indices).astype(np.int64)


@dataclass(frozen=True)
class ByText(Sequence[Sequence[int]]):
    """Places, from each start to the next."""

    starts: Numbers
    places: Numbers

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, text: Any) -> Any:
        return self.places[self.starts[text] : self.starts[text + 1]].tolist()


def _narrow(rows: sparse.csr_array, columns: Numbers) -> sparse.csr_array:
    """The same rows, with these columns alone."""
    found = np.searchsorted(columns, rows.indices).astype(rows.indices.dtype)
    return sparse.csr_array((rows.data, found, rows.indptr), (rows.shape[0], len(columns)))
