"""Query-time expansion by a language model against plain search: what a searcher waits for."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evokey import memory as memory_
from evokey.bench.speed import K
from evokey.bench.speed.searches import BATCH
from evokey.bench.systems import EXPANDER, LIVE_TOKENS, expand, live_expander
from evokey.protocols import LLM
from evokey.types import Document

QUERIES = 6


def measure(documents: Sequence[Document], queries: Sequence[str], llm: LLM) -> dict[str, Any]:
    """Each query plainly, then with a passage that the model writes first; the model is warm."""
    expander = live_expander(lambda: llm)
    plain, live, failed = [], [], 0
    with tempfile.TemporaryDirectory() as folder, memory_.open(Path(folder) / "kb") as memory:
        for start in range(0, len(documents), BATCH):
            memory.add(documents[start : start + BATCH])
        memory.search(documents[0].text, K, expansion=expand(expander, queries[0]))
        for query in queries:
            began = time.perf_counter()
            memory.search(query, K)
            plain.append(time.perf_counter() - began)
            began = time.perf_counter()
            expansion = expand(expander, query)
            memory.search(query, K, expansion=expansion)
            live.append(time.perf_counter() - began)
            failed += expansion is None
    medians = {"plain": 1000 * statistics.median(plain), f"{EXPANDER}, live": 1000 * statistics.median(live)}
    return {
        "documents": len(documents),
        "queries": len(queries),
        "model": llm.identity,
        "max_tokens": LIVE_TOKENS,
        "failed": failed,
        "median_ms": medians,
        "ratio": medians[f"{EXPANDER}, live"] / medians["plain"],
    }
