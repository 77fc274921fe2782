"""Epochs in the ledger: which lessons, with which choice. Epoch 0 is the untaught index and is never written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, replace
from typing import Any

from evokey.ledger.database import Database
from evokey.types import Choice, Epoch, Reach

RENAMED = {
    "handicap": "penalty",
    "units": "unit_weight",
    "lens": "lens_parameter",
    "gate": "gate_quantile",
    "anchored": "last_anchor",
    "away": "demotion",
    "least": "threshold",
    "weights": "weights_threshold",
}
"""Names of a choice and a reach in ledgers of earlier versions."""

COLUMNS = "number, kind, lessons_to, choice, weights, time, report, redacted, omitted, reach, revisions"


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
        return self._with_left_out([_epoch(row)])[0]

    @property
    def asked(self) -> tuple[int, frozenset[int]]:
        """Up to which lesson evolve was last asked to learn, published or not, and without which."""
        row = self._db.one("SELECT lessons_to, omitted FROM asked")
        return (int(row[0]), _numbers(row[1])) if row else (0, frozenset())

    def ask(self, lessons_to: int, omitted: frozenset[int]) -> None:
        self._db.put("asked", [(1, lessons_to, _ranges(omitted))])

    def all(self) -> list[Epoch]:
        """Oldest first, the untaught one included."""
        found = [_epoch(row) for row in self._db.all(f"SELECT {COLUMNS} FROM epochs ORDER BY number")]
        return [UNTAUGHT, *self._with_left_out(found)]

    def _with_left_out(self, epochs: list[Epoch]) -> list[Epoch]:
        """The same, with the verdicts that they leave out."""
        found: dict[int, set[tuple[int, str]]] = {one.number: set() for one in epochs}
        first = min(found, default=0)
        rows = self._db.all(
            "SELECT epoch, lesson, document FROM left_out WHERE epoch BETWEEN ? AND ?", (first, max(found, default=0))
        )
        for epoch, lesson, document in rows:
            found[epoch].add((lesson, document))
        return [replace(one, left_out=frozenset(found[one.number])) if found[one.number] else one for one in epochs]

    def marks(self, up_to: int) -> list[int]:
        """Where earlier evolves ended, up to a lesson: the batches of a replay."""
        rows = self._db.all(
            "SELECT DISTINCT lessons_to FROM epochs WHERE kind = 'evolve' AND lessons_to <= ? ORDER BY lessons_to",
            (up_to,),
        )
        return [row[0] for row in rows]

    def append(self, epoch: Epoch) -> int:
        """Publish an epoch; returns the number it gets."""
        choice = json.dumps({name: asdict(one) for name, one in epoch.choice.items()})
        written = (choice, json.dumps(dict(epoch.weights)), epoch.time, json.dumps(dict(epoch.report)))
        reach = None if epoch.reach is None else json.dumps(asdict(epoch.reach))
        revisions = json.dumps(dict(epoch.revisions))
        with self._db.write():
            number = self._db.insert(
                "INSERT INTO epochs(kind, lessons_to, choice, weights, time, report, omitted, reach, revisions)"
                " VALUES (?,?,?,?,?,?,?,?,?)",
                (epoch.kind, epoch.lessons_to, *written, _ranges(epoch.omitted), reach, revisions),
            )
            rows = [(number, *verdict) for verdict in sorted(epoch.left_out)]
            self._db.run_many("INSERT INTO left_out VALUES (?,?,?)", rows)
        return number

    @property
    def revisions(self) -> frozenset[str]:
        """Of encoders, that some epoch has."""
        rows = self._db.all("SELECT DISTINCT revisions FROM epochs")
        return frozenset(name for (found,) in rows for name in json.loads(found).values())

    def find_trained(self, lessons: Collection[int]) -> frozenset[str]:
        """The revisions that some of these lessons had a part in."""
        return frozenset(
            revision
            for one in self.all()
            if one.kind == "tune" and any(number <= one.lessons_to and number not in one.omitted for number in lessons)
            for revision in one.revisions.values()
        )

    def drop_revisions(self, dropped: Collection[str]) -> None:
        """Take these from all epochs: what they learned is learned with the encoder of the settings."""
        with self._db.write():
            for one in self.all() if dropped else ():
                kept = {name: revision for name, revision in one.revisions.items() if revision not in dropped}
                if kept != one.revisions:
                    self._db.run("UPDATE epochs SET revisions = ? WHERE number = ?", (json.dumps(kept), one.number))

    @property
    def redacted(self) -> int:
        """How many epochs are marked so: grows with every forget."""
        return int(self._db.one("SELECT count(*) FROM epochs WHERE redacted = 1")[0])

    def redact(self, up_to: int) -> None:
        """Mark epochs whose lessons were partly forgotten."""
        self._db.run("UPDATE epochs SET redacted = 1 WHERE number <= ?", (up_to,))


UNTAUGHT = Epoch(0, "untaught", 0, {}, {}, 0.0, {})


def _epoch(row: tuple[Any, ...]) -> Epoch:
    number, kind, lessons_to, choice, weights, time, report, redacted, omitted, reach, revisions = row
    chosen = {name: Choice(**_current_names(one)) for name, one in json.loads(choice).items()}
    told = (json.loads(weights), time, json.loads(report), bool(redacted))
    near = None if reach is None else Reach(**_current_names(json.loads(reach)))
    return Epoch(number, kind, lessons_to, chosen, *told, _numbers(omitted), near, revisions=json.loads(revisions))


def _current_names(stored: dict[str, Any]) -> dict[str, Any]:
    values = {RENAMED.get(name, name): value for name, value in stored.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers as JSON: a first and a last one for each unbroken run."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return json.dumps(runs)


def _numbers(ranges: str) -> frozenset[int]:
    return frozenset(number for first, last in json.loads(ranges) for number in range(first, last + 1))
