"""evokey beside a faiss index: a flat one in an IndexIDMap (for others, SearchParametersIVF or SearchParametersHNSW).

    python examples/beside/faiss_index.py index.faiss texts.jsonl "how do I undo a commit?"

texts.jsonl has a line for each vector: {"number": its id in the index, "text": …} and the fields that `where` names,
as {"team": ["all", "staff"]}: the values that may be seen. The layer's ids are the numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder

Row = Mapping[str, Any]
Where = Mapping[str, Collection[Any]]


class Faiss:
    def __init__(self, index: faiss.IndexIDMap, rows: Iterable[Row], embed: Callable[[str], Sequence[float]]) -> None:
        self._index, self._rows, self._embed = index, {str(row["number"]): row for row in rows}, embed
        self._sign = 1 if faiss.is_similarity_metric(index.metric_type) else -1

    def search(self, query: str, k: int, where: Where | None = None) -> list[dict[str, Any]]:
        vector, only = np.asarray([self._embed(query)], np.float32), None
        if where is not None:
            numbers = [int(id) for id, row in self._rows.items() if _passes(row, where)]
            only = faiss.SearchParameters(sel=faiss.IDSelectorBatch(numbers))
        (scores,), (found,) = self._index.search(vector, k, params=only)
        hits = [(str(number), self._sign * score) for number, score in zip(found, scores, strict=True) if number >= 0]
        return [{"id": id, "score": float(score), "text": self._rows[id]["text"]} for id, score in hits]

    def allowed(self, ids: Sequence[str], where: Where | None = None) -> list[dict[str, Any]]:
        known = [(id, row) for id in ids if (row := self._rows.get(id)) and _passes(row, where or {})]
        there = np.isin([int(id) for id, _ in known], faiss.vector_to_array(self._index.id_map))
        return [{"id": id, "text": row["text"]} for (id, row), found in zip(known, there, strict=True) if found]


def _passes(row: Row, where: Where) -> bool:
    return all(row.get(field) in values for field, values in where.items())


if __name__ == "__main__":
    lines = Path(sys.argv[2]).read_text("utf-8").splitlines()
    engine = Faiss(
        faiss.read_index(sys.argv[1]), map(json.loads, lines), lambda text: WordLlamaEncoder().queries([text])[0]
    )
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        print(
            *(f"{hit.score:8.3f}  {hit.id}  {hit.document.text[:80]}" for hit in layer.search(sys.argv[3], 5)), sep="\n"
        )
