"""Hand-made sets in BEIR layout, small enough that the right numbers are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

INTENTS = 24


def lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def qrels(path: Path, judged: Mapping[str, Mapping[str, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{query}\t{document}\t{grade}" for query, grades in judged.items() for document, grade in grades.items()]
    path.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n", "utf-8")


def gap(folder: Path, intents: int = INTENTS) -> Path:
    """Every document has two wordings of one question, which share a word with each other and none with any document:
    untaught, BM25 finds nothing; who was taught one wording finds the other."""
    lines(folder / "corpus.jsonl", ({"_id": f"d{n}", "title": "", "text": f"leaf{n} bark{n}"} for n in range(intents)))
    wordings = {
        f"{kind}{n}": f"{word}{n} root{n}" for n in range(intents) for kind, word in (("a", "ask"), ("b", "beg"))
    }
    lines(folder / "queries.jsonl", ({"_id": id, "text": text} for id, text in wordings.items()))
    qrels(folder / "qrels" / "test.tsv", {id: {f"d{id[1:]}": 1} for id in wordings})
    return folder


def magnet(folder: Path, intents: int = 48) -> Path:
    """Every question has a document of its own, and one that is no answer comes before it."""
    texts = {f"d{n}": f"leaf{n} tree with many other words to read" for n in range(intents)}
    texts["magnet"] = "please wait here with these words"
    lines(folder / "corpus.jsonl", ({"_id": id, "title": "", "text": text} for id, text in texts.items()))
    lines(folder / "queries.jsonl", ({"_id": f"q{n}", "text": f"please tell me leaf{n}"} for n in range(intents)))
    qrels(folder / "qrels" / "test.tsv", {f"q{n}": {f"d{n}": 1} for n in range(intents)})
    return folder


def official(folder: Path, intents: int = INTENTS) -> Path:
    """The same, its first wordings for training and its second for testing."""
    gap(folder, intents)
    for kind, split in (("a", "train"), ("b", "test")):
        qrels(folder / "qrels" / f"{split}.tsv", {f"{kind}{n}": {f"d{n}": 1} for n in range(intents)})
    return folder


def recorded(folder: Path, intents: int = INTENTS) -> Path:
    """An expansion of every query that holds a word of its document."""
    rows = ({"_id": f"{kind}{n}", "text": f"something about leaf{n}"} for n in range(intents) for kind in "ab")
    lines(folder / "expansions" / "oracle.jsonl", rows)
    return folder
