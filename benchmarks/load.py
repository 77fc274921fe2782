"""The service under load: capacity, latency at half of it, lessons that are all there, memory that stays flat.

    python benchmarks/load.py ../shared/data/scifact --out benchmarks/results/load.json [--seconds 300]

`evokey serve` runs in a process of its own with its background learner on (every 200 lessons), and API keys. First the
capacity: 50 clients, each sending its next request when it has the answer. Then an open loop: requests come by chance
(Poisson) at half of that rate over 50 connections, whether or not earlier ones were answered, and a latency counts from
the moment a request was due. One request in ten is feedback, the others search. In the end, every lesson that was
acknowledged must be in the memory.

The overhead is that of one search after another over HTTP, beside Memory.search in one process, on the same queries:
the first time that they are asked, when documents are not cut into passages yet, and the second time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import evokey
from evokey.bench.data import load
from evokey.bench.runs import write_json
from evokey.serve.keys import Key, KeyRing

CLIENTS = 50
FEEDBACK = 0.1
BASE = "/v1/collections/default"
WARM = 5.0
"""Seconds before anything is measured."""


@dataclass
class Log:
    searches: list[float] = field(default_factory=list)
    feedbacks: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lessons: list[int] = field(default_factory=list)
    waited: int = 0
    """Requests for which no connection was free when they were due."""


class Connection:
    """One connection that stays open, with as little of HTTP as this needs."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._head = (
            port,
            f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json",
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if self._streams is None or self._streams[0].at_eof():  # the service closes connections that are idle
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        data = json.dumps(body).encode()
        writer.write(
            f"POST {BASE}{path} HTTP/1.1\r\n{self._head}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
        )
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(head[9:12]), await reader.readexactly(length)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Load:
    port: int
    key: str
    questions: list[tuple[str, dict[str, float]]]
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    log: Log = field(default_factory=Log)

    async def request(self, connection: Connection, due: float) -> None:
        query, right = self.chance.choice(self.questions)
        teach = self.chance.random() < FEEDBACK
        try:
            if teach:
                status, told = await connection.post("/feedback", {"query": query, "relevant": right})
            else:
                status, told = await connection.post("/search", {"query": query, "k": 10})
        except (OSError, asyncio.IncompleteReadError, ValueError, IndexError) as error:
            self.log.errors.append(type(error).__name__)
            connection.close()
            return
        taken = time.perf_counter() - due
        (self.log.feedbacks if teach else self.log.searches).append(taken)
        if status >= 400:
            self.log.errors.append(f"{status}")
        elif teach:
            self.log.lessons.append(json.loads(told)["lessons"][0]["number"])

    async def closed(self, seconds: float) -> float:
        """Each client sends when it has the answer; returns requests per second."""
        end, count = time.perf_counter() + seconds, 0

        async def client() -> None:
            nonlocal count
            connection = Connection(self.port, self.key)
            while time.perf_counter() < end:
                await self.request(connection, time.perf_counter())
                count += 1
            connection.close()

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        return count / seconds

    async def open(self, rate: float, seconds: float, watch: Callable[[], Awaitable[None]]) -> None:
        """Requests come by chance, at this rate."""
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(CLIENTS):
            free.put_nowait(Connection(self.port, self.key))

        async def one(due: float) -> None:
            self.log.waited += free.empty()
            connection = await free.get()
            await self.request(connection, due)
            free.put_nowait(connection)

        watching = asyncio.create_task(watch())
        tasks, due, end = set[asyncio.Task[None]](), time.perf_counter(), time.perf_counter() + seconds
        while due < end:
            due += self.chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(one(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        watching.cancel()
        while not free.empty():
            free.get_nowait().close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=300.0)
    said = parser.parse_args()
    data = load(said.set)
    questions = [
        (data.queries[id], {doc: float(grade) for doc, grade in one.items() if grade > 0})
        for id, one in data.judged.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "kb"
        with evokey.open(at) as memory:
            memory.add(data.documents)
            direct = time_direct(memory, [query for query, _ in questions])
        told = asyncio.run(run(at, questions, said.seconds, direct))
        with evokey.open(at) as memory:
            known = {one.number for one in memory.lessons()}
        acknowledged = told.pop("lessons")
        missing = len(set(acknowledged) - known)
        told["lessons"] = {"acknowledged": len(acknowledged), "in the memory": len(known), "missing": missing}
    write_json(said.out, {"set": said.set.name, "documents": len(data.documents), "processors": os.cpu_count(), **told})
    print(said.out.read_text())


def time_direct(memory: evokey.Memory, queries: list[str]) -> tuple[float, float]:
    """Median seconds of Memory.search, with the passages that the service tells: the first time, and again."""
    found = []
    for _ in range(2):
        times = []
        for query in queries[:300]:
            began = time.perf_counter()
            for hit in memory.search(query, 10):
                _ = hit.passage
            times.append(time.perf_counter() - began)
        found.append(float(np.median(times)))
    return found[0], found[1]


async def run(
    at: Path, questions: list[tuple[str, dict[str, float]]], seconds: float, direct: tuple[float, float]
) -> dict[str, Any]:
    key = KeyRing(at).create(Key("load", frozenset({"teach"}), rate=1e6))
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "evokey", "serve", "--at", str(at), "--port", str(port), "--learn-after", "200"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await wait_until_up(port)
        over_http = await time_http(port, key, [query for query, _ in questions])
        load_ = Load(port, key, questions)
        await load_.closed(WARM)
        capacity = await load_.closed(15.0)
        lessons, sizes = list(load_.log.lessons), list[float]()
        load_.log = Log()

        async def watch() -> None:
            while True:
                sizes.append(psutil.Process(process.pid).memory_info().rss / 1e6)
                await asyncio.sleep(5)

        await load_.open(capacity / 2, seconds, watch)
        log = load_.log
        return {
            "overhead": {when: {"memory_ms": 1e3 * one, "http_ms": 1e3 * http, "more_ms": 1e3 * (http - one)}
                         for when, one, http in zip(("first", "again"), direct, over_http, strict=True)},
            "capacity_per_second": capacity,
            "open_loop": {"seconds": seconds, "rate": capacity / 2, "clients": CLIENTS, "errors": len(log.errors),
                          "kinds": sorted(set(log.errors)), "waited": log.waited, "search": percentiles(log.searches),
                          "feedback": percentiles(log.feedbacks)},
            "memory_mb": {"begin": sizes[1], "middle": sizes[len(sizes) // 2], "end": sizes[-1], "largest": max(sizes)},
            "lessons": [*lessons, *log.lessons],
        }  # fmt: skip
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def wait_until_up(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise SystemExit("the service does not start")


async def time_http(port: int, key: str, queries: list[str]) -> tuple[float, float]:
    connection, found = Connection(port, key), []
    for _ in range(2):
        times = []
        for query in queries[:300]:
            began = time.perf_counter()
            await connection.post("/search", {"query": query, "k": 10})
            times.append(time.perf_counter() - began)
        found.append(float(np.median(times)))
    connection.close()
    return found[0], found[1]


def percentiles(seconds: list[float]) -> dict[str, float]:
    p50, p95, p99 = (1e3 * float(np.percentile(seconds, share)) for share in (50, 95, 99))
    return {"count": len(seconds), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "p99_by_p50": p99 / p50}


if __name__ == "__main__":
    main()
