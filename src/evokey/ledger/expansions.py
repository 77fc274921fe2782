"""Expansions that were paid for, and the bill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from evokey.ledger.database import Database
from evokey.types import Expansion, Spent, Unit

NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Bill:
    spent: Spent = NOTHING
    saved: int = 0
    """Queries that needed no call: their intent was known."""
    false_hits: int = 0
    """Of these, those whose verified documents turned out to be others."""


class Expansions:
    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, query: str, expander: str) -> Expansion | None:
        row = self._db.one(
            "SELECT name, units, search, model, prompt, alike FROM expansions WHERE query = ? AND expander = ?",
            (query, expander),
        )
        if row is None:
            return None
        name, units, search, model, prompt, like = row
        told = tuple(Unit(text, bool(positive)) for text, positive in json.loads(units))
        return Expansion(query, told, name, search, model, prompt, like=like)

    def queries(self, expander: str) -> list[str]:
        """Queries that were expanded themselves, in alphabetical order."""
        rows = self._db.all(
            "SELECT query FROM expansions WHERE expander = ? AND alike IS NULL ORDER BY query", (expander,)
        )
        return [row[0] for row in rows]

    def put(self, expansion: Expansion, expander: str, time: float) -> None:
        units = json.dumps([[unit.text, unit.positive] for unit in expansion.units])
        told = (expansion.expander, units, expansion.search, expansion.model, expansion.prompt, time, expansion.like)
        self._db.put("expansions", [(expansion.query, expander, *told)])

    def drop(self, query: str) -> None:
        self._db.run("DELETE FROM expansions WHERE query = ?", (query,))

    def alike(self, query: str) -> str | None:
        """The earlier query whose expansion this one was given."""
        row = self._db.one("SELECT alike FROM expansions WHERE query = ? AND alike IS NOT NULL", (query,))
        return None if row is None else row[0]

    def count(self, spent: Spent = NOTHING, saved: int = 0, false_hits: int = 0) -> None:
        """Add to the bill."""
        values = {**asdict(spent), "saved": saved, "false_hits": false_hits}
        self._db.run_many(
            "INSERT INTO tally VALUES (?,?) ON CONFLICT (name) DO UPDATE SET value = tally.value + excluded.value",
            [(name, value) for name, value in values.items() if value],
        )

    def bill(self) -> Bill:
        known = dict(self._db.all("SELECT name, value FROM tally"))
        counts = {name: int(known.get(name, 0)) for name in ("calls", "prompt_tokens", "answer_tokens")}
        spent = Spent(**counts, money=float(known.get("money", 0)), seconds=float(known.get("seconds", 0)))
        return Bill(spent, int(known.get("saved", 0)), int(known.get("false_hits", 0)))

    def forget(self, queries: Sequence[str]) -> set[str]:
        """Erase the expansions of these, and those that others were given because of them. Returns their units."""
        sql = self._db.dialect
        gone, values = f"WHERE query {sql.in_texts} OR alike {sql.in_texts}", (sql.list(queries),) * 2
        with self._db.write():
            rows = self._db.all(f"SELECT units FROM expansions {gone}", values)
            self._db.run(f"DELETE FROM expansions {gone}", values)
        return {text for row in rows for text, _ in json.loads(row[0])}
