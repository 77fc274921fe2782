"""How SQLite writes what standard SQL has no words for, and what other databases write in another way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache


class SQLiteDialect:
    batch = 500
    """Values in one statement: below every SQLite's limit."""
    in_list = "IN (SELECT value FROM json_each(?))"
    """A condition on a list, which is one value: see `list`."""
    is_number = "typeof(value) != 'text'"
    """Whether a fact is a number or a truth value."""
    nested = (
        "SELECT d.id FROM documents d, json_each(d.metadata) j WHERE j.key = ? AND (j.type = 'object' OR "
        "(j.type = 'array' AND EXISTS (SELECT 1 FROM json_each(j.value) i WHERE i.type IN ('object', 'array'))))"
    )
    """Documents whose metadata holds an object under a field."""

    def list(self, values: Iterable[int | str]) -> str:
        return json.dumps(list(values))

    def elements(self, column: str, name: str) -> str:
        """A table with a row for each element of a JSON list: its key (the place in the list) and its value."""
        return f"json_each({column}) {name}"

    def join_texts(self, column: str) -> str:
        """The values of a group in one text, with commas between them."""
        return f"group_concat({column})"

    def last_number(self, table: str) -> str:
        """The largest number that a row of a table ever had; 0: there was none."""
        return f"(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{table}')"

    @staticmethod
    @cache
    def select_by_number(columns: str, count: int) -> str:
        """Reads so many documents. A join: SQLite would sort what is in an IN first."""
        marks = ",".join(["(?)"] * count)
        return f"SELECT {columns} FROM (VALUES {marks}) AS v CROSS JOIN documents AS d ON d.number = v.column1"
