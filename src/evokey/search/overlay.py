"""What an epoch has learned for one retriever: the rows of the touched documents, scored beside the store's own search.

A touched document is found by the best of its rows:

    its base keys, moved      q·(k⁰ᵢ ⊕ λ Σₑ αᵢₑ e)       e: taught texts; ⊕ adds (dense keys: back to length 1); α < 0
                                                          for queries that it was wrong for, if these have a say
    its recall rows           max over its taught texts of q·e  −  δ · (self-similarity of q)

What a document scores beyond its untaught score counts as far as the gate is open for the question (gate.py).

Both need only q·e for the taught texts, so an overlay keeps these texts once, as a block, and who was taught what. It
keeps the base rows of the touched documents too: no store is asked for their scores, unless it has them at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evokey.scoring.block import NO_NUMBERS, Block, Found, Moved
from evokey.search.gate import FIRST, NOBODY, WIDE_OPEN, Opening, Taught, leading, open_for
from evokey.search.lens import Lens
from evokey.types import Choice, Numbers, Ranking, Scores

if TYPE_CHECKING:
    from evokey.search.shelved import Shelved


@dataclass(frozen=True, slots=True)
class Touched:
    """The touched documents (sorted) and all their rows: side by side, in the order of the documents."""

    documents: Numbers
    starts: Numbers
    """The first row of each document, and the end."""

    @classmethod
    def of(cls, documents: Numbers, sizes: Numbers) -> Touched:
        return cls(documents, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @property
    def owners(self) -> Numbers:
        """The document of each row."""
        return np.repeat(self.documents, np.diff(self.starts))

    @property
    def ordinals(self) -> Numbers:
        """Which of its document's rows each is."""
        return np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def several(self) -> bool:
        return len(self.documents) < int(self.starts[-1])

    def best(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Scores of rows (last axis) → of documents."""
        return np.maximum.reduceat(scores, self.starts[:-1], axis=-1) if self.several else scores

    def place(self, number: int) -> int | None:
        found = int(np.searchsorted(self.documents, number))
        return found if found < len(self.documents) and self.documents[found] == number else None

    def rows(self, number: int) -> slice:
        """The rows of one document."""
        place = self.place(number)
        return slice(0, 0) if place is None else slice(*self.starts[place : place + 2].tolist())


class Recollection(NamedTuple):
    """What the taught texts bring to rows, whatever their base; None where they bring nothing."""

    pulled: Any
    recalled: Any
    """Of documents."""

    def at(self, places: Numbers) -> Recollection:
        """Of some documents, each with one row."""
        return Recollection(*(None if one is None else one[places] for one in self))


def greatest(values: NDArray[Any], starts: NDArray[Any]) -> NDArray[Any]:
    """The greatest of the values (last axis) from each start to the next; −inf where there is none."""
    some = np.flatnonzero(np.diff(starts))
    if len(some) == len(starts) - 1:
        return np.maximum.reduceat(values, starts[:-1], axis=-1) if len(some) else values[..., :0]
    found = np.full((*values.shape[:-1], len(starts) - 1), -np.inf, values.dtype)
    if len(some):
        found[..., some] = np.maximum.reduceat(values, starts[some], axis=-1)
    return found


@dataclass(frozen=True, slots=True)
class Overlay:
    touched: Touched
    base: Block[Any] | None
    """Their rows, as they were before anything was taught."""
    names: tuple[str, ...]
    """The taught texts, as they were said."""
    texts: Block[Any] | None
    evidence: sparse.csr_array
    """α: rows × texts. Its pattern says which texts are a document's recall rows; one that was only wrong has none."""
    norms: Scores
    choice: Choice
    learned: Mapping[str, int]
    """Every taught word: how many documents were taught with it. It counts where no living document has the word."""
    lens: Lens | None = None
    against: sparse.csr_array | None = None
    """λα, less γ times what speaks against documents: where wrong ones are pushed away."""
    restricted: Overlay | None = None
    """What restricted documents have learned, each from its own lessons: no document of the public part is in it."""
    both: Numbers | None = None
    """The documents of both parts, where there are two."""
    apart: NDArray[np.bool_] | None = None
    """Which of all rows of these are of restricted documents."""
    named: frozenset[int] = frozenset()
    """Documents of which lessons name passages."""
    known: Taught = NOBODY
    """What the gate compares a question with."""
    shelved: Shelved | None = None
    """What ranks by rows that a store keeps, where they are many; base and texts are read only if they are needed."""

    def beside(self, restricted: Overlay | None) -> Overlay:
        """This public part, and beside it what restricted documents have learned."""
        if restricted is None:
            return self
        both = np.union1d(self.documents, restricted.documents)
        owners = np.sort(np.concatenate([self.touched.owners, restricted.touched.owners]))
        return replace(self, restricted=restricted, both=both, apart=np.isin(owners, restricted.documents))

    @property
    def parts(self) -> tuple[Overlay, ...]:
        """The public part, and what restricted documents have learned."""
        return (self,) if self.restricted is None else (self, self.restricted)

    def part(self, number: int) -> Overlay:
        """The part that may have touched this document."""
        own = self.restricted
        return self if own is None or own.touched.place(number) is None else own

    @property
    def all_documents(self) -> Numbers:
        """The touched documents of both parts."""
        return self.documents if self.both is None else self.both

    @property
    def pull(self) -> sparse.csr_array:
        """By which texts keys move."""
        return self.evidence if self.against is None else self.against

    @property
    def step(self) -> float:
        """How many times as far."""
        return self.choice.step if self.against is None else 1.0

    def turn(self, question: Any) -> Any:
        """The question through the lens."""
        return question if self.lens is None else self.lens.turn(question)

    @property
    def documents(self) -> Numbers:
        return self.touched.documents

    def rank(self, question: Any, found: Found, k: int, among: Numbers | None) -> Ranking:
        """The k best documents: those that a store has found, which left out all that was touched, and these."""
        own, apart = self.restricted, self.apart
        if found.bound is not None:
            if own is None and question.asked is None and among is None and not self.touched.several:
                return self._rank_bounded(question, found, k)
            found = Found(found.ranking)
        base = found.base
        if base is not None and apart is not None:
            base = base[~apart]
        if (
            self.choice.gate_weights
            and self.base is not None
            and (base is None or len(base) != self.touched.starts[-1])
        ):
            base = self.base.likeness(question)  # it is needed twice
        opening = self.open(question, found.ranking, base)
        ranking = Ranking(found.ranking.numbers[:k], found.ranking.scores[:k])
        if own is None or apart is None:
            best = self._rank_in_one_go(question, Found(ranking, base), k, opening) if among is None else None
            return self._rank(ranking, k, question, base, among, opening) if best is None else best
        best = self._rank(ranking, k, question, base, among, opening)
        restricted = None if found.base is None else found.base[apart]
        return own._rank(best, k, question.weigh_unheard(), restricted, among, WIDE_OPEN)

    def _rank_bounded(self, question: Any, found: Found, k: int) -> Ranking:
        """The same where the base of most touched documents is only known to be below a bound: a document whose score
        would not reach the first k even with that is not looked at."""
        block, base, bound = self.base, found.base, found.bound
        assert block is not None and base is not None
        opening = self.open(question, found.ranking, base)
        best = Ranking(found.ranking.numbers[:k], found.ranking.scores[:k])
        taught = self._recollect(question, opening)
        most = self._combine(np.maximum(base, base.dtype.type(bound)), taught, opening)
        reaching = np.flatnonzero(most >= best.scores[-1]) if len(best) == k else np.arange(len(base))
        unknown = reaching[np.isneginf(base[reaching])]
        base[unknown] = block.take(unknown).likeness(question)
        scores = self._combine(base[reaching], taught.at(reaching), opening, self.norms[reaching])
        numbers = np.concatenate([best.numbers, self.documents[reaching]])
        scores = np.concatenate([best.scores, scores])
        order = np.lexsort((numbers, -scores))[:k]
        return Ranking(numbers[order], scores[order])

    @property
    def depth(self) -> int:
        """How many results of the store it takes to find out how far the gate is open."""
        return FIRST if self.choice.gate_weights else 0

    def open(self, question: Any, untouched: Ranking, base: NDArray[Any] | None = None) -> Opening:
        """How far the gate is open for a question; untouched: the best of the documents that learned nothing."""
        if not self.choice.gate_weights or self.texts is None or self.base is None or not len(self.documents):
            return WIDE_OPEN
        untaught = self._untaught(question, base)
        best = leading(untouched.scores, untaught, self.base.floor)
        asked = question.asked or question
        likeness = np.asarray(self.texts.likeness(asked), np.float64)
        signals = self.known.signals(self.texts.total(likeness), asked.self_similarity, untaught, best)
        return open_for(self.choice, signals)._replace(likeness=likeness)

    def _untaught(self, question: Any, base: NDArray[Any] | None) -> Scores:
        """The untaught scores of the touched documents."""
        touched, block = self.touched, self.base
        assert block is not None
        if base is None or len(base) != touched.starts[-1]:
            base = block.likeness(question)
        return np.asarray(touched.best(block.total(base)), np.float64)

    def _rank_in_one_go(self, question: Any, found: Found, k: int, opening: Opening) -> Ranking | None:
        penalty = self.penalty_for(opening)
        several = self.touched.several
        if self.texts is None or question.asked is not None or (several and opening.share != 1.0):
            return None
        if penalty is not None and self.against is not None:  # other texts recall a document than move its key
            return None
        if several and (found.base is None or len(found.base) != self.touched.starts[-1]):
            return None
        owners = self.touched.owners if several else self.documents
        locality = self.choice.locality
        moved = Moved(owners, self.pull, self.step, locality, self.norms, penalty, several, opening.share)
        return self.texts.rank_moved(question, found, moved, k)

    def penalty_for(self, opening: Opening) -> float | None:
        """The penalty of taught questions kept as keys, for one question."""
        return None if self.choice.penalty is None else self.choice.penalty * opening.penalty

    def _rank(
        self,
        best: Ranking,
        k: int,
        question: Any,
        base: NDArray[Any] | None,
        among: Numbers | None,
        opening: Opening,
    ) -> Ranking:
        """The k best of a ranking and of what was touched."""
        if self.base is None or not len(self.documents):
            return best
        scores = self.scores(question, base, opening)
        reach = scores >= best.scores[-1] if len(best) == k else scores > self.base.floor
        if among is not None:
            reach &= np.isin(self.documents, among)
        reaching = reach.nonzero()[0]
        if not len(reaching):
            return best
        numbers = np.concatenate([best.numbers, self.documents[reaching]])
        scores = np.concatenate([best.scores, scores[reaching]])
        order = np.lexsort((numbers, -scores))[:k]
        return Ranking(numbers[order], scores[order])

    def scores(self, question: Any, base: NDArray[Any] | None = None, opening: Opening = WIDE_OPEN) -> Scores:
        """Scores of the touched documents; base: the likeness of their base rows, where it is at hand."""
        assert self.base is not None
        if base is None or len(base) != self.touched.starts[-1]:
            base = self.base.likeness(question)
        return self._combine(base, self._recollect(question, opening), opening)

    def _recollect(self, question: Any, opening: Opening) -> Recollection:
        """What was taught, as far as it counts for a question."""
        penalty = self.penalty_for(opening)
        if self.texts is None or not (self.step or penalty is not None) or not opening.share:
            return Recollection(None, None)
        known: NDArray[Any] | None = opening.likeness
        likeness, pulled, recalled = known, None, None
        if self.step:
            if likeness is None or question.asked is not None:
                likeness = np.asarray(self.texts.likeness(question), np.float64)
            pulled = self.texts.pull(self.localise(likeness, question), self.pull)
        if penalty is not None:
            asked = question.asked or question  # what was taught is found again as it was said
            if known is None:
                known = likeness if self.step and asked is question else self.texts.likeness(asked)
            totals = self.texts.total(np.asarray(known, np.float64))
            recalled = greatest(totals[self.evidence.indices], self.evidence.indptr[self.touched.starts])
            recalled = recalled - penalty * question.self_similarity
        return Recollection(pulled, recalled)

    def _combine(
        self, base: NDArray[Any], taught: Recollection, opening: Opening, norms: Scores | None = None
    ) -> Scores:
        """The likeness of base rows, and what was taught → scores of documents. norms: of these rows; all if it is not
        said."""
        block, whole = self.base, norms is None
        assert block is not None
        totals = block.total(base)
        untaught = np.asarray(self.touched.best(totals) if whole else totals, np.float64)
        if taught.pulled is None and taught.recalled is None:
            return untaught
        best = untaught
        if taught.pulled is not None and self.texts is not None:
            grown = self.texts.grow(
                np.asarray(base, np.float64), taught.pulled, self.step, self.norms if norms is None else norms
            )
            best = self.touched.best(grown) if whole else grown
        if taught.recalled is not None:
            best = np.maximum(best, taught.recalled)
        if opening.share != 1.0:
            gain = np.subtract(best, untaught, out=np.zeros_like(untaught), where=np.isfinite(untaught))
            best = untaught + opening.share * gain
        return np.asarray(best, np.float64)

    def localise(self, likeness: NDArray[Any], question: Any) -> NDArray[Any]:
        """Likeness of the taught texts, as far as they count for keys."""
        locality = self.choice.locality
        if not locality or self.texts is None:
            return likeness
        return self.texts.localise(likeness, question.self_similarity, locality)

    def row_scores(self, question: Any, number: int, keys: Block[Any]) -> Scores:
        """Of each row of a touched document, given its base keys: by its moved key, and by the taught texts that are
        credited to it."""
        rows, base = self.touched.rows(number), np.asarray(keys.likeness(question), np.float64)
        if self.texts is None or rows.start == rows.stop:
            return np.asarray(keys.total(base), np.float64)
        likeness = np.asarray(self.texts.likeness(question), np.float64)
        best = np.asarray(keys.total(base), np.float64)
        if self.step:
            pulled = keys.pull(self.localise(likeness, question), self.pull[rows.start : rows.stop])
            best = np.asarray(keys.grow(base, pulled, self.step, self.norms[rows]), np.float64)
        if self.choice.penalty is not None:
            own = self.evidence[rows.start : rows.stop]
            recalled = greatest(self.texts.total(likeness)[own.indices], own.indptr)
            best = np.maximum(best, recalled - self.choice.penalty * question.self_similarity)
        return best

    def find_texts(self, number: int) -> tuple[Numbers, Scores]:
        """Which texts a document was taught, and their α: those of all its rows."""
        rows = self.touched.rows(number)
        span = slice(self.evidence.indptr[rows.start], self.evidence.indptr[rows.stop])
        return self.evidence.indices[span].astype(np.int64), self.evidence.data[span]

    def measure_move(self, number: int, base: Block[Any]) -> float:
        """How far a document's keys have moved, the farthest: 1 − cosine (dense), or the mass of learned weight."""
        rows = self.touched.rows(number)
        if self.texts is None or not self.step or rows.start == rows.stop:
            return 0.0
        pull = self.step * self.pull[rows.start : rows.stop]
        if not base.unit or self.choice.locality:
            return float(abs(pull).sum(axis=1).max())
        keys = base.vectors.astype(np.float64)
        moved = keys + pull @ self.texts.vectors.astype(np.float64)
        lengths = np.maximum(np.linalg.norm(moved, axis=1), 1e-12)
        return float((1 - np.vecdot(keys, moved) / lengths).max())


UNTAUGHT = Overlay(
    Touched.of(NO_NUMBERS, NO_NUMBERS), None, (), None, sparse.csr_array((0, 0)), np.zeros(0), Choice(), {}
)
