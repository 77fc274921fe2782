"""Pools in the ledger: the untaught top documents of taught queries. With them, evolving need not search the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evokey.ledger.database import Database
from evokey.types import Ranking


@dataclass(frozen=True, slots=True)
class Pool:
    ranking: Ranking
    newest: int
    removals: int
    """The documents it was taken among: Position when it was made."""


class Pools:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, retriever: str, pools: Mapping[str, Pool]) -> None:
        rows = [
            (
                retriever,
                query,
                pool.ranking.numbers.tobytes(),
                pool.ranking.scores.tobytes(),
                pool.newest,
                pool.removals,
            )
            for query, pool in pools.items()
        ]
        self._db.put("pools", rows)

    def clear(self) -> None:
        self._db.run("DELETE FROM pools")

    def drop(self, revision: str) -> None:
        """Those that were found with a revision of an encoder."""
        self._db.run("DELETE FROM pools WHERE retriever LIKE ?", (f"%@{revision}",))

    def get(self, retriever: str) -> dict[str, Pool]:
        rows = self._db.all(
            "SELECT query, numbers, scores, newest, removals FROM pools WHERE retriever = ?", (retriever,)
        )
        return {
            query: Pool(Ranking(np.frombuffer(numbers, np.int64), np.frombuffer(scores, np.float64)), newest, removals)
            for query, numbers, scores, newest, removals in rows
        }
