"""What the ledger asks of the database that it is kept in: plain SQL, with `?` in the place of values.

SQLite is one (`ledger/sqlite/`), for one process that writes; PostgreSQL (`ledger/postgres/`) is for many. Another one
is a class like these, with its dialect and its migrations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from evokey.types import Document


class Dialect(Protocol):
    """Parts of statements that databases write in different ways: see sqlite/dialect.py."""

    batch: int
    in_numbers: str
    in_texts: str
    is_number: str
    contains: str
    nested: str

    @property
    def restricted(self) -> str: ...
    def fact(self, value: Any) -> Any: ...
    def read_fact(self, stored: Any) -> Any: ...
    def comparable(self, values: Iterable[Any]) -> str: ...
    def list(self, values: Iterable[int | str]) -> Any: ...
    def elements(self, column: str, name: str) -> str: ...
    def join_texts(self, column: str, by: str | None = None) -> str: ...
    def last_number(self, table: str) -> str: ...
    def select_by_number(self, columns: str, count: int) -> str: ...
    def check_document(self, document: Document) -> None: ...
    def check_texts(self, texts: Mapping[str, str]) -> None: ...


class Lock(Protocol):
    """Who may write."""

    @property
    def taken(self) -> bool:
        """Whether this process writes, or has written."""

    def take(self) -> None:
        """Be about to write; or raise."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody else publishes, forgets or protects meanwhile, in any process."""

    def take_if_free(self) -> AbstractContextManager[bool]:
        """The same without waiting; False where another process is at it, or nobody can write."""


class Database(Protocol):
    name: str
    """By which it signs what it writes."""
    dialect: Dialect

    @property
    def lock(self) -> Lock: ...

    @property
    def version(self) -> int:
        """Changes when anybody, here or elsewhere, has committed."""

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside a transaction that writes."""

    def one(self, sql: str, values: Any = ()) -> Any:
        """The first row; None: there is none."""

    def all(self, sql: str, values: Any = ()) -> list[Any]: ...

    def find(self, sql: str, values: Iterable[Any], *more: Any) -> Iterator[Any]:
        """The rows of a statement that has `{}` in the place of a list of values; `more` are values after the list."""

    def one_now(self) -> AbstractContextManager[Callable[..., Any]]:
        """`one` of what is committed now, whatever state `read` holds on to."""

    def read(self) -> AbstractContextManager[None]:
        """Several reads of one state."""

    def one_state(self) -> AbstractContextManager[None]:
        """The same for long, inside of which others read; for who writes."""

    def write(self) -> AbstractContextManager[None]:
        """All that is written inside, or nothing. Nested calls join the outer one."""

    def run(self, sql: str, values: Any = ()) -> int:
        """Write; returns how many rows changed."""

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """The same statement for many rows."""

    def insert(self, sql: str, values: Any) -> int:
        """Returns the number that the new row got."""

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, in the place of those with the same key."""

    def last_given(self, table: str) -> int:
        """The largest number that was ever given to a row of a table, forgotten ones and more included."""

    def go_on_from(self, table: str, number: int) -> None:
        """Give no number up to this one again."""

    def rewrite(self, tables: Sequence[str], first: str) -> None:
        """Leave no copy of deleted rows in the free space of these tables, after one more statement, all in one
        transaction."""

    def empty_log(self, tables: Sequence[str], patience: float) -> bool:
        """Leave no copy of deleted rows of these tables where readers of earlier states find them; False where one
        still reads them after so many seconds."""

    def close(self) -> None: ...
