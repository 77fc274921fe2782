"""Several processes search and teach one memory in PostgreSQL, and one after the other is killed: are there errors that
were not retried, torn epochs, lost lessons? Makes benchmarks/results/shared.json.

python benchmarks/shared.py [SECONDS [SECONDS BETWEEN KILLS]]         (default: 600 and 60; or: make shared-load)

First the processes do as much as they can (closed loop), for the capacity. Then requests come at random times, at half
of that rate, whether those before are done or not (open loop): a request waits for the ones before it, and that counts.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import evokey

HERE = Path(__file__)
sys.path.append(str(HERE.parents[1] / "tests"))
RESULT = HERE.parent / "results" / "shared.json"
SEARCHERS, TEACHERS = 4, 2
DOCUMENTS, PROBES = int(os.environ.get("EVOKEY_LOAD_DOCUMENTS", 2_000)), 40
EVOLVE_EVERY = 25
"""Lessons of a teacher after which it evolves."""
UNTIL = "until"
"""A file: when it is there, the load begins; it says when it ends."""
WORDS = [a + b for a in "ka ri to mu le so ne vi pa du".split() for b in "lan tor mis gen rok vel bar sun".split()]


def document(at: int) -> evokey.Document:
    chance = random.Random(f"document {at}")
    return evokey.Document(f"d{at}", " ".join(chance.choices(WORDS, k=30)), metadata={"part": at % 7})


def probe(at: int) -> str:
    """Queries that are asked again and again: their answers tell the epochs apart."""
    return " ".join(random.Random(f"probe {at}").choices(WORDS, k=4))


# ---- a process of the load: it says what it did, a line each, into a file of its own


def work(role: str, name: str, url: str, log: Path, rate: float) -> None:
    chance, count = random.Random(f"{role} {name} {time.time()}"), 0
    with log.open("a", buffering=1) as told, evokey.open(url, name="load") as memory:
        told.write(json.dumps({"role": "ready"}) + "\n")
        while not (log.parent / UNTIL).exists():
            time.sleep(0.02)
        due, until = time.time(), float((log.parent / UNTIL).read_text())
        while time.time() < until:
            due = max(due, time.time()) if not rate else due + chance.expovariate(rate)
            time.sleep(max(due - time.time(), 0))
            began = due if rate else time.time()
            count += 1
            try:
                said = (
                    search(memory, chance)
                    if role == "search"
                    else teach(memory, chance, f"{name}-{os.getpid()}-{count}", told)
                )
            except Exception as error:  # noqa: BLE001 - it is what is looked for
                said = {"error": f"{type(error).__name__}: {error}"[:300]}
            told.write(json.dumps({"role": role, "s": round(time.time() - began, 5), **said}) + "\n")
            if role == "teach" and count % EVOLVE_EVERY == 0:
                evolve(memory, told)


def search(memory: evokey.Memory, chance: random.Random) -> dict[str, Any]:
    query, before = chance.randrange(PROBES), memory.epoch
    hits = memory.search(probe(query), 10)
    return {"probe": query, "epochs": [before, memory.epoch], "hits": [[hit.id, hit.score] for hit in hits]}


def teach(memory: evokey.Memory, chance: random.Random, token: str, told: Any) -> dict[str, Any]:
    """Every lesson says something that no other says: one that is lost, or taught twice, is found out."""
    told.write(json.dumps({"role": "begun", "lesson": token}) + "\n")
    at = chance.randrange(PROBES)
    memory.feedback(f"{probe(at)} {token}", relevant=[f"d{chance.randrange(DOCUMENTS)}"], actor=token.partition("-")[0])
    return {"lesson": token}


def evolve(memory: evokey.Memory, told: Any) -> None:
    began = time.time()
    try:
        said: dict[str, Any] = {"published": memory.evolve().published}
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        said = {"error": f"{type(error).__name__}: {error}"[:300]}
    told.write(json.dumps({"role": "evolve", "s": round(time.time() - began, 3), **said}) + "\n")


# ---- all of them


@dataclass
class Load:
    url: str
    folder: Path
    rates: dict[str, float]
    started: int = 0
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*(f"search{at}" for at in range(SEARCHERS)), *(f"teach{at}" for at in range(TEACHERS))]

    def start(self, name: str) -> None:
        self.started += 1
        role, log = name.rstrip("0123456789"), self.folder / f"{name}.{self.started}.jsonl"
        told = [role, name, self.url, str(log), str(self.rates[role])]
        self.running[name] = subprocess.Popen([sys.executable, "-W", "ignore", str(HERE), "--work", *told])

    def begin(self, seconds: float) -> float:
        """When all have opened the memory. Returns when it ends."""
        for name in self.names:
            self.start(name)
        while sum(one["role"] == "ready" for one in self.lines()) < len(self.names):
            time.sleep(0.1)
        until = time.time() + seconds
        (self.folder / "making").write_text(str(until))
        (self.folder / "making").rename(self.folder / UNTIL)
        return until

    def run(self, seconds: float, kill_every: float) -> list[str]:
        """Returns the names of those that were killed, in order."""
        until, killed = self.begin(seconds), list[str]()
        next_kill = time.time() + kill_every
        while time.time() < until:
            time.sleep(0.1)
            if next_kill <= time.time() < until - kill_every / 4:
                name = self.names[len(killed) % len(self.names)]
                self.running[name].send_signal(signal.SIGKILL)
                self.running[name].wait()
                self.start(name)
                killed.append(name)
                next_kill += kill_every
        for process in self.running.values():
            process.wait(120)
        return killed

    def lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in path.read_text("utf-8").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # cut by a kill


def capacity(url: str, seconds: float) -> dict[str, float]:
    """Requests a second of one process of each role, while all of them do what they can."""
    with tempfile.TemporaryDirectory() as folder:
        load = Load(url, Path(folder), {"search": 0.0, "teach": 0.0})
        load.run(seconds, 1e9)
        counts = Counter(one["role"] for one in load.lines() if "error" not in one)
    return {"search": counts["search"] / SEARCHERS / seconds, "teach": counts["teach"] / TEACHERS / seconds}


def torn(memory: evokey.Memory, lines: list[dict[str, Any]]) -> tuple[int, int]:
    """How many searches could be compared with their epoch as it is read now, and how many differ from it. Documents do
    not change here, so an epoch always finds the same."""
    known: dict[tuple[int, int], list[list[Any]]] = {}
    compared = different = 0
    for one in lines:
        if one["role"] != "search" or "error" in one or one["epochs"][0] != one["epochs"][1]:
            continue
        key = (one["probe"], one["epochs"][0])
        if key not in known:
            known[key] = [[hit.id, hit.score] for hit in memory.search(probe(key[0]), 10, epoch=key[1])]
        compared += 1
        different += known[key] != one["hits"]
    return compared, different


def lessons(memory: evokey.Memory, lines: list[dict[str, Any]]) -> dict[str, int]:
    kept = Counter(one.query.split()[-1] for one in memory.lessons())
    acknowledged = {one["lesson"] for one in lines if one["role"] == "teach" and "lesson" in one}
    begun = {one["lesson"] for one in lines if one["role"] == "begun"}
    return {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - kept.keys()),
        "twice": sum(count > 1 for count in kept.values()),
        "stored, but killed before the answer": len((kept.keys() & begun) - acknowledged),
    }


def summary(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {"count": 0}
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"count": len(seconds), "p50 ms": round(1e3 * float(p50), 1), "p99 ms": round(1e3 * float(p99), 1)}


def measure(url: str, seconds: float, kill_every: float) -> dict[str, Any]:
    with evokey.open(url, name="load") as memory:
        memory.add(map(document, range(DOCUMENTS)))
    most = capacity(url, min(20.0, seconds / 3))
    rates = {role: rate / 2 for role, rate in most.items()}
    with tempfile.TemporaryDirectory() as folder:
        load = Load(url, Path(folder), rates)
        killed = load.run(seconds, kill_every)
        lines = list(load.lines())
    with evokey.open(url, name="load") as memory:
        compared, different = torn(memory, lines)
        found = lessons(memory, lines)
        epochs = memory.epoch
    asked = {role: [one["s"] for one in lines if one["role"] == role] for role in ("search", "teach", "evolve")}
    return {
        "seconds": seconds,
        "documents": DOCUMENTS,
        "processes": {"search": SEARCHERS, "teach": TEACHERS},
        "capacity, requests/s of all": {
            "search": round(most["search"] * SEARCHERS, 1), "teach": round(most["teach"] * TEACHERS, 1)
        },
        "killed": len(killed),
        "errors": [one["error"] for one in lines if "error" in one],
        "searches": {**summary(asked["search"]), "compared with their epoch": compared, "torn": different},
        "lessons": {**summary(asked["teach"]), **found},
        "evolves": {**summary(asked["evolve"]), "epochs": epochs},
    }  # fmt: skip


def main(seconds: float = 600.0, kill_every: float = 60.0) -> None:
    from postgres_server import Server

    with Server.start() as server:
        found = measure(server.url, seconds, kill_every)
    print(json.dumps(found, indent=1))
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:5], Path(sys.argv[5]), float(sys.argv[6]))
    else:
        main(*map(float, sys.argv[1:3]))
