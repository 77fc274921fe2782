"""Learned sparse keys in Milvus: a file of milvus-lite, or a server from 2.4 on, which has sparse vectors.

Milvus knows a term by a number, a hash of it: two terms that share one are told apart when rows are scored here, by the
terms themselves. What a term weighs is in the key. Where weights follow the collection, as BM25's do, keys stay in the
process (store "sparse").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from evokey.errors import InvalidSettings
from evokey.protocols import Space
from evokey.scoring.block import Block, Keys
from evokey.scoring.sparse import SparseBlock, SparseQuestion
from evokey.stores.milvus import MilvusStore
from evokey.stores.milvus_collection import Collection
from evokey.types import Numbers

TERMS = (1 << 32) - 2
"""Numbers of terms; the one that is left stands for a row that nobody is to find."""
SINCE = (2, 4)
"""The first version of Milvus that has sparse vectors."""


@dataclass
class Vocabulary:
    """Which terms some key holds, as far as anybody asked: learned weights follow from nothing else."""

    store: MilvusSparse
    held: set[str] = field(default_factory=set)

    @property
    def rows(self) -> int:
        return self.store.total

    average = 0.0
    """Nobody's weights depend on it."""

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """1 for a term that some key holds; else 0."""
        unknown = [term for term in terms if term not in self.held]
        if unknown:
            self.held.update(self.store.find_held(unknown))
        return [int(term in self.held) for term in terms]


class MilvusSparse(MilvusStore):
    kinds: ClassVar[frozenset[str]] = frozenset({"sparse"})
    _payload: ClassVar[str] = "bag"
    _collection: Collection

    def __init__(
        self,
        space: Space,
        uri: str,
        *,
        collection: str | None = None,
        token_env: str | None = None,
        consistency: str = "Session",
    ) -> None:
        """As of the store 'milvus'."""
        encoder = space.encoder
        pivots, idf = getattr(encoder, "pivots", None), getattr(encoder, "idf", None)
        if pivots is None or idf is None or pivots(np.ones(1), 1.0) is not None or idf(9, 1) != idf(9, 5):
            raise InvalidSettings(
                f"what terms weigh by {encoder.identity} follows the whole collection, so its keys stay in the "
                f"process: take store 'sparse' for it. Store 'milvus-sparse' is for learned sparse encoders (splade, "
                f"bge-m3-sparse)"
            )
        super().__init__(space, uri, collection=collection, token_env=token_env, consistency=consistency, shelve_from=0)
        self.counts = Vocabulary(self)

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        if not self._followed:
            self._check_version()
        if removed:
            self.counts.held.clear()
        return super().follow(live, added, removed)

    def _check_version(self) -> None:
        said = self._collection.find_version()
        numbers = re.search(r"(\d+)\.(\d+)", said or "")
        if numbers is not None and (int(numbers[1]), int(numbers[2])) < SINCE:
            raise InvalidSettings(
                f"Milvus at {self._collection.uri} is version {said}, which has no sparse vectors: they came with "
                f"{SINCE[0]}.{SINCE[1]}. Upgrade it, or name a file instead of a server, or keep these keys in the "
                f"process: store 'sparse'"
            )

    @property
    def total(self) -> int:
        """Rows."""
        return self._rows.total

    @property
    def dimension(self) -> int | None:
        return None

    @property
    def _filled(self) -> bool:
        return not self._anew and self._collection.exists()

    def find_held(self, terms: Sequence[str]) -> list[str]:
        """Those that some key holds."""
        if not self._filled or not terms:
            return []
        found = self._collection.search([{_number(term): 1.0} for term in terms], 1, None, width=0, payload=False)
        return [term for term, rows in zip(terms, found, strict=True) if rows]

    def _dimension_for(self, keys: Keys) -> None:
        return None

    @staticmethod
    def _rows_of(block: Any) -> Iterator[dict[str, Any]]:
        for row in range(len(block)):
            span = slice(*block.counts.indptr[row : row + 2].tolist())
            terms = [block.terms[column] for column in block.counts.indices[span].tolist()]
            bag = dict(zip(terms, block.counts.data[span].tolist(), strict=True))
            yield {"vector": _weigh(bag), "bag": bag}

    @staticmethod
    def _nothing(dimension: int | None) -> Any:
        return {TERMS: 1.0}

    @staticmethod
    def _asked(question: SparseQuestion) -> Any:
        return _weigh(dict(zip(question.terms, question.weights, strict=True)))

    def _near(self, question: SparseQuestion, limit: int, within: Numbers | None) -> list[Any]:
        return super()._near(question, limit, within) if any(question.weights) else []

    @staticmethod
    def _block(rows: Sequence[Any]) -> Block[Any]:
        return SparseBlock.of([row["bag"] for row in rows])


def _number(term: str) -> int:
    return crc32(term.encode()) % TERMS


def _weigh(bag: Mapping[str, float]) -> dict[int, float]:
    """By the numbers of terms; of those that share one, the sum: more rows are looked at, and none is missed."""
    found: dict[int, float] = {}
    for term, weight in bag.items():
        if weight:
            found[_number(term)] = found.get(_number(term), 0.0) + weight
    return found
