"""A policy that chooses by lot, where the guarded one nearly always takes recall rows in so small a world.

The lot is drawn from the lessons themselves, so that the same lessons always get the same choice.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evokey.evolution.evidence import Taught
from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Proposal
from evokey.fusion import Fusion
from evokey.retriever import Retriever
from evokey.types import Choice

SPREADS = (0.0, 0.5, 1.0)
STEPS = (0.0, 0.25, 1.0, 8.0)
UNITS = (0.0, 0.5, 2.0)
HANDICAPS = (None, 0.4, 0.2, 0.0)
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Chance(Guarded):
    def propose(self, retrievers: Sequence[Retriever], fusion: Fusion, lessons: Taught, *rest: Any) -> Proposal:
        said = sorted((query, sorted(grades.values())) for query, grades in lessons.grades.items())
        lot = random.Random(hashlib.sha256(repr(said).encode()).digest())
        first = lot.choice(WEIGHTS)
        weights = dict(zip(fusion.names, fusion.untaught, strict=True))
        if len(retrievers) == 2:
            weights = {retrievers[0].name: first, retrievers[1].name: 1 - first}
        choice = {
            one.name: Choice(lot.choice(SPREADS), lot.choice(STEPS), lot.choice(UNITS), lot.choice(HANDICAPS))
            for one in retrievers
        }
        # The guarded policy fills in the rest, from one lesson alone: that is quick.
        proposal = super().propose(retrievers, fusion, lessons.only(lessons.queries[:1]), *rest)
        return replace(proposal, choice=choice, weights=weights, changes=True)
