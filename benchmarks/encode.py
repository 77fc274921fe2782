"""How fast texts become vectors: int8 ONNX beside torch, and a memory's add beside its bare encoder.

    python benchmarks/encode.py [--documents 64] [--rounds 5] [--data ../shared/data] [--out FILE]

Texts are SciFact's documents (title and text). All encoders of a comparison run in one process, in turn, in another
order each round, with batches of the same size; ratios are of medians. Seconds on the clock say what a user waits;
seconds of CPU say what was computed, and hardly change when other programs share the machine. `load` is the machine's
load average before and after: far above the number of threads, trust the CPU seconds.

The overhead of a memory is what add takes over encoder.documents for the same texts: ledger, index and disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

import evokey
from evokey.encoders.export import export
from evokey.encoders.onnx import Onnx
from evokey.encoders.sentence_transformers import SentenceTransformers
from evokey.encoders.wordllama import WordLlamaEncoder

HERE = Path(__file__).parent
MODEL, BATCH = "all-MiniLM-L6-v2", 32
MORE = 30
"""Times as many documents for WordLlama, which is that much faster and more."""
Work = Callable[[], Any]


def corpus(data: Path, count: int) -> list[evokey.Document]:
    with (data / "scifact" / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]
    return [evokey.Document(row["_id"], row["text"], row["title"]) for row in rows]


def joined(documents: list[evokey.Document]) -> list[str]:
    return [f"{one.title} {one.text}".strip() for one in documents]


def interleaved(works: dict[str, Work], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds on the clock and of CPU, after one round that is not counted."""
    names, chance = list(works), random.Random(17)
    seconds: dict[str, dict[str, list[float]]] = {name: {"clock": [], "cpu": []} for name in names}
    for turn in range(rounds + 1):
        chance.shuffle(names)
        for name in names:
            clock, cpu = time.perf_counter(), time.process_time()
            works[name]()
            if turn:
                seconds[name]["clock"].append(time.perf_counter() - clock)
                seconds[name]["cpu"].append(time.process_time() - cpu)
    return seconds


def median(seconds: dict[str, list[float]], kind: str) -> float:
    return statistics.median(seconds[kind])


def throughput(texts: list[str], folder: Path, rounds: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for threads in (1, 2):
        encoders: dict[str, Any] = {
            "torch fp32": SentenceTransformers(MODEL, device="cpu", batch_size=BATCH, threads=threads),
            "onnx int8": Onnx(str(folder), batch_size=BATCH, threads=threads),
        }
        seconds = interleaved({name: lambda one=one: one.documents(texts) for name, one in encoders.items()}, rounds)
        result[f"{threads} thread{'s' * (threads > 1)}"] = {
            **{f"{name}, texts per second": len(texts) / median(told, "clock") for name, told in seconds.items()},
            **{f"{name}, CPU ms per text": 1000 * median(told, "cpu") / len(texts) for name, told in seconds.items()},
            **{
                f"ratio_{kind}": median(seconds["torch fp32"], kind) / median(seconds["onnx int8"], kind)
                for kind in ("clock", "cpu")
            },
        }
        vectors = [encoder.documents(texts) for encoder in encoders.values()]
        result["worst cosine of int8 to fp32"] = float((vectors[0] * vectors[1]).sum(axis=1).min())
    return result


def overhead(documents: list[evokey.Document], named: Any, encoder: Any, rounds: int) -> dict[str, Any]:
    texts = joined(documents)
    with tempfile.TemporaryDirectory() as folder:
        places = (Path(folder) / str(number) for number in range(rounds + 1))
        memories = [evokey.open(place, encoder=named) for place in places]
        try:
            for memory in memories:  # its own encoder loaded before the clock runs
                memory.search("some words")
            waiting = iter(memories)
            works = {"encoder": lambda: encoder.documents(texts), "add": lambda: next(waiting).add(documents)}
            seconds = interleaved(works, rounds)
            best = memories[-1].search(texts[-1], 1)[0]
            assert best.id == documents[-1].id and np.isclose(best.score, 1, atol=0.02)
        finally:
            for memory in memories:
                memory.close()
    return {
        "documents": len(documents),
        **{f"{name}, CPU ms per text": 1000 * median(told, "cpu") / len(texts) for name, told in seconds.items()},
        **{
            f"overhead_{kind}": median(seconds["add"], kind) / median(seconds["encoder"], kind) - 1
            for kind in ("clock", "cpu")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--model", type=Path, help="the folder of an exported int8 model, if there is one already")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not (options.data / "scifact").is_dir():
        sys.exit(f"{options.data}/scifact is not there: give --data, a folder of sets. Nothing was measured.")
    documents = corpus(options.data, options.documents)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.model or export(MODEL, Path(scratch) / "int8", "int8")
        names = ("numpy", "torch", "sentence-transformers", "onnxruntime", "wordllama")
        results: dict[str, Any] = {
            "documents": len(documents),
            "rounds": options.rounds,
            "batch_size": BATCH,
            "cores": os.cpu_count(),
            "versions": {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}},
        }
        many = corpus(options.data, options.documents * MORE)
        int8 = {"name": "onnx", "model": str(folder), "batch_size": BATCH, "threads": 1}
        parts: dict[str, Work] = {
            "int8 beside torch": lambda: throughput(joined(documents), folder, options.rounds),
            "memory over MiniLM (onnx int8)": lambda: overhead(
                documents, int8, Onnx(str(folder), batch_size=BATCH, threads=1), options.rounds
            ),
            "memory over wordllama": lambda: overhead(many, "wordllama", WordLlamaEncoder(), options.rounds),
        }
        for name, measured in parts.items():
            results[name] = measured()
            results["load"] = [before, os.getloadavg()[0]]
            print(json.dumps({name: results[name]}, indent=1), flush=True)
            if options.out:
                options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
