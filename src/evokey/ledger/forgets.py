"""Forgets in the ledger: how many there were, and which of them are not finished.

A forget is noted in the transaction that deletes its lessons. The note says what other files must erase; they have no
part in that transaction. It goes when nothing is left: whoever writes next finishes it, after a crash too.
"""

from __future__ import annotations

from evokey.erasure import Erasure
from evokey.ledger.database import Database

TABLES = (
    "lessons", "verdicts", "held", "pools", "pins", "expansions", "traffic", "erasing", "signatures", "carried",
    "passages", "shown", "clicks", "ratings", "seeded",
)  # fmt: skip
"""Those that hold what can be forgotten."""
INTERRUPTED = "it was interrupted"


class Forgets:
    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def count(self) -> int:
        """Grows with every forget."""
        row = self._db.one("SELECT count FROM forgets")
        return int(row[0]) if row else 0

    def note(self, erasure: Erasure) -> None:
        with self._db.write():
            self._db.put("forgets", [(1, self.count + 1)])
            self._db.run("INSERT INTO erasing(what, waits_for) VALUES (?,?)", (erasure.to_json(), INTERRUPTED))

    @property
    def waits_for(self) -> str | None:
        """What the first unfinished forget waits for; None: there is none."""
        row = self._db.one("SELECT waits_for FROM erasing ORDER BY number LIMIT 1")
        return None if row is None else str(row[0])

    def wait(self, reason: str) -> None:
        if self.waits_for != reason:
            self._db.run("UPDATE erasing SET waits_for = ?", (reason,))

    def erasures(self) -> list[Erasure]:
        """What other files must still erase."""
        rows = self._db.all("SELECT what FROM erasing WHERE what IS NOT NULL ORDER BY number")
        return [Erasure.from_json(row[0]) for row in rows]

    def clean(self) -> None:
        """Other files have erased it: the notes say no more what, and no free space of the ledger does."""
        self._db.rewrite(TABLES, first="UPDATE erasing SET what = NULL")

    def finish(self) -> None:
        self._db.run("DELETE FROM erasing")
