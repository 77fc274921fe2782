"""How SQLite writes what standard SQL has no words for, and what other databases write in another way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from evokey.types import Document


class SQLiteDialect:
    batch = 500
    """Values in one statement: below every SQLite's limit."""
    in_numbers = in_texts = "IN (SELECT value FROM json_each(?))"
    """Conditions on a list, which is one value: see `list`."""
    restricted = "SELECT number FROM facts WHERE field = ? AND value NOT IN ('', 0)"
    """Numbers of the documents whose metadata has a field, neither empty nor false; some more than once."""
    is_number = "typeof(value) != 'text'"
    """Whether a fact is a number or a truth value."""
    contains = "instr(value, ?) > 0"
    """Whether a text has another one as a part of it."""
    nested = (
        "WITH RECURSIVE walk(id, field, type, value, inside) AS ("
        "SELECT d.id, j.key, j.type, j.value, 0 FROM documents d, json_each(d.metadata) j UNION ALL "
        "SELECT w.id, CASE w.type WHEN 'array' THEN w.field ELSE w.field || '.' || j.key END, j.type, j.value, "
        "w.type = 'array' FROM walk w, json_each(w.value) j "
        "WHERE w.type = 'object' OR (w.type = 'array' AND NOT inside)) "
        "SELECT id FROM walk WHERE field = ? AND (type = 'object' OR (type = 'array' AND inside)) LIMIT 1"
    )
    """Documents whose metadata holds an object, or a list in a list, under a field."""

    def fact(self, value: Any) -> Any:
        """A value of metadata as it is stored."""
        return value

    def read_fact(self, stored: Any) -> Any:
        return float(stored) if isinstance(stored, float | int) else stored

    def comparable(self, values: Iterable[Any]) -> str:
        """The column of facts to compare with these values."""
        return "value"

    def list(self, values: Iterable[int | str]) -> str:
        return json.dumps(list(values))

    def elements(self, column: str, name: str) -> str:
        """A table with a row for each element of a JSON list: its key (the place in the list) and its value."""
        return f"json_each({column}) {name}"

    def join_texts(self, column: str, by: str | None = None) -> str:
        """The values of a group in one text, with commas between them. SQLite takes rows in the order of the primary
        key by which it finds them, so `by` needs no word here."""
        return f"group_concat({column})"

    def last_number(self, table: str) -> str:
        """The largest number that a row of a table ever had; 0: there was none."""
        return f"(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{table}')"

    def check_document(self, document: Document) -> None:
        """Raise InvalidInput if it cannot be stored: here, everything that passed the checks of evokey can."""

    def check_texts(self, texts: Mapping[str, str]) -> None:
        """The same for texts, each under the name that an error calls it by."""

    @staticmethod
    @cache
    def select_by_number(columns: str, count: int) -> str:
        """Reads so many documents. A join: SQLite would sort what is in an IN first."""
        marks = ",".join(["(?)"] * count)
        return f"SELECT {columns} FROM (VALUES {marks}) AS v CROSS JOIN documents AS d ON d.number = v.column1"
