"""A million dense vectors that are real: WordLlama's, of spans of the texts of the data sets.

A span is 8 to 40 consecutive words from a place drawn by lot (with a fixed seed), so that many spans overlap, as the
passages of an index do. Questions are those of the same sets. What was encoded is kept in bench-output/.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evokey.encoders.wordllama import WordLlamaEncoder

ROOT = Path(__file__).parents[1]
DATA, KEPT = ROOT / ".." / "shared" / "data", ROOT / "bench-output" / "spans"
SHORTEST, LONGEST, BATCH = 8, 40, 4096
BAG_OF_STEMS = "bright_theoremqa_theorems"
"""Its texts are no sentences."""


def corpora(data: Path) -> list[Path]:
    found = [path for path in sorted(data.glob("*/corpus.jsonl")) if path.parent.name != BAG_OF_STEMS]
    if not found:
        raise SystemExit(f"{data} has no data sets (SET/corpus.jsonl): name their folder with --data DIR")
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def spans(data: Path, count: int, seed: int = 7) -> Iterator[str]:
    """Every text as likely as it is long."""
    texts = [row["text"].split() for path in corpora(data) for row in lines(path)]
    texts = [words for words in texts if len(words) >= SHORTEST]
    chance, weights = random.Random(seed), [len(words) for words in texts]
    for words in chance.choices(texts, weights, k=count):
        start = chance.randrange(len(words) - SHORTEST + 1)
        yield " ".join(words[start : start + chance.randint(SHORTEST, LONGEST)])


def vectors(data: Path, count: int) -> Any:
    """Of so many spans, memory-mapped."""
    path = KEPT / f"{count}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        encoder, texts = WordLlamaEncoder(), list(spans(data, count))
        made = [encoder.documents(texts[start : start + BATCH]) for start in range(0, count, BATCH)]
        np.save(path, np.concatenate(made))
    return np.load(path, mmap_mode="r")


def questions(data: Path, count: int, seed: int = 11) -> Any:
    """The vectors of so many questions of the sets, drawn by lot."""
    texts = sorted({row["text"] for path in corpora(data) for row in lines(path.with_name("queries.jsonl"))})
    random.Random(seed).shuffle(texts)
    made = WordLlamaEncoder().queries(texts[: 2 * count])
    return made[np.linalg.norm(made, axis=1) > 0][:count]
