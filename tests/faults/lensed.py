"""A policy that always learns a lens, where the guarded one rarely takes one in so small a world."""

from __future__ import annotations

from dataclasses import replace

from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Proposal, TrainingData
from evokey.registry import COMPONENTS, Component
from evokey.types import Choice

COMPONENTS["policy"]["lensed"] = Component("lensed:Lensed")
LENS = Choice(0.0, 1.0, 0.0, 0.2, lens_parameter=0.3, last_anchor=16)


class Lensed(Guarded):
    def propose(self, data: TrainingData) -> Proposal:
        """The guarded policy fills in the rest, from one lesson alone: that is quick."""
        proposal = super().propose(replace(data, lessons=data.lessons.only(data.lessons.queries[:1])))
        weights = dict(zip(data.fusion.names, data.fusion.untaught, strict=True))
        return replace(proposal, choice={one.name: LENS for one in data.retrievers}, weights=weights, changes=True)
