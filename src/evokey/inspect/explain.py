"""Why a document scores as it does: the texts behind its moved key, the nearest recall row, the words' shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evokey.errors import UnknownDocument
from evokey.ledger.ledger import Ledger
from evokey.scoring.block import Block
from evokey.scoring.late import bring
from evokey.search.fusion import FUSION_DEPTH
from evokey.search.gate import WIDE_OPEN, Opening
from evokey.search.index import Index
from evokey.search.overlay import Overlay
from evokey.search.passages import Cuts, locate
from evokey.search.retriever import Retriever
from evokey.search.view import Asked
from evokey.types import Contribution, Document, Explanation, Numbers, Passage, Ranking, Scores, Term, Vectors, View

NAMED = 3
"""Taught queries that are named as the reason for what a lens does."""


HIDDEN = "(not shown)"
"""In the place of a taught text, for a caller who is not the owner."""


def explain(
    index: Index, ledger: Ledger, id: str, query: str | None, vector: Vectors | None, among: Numbers | None
) -> Explanation:
    """What a document has learned; with a query, its score and rank before that and after. among: the documents that a
    caller who is not the owner may know of."""
    number, lessons = ledger.documents.numbers([id], among)[id], ledger.lessons.about(id)
    counts: dict[str, Any] = {
        "lesson_count": len(lessons),
        "carried_over": ledger.lessons.carried.count([number]),
        "set_aside": ledger.lessons.set_aside([number]),
        "left_out": sum(document == id for _, document in ledger.epochs.get(index.epoch).left_out),
    }
    if query is None:
        return Explanation(id, lessons, None, None, None, [], **counts)
    learned = index.view()
    after, _ = learned.within_reach(query, vector)
    ranks: dict[str, Any] = {
        when: _rank(known.rank(query, FUSION_DEPTH, among, vector), number)
        for when, known in (("rank_before", learned.untaught), ("rank_after", after))
    }
    overlays = [(one, after.overlays.of[one.name]) for one in after.retrievers]
    views = [view(one, one.question(query, overlay.learned, vector), number, overlay) for one, overlay in overlays]
    in_reach = after.overlays is not learned.overlays.beyond
    document = ledger.documents.fetch([number]).get(number)
    if document is None:
        raise UnknownDocument(f"the document {id!r} was removed or replaced meanwhile; ask again")
    passage, reason = _passage(learned.ask(query, vector), document, number, views)
    counts |= {"passage": passage, "passage_reason": reason}
    return Explanation(id, lessons, query, views=views, in_reach=in_reach, **counts, **ranks)


def _passage(asked: Asked, document: Document, number: int, views: Sequence[View]) -> tuple[Passage, str]:
    """The part of the document that answers, and why."""
    found = locate(asked, number, document, Cuts())
    overlays = [asked.view.overlays.of[one.retriever].part(number) for one in views]
    if len(found.passages) == 1:
        reason = "the document is one passage"
    elif any(number in overlay.named for overlay in overlays):
        reason = "lessons name passages of this document, so its parts count with what each has learned"
    elif any(one.best_key != "base key" for one in views):
        reason = "what was learned decided the score of the document; this part is the nearest to the query"
    else:
        reason = "the part of the document that is nearest to the query"
    return found.best, reason


def _rank(ranking: Ranking, number: int) -> int | None:
    found = np.flatnonzero(ranking.numbers == number)
    return int(found[0]) + 1 if len(found) else None


def without_names(told: Explanation) -> Explanation:
    """The same for a caller who is not the owner: no questions of others, and nobody's name."""
    return replace(told, lessons=(), views=[_without_names(view) for view in told.views])


def _without_names(view: View) -> View:
    pulls, turned_by = (
        [replace(pull, text=HIDDEN) for pull in some] for some in (view.contributions, view.query_moved_by)
    )
    return replace(
        view,
        nearest_taught=None if view.nearest_taught is None else HIDDEN,
        contributions=pulls,
        query_moved_by=turned_by,
    )


def measure_move(retriever: Retriever, number: int, overlay: Overlay) -> float:
    """How far a document's key has moved."""
    keys = retriever.base.fetch(np.array([number]))
    return overlay.part(number).measure_move(number, keys.block) if len(keys.owners) else 0.0


def view(retriever: Retriever, question: Any, number: int, overlay: Overlay) -> View:
    """One retriever's score of one document, taken apart."""
    keys: Block[Any] = retriever.base.fetch(np.array([number])).block
    if not len(keys):
        return View(retriever.name, 0.0, -np.inf, -np.inf, "base key", None, [], [])
    asked = overlay.turn(question)
    told: dict[str, Any] = {
        "query_moved": 0.0 if asked is question else question.distance(asked),
        "query_moved_by": _because(overlay, question, asked),
    }
    opening = _open(retriever, overlay, asked)
    if (apart := overlay.part(number)) is not overlay:
        plain, overlay, opening = question, apart, WIDE_OPEN
        question = question.weigh_unheard()
        asked = question if asked is plain else asked.weigh_unheard()
    elif overlay.choice.gate_weights:
        told |= {"probability": opening.probability, "share": opening.share}
    case = Case(question, asked, number, overlay, keys)
    best = case.moved if case.learns and overlay.step else case.untaught
    recalled = case.recall(opening) if case.learns else None
    after, by = best.score, best.by
    if recalled is not None:
        after, by = max(after, recalled.score), "taught question" if recalled.score > after else by
    after = case.untaught.score + opening.share * (after - case.untaught.score)
    distance = measure_move(retriever, number, overlay) if case.learns else 0.0
    nearest = None if recalled is None else recalled.by
    before = float(keys.scores(question).max())
    return View(retriever.name, distance, before, after, by, nearest, best.pulls, case.terms(best), **told)


class Best(NamedTuple):
    """The row of a document that decides its score, by one way to score it."""

    score: float
    by: str
    row: int = 0
    pulls: Sequence[Contribution] = ()
    texts: Sequence[int] = ()
    """The taught texts that move it."""
    scale: Scores = np.zeros(0)
    """And by how much."""


@dataclass(frozen=True)
class Case:
    """A question, and a document with what it has learned."""

    question: Any
    asked: Any
    """The same through the lens."""
    number: int
    overlay: Overlay
    keys: Block[Any]

    @property
    def learns(self) -> bool:
        return self.overlay.texts is not None and self.overlay.touched.place(self.number) is not None

    @cached_property
    def untaught(self) -> Best:
        scores = self.keys.scores(self.asked)
        by = "base key" if self.asked is self.question else "base key, query mapped by the lens"
        return Best(float(scores.max()), by, int(scores.argmax()), [])

    @cached_property
    def moved(self) -> Best:
        """By moved keys."""
        overlay, keys, texts = self.overlay, self.keys, self.overlay.texts
        assert texts is not None
        whole = np.asarray(texts.likeness(self.asked), np.float64)
        said, rows = overlay.localise(whole, self.asked), overlay.touched.rows(self.number)
        pull, norms = overlay.pull[rows.start : rows.stop], overlay.norms[rows]
        likeness = np.asarray(keys.likeness(self.asked), np.float64)
        grown = keys.grow(likeness, keys.pull(said, pull), overlay.step, norms)
        row, by = int(grown.argmax()), "moved key"
        score, was = float(grown[row]), self.untaught.row
        if row != was and pull.indptr[row] == pull.indptr[row + 1]:  # its best part was pushed behind another
            by, row = "second-best part", was
        span = slice(pull.indptr[row], pull.indptr[row + 1])
        spoken, scale = pull.indices[span].tolist(), overlay.step * pull.data[span]
        pulls = _pulls(overlay, keys, likeness[row : row + 1], said, spoken, scale, float(norms[row]))
        if overlay.choice.locality:  # of each text, so much counts
            scale = scale * np.divide(said, whole, out=np.zeros_like(said), where=whole > 0)[spoken]
        return Best(score, by, row, pulls, spoken, scale)

    def recall(self, opening: Opening) -> Best | None:
        """By the nearest taught question that is a key of the document; None if none is."""
        overlay, texts = self.overlay, self.overlay.find_texts(self.number)[0]
        if overlay.choice.penalty is None or not len(texts) or overlay.texts is None:
            return None
        typed = self.asked.asked or self.asked
        totals = overlay.texts.total(np.asarray(overlay.texts.likeness(typed), np.float64))[texts]
        nearest = int(np.argmax(totals))
        less = overlay.choice.penalty * opening.penalty * self.asked.self_similarity
        return Best(float(totals[nearest]) - less, overlay.names[texts[nearest]])

    def terms(self, best: Best) -> list[Term]:
        key = self.keys.take(np.array([best.row]))
        taught = self.overlay.texts if self.learns else None
        return _terms(self.question, self.asked, key, taught, best.texts, best.scale)


def _open(retriever: Retriever, overlay: Overlay, asked: Any) -> Opening:
    """How far the gate is open for a question."""
    if not overlay.choice.gate_weights:
        return WIDE_OPEN
    (found,) = retriever.base.search([asked], overlay.depth, without=overlay.all_documents)
    return overlay.open(asked, found.ranking)


def _because(overlay: Overlay, question: Any, asked: Any) -> list[Contribution]:
    """The taught queries behind that."""
    lens: Any = overlay.lens
    return [] if asked is question else [Contribution(name, near) for name, near in lens.because(question, NAMED)]


def _pulls(
    overlay: Overlay, keys: Block[Any], likeness: Scores, said: Scores, texts: Sequence[int], scale: Scores, norm: float
) -> list[Contribution]:
    """What each text adds to the score of one row, or takes from it if the document was wrong for it."""
    if likeness.ndim > 1:  # vectors were appended: what each text alone would add
        amounts = np.array(
            [
                float(np.maximum(0, bring(said[text], min(1, s)) - likeness[0]).sum())
                for text, s in zip(texts, scale, strict=True)
            ]
        )
    else:
        amounts = scale * keys.total(said)[list(texts)] / norm
    return [Contribution(overlay.names[texts[at]], float(amounts[at])) for at in np.argsort(-abs(amounts))]


def _terms(
    question: Any, asked: Any, key: Block[Any], taught: Block[Any] | None, texts: Sequence[int], scale: Scores
) -> list[Term]:
    """What each word adds to the base key's score as it was asked, and to the moved key's through the lens."""
    plain = {word: weight for word, weight, _ in question.by_word()}
    found = []
    for word, weight, lone in asked.by_word():
        now = float(key.scores(lone)[0])
        before = now * plain.get(word, 0.0) / weight if weight else 0.0
        learned = float(scale @ taught.scores(lone)[list(texts)]) if taught is not None and texts else 0.0
        if now or learned:
            found.append(Term(word, before, now + learned))
    return sorted(found, key=lambda term: -max(term.before, abs(term.after)))
