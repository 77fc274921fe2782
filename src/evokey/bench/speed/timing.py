"""Searches timed in turn, so that noise hits all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

WARM = 20
WHOLE = "texts in and out"
Search = Callable[[int], Any]


def interleaved(searches: Mapping[str, Search], count: int, warm: int = WARM) -> dict[str, list[float]]:
    """Seconds of every search for every query, taken in turn, in another order each time."""
    for search in searches.values():
        for query in range(min(warm, count)):
            search(query)
    names, chance = list(searches), random.Random(17)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for query in range(count):
        chance.shuffle(names)
        for name in names:
            began = time.perf_counter()
            searches[name](query)
            seconds[name].append(time.perf_counter() - began)
    return seconds


def compared(searches: Mapping[str, Search], count: int) -> dict[str, Any]:
    apart = {name for name in searches if "(numpy)" in name}
    seconds = interleaved({name: search for name, search in searches.items() if name not in apart}, count)
    seconds |= interleaved({name: searches[name] for name in sorted(apart)}, count)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    bare = {name: median for name, median in medians.items() if not name.startswith("evokey") and WHOLE not in name}
    whole = {name: median for name, median in medians.items() if WHOLE in name} or bare
    return {
        "queries": count,
        "median_ms": {name: 1000 * median for name, median in medians.items()},
        "p95_ms": {name: 1000 * float(np.quantile(times, 0.95)) for name, times in seconds.items()},
        "fastest_other": min(bare, key=bare.__getitem__),
        "ratio": medians["evokey"] / min(bare.values()),
        "ratio_untaught": medians["evokey, untaught"] / min(bare.values()),
        "ratio_texts_in_and_out": medians["evokey"] / min(whole.values()),
    }
