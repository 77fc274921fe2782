"""What is searched when speed is measured: real texts where there are some, else made-up ones; and lessons on them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import chain, cycle, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from evokey.types import Document, Vectors

DIMENSIONS = 256
TAUGHT, WORDINGS = 400, 5
VOCABULARY, LENGTH, ASKED = 50_000, 80, 6
"""Of made-up texts: how many words there are, how many a document has, and a query."""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def corpus(data: Path | None, count: int) -> list[Document]:
    """Texts of the sets in a folder, repeated with shuffled sentences until there are enough."""
    if data is None:
        return [Document(f"d{number}", text) for number, text in enumerate(made_up(count, LENGTH, 7))]
    sets = [lines(path) for path in sorted(data.glob("*/corpus.jsonl"))]
    texts = [f"{row['title']}. {row['text']}" for row in chain(*sets)]
    chance = random.Random(7)
    chance.shuffle(texts)
    for text in islice(cycle(texts[:]), max(0, count - len(texts))):
        sentences = re.split(r"(?<=[.!?]) +", text)
        if len(sentences) < 3:
            sentences = text.split()
        chance.shuffle(sentences)
        texts.append(" ".join(sentences))
    return [Document(f"d{number}", text) for number, text in enumerate(texts[:count])]


def questions(data: Path | None, count: int) -> list[str]:
    """From every set that has a corpus, in turn; each once, while there are others."""
    if data is None:
        return made_up(count, ASKED, 11)
    chance = random.Random(11)
    sets = [[row["text"] for row in lines(path.with_name("queries.jsonl"))] for path in data.glob("*/corpus.jsonl")]
    for queries in sets:
        chance.shuffle(queries)
    each = dict.fromkeys(query for turn in zip_longest(*sorted(sets)) for query in turn if query is not None)
    return list(islice(cycle(each), count))


def made_up(count: int, length: int, seed: int) -> list[str]:
    """Texts whose words are as unevenly frequent as those of a language: the r-th as 1/r."""
    shares = 1 / np.arange(1, VOCABULARY + 1)
    drawn = np.random.default_rng(seed).choice(VOCABULARY, (count, length), p=shares / shares.sum())
    return [" ".join(f"word{number}" for number in row) for row in drawn.tolist()]


def unit(vectors: Any) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def lessons(documents: list[Document]) -> Iterator[dict[str, Any]]:
    """Wordings of a document share words with it, and two of four that it lacks."""
    chance = random.Random(13)
    for document in documents[:TAUGHT]:
        words = document.text.split()
        for wording in range(WORDINGS):
            own = chance.sample([f"{document.id}says{n}" for n in range(4)], 2)
            said = chance.sample(words, min(5, len(words)))
            yield {"query": f"{' '.join(said + own)} wording{wording}", "relevant": [document.id]}


def vectors_of_lessons(vectors: Vectors) -> Vectors:
    """Near their document, but all of one document's moved the same way."""
    noise = np.random.default_rng(13)
    moved = 0.35 * vectors[:TAUGHT] + unit(noise.normal(size=(min(TAUGHT, len(vectors)), DIMENSIONS)))
    return unit(np.repeat(moved, WORDINGS, axis=0) + 0.7 * unit(noise.normal(size=(len(moved) * WORDINGS, DIMENSIONS))))
