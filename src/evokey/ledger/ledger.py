"""The ledger: what a memory knows for good, in tables of one database. Everything else is derived from it.

Nobody outside of this room sees the database. Several reads of one state go inside `read`, and what must be written
together inside `write`. In a directory, one process writes, from its first write until `close`. In PostgreSQL all may:
transactions that write go one after the other, and what takes longer than a transaction goes inside `exclusive`.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from evokey.ledger.database import Database
from evokey.ledger.documents import Documents
from evokey.ledger.epochs import Epochs
from evokey.ledger.expansions import Expansions
from evokey.ledger.forgets import TABLES, Forgets
from evokey.ledger.lessons import Lessons
from evokey.ledger.pools import Pools
from evokey.ledger.protection import ProtectedQueries
from evokey.ledger.ratings import Ratings
from evokey.ledger.seeded import Seeded
from evokey.ledger.shown import ShownResults
from evokey.ledger.sources import Sources
from evokey.ledger.sqlite.database import SQLite
from evokey.ledger.traffic import Traffic
from evokey.ledger.words import Words
from evokey.ledger.writers import Writers


class Ledger:
    def __init__(self, home: Path | Database, *, traffic: int = 0) -> None:
        """home: the folder of the memory, or the database it is in. traffic: how many of the queries that are searched
        are kept."""
        self._database = database = SQLite(home) if isinstance(home, Path) else home
        self.documents, self.sources = Documents(database), Sources(database)
        self.words = Words(self.documents)
        self.writers = Writers(database)
        self.lessons, self.pools = Lessons(database), Pools(database)
        self.epochs, self.protected = Epochs(database), ProtectedQueries(database)
        self.expansions = Expansions(database)
        self.forgets = Forgets(database)
        self.traffic = Traffic(database, traffic)
        self.shown, self.ratings = ShownResults(database), Ratings(database)
        self.seeded = Seeded(database)

    @property
    def database(self) -> Database:
        """For this room alone."""
        return self._database

    @property
    def shared(self) -> bool:
        """Whether several processes may write."""
        return not isinstance(self._database, SQLite)

    @property
    def bytes(self) -> int:
        """What it takes in a database; 0 where it is a file of the memory's folder."""
        return getattr(self._database, "bytes", 0)

    @property
    def version(self) -> int:
        """Changes when anybody, here or elsewhere, has committed."""
        return self._database.version

    @property
    def own_commits(self) -> int:
        """How many transactions of this thread were committed, where several processes write."""
        return getattr(self._database, "own_commits", 0)

    def read(self) -> AbstractContextManager[None]:
        """Several reads of one state."""
        return self._database.read()

    def write(self) -> AbstractContextManager[None]:
        """All that is written inside, or nothing. Nested calls join the outer one."""
        return self._database.write()

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside of `write`."""
        return self._database.in_write

    def one_state(self) -> AbstractContextManager[None]:
        """All that this thread reads is of one state, for as long as evolving takes; for who writes."""
        return self._database.one_state()

    def lock(self) -> None:
        """Be a process that writes, until close: in a directory, the only one."""
        self._database.lock.take()

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody else publishes, forgets or protects meanwhile, in any process."""
        return self._database.lock.exclusive()

    def lock_if_free(self) -> AbstractContextManager[bool]:
        """The same without waiting; False where another process is at it, or nobody can write."""
        return self._database.lock.take_if_free()

    @property
    def locked(self) -> bool:
        """Whether this is a process that writes."""
        return self._database.lock.taken

    def drop_revisions(self, revisions: Collection[str]) -> None:
        """Take revisions of encoders from all epochs, and what was found with them."""
        with self.write():
            self.epochs.drop_revisions(revisions)
            for one in revisions:
                self.pools.drop(one)

    def scrub(self, patience: float) -> bool:
        """Leave no copy of what was forgotten, in free space or in SQLite's write-ahead log; False where another
        process still reads a state that has it after so many seconds."""
        if self.forgets.erasures():
            self.forgets.clean()
        return self._database.empty_log(TABLES, patience)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
