"""An encoder whose document side may work in several processes: texts are dealt out, and come back in their order.

Each process makes the encoder once, from its settings. Queries are encoded here: one is not worth the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import numpy as np

from evokey import registry
from evokey.errors import ServiceFailed
from evokey.protocols import Cost, Encoder

_encoder: Any = None
"""That of this process, where it is one of several."""


class Pooled:
    _pool: ProcessPoolExecutor | None = None
    _workers = 1

    def __init__(self, encoder: Encoder) -> None:
        self.kind, self.identity = encoder.kind, encoder.identity
        self.cost: Cost = encoder.cost
        self._inner = encoder

    def start(self, described: registry.Options, workers: int) -> None:
        """Encode in so many processes from now on, each with an encoder of these settings."""
        context = get_context("spawn")  # a forked process would have a copy of the ledger's locks
        self._pool, self._workers = ProcessPoolExecutor(workers, context, _make, (dict(described),)), workers

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool, self._workers = None, 1

    def documents(self, texts: Sequence[str]) -> Any:
        size = -(-len(texts) // self._workers)
        if self._pool is None or len(texts) < 2:
            return self._inner.documents(texts)
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        try:
            made = list(self._pool.map(_encode, parts))
        except BrokenProcessPool as error:
            raise ServiceFailed(
                f"a process that encodes for {self.identity} has ended ({error}). If memory is short, use fewer workers"
            ) from error
        return np.concatenate(made) if self.kind == "dense" else [one for part in made for one in part]

    def queries(self, texts: Sequence[str]) -> Any:
        return self._inner.queries(texts)

    def __getattr__(self, name: str) -> Any:
        """What an encoder has beside, such as answers that come one by one."""
        return getattr(self._inner, name)


def _make(described: registry.Options) -> None:
    global _encoder
    _encoder = registry.build("encoder", described)


def _encode(texts: Sequence[str]) -> Any:
    return _encoder.documents(texts)
