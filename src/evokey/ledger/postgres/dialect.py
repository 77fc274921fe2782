"""How PostgreSQL writes what standard SQL has no words for, and what SQLite writes in another way."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from evokey.checks import shown
from evokey.errors import InvalidInput
from evokey.filters import facts
from evokey.types import Document

LONGEST_ID, LONGEST_FIELD = 2_600, 1_000
"""Bytes of an id, and of the name of a metadata field: both are in indexes, whose rows hold 2,704."""


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) in order. The names of those applied are kept in the schema."""
    folder = resources.files("evokey.ledger.postgres") / "migrations"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), (folder / name).read_text("utf-8")) for name in found]


@cache
def _tables() -> re.Pattern[str]:
    made = {name for _, sql in migrations() for name in re.findall(r"CREATE TABLE (\w+)", sql)}
    return re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) +({'|'.join(sorted({*made, 'migrations'}))})\b")


class PostgresDialect:
    batch = 5_000
    """Values in one statement."""
    in_numbers = "IN (SELECT unnest(?::bigint[]))"
    in_texts = "IN (SELECT unnest(?::text[]))"
    """Conditions on a list, which is one value: see `list`."""
    is_number = "value < 't'"
    """Whether a fact is a number or a truth value: see `fact`."""
    contains = "strpos(substr(value, 2), ?) > 0"
    """Whether a text has another one as a part of it."""
    nested = (
        "WITH RECURSIVE walk(id, field, value, inside) AS ("
        "SELECT d.id, j.key, j.value, false FROM documents d, jsonb_each(d.metadata::jsonb) j UNION ALL "
        "SELECT w.id, j.key, j.value, jsonb_typeof(w.value) = 'array' FROM walk w, LATERAL ("
        "SELECT w.field || '.' || o.key AS key, o.value FROM jsonb_each("
        "CASE jsonb_typeof(w.value) WHEN 'object' THEN w.value ELSE '{}' END) o UNION ALL "
        "SELECT w.field, a.value FROM jsonb_array_elements("
        "CASE WHEN jsonb_typeof(w.value) = 'array' AND NOT w.inside THEN w.value ELSE '[]' END) a) j) "
        "SELECT id FROM walk WHERE field = ? AND (jsonb_typeof(value) = 'object' "
        "OR (jsonb_typeof(value) = 'array' AND inside)) LIMIT 1"
    )
    """Documents whose metadata holds an object, or a list in a list, under a field."""

    @property
    def restricted(self) -> str:
        """Numbers of the documents whose metadata has a field, neither empty nor false; some more than once."""
        return f"SELECT number FROM facts WHERE field = ? AND value NOT IN ('{self.fact('')}', '{self.fact(0)}')"

    def fact(self, value: Any) -> str:
        """A value of metadata as a text: texts and numbers are never alike, and the order of the texts (byte by byte)
        is that of the values. Numbers by the bits of the double, and what a whole number is away from it."""
        if isinstance(value, str):
            return f"t{value}"
        near = float(value) + 0.0  # of zeros there is one
        (bits,) = struct.unpack(">q", struct.pack(">d", near))
        ordered = bits + (1 << 63) if bits >= 0 else ~bits
        rest = int(value) - int(near) if isinstance(value, int) else 0
        return f"n{ordered:016x}{rest + (1 << 15):04x}"

    def read_fact(self, stored: str) -> str | float:
        """What `fact` has written; of a number, the nearest double."""
        if stored.startswith("t"):
            return stored[1:]
        ordered = int(stored[1:17], 16)
        bits = ordered - (1 << 63) if ordered >= 1 << 63 else ~ordered
        found: float = struct.unpack(">d", struct.pack(">q", bits))[0]
        return found

    def comparable(self, values: Iterable[Any]) -> str:
        """The column of facts to compare with these values: its beginning, which the index has, says as much of values
        that are no longer than it."""
        return "left(value, 400)" if all(isinstance(one, float | int) or len(one) < 400 for one in values) else "value"

    def list(self, values: Iterable[int | str]) -> list[int | str]:
        return list(values)

    def elements(self, column: str, name: str) -> str:
        """A table with a row for each element of a JSON list: its key (the place in the list) and its value."""
        return f"jsonb_array_elements_text({column}::jsonb) WITH ORDINALITY AS {name}(value, key)"

    def join_texts(self, column: str, by: str | None = None) -> str:
        """The values of a group in one text, with commas between them, in the order of another column."""
        order = "" if by is None else f" ORDER BY {by}"
        return f"string_agg({column}::text, ','{order})"

    def last_number(self, table: str) -> str:
        """The largest number that a row of a table ever had; 0: there was none. Not that of its sequence, which tells
        of transactions that are not committed, or were rolled back."""
        if table == "removed":
            return "(SELECT coalesce(max(seq), 0) FROM removed)"
        return f"(SELECT coalesce(greatest((SELECT max(number) FROM {table}), (SELECT max(number) FROM removed)), 0))"

    def check_document(self, document: Document) -> None:
        """Raise InvalidInput if it cannot be stored: the error names the document and the part of it."""
        name = f"document {shown(document.id)}: its"
        self._check_size(f"{name} id", document.id, LONGEST_ID)
        texts = {f"{name} id": document.id, f"{name} title": document.title, f"{name} text": document.text}
        for field, value in facts(document.metadata):
            metadata = f"{name} metadata field {shown(field)}"
            self._check_size(metadata, field, LONGEST_FIELD)
            texts[metadata] = f"{field}{value}"
        self.check_texts(texts)

    def check_texts(self, texts: Mapping[str, str]) -> None:
        """The same for texts, each under the name that an error calls it by."""
        for name, text in texts.items():
            if "\0" in text:
                raise InvalidInput(f"{name} has the character NUL (\\x00), which PostgreSQL cannot store; remove it")

    @staticmethod
    def _check_size(name: str, text: str, most: int) -> None:
        size = len(text.encode("utf-8"))
        if size > most:
            raise InvalidInput(
                f"{name} has {size:,} bytes, more than the {most:,} that PostgreSQL can index; use a shorter one"
            )

    @staticmethod
    @cache
    def select_by_number(columns: str, count: int) -> str:
        """Reads so many documents."""
        return f"SELECT {columns} FROM documents d WHERE d.number IN ({','.join('?' * count)})"


@cache
def translate(sql: str, schema: str) -> str:
    """A statement as psycopg takes it, with the tables of a schema: a path to search is a state of the session."""
    placed = _tables().sub(rf'\1 "{schema}".\2', sql)
    return placed.replace("%", "%%").replace("?", "%s")
