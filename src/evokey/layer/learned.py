"""What one epoch has learned beside an engine, and what a search makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evokey.layer.engine import DEPTH
from evokey.layer.likeness import Likeness, Results
from evokey.layer.scoring import Parts, Plan, Scale, blend, combine, compare_results, even, gate, weigh
from evokey.layer.teaching import Teaching
from evokey.search.gate import FIRST, NEAREST, Opening, open_for
from evokey.types import Document, Epoch, Hit, Scores, digest

ADDED = 100
"""Ids that an engine is asked for leave to add, at most."""
Leave = Callable[[Sequence[str]], Mapping[str, Document]]
"""ids → those that may be added to the results."""


class Near(NamedTuple):
    """How like a question is to each of the taught ones."""

    query: str
    usual: Scores
    """By all encoders alike, for the gate."""
    tables: Scores
    """By each encoder."""


class Scored(NamedTuple):
    """The touched documents for one question, by their places."""

    likeness: Scores
    """Of the taught questions, by the weights of the plan."""
    base: Scores
    after: Scores
    parts: Parts
    opening: Opening
    added: Mapping[int, Document]
    """Documents that the engine did not return and that may be added."""


@dataclass(frozen=True)
class Learned:
    epoch: Epoch
    teaching: Teaching
    ids: tuple[str, ...]
    """Of the touched documents."""
    texts: tuple[str, ...]
    """Hashes of their texts as they were taught; empty where no text was known."""
    plan: Plan
    likeness: Likeness
    common: Mapping[str, float]
    """How common the engine's results are; documents that are not named are not."""

    def compare(self, query: str) -> Near | None:
        """How like a question is to the taught ones; None where it is like none: then the engine answers alone."""
        reach = self.epoch.reach
        if self.plan.choice.nothing or reach is None:
            return None
        tables = self.likeness.tables([query])
        usual = blend(tables, even(len(tables))[:-1])[0]
        if usual[self.teaching.known.texts].max(initial=0.0) < max(reach.threshold, 1e-9):
            return None
        return Near(query, usual, tables)

    @cached_property
    def place(self) -> Mapping[str, int]:
        return {id: at for at, id in enumerate(self.ids)}

    @cached_property
    def _learners(self) -> frozenset[int]:
        """Places of the documents that were right for some question."""
        return frozenset(self.teaching.right.documents.tolist())

    def rank(self, near: Near, hits: Sequence[Hit], k: int, leave: Leave, *, limited: bool) -> list[Hit]:
        """An engine's results with what was learned. near: what compare says; limited: whether the caller may be shown
        less than all. Of equal scores the engine's results come first, in its order; the others by id, whatever was
        heard of first."""
        scored, scale = self.score(near, hits, k, leave, limited=limited), _scale(hits)
        shares = scale.shares([hit.score for hit in hits])
        after = self._discount(hits, shares)
        for at, hit in enumerate(hits):
            if hit.id in self.place:
                after[at] = scored.after[self.place[hit.id]]
        scores = scale.scores(after)
        ranked: list[tuple[float, int, Hit]] = []
        for at, hit in enumerate(hits):
            new = hit if after[at] == shares[at] else Hit(hit.id, float(scores[at]), hit.document)
            ranked.append((-float(after[at]), at, new))
        for place, document in scored.added.items():
            share = scored.after[place]
            if share > 0:
                hit = Hit(document.id, float(scale.scores(share)), document)
                ranked.append((-float(share), len(hits), hit))
        return [hit for _, _, hit in sorted(ranked, key=lambda one: (*one[:2], one[2].id))[:k]]

    def score(self, near: Near, hits: Sequence[Hit], k: int, leave: Leave, *, limited: bool) -> Scored:
        """What every touched document scores that the engine returned, or that may be added to the first k."""
        choice, base = self.plan.choice, np.zeros(len(self.ids))
        shares = _scale(hits).shares([hit.score for hit in hits])
        there, speaks = np.zeros(len(self.ids), bool), np.ones(len(self.ids), bool)
        for hit, share in zip(hits, shares.tolist(), strict=True):
            place = self.place.get(hit.id)
            if place is not None:
                base[place], there[place], speaks[place] = share, True, self._holds(place, hit.document)
        found = Results([hit.id for hit in hits], shares)
        likeness = blend(self.likeness.with_results([near.query], near.tables, [found]), self.plan.weights)
        parts = Parts(*(table[0] for table in weigh(self.teaching, likeness, choice)))
        discounted = base - choice.discount * self._common
        bar = len(hits) >= k and not choice.demotion
        least = max(float(np.sort(self._discount(hits, shares))[-k]), 0.0) if bar else 0.0
        wanted = self._candidates(discounted, parts, there, least)
        wanted += [at for at in self._nearest(near) if limited and not there[at] and at not in wanted]
        allowed = leave([self.ids[at] for at in wanted])
        added = {self.place[id]: document for id, document in allowed.items()}
        visible = there.copy()
        visible[list(added)] = True
        hidden = self._hidden(visible) if limited else ()
        signals = self.teaching.known.signals(near.usual, 1.0, base, shares[:FIRST], hidden)
        right = np.array([self.place.get(hit.id, -1) in self._learners for hit in hits], bool)
        opening = open_for(choice, np.concatenate([signals, compare_results(shares, right)]))
        after = gate(discounted, combine(discounted, parts, choice, opening.penalty), opening.share)
        return Scored(likeness[0], base, np.where(visible & speaks, after, discounted), parts, opening, added)

    def _discount(self, hits: Sequence[Hit], shares: Scores) -> Scores:
        """The engine's results, less what common ones lose."""
        if not self.plan.choice.discount:
            return shares.copy()
        return shares - self.plan.choice.discount * np.array([self.common.get(hit.id, 0.0) for hit in hits])

    @cached_property
    def _common(self) -> Scores:
        """How common the touched documents are."""
        return np.array([self.common.get(id, 0.0) for id in self.ids])

    def _candidates(self, base: Scores, parts: Parts, there: NDArray[np.bool_], least: float) -> list[int]:
        """Documents that the engine did not return and that may score more than this, the best first."""
        worth = np.where(there, -np.inf, combine(base, parts, self.plan.choice, 0.0))
        some = np.flatnonzero(worth > least)
        return [int(at) for at in some[np.argsort(-worth[some], kind="stable")[:ADDED]]]

    def _nearest(self, near: Near) -> list[int]:
        """The documents of the taught questions that the gate looks at."""
        known = self.teaching.known
        best = np.argsort(-near.usual[known.texts], kind="stable")[:NEAREST]
        return sorted(set[int]().union(*(known.documents[at] for at in best.tolist())))

    def _hidden(self, visible: NDArray[np.bool_]) -> list[int]:
        """Taught questions about no document that the caller may see: they say nothing to this caller."""
        right = self.teaching.right
        seen = np.unique(right.texts[visible[right.documents]])
        return [int(at) for at in np.flatnonzero(~np.isin(self.teaching.known.texts, seen))]

    def _holds(self, place: int, document: Document) -> bool:
        """Whether a document still has the text that it was taught with, as far as both are known."""
        return not (self.texts[place] and document.text) or self.texts[place] == content(document)


def content(document: Document) -> str:
    """The hash of a document's text; empty where the text is not known."""
    return digest(document.title, document.text) if document.text else ""


def _scale(hits: Sequence[Hit]) -> Scale:
    return Scale.of([hit.score for hit in hits], DEPTH)
