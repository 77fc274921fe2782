"""Dense keys, searched one and all by inner product."""

from __future__ import annotations

import numpy as np

from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.stores.embedded import EmbeddedStore
from evokey.stores.rows import Rows, Scan


class FlatRows(Rows[DenseBlock]):
    block = DenseBlock

    def scan(self, question: DenseQuestion) -> Scan:
        scores = np.empty(len(self.owners), np.float32)
        for segment, start in zip(self.segments, self.starts.tolist(), strict=False):
            if len(segment.block):
                segment.block.likeness(question, out=scores[start : start + len(segment.block)])
        return Scan(self, scores)


class FlatStore(EmbeddedStore[DenseBlock]):
    kinds = frozenset({"dense"})
    state = FlatRows
