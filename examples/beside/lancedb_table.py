"""evokey beside LanceDB: a folder or a bucket, by its URI.

    python examples/beside/lancedb_table.py ./lancedb "how do I undo a commit?"

The table "pages" has the fields id, text and vector. `where` is a condition in SQL, such as "team IN ('all', 'staff')":
make it from what your program knows, never from what a caller typed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal

import lancedb
from lancedb.table import Table

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder

Metric = Literal["cosine", "l2", "dot"]


class LanceDB:
    def __init__(self, table: Table, embed: Callable[[str], Sequence[float]], metric: Metric = "cosine") -> None:
        """metric: that of the table's vector index, if it has one."""
        self._table, self._embed, self._metric = table, embed, metric

    def search(self, query: str, k: int, where: str | None = None) -> list[dict[str, Any]]:
        asked = self._table.search([float(one) for one in self._embed(query)]).distance_type(self._metric)
        if where is not None:
            asked = asked.where(where, prefilter=True)
        rows = asked.select(["id", "text", "_distance"]).limit(k).to_list()
        return [{**row, "score": -row["_distance"]} for row in rows]

    def allowed(self, ids: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        among = f"id IN ({', '.join(map(_quote, ids))})"
        rights = among if where is None else f"{among} AND ({where})"
        rows: list[dict[str, Any]] = self._table.search().where(rights).select(["id", "text"]).limit(len(ids)).to_list()
        return rows


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    database = lancedb.connect(sys.argv[1], read_consistency_interval=timedelta(0))  # sees what others write
    engine = LanceDB(database.open_table("pages"), lambda text: WordLlamaEncoder().queries([text])[0])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        print(
            *(f"{hit.score:8.3f}  {hit.id}  {hit.document.text[:80]}" for hit in layer.search(sys.argv[2], 5)), sep="\n"
        )
