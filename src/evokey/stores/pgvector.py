"""Dense keys in PostgreSQL (pgvector): beside the ledger, in its transactions; or in a database of their own.

Vectors are kept as float32; an HNSW index over their halves (halfvec) finds candidates, which are scored again here, so
that scores are the same bits as everywhere. Few rows are searched one and all, and so are few documents that a filter
leaves. There is one state, that of now: in a transaction, that of the transaction.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from evokey.errors import EncoderMismatch, InvalidSettings
from evokey.postgres.address import Address, address_of, has_password
from evokey.postgres.connections import Connection, Connections, fetch
from evokey.postgres.vectors import read_rows, text_of, write_rows
from evokey.protocols import Space
from evokey.scoring.block import NO_NUMBERS, Found, Keys, ordinals
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.stores.distant import DistantStore
from evokey.stores.pgvector_schema import Tables
from evokey.types import Numbers, Ranking

Done = TypeVar("Done")
MORE = 16
"""Rows asked for beyond k: the order by halves, and by another order of sums, is not quite that of the scores."""
FURTHEST = 1_000
"""The most candidates that HNSW keeps while it searches (a limit of pgvector); beyond, it goes on step by step."""


class PgVector(DistantStore):
    kinds: ClassVar[frozenset[str]] = frozenset({"dense"})
    exact: ClassVar[bool] = False
    rescores: ClassVar[bool] = True
    counts: Any = None

    def __init__(
        self,
        space: Space,
        uri: str | None = None,
        keys: str | None = None,
        exact_below: int = 10_000,
        candidates: int = 200,
    ) -> None:
        """uri, keys: a database of its own, for a memory in a directory, and a name for its keys there. exact_below:
        rows up to which, in the memory or in what a filter leaves, all are looked at. candidates: how many HNSW looks
        at, at least."""
        super().__init__()
        self._space, self._exact_below, self._candidates = space, exact_below, candidates
        self._database = space.database if uri is None else None
        self.transactional = self._database is not None
        """Whether keys are written in the transaction that writes their documents."""
        if self._database is not None:
            self._connections: Connections = self._database.connections
            self._read_only = bool(self._database.read_only)
        else:
            self._connections, self._read_only = Connections(_address(uri, keys)), False
            weakref.finalize(self, self._connections.close)
        self._tables = Tables(
            self._connections, _label(space), space.identity, beside=self.transactional, read_only=self._read_only
        )
        self._dimension: int | None = None
        self._followed = False

    # ---- connections

    @property
    def _in_write(self) -> bool:
        return self._database is not None and bool(self._database.in_write)

    def _do(self, work: Callable[[Connection], Done], *, writing: bool = False) -> Done:
        """On the connection of this thread's transaction, where it has one (and may write); else what can be done twice
        is done until it is."""
        used = None if self._database is None or (writing and not self._in_write) else self._database.connection
        if used is not None:
            with self._connections.explain():
                return work(used)

        def once() -> Done:
            with self._connections.take() as connection:
                return work(connection)

        return self._connections.repeat(once)

    def _ask(self, sql: str, *values: Any) -> list[Any]:
        return self._do(lambda connection: fetch(connection, sql, values))

    # ---- writing

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        first, self._followed = not self._followed, True
        if first:
            self._check_identity()
            if not self.transactional:
                self._disown(live)
            self._load()
        elif not self.transactional and removed:
            self._delete(np.array(removed, np.int64))
        if added or removed:
            self._changes += 1
            self._rows.drop(np.array(removed, np.int64))
        return False

    def _check_identity(self) -> None:
        found = self._tables.identity()
        if found is not None and found != self._space.identity and self._count():
            raise EncoderMismatch(
                f"the keys in {self._connections.address} were made by {found}, the settings now say "
                f"{self._space.identity}. Vectors of two encoders do not mix: go back to the first, or encode "
                f"everything again with: evokey doctor --reencode"
            )

    def _disown(self, live: Numbers) -> None:
        """Keys in a database of their own may be of another ledger, of one that was restored, or of documents that
        went while nobody looked."""
        newest, writer = (
            self._ask(f"SELECT coalesce(max(number), -1) FROM {self._tables.keys}")[0][0],
            self._tables.writer(),
        )
        if newest >= 0 and self._origin is not None and not self._origin.owns(writer, int(newest)):
            self.drop()
        known = np.array([row[0] for row in self._ask(f"SELECT DISTINCT number FROM {self._tables.keys}")], np.int64)
        self._delete(np.setdiff1d(known, live))

    def write(self, keys: Keys) -> None:
        """Documents whose keys are here already are passed over; so are those that have gone meanwhile."""
        if self._read_only or not len(keys.covered):
            return
        empty = np.setdiff1d(keys.covered, keys.owners)
        places = ordinals(keys.sizes) if len(keys.owners) else NO_NUMBERS

        def work(connection: Connection) -> None:
            with connection.transaction():
                target = self._tables.start(connection, self._space.identity, self._writer)
                write_rows(connection, target, keys.owners, places, keys.block.vectors)
                self._tables.take_up(connection, empty)

        self._do(work, writing=True)
        if not self._in_write:  # else it may be rolled back
            rows = dict.fromkeys(keys.covered.tolist(), 0) | dict(
                zip(*map(list, (keys.documents, keys.sizes)), strict=True)
            )
            self._note(list(rows.items()))
            self._changes += 1

    def flush(self, *, force: bool = True) -> None:
        """All is in the database. What grew large gets its index."""
        dimension = self.dimension
        if not self._read_only and dimension is not None and self._count() >= self._exact_below:
            self._tables.build_index(dimension)

    def check(self) -> list[str]:
        return self._tables.check()

    def drop(self) -> None:
        self._delete(None)
        self._tables.forget_identity()
        self._dimension = None

    def _delete(self, numbers: Numbers | None) -> None:
        if self._read_only or (numbers is not None and not len(numbers)):
            return
        if numbers is None:
            self._do(lambda connection: fetch(connection, f"DELETE FROM {self._tables.keys}"), writing=True)
            self._rows.clear()
        else:
            gone, sql = numbers.tolist(), f"DELETE FROM {self._tables.keys} WHERE number = ANY(%s)"
            self._do(lambda connection: fetch(connection, sql, (gone,)), writing=True)
            self._rows.drop(numbers)
        self._changes += 1

    # ---- reading: there is but one state, that of now

    @property
    def dimension(self) -> int | None:
        if self._dimension is None:
            rows = self._ask(f"SELECT vector_dims(vector) FROM {self._tables.keys} WHERE vector IS NOT NULL LIMIT 1")
            self._dimension = int(rows[0][0]) if rows else None
        return self._dimension

    def __len__(self) -> int:
        sql = f"SELECT count(DISTINCT number) FROM {self._tables.keys} WHERE vector IS NOT NULL"
        return int(self._ask(sql)[0][0])

    def _count(self) -> int:
        """Rows."""
        return self._rows.total

    def _load(self) -> None:
        rows = self._ask(f"SELECT number, count(vector) FROM {self._tables.keys} GROUP BY number")
        self._note(rows)

    def _note(self, rows: Sequence[tuple[int, int]]) -> None:
        if rows:
            numbers, counts = np.array(rows, np.int64).T
            self._rows.note(numbers, counts)

    def sizes(self, numbers: Numbers) -> Numbers:
        known = self._rows.of(numbers)
        missing = numbers[known < 0]
        if len(missing):
            sql = f"SELECT number, count(vector) FROM {self._tables.keys} WHERE number = ANY(%s) GROUP BY number"
            self._note(self._ask(sql, missing.tolist()))
            known = self._rows.of(numbers)
        return known

    def fetch(self, numbers: Numbers) -> Keys:
        """As the database has them now, in the order asked for."""
        sql = f"SELECT number, place, vector FROM {self._tables.keys} WHERE number = ANY(%s) ORDER BY number, place"
        owners, places, vectors = read_rows(self._ask(sql, numbers.tolist()))
        covered = numbers[np.isin(numbers, owners)]
        rank = {number: place for place, number in enumerate(covered.tolist())}
        order = np.argsort([rank[number] for number in owners.tolist()], kind="stable")
        order = order[places[order] >= 0]
        return Keys(covered, owners[order], _block(vectors, order))

    def search(
        self,
        questions: Sequence[DenseQuestion],
        k: int,
        *,
        without: Numbers = NO_NUMBERS,
        within: Numbers | None = None,
    ) -> list[Found]:
        if within is not None and not len(within):
            return [Found(Ranking(NO_NUMBERS, np.zeros(0))) for _ in questions]
        return [Found(self._search(question, k, without, within)) for question in questions]

    def _search(self, question: DenseQuestion, k: int, without: Numbers, within: Numbers | None) -> Ranking:
        """The rows of more documents than k, by the database's order; the k best of them by ours. Where documents have
        several rows, so many rows may be of too few documents: then twice as many."""
        wanted = k + MORE
        while True:
            owners, _, vectors = self._near(question, wanted, without, within)
            documents = owners[np.flatnonzero(np.diff(owners, prepend=-1))]
            if len(documents) >= min(k, wanted) or len(owners) < wanted:
                return _best(question, owners, documents, vectors, k)
            wanted *= 2

    def _near(self, question: DenseQuestion, limit: int, without: Numbers, within: Numbers | None) -> Any:
        """All rows of the documents that own the nearest rows."""
        few = self._count() < self._exact_below or (within is not None and len(within) <= self._exact_below)
        size = len(question.vector)
        order = "vector <#> %s::vector" if few else f"(vector::halfvec({size})) <#> %s::halfvec({size})"
        where, values = "vector IS NOT NULL", list[Any]()
        if within is not None:
            where, values = f"{where} AND number = ANY(%s)", [within.tolist()]
        if len(without):
            where, values = f"{where} AND number <> ALL(%s)", [*values, without.tolist()]
        near = f"SELECT number FROM {self._tables.keys} WHERE {where} ORDER BY {order} LIMIT {limit}"
        sql = (
            f"WITH near AS MATERIALIZED ({near}) SELECT number, place, vector FROM {self._tables.keys} "
            "WHERE number IN (SELECT number FROM near) ORDER BY number, place"
        )
        values.append(text_of(question.vector))
        return read_rows(self._ask(sql, *values) if few else self._ask_index(sql, values, limit))

    def _ask_index(self, sql: str, values: list[Any], limit: int) -> list[Any]:
        """With what the index is told for one transaction alone. A filter goes on until enough are found."""
        looked_at = min(max(self._candidates, 2 * limit), FURTHEST)

        def work(connection: Connection) -> list[Any]:
            with connection.transaction():
                connection.execute(
                    f"SET LOCAL hnsw.ef_search = {looked_at}; SET LOCAL hnsw.iterative_scan = strict_order; "
                    f"SET LOCAL hnsw.max_scan_tuples = {max(20_000, 20 * self._exact_below)}"
                )
                return fetch(connection, sql, values)

        return self._do(work)


def _address(uri: str | None, keys: str | None) -> Address:
    if uri is None:
        raise InvalidSettings(
            "store 'pgvector' keeps keys in the database of a shared memory: evokey.open('postgresql://…', name=…). "
            "For one in a directory, name a database: store={'name': 'pgvector', 'uri': …, 'keys': …}"
        )
    if has_password(uri):
        raise InvalidSettings(
            "the uri of store 'pgvector' holds a password, and settings are kept in a file: leave it to PGPASSWORD, "
            "~/.pgpass or a service file"
        )
    if keys is None:
        raise InvalidSettings("store 'pgvector' with a uri needs a name for the keys of this memory there: keys='kb'")
    return address_of(uri, keys)


def _label(space: Space) -> str:
    return space.folder.name if space.folder is not None else "keys"


def _block(vectors: Any, rows: Numbers) -> DenseBlock:
    return DenseBlock(np.ascontiguousarray(vectors[rows])) if len(rows) else DenseBlock.empty()


def _best(question: DenseQuestion, owners: Numbers, documents: Numbers, vectors: Any, k: int) -> Ranking:
    if not len(owners):
        return Ranking(NO_NUMBERS, np.zeros(0))
    scores = DenseBlock(vectors).scores(question)
    best = np.maximum.reduceat(scores, np.flatnonzero(np.diff(owners, prepend=-1)))
    order = np.lexsort((documents, -best))[:k]
    return Ranking(documents[order], best[order])
