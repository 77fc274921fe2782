"""Searches timed side by side, so that noise hits all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

WARM, RUN = 20, 20
TEXT, WHOLE = "text in", "texts in and out"
Search = Callable[[int], Any]


def time_searches(searches: Mapping[str, Search], queries: range, run: int) -> dict[str, list[float]]:
    """Seconds of every search for every query: each has a run of so many queries, then the next one has the same; in
    another order every time."""
    names, chance = list(searches), random.Random(17)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for start in range(0, len(queries), run):
        chance.shuffle(names)
        for name in names:
            search, told = searches[name], seconds[name]
            for query in queries[start : start + run]:
                began = time.perf_counter()
                search(query)
                told.append(time.perf_counter() - began)
    return seconds


def compare(searches: Mapping[str, Search], count: int) -> dict[str, Any]:
    """Every other query in runs: as an index is used, by itself. The rest in turn, query by query, each among what the
    others leave in the processor's caches (numpy's bm25s, far behind, stays away from that)."""
    for search in searches.values():
        for query in range(min(WARM, count)):
            search(query)
    runs, turns = range(WARM, count, 2), range(WARM + 1, count, 2)
    close = {name: search for name, search in searches.items() if "(numpy)" not in name}
    return {**_summarise(time_searches(searches, runs, RUN)), "in_turn": _summarise(time_searches(close, turns, 1))}


def _summarise(seconds: Mapping[str, list[float]]) -> dict[str, Any]:
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    others = {name: median for name, median in medians.items() if not name.startswith("evokey")}
    bare = {name: median for name, median in others.items() if TEXT not in name and WHOLE not in name}
    told = [median for name, median in others.items() if TEXT in name] or bare.values()
    whole = [median for name, median in others.items() if WHOLE in name] or bare.values()
    return {
        "queries": len(seconds["evokey"]),
        "median_ms": {name: 1000 * median for name, median in medians.items()},
        "p95_ms": {name: 1000 * float(np.quantile(times, 0.95)) for name, times in seconds.items()},
        "fastest_other": min(bare, key=bare.__getitem__),
        "ratio": medians["evokey"] / min(bare.values()),
        "ratio_untaught": medians["evokey, untaught"] / min(bare.values()),
        "ratio_text_in": medians["evokey"] / min(told),
        "ratio_texts_in_and_out": medians["evokey"] / min(whole),
    }
