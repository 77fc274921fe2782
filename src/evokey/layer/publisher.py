"""Epochs of a layer: proposed from the lessons and from what the engine returned, composed for searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evokey.evolution.judgements import Judgements
from evokey.evolution.policy import Log
from evokey.evolution.proposing import NO_LESSONS, describe, on_hold
from evokey.evolution.writing import EpochWriter
from evokey.layer.engine import DEPTH
from evokey.layer.fitting import NAME, NOTHING, Fit, Material, mixes
from evokey.layer.learned import Learned
from evokey.layer.likeness import Comparison, make_likeness
from evokey.layer.pools import CONTENT, EnginePools
from evokey.layer.scoring import Plan
from evokey.layer.teaching import Teaching
from evokey.ledger.lessons import Omitted
from evokey.types import Epoch, EpochReport


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
        lessons = self._lessons(up_to, omitted)
        empty = EpochReport(False, "", self.current, None, None, {}, {}, len(lessons.queries), 0)
        if not lessons.queries:
            return replace(empty, reason=NO_LESSONS)
        report = describe(Fit(self._material(lessons)).propose(), lessons, empty)
        return replace(report, reason=report.reason + on_hold(len(self.ledger.lessons.find_held())))

    def _lessons(self, up_to: int, omitted: Omitted) -> Judgements:
        return Log(self.ledger, up_to, omitted, shared=self.shared).taught

    def _material(self, lessons: Judgements) -> Material:
        protected = Judgements(self.ledger.protected.by_number(), {})
        asked = list(dict.fromkeys([*lessons.queries, *protected.queries]))
        pools, likeness = self.pools.all(asked), make_likeness(self.comparisons, lessons.judged)
        return Material(lessons, protected, pools, DEPTH, likeness.names, likeness.tables)

    def compose(self, epoch: Epoch) -> Learned:
        """What an epoch has learned."""
        choice = epoch.choice.get(NAME, NOTHING)
        taught = Judgements({}, {}) if choice.nothing else self._lessons(epoch.lessons_to, epoch.omitted)
        teaching, names = Teaching.of(taught), [one.name for one in self.comparisons]
        usual = dict(zip(names, mixes(len(names))[0], strict=True))
        weights = tuple(epoch.weights.get(name, usual[name]) for name in names)
        rows = self.ledger.documents.fetch(teaching.documents.tolist())
        ids = tuple(rows[number].id for number in teaching.documents.tolist())
        likeness = make_likeness(self.comparisons, teaching.texts)
        return self.read_texts(Learned(epoch, teaching, ids, (), Plan(choice, weights), likeness))

    def read_texts(self, learned: Learned) -> Learned:
        """The same, with the hashes of texts that documents were last judged with."""
        rows = self.ledger.documents.fetch(learned.teaching.documents.tolist())
        texts = tuple(
            str(rows[number].metadata.get(CONTENT, "")) if number in rows else ""
            for number in learned.teaching.documents.tolist()
        )
        return learned if texts == learned.texts else replace(learned, texts=texts)
