"""Epochs of a layer: proposed from the lessons and from what the engine returned, composed for searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evokey.evolution.judgements import Judgements
from evokey.evolution.policy import Log
from evokey.evolution.proposing import NO_LESSONS, describe, on_hold
from evokey.evolution.writing import EpochWriter
from evokey.layer.engine import DEPTH
from evokey.layer.fitting import NAME, NOTHING, Fit, Material, mixes
from evokey.layer.learned import Learned
from evokey.layer.likeness import COMPARED, RESULTS, Comparison, Results, make_likeness
from evokey.layer.pools import CONTENT, EnginePools
from evokey.layer.scoring import Common, Plan, Scale
from evokey.layer.teaching import Teaching
from evokey.ledger.lessons import Omitted
from evokey.scoring.block import NO_NUMBERS
from evokey.types import Epoch, EpochReport, Ranking, Scores


@dataclass(frozen=True)
class LayerPublisher(EpochWriter):
    pools: EnginePools
    comparisons: Sequence[Comparison]
    shared: bool
    """Whether unnamed feedback comes from many people."""

    @property
    def current(self) -> int:
        return self.ledger.epochs.current

    def propose(self, up_to: int, omitted: Omitted) -> EpochReport:
        """The engine is not asked, for a forget may wait for this: questions for which its results are not kept take no
        part in the choice."""
        lessons = self.read_lessons(up_to, omitted | self.find_unasked(up_to, omitted))
        empty = EpochReport(False, "", self.current, None, None, {}, {}, len(lessons.queries), 0)
        if not lessons.queries:
            return replace(empty, reason=NO_LESSONS)
        report = describe(Fit(self._material(lessons)).propose(), lessons, empty)
        return replace(report, reason=report.reason + on_hold(len(self.ledger.lessons.find_held())))

    def draft(self, up_to: int, omitted: Omitted) -> Learned:
        """What evolve would publish of the lessons up to a number, without some. Writes nothing. Questions for which
        the engine's results are not kept take no part."""
        without = omitted | self.find_unasked(up_to, omitted)
        return self.compose(self.make_epoch("evolve", self.propose(up_to, without), up_to, without))

    def find_missing(self) -> list[str]:
        """Taught and protected questions for which the engine's results are not kept: evolve needs them."""
        lessons = self.read_lessons(self.ledger.lessons.last, self.ledger.lessons.find_held())
        needed = list(dict.fromkeys([*lessons.queries, *self.ledger.protected.by_number()]))
        kept = self.pools.find(needed)
        return [query for query in needed if query not in kept]

    def find_unasked(self, up_to: int, omitted: Omitted) -> Omitted:
        """Lessons on such questions."""
        log = self._log(up_to, omitted)
        unasked = set(log.taught.queries).difference(self.pools.find(log.taught.queries))
        return frozenset(vote.lesson for vote in log.votes if vote.query in unasked)

    def read_lessons(self, up_to: int, omitted: Omitted) -> Judgements:
        """What the lessons up to a number say, without some."""
        return self._log(up_to, omitted).taught

    def _log(self, up_to: int, omitted: Omitted) -> Log:
        return Log(self.ledger, up_to, omitted, shared=self.shared)

    def _material(self, lessons: Judgements) -> Material:
        protected = self.ledger.protected.by_number()
        pools = self.pools.find(list(dict.fromkeys([*lessons.queries, *protected])))
        known = Judgements({query: grades for query, grades in protected.items() if query in pools}, {})
        likeness = make_likeness(self.comparisons, lessons.judged, [_results(pools.get(one)) for one in lessons.judged])

        def compare(queries: Sequence[str], *, again: bool = False) -> Scores:
            found = None if again else [_results(pools.get(one)) for one in queries]
            return likeness.with_results(queries, likeness.tables(queries), found)

        return Material(lessons, known, pools, DEPTH, (*likeness.names, RESULTS), compare)

    def compose(self, epoch: Epoch) -> Learned:
        """What an epoch has learned."""
        choice = epoch.choice.get(NAME, NOTHING)
        taught = Judgements({}, {}) if choice.nothing else self.read_lessons(epoch.lessons_to, epoch.omitted)
        teaching, names = Teaching.of(taught), [one.name for one in self.comparisons]
        usual = dict(zip([*names, RESULTS], mixes(len(names))[0], strict=True))
        weights = tuple(epoch.weights.get(name, usual[name]) for name in usual)
        rows = self.ledger.documents.fetch(teaching.documents.tolist())
        ids = tuple(rows[number].id for number in teaching.documents.tolist())
        results = self._find_results(teaching.texts) if weights[-1] else None
        likeness = make_likeness(self.comparisons, teaching.texts, results)
        common = self._find_common(teaching.texts) if choice.discount else {}
        return self.read_texts(Learned(epoch, teaching, ids, (), Plan(choice, weights), likeness, common))

    def _find_results(self, queries: Sequence[str]) -> list[Results]:
        """What the engine returned for some questions, by ids."""
        pools = self.pools.find(queries)
        rows = self.ledger.documents.fetch({one for pool in pools.values() for one in pool.numbers[:COMPARED].tolist()})
        found = []
        for query in queries:
            pool = pools.get(query, Ranking(NO_NUMBERS, np.zeros(0)))
            shares = Scale.of(pool.scores, DEPTH).shares(pool.scores)
            found.append(Results([rows[one].id for one in pool.numbers[:COMPARED].tolist()], shares[:COMPARED]))
        return found

    def _find_common(self, queries: Sequence[str]) -> dict[str, float]:
        """How common the engine's results for some questions are, by ids."""
        pools = self.pools.find(queries)
        found = Common.of([pools[query] for query in queries if query in pools], DEPTH)
        rows = self.ledger.documents.fetch(found.numbers.tolist())
        return {
            rows[one].id: weight for one, weight in zip(found.numbers.tolist(), found.weights.tolist(), strict=True)
        }

    def read_texts(self, learned: Learned) -> Learned:
        """The same, with the hashes of texts that documents were last judged with."""
        rows = self.ledger.documents.fetch(learned.teaching.documents.tolist())
        texts = tuple(
            str(rows[number].metadata.get(CONTENT, "")) if number in rows else ""
            for number in learned.teaching.documents.tolist()
        )
        return learned if texts == learned.texts else replace(learned, texts=texts)


def _results(pool: Ranking | None) -> Results:
    """By numbers. Nothing where the engine's results are not kept."""
    if pool is None:
        return Results((), np.zeros(0))
    return Results(pool.numbers.tolist(), Scale.of(pool.scores, DEPTH).shares(pool.scores))
