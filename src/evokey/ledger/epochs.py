"""Epochs in the ledger: which lessons, with which choice. Epoch 0 is the untaught index and is never written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from evokey.ledger.sqlite import Database
from evokey.types import Choice, Epoch

COLUMNS = "number, kind, lessons_to, choice, weights, time, report, redacted"


class Epochs:
    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def current(self) -> int:
        return int(self._db.one("SELECT coalesce(max(number), 0) FROM epochs")[0])

    def get(self, number: int) -> Epoch:
        if number == 0:
            return UNTAUGHT
        row = self._db.one(f"SELECT {COLUMNS} FROM epochs WHERE number = ?", (number,))
        if row is None:
            raise LookupError(f"the ledger has no epoch {number}")
        return _epoch(row)

    @property
    def asked(self) -> int:
        """Up to which lesson evolve was last asked to learn, whether or not it published anything."""
        row = self._db.one("SELECT lessons_to FROM asked")
        return int(row[0]) if row else 0

    def ask(self, lessons_to: int) -> None:
        with self._db.write() as connection:
            connection.execute("INSERT OR REPLACE INTO asked VALUES (1, ?)", (lessons_to,))

    def all(self) -> list[Epoch]:
        """Oldest first, the untaught one included."""
        return [UNTAUGHT, *map(_epoch, self._db.all(f"SELECT {COLUMNS} FROM epochs ORDER BY number"))]

    def marks(self, up_to: int) -> list[int]:
        """Where earlier evolves ended, up to a lesson: the batches of a replay."""
        rows = self._db.all(
            "SELECT DISTINCT lessons_to FROM epochs WHERE kind = 'evolve' AND lessons_to <= ? ORDER BY lessons_to",
            (up_to,),
        )
        return [row[0] for row in rows]

    def append(
        self,
        kind: str,
        lessons_to: int,
        choice: Mapping[str, Choice],
        weights: Mapping[str, float],
        time: float,
        report: Mapping[str, Any],
    ) -> int:
        spelled = json.dumps({name: asdict(one) for name, one in choice.items()})
        with self._db.write() as connection:
            cursor = connection.execute(
                "INSERT INTO epochs(kind, lessons_to, choice, weights, time, report) VALUES (?,?,?,?,?,?)",
                (kind, lessons_to, spelled, json.dumps(dict(weights)), time, json.dumps(report)),
            )
        return int(cursor.lastrowid or 0)

    @property
    def redacted(self) -> int:
        """How many epochs are marked so: grows with every forget."""
        return int(self._db.one("SELECT count(*) FROM epochs WHERE redacted = 1")[0])

    def redact(self, up_to: int) -> None:
        """Mark epochs whose lessons were partly forgotten."""
        with self._db.write() as connection:
            connection.execute("UPDATE epochs SET redacted = 1 WHERE number <= ?", (up_to,))


UNTAUGHT = Epoch(0, "untaught", 0, {}, {}, 0.0, {})


def _epoch(row: tuple[Any, ...]) -> Epoch:
    number, kind, lessons_to, choice, weights, time, report, redacted = row
    chosen = {name: Choice(**one) for name, one in json.loads(choice).items()}
    return Epoch(number, kind, lessons_to, chosen, json.loads(weights), time, json.loads(report), bool(redacted))
