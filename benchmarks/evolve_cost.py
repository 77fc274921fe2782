"""evolve() must not grow with the corpus: the same lessons among more and more documents.

    python benchmarks/evolve_cost.py [--lessons 2000] [--sizes 10000 30000 100000 300000] [--out FILE]

The lessons are made so that they do get published: each intent's questions share words that its document lacks. The
corpus is padded with documents of other words. Times are given as ratios to the smallest corpus, in one run.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path

import evokey

WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ai") for c in ("lon", "rik", "sum", "tev")
]


def documents(count: int) -> list[evokey.Document]:
    chance = random.Random(7)
    return [evokey.Document(f"d{n}", " ".join(chance.choices(WORDS, k=40)) + f" item{n}") for n in range(count)]


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


def measured(encoder: str | None, size: int, taught: list[tuple[str, str]], rounds: int) -> dict:
    folder = tempfile.mkdtemp()
    try:
        with evokey.open(folder + "/kb", encoder=encoder) as memory:
            corpus = documents(size)
            began = time.perf_counter()
            for start in range(0, size, 5_000):
                memory.add(corpus[start : start + 5_000])
            adding = time.perf_counter() - began
            began = time.perf_counter()
            for question, document in taught:
                memory.feedback(question, relevant=[document])
            teaching = time.perf_counter() - began
            seconds = []
            for _ in range(rounds):
                began = time.perf_counter()
                report = memory.evolve(dry_run=True)
                seconds.append(time.perf_counter() - began)
            report = memory.evolve()
            return {
                "documents": size, "encoder": encoder or "hybrid", "lessons": len(taught),
                "published": report.published, "reason": report.reason,
                "evolve_seconds": min(seconds), "add_per_second": size / adding,
                "feedback_per_second": len(taught) / teaching,
            }  # fmt: skip
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lessons", type=int, default=2_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000])
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama", "hybrid"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    taught, results = lessons(options.lessons), []
    for encoder in options.encoder:
        first = None
        for size in options.sizes:
            result = measured(None if encoder == "hybrid" else encoder, size, taught, options.rounds)
            first = first or result["evolve_seconds"]
            result["ratio"] = result["evolve_seconds"] / first
            results.append(result)
            print(
                f"{encoder:10} {size:>8,} documents: evolve {result['evolve_seconds']:.2f} s, "
                f"ratio {result['ratio']:.2f}, "
                f"published {result['published']}, add {result['add_per_second']:.0f}/s, "
                f"feedback {result['feedback_per_second']:.0f}/s",
                flush=True,
            )
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
