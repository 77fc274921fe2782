"""Overlays and epochs at 1 billion documents, 10,000 queries a second and 100 searchers: a small seeded simulation.

    python benchmarks/propagation.py [--out benchmarks/results/propagation.json]

Growth: lessons name documents whose popularity follows Zipf's law; how many distinct documents have learned after so
many lessons, and what their rows take in a searcher.

Propagation: an epoch is published every minute. A searcher hears of it (a notification, or a poll each second), reads
the new lessons from the ledger, fetches the base rows of newly taught documents from the engine, composes its overlay
and switches (as evokey does today); or one process does that, and hands on the rows that are new. Ledger and engine
share their capacity among all who ask at the same time. Searchers fail by lot and start again with nothing. The answer
is how long it takes until half, 99 % and all of them have switched, and how large a part of the queries is answered by
an older epoch. All assumptions are in the result file.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

DOCUMENTS = 1_000_000_000
EXPONENTS = (0.8, 1.0, 1.2)
LESSONS = (10_000, 100_000, 1_000_000, 10_000_000)
ROW = 256 * 4 + 64
"""Bytes of a document that has learned: its base row, and who taught it what; and of a taught question."""


@dataclass(frozen=True)
class World:
    searchers: int = 100
    epochs: int = 60
    every: float = 60.0
    """Seconds between two epochs."""
    lessons: int = 6_000
    """In one epoch: of 600,000 queries in a minute, one in a hundred is rated."""
    taught_before: int = 500_000
    """Documents that have learned already: what a searcher that starts reads at first."""
    notified: bool = True
    """By LISTEN/NOTIFY; else by a poll each second."""
    lesson_bytes: int = 700
    ledger_bytes_per_second: float = 100e6
    """Of a replica: all searchers share it."""
    rows_per_second: float = 50_000
    """That the engine fetches by number: all searchers share it."""
    compose_rows_per_second: float = 400_000
    handed_on: bool = False
    """Whether one process composes what is new, and all others read its rows."""
    storage_bytes_per_second: float = 1e9
    """Of what hands them on: all searchers share it."""
    failures: float = 0.01
    """The chance that a searcher fails in one epoch."""
    restart: float = 20.0


def zipf(count: int, exponent: float, chance: np.random.Generator) -> Any:
    """Documents by lot, the r-th most popular with a chance of r^−s: the inverse of the continuous distribution."""
    drawn = chance.random(count)
    if exponent == 1.0:
        return np.exp(drawn * np.log(DOCUMENTS)).astype(np.int64)
    power = 1 - exponent
    return ((drawn * (DOCUMENTS**power - 1) + 1) ** (1 / power)).astype(np.int64)


def growth(seed: int = 1) -> list[dict[str, Any]]:
    rows = []
    for exponent in EXPONENTS:
        named = zipf(max(LESSONS), exponent, np.random.default_rng(seed))
        for lessons in LESSONS:
            documents = len(np.unique(named[:lessons]))
            size = (documents + lessons) * ROW / 2**20
            rows.append({"exponent": exponent, "lessons": lessons, "documents": documents, "overlay_mb": round(size)})
    return rows


def share(work: Any, starts: Any, capacity: float) -> Any:
    """When each of many is served who begin at these times, and share a capacity equally."""
    left, now, ends = work.astype(float).copy(), 0.0, np.full(len(work), np.nan)
    waiting = np.argsort(starts, kind="stable").tolist()
    active: list[int] = []
    while waiting or active:
        if not active:
            now = max(now, float(starts[waiting[0]]))
        while waiting and starts[waiting[0]] <= now:
            active.append(waiting.pop(0))
        rate = capacity / len(active)
        done = min(left[one] for one in active) / rate
        step = min(done, float(starts[waiting[0]]) - now) if waiting else done
        now += step
        for one in active:
            left[one] -= rate * step
        for one in [one for one in active if left[one] <= 1e-6]:
            ends[one] = now
            active.remove(one)
    return ends


def spread(world: World, seed: int) -> Any:
    """Seconds after its publication until each searcher answers by an epoch; of all epochs."""
    chance, delays = np.random.default_rng(seed), []
    for _ in range(world.epochs):
        failed = chance.random(world.searchers) < world.failures
        heard = chance.exponential(0.01, world.searchers) if world.notified else chance.random(world.searchers)
        heard = np.where(failed, world.restart + heard, heard)
        new = np.where(failed, world.taught_before + world.lessons, world.lessons)
        if world.handed_on:
            made = world.lessons / world.rows_per_second + world.lessons / world.compose_rows_per_second
            read = share(new * ROW, made + heard, world.storage_bytes_per_second)
            delays.append(read + new / world.compose_rows_per_second)
            continue
        read = share(new * world.lesson_bytes, heard, world.ledger_bytes_per_second)
        fetched = share(new, read, world.rows_per_second)
        delays.append(fetched + (world.taught_before + world.lessons) / world.compose_rows_per_second)
    return np.array(delays)


def measure(world: World, seed: int = 7) -> dict[str, Any]:
    delays = spread(world, seed)
    last = np.sort(delays, axis=1)
    at = {"half": 0.5, "99 %": 0.99, "all": 1.0}
    told = {
        name: round(float(np.median(last[:, int(np.ceil(part * world.searchers)) - 1])), 2) for name, part in at.items()
    }
    old = round(float(np.minimum(delays, world.every).mean() / world.every), 4)
    return {**asdict(world), "seconds_until": told, "answered_by_an_older_epoch": old}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "propagation.json")
    told = parser.parse_args()
    plain = World()
    worlds = {
        "as planned": plain,
        "by polls": replace(plain, notified=False),
        "no failure": replace(plain, failures=0.0),
        "ten times the lessons": replace(plain, lessons=10 * plain.lessons),
        "four engines to fetch from": replace(plain, rows_per_second=4 * plain.rows_per_second),
        "handed on": replace(plain, handed_on=True),
        "handed on, ten times the lessons": replace(plain, handed_on=True, lessons=10 * plain.lessons),
    }
    found = {"growth": growth(), "propagation": {name: measure(world) for name, world in worlds.items()}}
    told.out.write_text(json.dumps({"documents": DOCUMENTS, "row_bytes": ROW, **found}, indent=1) + "\n")
    print(json.dumps(found["growth"]))
    for name, one in found["propagation"].items():
        print(name, one["seconds_until"], one["answered_by_an_older_epoch"])


if __name__ == "__main__":
    main()
