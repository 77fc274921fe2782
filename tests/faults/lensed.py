"""A policy that always learns a lens, where the guarded one rarely takes one in so small a world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evokey.evolution.guarded import Guarded
from evokey.evolution.judgements import Judgements
from evokey.evolution.policy import Proposal
from evokey.registry import COMPONENTS, Component
from evokey.search.fusion import Fusion
from evokey.search.retriever import Retriever
from evokey.types import Choice

COMPONENTS["policy"]["lensed"] = Component("lensed:Lensed")
LENS = Choice(0.0, 1.0, 0.0, 0.2, lens_parameter=0.3, last_anchor=16)


class Lensed(Guarded):
    def propose(self, retrievers: Sequence[Retriever], fusion: Fusion, lessons: Judgements, *rest: Any) -> Proposal:
        """The guarded policy fills in the rest, from one lesson alone: that is quick."""
        proposal = super().propose(retrievers, fusion, lessons.only(lessons.queries[:1]), *rest)
        weights = dict(zip(fusion.names, fusion.untaught, strict=True))
        return replace(proposal, choice={one.name: LENS for one in retrievers}, weights=weights, changes=True)
