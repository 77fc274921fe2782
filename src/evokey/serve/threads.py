"""Threads in which searches run: never those in which other requests wait for a lock, a disk or a language model.

A search that only computes needs the interpreter all the time. Of such searches a few run at once, and the others wait
in their order: with more, all of them would take turns and end late. One that asks another machine waits most of the
time, so many run at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from evokey.serve.collections import Collection
from evokey.serve.layers import LayerCollection
from evokey.stores.distant import DistantStore

COMPUTING = max(2, os.cpu_count() or 1)
"""Searches at once that only compute."""
ASKING = 40
"""Searches at once that ask other machines."""
ADMITTING = 8
"""Callers at once whose key is looked up, or whose collection is opened."""
T = TypeVar("T")


class Threads:
    def __init__(self) -> None:
        self._computing, self._asking = CapacityLimiter(COMPUTING), CapacityLimiter(ASKING)
        self._admitting = CapacityLimiter(ADMITTING)

    async def admit(self, look_up: Callable[[], T]) -> T:
        return await to_thread.run_sync(look_up, limiter=self._admitting)

    async def search(self, memory: Collection, search: Callable[[], T]) -> T:
        limiter = self._computing if only_computes(memory) else self._asking
        return await to_thread.run_sync(search, limiter=limiter)


def only_computes(memory: Collection) -> bool:
    """Whether a search asks no other machine: for vectors, keys, documents, or what to show first."""
    if isinstance(memory, LayerCollection) or memory.ledger.shared or memory.searcher.reranker is not None:
        return False
    retrievers = memory.index.originals
    return not any(one.cost == "money" or isinstance(one.store, DistantStore) for one in retrievers)
