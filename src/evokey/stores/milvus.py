"""Dense keys in Milvus: a local file (milvus-lite), a server or a cluster, by its URI.

Milvus finds candidates by its graph; they are scored again here by their float32 vectors, so that scores are the same
bits as everywhere. A filter goes to Milvus where it names few documents. There is one state, that of now.
"""

from __future__ import annotations

import re
import uuid
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evokey.errors import EncoderMismatch, InvalidSettings, StoreFailed
from evokey.protocols import Space
from evokey.scoring.block import NO_NUMBERS, Block, Found, Keys, ordinals
from evokey.scoring.dense import DenseBlock
from evokey.stores.distant import DistantStore
from evokey.stores.milvus_collection import ROWS, Collection, check_uri, token_from
from evokey.stores.milvus_shelf import MOST, MilvusShelf, drop_shelf, list_shelves
from evokey.stores.segments import write_synced
from evokey.types import Numbers, Ranking

LEVELS = ("Strong", "Session", "Bounded", "Eventually")
MORE = 16
"""Rows asked for beyond k: some may be of documents that are left out, or of one document."""
PUSHED = 10_000
"""A filter that lets so many documents through, or fewer, is put to Milvus; of a larger one, piece by piece."""
SHELVE_FROM = 150_000
"""Rows of an overlay from which on asking Milvus takes less time than scoring them here (benchmarks/shelves.py)."""
WITH_VECTORS = 200
"""Rows up to which their vectors come with the search; of more, only those that are needed are fetched."""
NAME_FILE = "milvus.txt"


class MilvusStore(DistantStore):
    kinds: ClassVar[frozenset[str]] = frozenset({"dense"})
    exact: ClassVar[bool] = False
    rescores: ClassVar[bool] = True
    counts: Any = None
    _payload: ClassVar[str] = "vector"
    """What rows are scored by."""

    def __init__(
        self,
        space: Space,
        uri: str,
        *,
        collection: str | None = None,
        token_env: str | None = None,
        consistency: str = "Session",
        width: int = 256,
        shelve_from: int = SHELVE_FROM,
    ) -> None:
        """uri: http://host:19530, or a file. collection: the name of the keys there; all who share them say the same.
        token_env: the environment variable that holds a token, or user:password. consistency: Milvus's level for
        searches. width: nodes that its graph keeps in view. shelve_from: an overlay of so many rows goes into a
        collection of its own; 0: none does."""
        if consistency not in LEVELS:
            raise InvalidSettings(f"store 'milvus': consistency is one of {', '.join(LEVELS)}, not {consistency!r}")
        if shelve_from < 0:
            raise InvalidSettings(f"store 'milvus': shelve_from is a number of rows, or 0; not {shelve_from}")
        super().__init__()
        self.shelve_from = shelve_from
        name = _alias(space, collection)
        self._space, self._width = space, width
        sparse = "sparse" in self.kinds
        self._collection = Collection(check_uri(uri), name, token_from(token_env), consistency, sparse=sparse)
        weakref.finalize(self, self._collection.close)
        self._dimension: int | None = None
        self._followed, self._anew = False, False

    # ---- writing

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        if not self._followed:
            if self._collection.exists():
                self._take_up(live)
            self._followed = True
        elif removed:
            self._delete(np.array(removed, np.int64))
        if added:
            self._changes += 1
        return False

    def _take_up(self, live: Numbers) -> None:
        """What is there: it may be of another encoder, of another ledger, or of documents that went meanwhile."""
        noted = self._collection.noted()
        made_by = noted.get("encoder", self._space.identity)
        if made_by != self._space.identity:
            raise EncoderMismatch(
                f"the keys in {self._collection.uri} ({self._collection.alias}) were made by {made_by}, the settings "
                f"now say {self._space.identity}. Vectors of two encoders do not mix: go back to the first, or encode "
                f"everything again with: evokey doctor --reencode"
            )
        numbers = self._collection.numbers()
        covered = np.unique(np.where(numbers < 0, -1 - numbers, numbers))
        if len(covered) and self._origin is not None and not self._origin.owns(noted.get("writer", ""), covered[-1]):
            self._purge()
            return
        self._dimension = self._collection.dimension()
        self._note(numbers)
        self._delete(np.setdiff1d(covered[covered <= live.max(initial=-1)], live))

    def write(self, keys: Keys) -> None:
        """Documents whose keys are here already are passed over."""
        keys = keys.take(self.sizes(keys.covered) < 0)
        if not len(keys.covered):
            return
        dimension = self._dimension_for(keys)
        if self._anew or not self._collection.exists():
            self._collection.create(dimension, anew=self._anew)
            self._anew, self._dimension = False, dimension
        empty = np.setdiff1d(keys.covered, keys.owners)
        rows = keys.owners * ROWS + (ordinals(keys.sizes) if len(keys.owners) else NO_NUMBERS)
        self._collection.upsert([
            *({"row": int(row), "number": int(number), **one}
              for row, number, one in zip(rows, keys.owners, self._rows_of(keys.block), strict=True)),
            *({"row": int(-1 - number), "number": int(-1 - number), "vector": self._nothing(dimension)}
              for number in empty),
        ])  # fmt: skip
        self._collection.note(self._nothing(dimension), encoder=self._space.identity, writer=self._writer)
        self._note(np.concatenate([keys.owners, -1 - empty]))
        self._changes += 1

    def _dimension_for(self, keys: Keys) -> int | None:
        return keys.block.dimension or self.dimension or 2

    @staticmethod
    def _rows_of(block: Any) -> Iterator[dict[str, Any]]:
        """The fields of each row."""
        return ({"vector": vector} for vector in block.vectors)

    @staticmethod
    def _nothing(dimension: int | None) -> Any:
        """A vector of a row that nobody is to find."""
        return np.zeros(dimension or 2, np.float32)

    def flush(self, *, force: bool = True) -> None:
        """All is in Milvus. Keys that were made anew are searched from now on."""
        self._collection.swap()

    def check(self) -> list[str]:
        try:
            self._collection.exists()
        except StoreFailed as error:
            return [str(error)]
        return []

    def drop(self) -> None:
        """Where somebody makes all keys anew without searching, others find the old ones until that is done."""
        if self._followed:
            self._purge()
        else:
            self._anew = self._collection.exists()
        self._rows.clear()
        self._dimension = None
        self._changes += 1

    def _purge(self) -> None:
        for name in self.shelves():
            self.clear_shelf(name)
        self._collection.remove()
        self._rows.clear()
        self._dimension = None

    def _delete(self, numbers: Numbers) -> None:
        if not len(numbers) or not self._collection.exists():
            return
        self._collection.delete(numbers)
        self._rows.drop(numbers)
        self._changes += 1

    # ---- large overlays

    def shelf(self, name: str) -> MilvusShelf:
        return MilvusShelf(self._collection, name)

    def shelves(self) -> list[str]:
        return list_shelves(self._collection)

    def clear_shelf(self, name: str) -> None:
        drop_shelf(self._collection, name)

    # ---- reading: there is but one state, that of now

    @property
    def dimension(self) -> int | None:
        if self._dimension is None and not self._anew and self._collection.exists():
            self._dimension = self._collection.dimension()
        return self._dimension

    @property
    def _filled(self) -> bool:
        """Whether there is a collection to search."""
        return self.dimension is not None

    def __len__(self) -> int:
        return self._rows.documents

    def _note(self, numbers: Numbers) -> None:
        """The documents of rows that are there; −1 − number for one that has none."""
        documents, counts = np.unique(numbers[numbers >= 0], return_counts=True)
        self._rows.note(-1 - numbers[numbers < 0], 0)
        self._rows.note(documents, counts)

    def sizes(self, numbers: Numbers) -> Numbers:
        known = self._rows.of(numbers)
        missing = numbers[known < 0]
        if len(missing) and not self._anew and self._collection.exists():
            rows = self._collection.fetch(missing, vectors=False)
            self._note(np.array([row["number"] for row in rows], np.int64))
            known = self._rows.of(numbers)
        return known

    def fetch(self, numbers: Numbers) -> Keys:
        sizes = self.sizes(numbers)
        wanted = numbers[sizes > 0]
        rows = self._fetch(wanted, int(sizes[sizes > 0].sum())) if len(wanted) else []
        rank = {number: place for place, number in enumerate(wanted.tolist())}
        rows.sort(key=lambda row: (rank[row["number"]], row["row"]))
        owners = np.array([row["number"] for row in rows], np.int64)
        return Keys(numbers[sizes >= 0], owners, self._block(rows))

    def _fetch(self, numbers: Numbers, count: int) -> list[dict[str, Any]]:
        """So many rows, which never change; where some are not there yet, after they are."""
        rows = self._collection.fetch(numbers, strong=False)
        return rows if len(rows) == count else self._collection.fetch(numbers)

    def search(
        self,
        questions: Sequence[Any],
        k: int,
        *,
        without: Numbers = NO_NUMBERS,
        within: Numbers | None = None,
    ) -> list[Found]:
        if not self._filled or (within is not None and not len(within)):
            return [Found(Ranking(NO_NUMBERS, np.zeros(0))) for _ in questions]
        return [Found(self._search(question, k, without, within)) for question in questions]

    def _search(self, question: Any, k: int, without: Numbers, within: Numbers | None) -> Ranking:
        if within is None or len(within) > PUSHED:
            found = self._search_all(question, k, without, within)
            if found is not None or within is None:
                return self._rank(question, found or [], k)
        allowed, rows = np.setdiff1d(within, without), list[Any]()
        for start in range(0, len(allowed), PUSHED):
            rows += self._search_pushed(question, k, allowed[start : start + PUSHED])
        return self._rank(question, rows, k)

    def _search_pushed(self, question: Any, k: int, within: Numbers) -> list[Any]:
        """Rows of more than k documents that a filter leaves, by Milvus's order."""
        sizes = self.sizes(within)
        limit = int(min(sizes[sizes > 0].sum(), MOST, (k + MORE) * max(sizes.max(initial=1), 1)))
        return self._near(question, limit, within) if limit else []

    def _search_all(self, question: Any, k: int, without: Numbers, within: Numbers | None) -> list[Any] | None:
        """More and more rows, until those of k documents are among them that may be found. None: there are too few."""
        limit = k + MORE if within is None else (k + MORE) * max(1, len(self._rows) // len(within))
        while True:
            limit = min(limit, MOST)
            rows = self._near(question, limit, None)
            numbers = np.array([row["number"] for row in rows], np.int64)
            allowed = (numbers >= 0) & ~np.isin(numbers, without)
            if within is not None:
                allowed &= np.isin(numbers, within)
            if len(np.unique(numbers[allowed])) >= k or len(rows) < limit:
                return self._with_vectors(question, [rows[at] for at in np.flatnonzero(allowed)])
            if limit == MOST:
                return None if within is not None else [rows[at] for at in np.flatnonzero(allowed)]
            limit *= 4

    def _near(self, question: Any, limit: int, within: Numbers | None) -> list[Any]:
        vectors = limit <= WITH_VECTORS or within is not None
        (found,) = self._collection.search([self._asked(question)], limit, within, width=self._width, payload=vectors)
        return found

    @staticmethod
    def _asked(question: Any) -> Any:
        """A question as Milvus is asked it."""
        return question.vector

    def _with_vectors(self, question: Any, rows: list[Any]) -> list[Any]:
        if not rows or self._payload in rows[0]:
            return rows
        numbers = np.unique(np.array([row["number"] for row in rows], np.int64))
        return self._collection.fetch(numbers, strong=False)

    @staticmethod
    def _block(rows: Sequence[Any]) -> Block[Any]:
        return DenseBlock(np.array([row["vector"] for row in rows], np.float32)) if rows else DenseBlock.empty()

    def _rank(self, question: Any, rows: Sequence[Any], k: int) -> Ranking:
        """The k best documents of these rows, by our own arithmetic."""
        if not rows:
            return Ranking(NO_NUMBERS, np.zeros(0))
        block = self._block(rows)
        scores = block.scores(question)
        documents = np.array([row["number"] for row in rows], np.int64)
        order = np.lexsort((documents, -scores))
        order = order[scores[order] > block.floor]
        _, first = np.unique(documents[order], return_index=True)
        order = order[np.sort(first)][:k]
        return Ranking(documents[order], scores[order])


def _alias(space: Space, collection: str | None) -> str:
    """What the keys are called in Milvus: letters, digits and underscores."""
    if collection is None and space.database is not None:
        raise InvalidSettings(
            "the store 'milvus' of a memory in a database needs the name of its collection, the same for all who share "
            "it: store={'name': 'milvus', 'uri': …, 'collection': 'kb'}"
        )
    if collection is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", collection):
        raise InvalidSettings(
            f"store 'milvus': a collection is called by letters, digits and underscores, up to 100; not {collection!r}"
        )
    label = "keys" if space.folder is None else re.sub(r"[^A-Za-z0-9]", "_", space.folder.name)
    return f"{collection or _own_name(space.folder)}_{label}"


def _own_name(folder: Path | None) -> str:
    """A name by lot, kept beside the memory."""
    if folder is None:
        return f"evokey_{uuid.uuid4().hex[:12]}"
    path = folder / NAME_FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_synced(path, f"evokey_{uuid.uuid4().hex[:12]}".encode())
    found = path.read_text("utf-8").strip()
    if not re.fullmatch(r"evokey_[0-9a-f]{12}", found):
        raise InvalidSettings(f"{path} holds no name of a collection: remove it, and the keys are made again")
    return found
