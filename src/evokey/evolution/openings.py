"""How far the gate is open for the queries of a trial, and what that leaves of learned scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evokey.evolution.tables import Table
from evokey.types import Scores

Gate = tuple[float, ...]


class CrossFitted(NamedTuple):
    """The probability of each query that it is about something taught, by what other folds say."""

    own: Scores
    as_unrelated: Scores
    """The same if nobody had taught anything about its own documents."""


@dataclass(frozen=True, slots=True)
class Openings:
    """How far the gate is open for each query (first axis)."""

    shares: Table
    penalties: Table

    @property
    def partial(self) -> bool:
        return bool((self.shares != 1).any())

    def apply(self, untaught: Table, learned: Table) -> Table:
        """What counts of learned scores."""
        if not self.partial:
            return learned
        with np.errstate(invalid="ignore"):
            mixed = untaught + self.shares * (learned - untaught)
        return np.where(np.isneginf(learned), learned, mixed).astype(np.float32, copy=False)


EVERYWHERE_OPEN = Openings(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32))
