"""Keys of several vectors each (late interaction), searched one and all."""

from __future__ import annotations

import numpy as np

from evokey.scoring.late import LateBlock, LateQuestion
from evokey.stores.embedded import EmbeddedStore
from evokey.stores.rows import Rows, Scan


class LateRows(Rows[LateBlock]):
    block = LateBlock

    def scan(self, question: LateQuestion) -> Scan:
        likeness = [segment.block.likeness(question) for segment in self.segments if len(segment.block)]
        empty = np.zeros((0, len(question.vectors)), np.float32)
        return Scan(self, np.concatenate([empty, *likeness]))


class LateStore(EmbeddedStore[LateBlock]):
    kinds = frozenset({"multi"})
    state = LateRows
