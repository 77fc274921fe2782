"""One part of the speed benchmark, told what to do as JSON; what it found goes to standard output, as JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from evokey.bench.runs import model
from evokey.bench.speed import REFUSED, expansion, growth, rivals, searches, texts
from evokey.errors import EvokeyError, InvalidInput

QUERIES, OTHERS = 1_000, 1_000
"""Queries that are timed, and others that are asked first."""


def found(part: str, documents: int, data: Path | None, llm: str | None) -> Any:
    if part == "growth":
        return growth.measure([max(1, documents // 10), documents, 10 * documents])
    if part == "rivals":
        if data is None:
            raise InvalidInput("it needs nfcorpus with its vectors: --data FOLDER")
        return rivals.nfcorpus(data, documents)
    corpus = texts.corpus(data, documents)
    if part == "expansion":
        return expansion.measure(corpus, texts.questions(data, expansion.QUERIES), model(llm))
    queries = texts.questions(data, QUERIES + OTHERS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kb"
        if part == "dense":
            return searches.dense(place, corpus, QUERIES)
        if part == "bm25":
            return searches.sparse(place, corpus, queries[:QUERIES], queries[QUERIES:])
        return searches.fill(place, None, corpus)


def main() -> None:
    told = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print must not print into the answer
    try:
        answer = found(told["part"], told["documents"], told["data"] and Path(told["data"]), told["llm"])
    except EvokeyError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(REFUSED)
    with out:
        json.dump(answer, out)


if __name__ == "__main__":
    main()
