"""A policy that chooses by lot, where the guarded one nearly always takes recall rows in so small a world.

The lot is drawn from the lessons themselves, so that the same lessons always get the same choice.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from evokey.evolution.guarded import Guarded
from evokey.evolution.lens_training import CAUTIOUS, METRICS, OPEN, RIDGES, STRENGTH
from evokey.evolution.policy import Proposal, TrainingData
from evokey.search.gate import SIGNALS
from evokey.search.retriever import Retriever
from evokey.types import Choice, Reach

SPREADS = (0.0, 0.5, 1.0)
STEPS = (0.0, 0.25, 1.0, 8.0)
UNITS = (0.0, 0.5, 2.0)
PENALTIES = (None, 0.4, 0.2, 0.0)
DEMOTIONS = (0.0, 0.4, 2.0)
LENSED = {
    "dense": list(product(RIDGES, (OPEN, *CAUTIOUS), METRICS)),
    "sparse": [(STRENGTH, OPEN, 0.0), (1.0, OPEN, 0.0)],
}
HALF_LIVES, LOCALITIES = (0.0, 0.0, 10.0), (0.0, 0.0, 0.3)
SHARPNESS = (0.0, 0.0, 1.0, 2.0)
PLACES = (None, 0.5, 1.0, 1.0)
NEAR = (-1.0, 0.2345, 0.5432, 0.8765)
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Chance(Guarded):
    def propose(self, data: TrainingData) -> Proposal:
        retrievers, fusion, lessons = data.retrievers, data.fusion, data.lessons
        said = sorted((query, sorted(grades.values())) for query, grades in lessons.grades.items())
        lot = random.Random(hashlib.sha256(repr(said).encode()).digest())
        first = lot.choice(WEIGHTS)
        weights = dict(zip(fusion.names, fusion.untaught, strict=True))
        if len(retrievers) == 2:
            weights = {retrievers[0].name: first, retrievers[1].name: 1 - first}
        choice = {one.name: _turned(one, _still(lot), lot) for one in retrievers}
        # The guarded policy fills in the rest, from one lesson alone: that is quick.
        proposal = super().propose(replace(data, lessons=lessons.only(lessons.queries[:1])))
        return replace(proposal, choice=choice, weights=weights, changes=True, reach=_reach(retrievers, lot))


def _reach(retrievers: Sequence[Retriever], lot: random.Random) -> Reach | None:
    """Two times of three, where a retriever can tell what is near."""
    measure = next((one.name for one in retrievers if one.kind == "dense"), None)
    least, weights = lot.choice(NEAR), lot.choice(NEAR)
    return None if measure is None or lot.random() < 1 / 3 else Reach(measure, least, weights)


def _still(lot: random.Random) -> Choice:
    choice = Choice(lot.choice(SPREADS), lot.choice(STEPS), lot.choice(UNITS), lot.choice(PENALTIES))
    sharpness = lot.choice(SHARPNESS)
    gate = tuple(round(lot.uniform(-2.0, 2.0), 3) for _ in range(1 + SIGNALS)) if sharpness else ()
    choice = replace(choice, demotion=lot.choice(DEMOTIONS), sharpness=sharpness, gate_weights=gate)
    return replace(choice, half_life=lot.choice(HALF_LIVES), locality=lot.choice(LOCALITIES))


def _turned(retriever: Retriever, choice: Choice, lot: random.Random) -> Choice:
    """Through a lens, two times of three; anchors are all documents up to one of those that are here."""
    lens, place = lot.choice(LENSED[retriever.kind]), lot.choice(PLACES)
    if lot.random() < 1 / 3:
        return choice
    living = retriever.documents.tolist()
    last_anchor = living[int(place * (len(living) - 1))] if living and place is not None else 0
    ridge, gate, whitening = lens
    return replace(choice, lens_parameter=ridge, gate_quantile=gate, whitening=whitening, last_anchor=last_anchor)
