"""What one search reads, all of the same moment: retrievers with their base keys, and what an epoch has learned.

Another thread may follow the ledger meanwhile. It makes another view; this one stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evokey.search.fusion import FUSION_DEPTH, Fusion
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever, search
from evokey.types import Expansion, Numbers, Ranking, Vectors


@dataclass(frozen=True, slots=True)
class Overlays:
    """What one epoch has learned, for every retriever."""

    of: Mapping[str, Overlay]
    weights: Mapping[str, float]
    near: Neighbours | None = None
    """The taught queries that a question must be near to; None: it need not."""
    beyond: Overlays | None = None
    """What answers the others: the untaught index, and restricted documents' own rows."""
    weighed: bool = False
    """Whether it follows from BM25's weights, and so from every document that comes."""

    @classmethod
    def untaught(cls, fusion: Fusion) -> Overlays:
        return cls(dict.fromkeys(fusion.names, UNTAUGHT), dict(zip(fusion.names, fusion.untaught, strict=True)))


@dataclass(frozen=True, slots=True)
class View:
    retrievers: Sequence[Retriever]
    fusion: Fusion
    overlays: Overlays

    @property
    def untaught(self) -> View:
        """The same keys, as if nothing had been learned."""
        return View(self.retrievers, self.fusion, Overlays.untaught(self.fusion))

    def ask(self, query: str, vector: Vectors | None = None) -> Asked:
        """A query as each retriever is asked it."""
        view, known = self.within_reach(query, vector)
        questions = [known.get(one.name) or view._question(one, query, vector) for one in self.retrievers]
        return Asked(view, query, questions)

    def rank(self, query: str, k: int, among: Numbers | None = None, vector: Vectors | None = None) -> Ranking:
        """The k best documents for a query."""
        return self.ask(query, vector).rank(k, among)

    def _question(self, retriever: Retriever, query: str, vector: Vectors | None) -> Any:
        return retriever.question(query, self.overlays.of[retriever.name].learned, vector)

    def within_reach(self, query: str, vector: Vectors | None = None) -> tuple[View, dict[str, Any]]:
        """What was learned, as far as it reaches this query; and the question that was made to find out, by
        retriever."""
        near, beyond = self.overlays.near, self.overlays.beyond
        if near is None or beyond is None:
            return self, {}
        measure = next(one for one in self.retrievers if one.name == near.reach.retriever)
        question = measure.question(query, {}, vector)
        nearest, view = near.nearest(query, question), self
        if nearest < near.reach.threshold:
            view = View(self.retrievers, self.fusion, beyond)
        elif nearest < near.reach.weights_threshold:
            view = View(self.retrievers, self.fusion, Overlays(self.overlays.of, beyond.weights))
        return view, {measure.name: question}

    def alternatives(self, query: str, k: int, among: Numbers | None, vector: Vectors | None) -> list[Ranking]:
        """What the untaught index finds, and what each of several retrievers finds alone."""
        view, _ = self.within_reach(query, vector)
        rankings = [self.untaught.rank(query, k, among, vector)]
        if len(self.retrievers) > 1:
            for one in self.retrievers:
                question = view._question(one, query, vector)
                rankings.append(search(one, question, k, view.overlays.of[one.name], among))
        return rankings

    def rank_expanded(self, expansion: Expansion, k: int, among: Numbers | None = None) -> Ranking:
        """What a query finds together with its units: as one question, or each by itself and the rankings fused."""
        if expansion.search == "fuse" and expansion.texts:
            texts = [expansion.query, *expansion.texts]
            rankings = [self.rank(text, max(k, FUSION_DEPTH), among) for text in texts]
            weights = [1.0, *(1 / len(expansion.texts) for _ in expansion.texts)]
            return self.fusion.fused(rankings, [1.0] * len(texts), weights, k)
        return self.ask_expanded(expansion).rank(k, among)

    def ask_expanded(self, expansion: Expansion) -> Asked:
        """A query together with its units, as one question."""
        view, _ = self.within_reach(expansion.query)
        questions = [one.expand(expansion, view.overlays.of[one.name].learned) for one in self.retrievers]
        return Asked(view, expansion.query, questions)

    def rank_asked(self, questions: Sequence[Any], k: int, among: Numbers | None) -> Ranking:
        depth = k if len(self.retrievers) == 1 else max(k, FUSION_DEPTH)
        rankings = [
            search(one, question, depth, self.overlays.of[one.name], among)
            for one, question in zip(self.retrievers, questions, strict=True)
        ]
        if len(rankings) == 1:
            return rankings[0]
        weights = [self.overlays.weights[one.name] for one in self.retrievers]
        return self.fusion.fused(rankings, [question.trust for question in questions], weights, k)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query on its way: what it is asked of, and how."""

    view: View
    """What was learned, as far as it reaches the query."""
    query: str
    questions: Sequence[Any]
    """One for each retriever."""

    def rank(self, k: int, among: Numbers | None = None) -> Ranking:
        """The k best documents."""
        return self.view.rank_asked(self.questions, k, among)
