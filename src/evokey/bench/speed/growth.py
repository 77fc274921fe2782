"""evolve() must not grow with the corpus: the same lessons among more and more documents.

The lessons are made so that they do get published: each intent's questions share words that its document lacks. The
corpus is padded with documents of other words. Times (of the processor) are given as ratios to the smallest corpus, in
one run.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evokey import memory as memory_
from evokey.types import Document

ENCODERS = ("bm25", "wordllama")
LESSONS, ROUNDS, BATCH = 1_000, 3, 5_000
WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ai") for c in ("lon", "rik", "sum", "tev")
]


def documents(count: int) -> list[Document]:
    chance = random.Random(7)
    return [Document(f"d{n}", " ".join(chance.choices(WORDS, k=40)) + f" item{n}") for n in range(count)]


def lessons(count: int) -> list[tuple[str, str]]:
    """(question, document): five questions an intent, worded from the intent's own words and some of the corpus's."""
    chance = random.Random(11)
    made = []
    for intent in range(count // 5):
        own = [f"ask{intent}x{n}" for n in range(4)]
        for wording in range(5):
            words = chance.sample(own, 2) + chance.choices(WORDS, k=3) + [f"wording{wording}"]
            made.append((" ".join(words), f"d{intent}"))
    return made


def measure(sizes: Sequence[int], encoders: Sequence[str] = ENCODERS, count: int = LESSONS) -> list[dict[str, Any]]:
    taught, rows = lessons(min(count, 5 * min(sizes))), []
    for encoder in encoders:
        first = None
        for size in sizes:
            row = one(encoder, size, taught)
            first = first or row["evolve_cpu_seconds"]
            rows.append({**row, "ratio": row["evolve_cpu_seconds"] / first})
    return rows


def one(encoder: str, size: int, taught: Sequence[tuple[str, str]]) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        memory_.open(Path(folder) / "kb", encoder=encoder) as memory,
    ):
        corpus = documents(size)
        began = time.perf_counter()
        for start in range(0, size, BATCH):
            memory.add(corpus[start : start + BATCH])
        adding = time.perf_counter() - began
        began = time.perf_counter()
        for question, document in taught:
            memory.feedback(question, relevant=[document])
        teaching = time.perf_counter() - began
        seconds, cpu = [], []
        for _ in range(ROUNDS):
            began, busy = time.perf_counter(), time.process_time()
            memory.evolve(dry_run=True)
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - busy)
        report = memory.evolve()
        return {
            "documents": size, "encoder": encoder, "lessons": len(taught),
            "published": report.published, "reason": report.reason,
            "evolve_seconds": min(seconds), "evolve_cpu_seconds": min(cpu), "add_per_second": size / adding,
            "feedback_per_second": len(taught) / teaching,
        }  # fmt: skip
