"""PyTerrier: a memory as a transformer of its pipelines, queries in, ranked documents out."""

from __future__ import annotations

import pandas
import pyterrier

from evokey.memory import Memory


class Retriever(pyterrier.Transformer):  # type: ignore[misc]
    """`Retriever(memory) % 10 >> reranker`; epoch=0 is the same memory before it was taught."""

    def __init__(self, memory: Memory, k: int = 100, epoch: int | None = None) -> None:
        super().__init__()
        self.memory, self.k, self.epoch = memory, k, epoch

    def transform(self, queries: pandas.DataFrame) -> pandas.DataFrame:
        rows = [
            {**query, "docno": hit.id, "score": hit.score, "rank": rank, "text": hit.document.text}
            for query in queries[["qid", "query"]].to_dict("records")
            for rank, hit in enumerate(self.memory.search(query["query"], self.k, epoch=self.epoch))
        ]
        return pandas.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank", "text"])
