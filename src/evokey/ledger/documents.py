"""Documents in the ledger: upserted by id, known inside by number, filtered by metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import reduce
from typing import Any

import numpy as np

from evokey.checks import shown
from evokey.errors import UnknownDocument
from evokey.filters import NEGATED, ORDERS, PARTS, Compare, Filter, Not, Or, facts
from evokey.ledger.carried import Carried
from evokey.ledger.database import Database
from evokey.ledger.writers import Writers
from evokey.types import Document, Numbers, Section, Vectors

NOTHING: Numbers = np.zeros(0, np.int64)
FILTERS = 8
"""Filters whose documents are remembered: callers ask again and again with the same few."""
BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
COLUMNS = ("number", "id", "title", "text", "metadata", "hash", "vector", "sections")
COMPARED = ("number", "id", "metadata", "hash", "vector")
FETCHED = ", ".join(f"d.{name}" for name in ("number", "id", "text", "title", "metadata", "sections"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as the retrievers take it up."""

    number: int
    document: Document
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has read: new documents have larger numbers, removals come in sequence."""

    newest: int = 0
    removals: int = 0


class Documents:
    def __init__(self, database: Database) -> None:
        self._db, self._writers, self._carried = database, Writers(database), Carried(database)
        self._resolved: dict[Filter, Numbers] = {}
        """Filters and what meets them, the last used one last; and of which version of the ledger."""
        self._resolved_at = -1

    def __len__(self) -> int:
        return int(self._db.one("SELECT count(*) FROM documents")[0])

    def put(self, documents: Sequence[Document], vectors: Vectors | None) -> tuple[list[Entry], list[int]]:
        """Insert or replace; return the entries to index and the numbers that are gone. Equal content stays put."""
        latest = {document.id: row for row, document in enumerate(documents)}
        for document in documents:
            self._db.dialect.check_document(document)
        with self._db.write():
            known = {row["id"]: row for row in self._rows("id", list(latest), COMPARED)}
            entries, gone = list[Entry](), list[int]()
            for id, row in latest.items():
                document, vector = documents[row], None if vectors is None else vectors[row]
                old = known.get(id)
                if old is not None and old["hash"] == document.hash and _same_vector(old["vector"], vector):
                    if old["metadata"] != json.dumps(dict(document.metadata)):
                        self._describe(old["number"], document)
                    continue
                if old is not None:
                    gone.append(old["number"])
                    self._drop([old["number"]])
                if not entries:
                    self._writers.sign()
                entries.append(self._insert(document, vector))
            self._carried.carry([(entry.number, entry.document) for entry in entries])
        return entries, gone

    def delete(self, ids: Sequence[str]) -> list[int]:
        with self._db.write():
            numbers = list(self.numbers(ids).values())
            self._drop(numbers)
        return numbers

    def get(self, id: str) -> Document:
        return next(iter(self.fetch(self.numbers([id]).values()).values()))

    def has(self, id: str) -> bool:
        return self._db.one("SELECT 1 FROM documents WHERE id = ?", (id,)) is not None

    def numbers(self, ids: Iterable[str], among: Numbers | None = None) -> dict[str, int]:
        """Number by id; an id that is not here, or not among those given, is an error naming it."""
        wanted = list(dict.fromkeys(ids))
        found = self.find(wanted)
        if among is not None:
            found = {id: number for id, number in found.items() if number in among}
        missing = [id for id in wanted if id not in found]
        if missing:
            names = ", ".join(map(shown, missing[:3])) + (f" (and {len(missing) - 3} more)" if missing[3:] else "")
            raise UnknownDocument(f"no document has the id {names}; add it first, or check the spelling")
        return {id: found[id] for id in wanted}

    def find(self, ids: Iterable[str]) -> dict[str, int]:
        """Number by id, of those that are here."""
        return {row["id"]: row["number"] for row in self._rows("id", list(ids), ("id", "number"))}

    def fetch(self, numbers: Iterable[int]) -> dict[int, Document]:
        """Those of them that are there."""
        wanted, found, sql = list(numbers), dict[int, Document](), self._db.dialect
        for start in range(0, len(wanted), sql.batch):
            batch = wanted[start : start + sql.batch]
            for number, *told in self._db.all(sql.select_by_number(FETCHED, len(batch)), batch):
                found[number] = _document(*told)
        return found

    def entries(self, numbers: Sequence[int]) -> Iterator[Entry]:
        for row in self._rows("number", numbers):
            vector = None if row["vector"] is None else np.frombuffer(row["vector"], np.float32)
            document = _document(row["id"], row["text"], row["title"], row["metadata"], row["sections"])
            yield Entry(row["number"], document, vector)

    def twins(self, entries: Sequence[Entry]) -> dict[int, int]:
        """Number of each of these new documents → number of an older one with the same content, where there is one."""
        first = min(entry.number for entry in entries)
        sql = "SELECT hash, min(number) FROM documents WHERE hash IN {} AND number < ? GROUP BY hash"
        found = dict(self._db.find(sql, {entry.document.hash for entry in entries}, first))
        return {entry.number: found[hash] for entry in entries if (hash := entry.document.hash) in found}

    def live(self) -> Numbers:
        return np.fromiter((row[0] for row in self._db.all("SELECT number FROM documents ORDER BY number")), np.int64)

    def page(self, after: int, count: int, among: Numbers | None = None) -> list[int]:
        """So many numbers beyond one, in order; of all documents, or among these."""
        if among is not None:
            return [int(one) for one in among[among > after][:count]]
        rows = self._db.all("SELECT number FROM documents WHERE number > ? ORDER BY number LIMIT ?", (after, count))
        return [int(row[0]) for row in rows]

    def position(self) -> Position:
        last = self._db.dialect.last_number
        newest, removals = self._db.one(f"SELECT {last('documents')}, {last('removed')}")
        return Position(int(newest), int(removals))

    def changes(self, since: Position) -> tuple[list[int], list[int]]:
        """Numbers added and numbers removed after a position."""
        added = self._db.all("SELECT number FROM documents WHERE number > ?", (since.newest,))
        removed = self._db.all("SELECT number FROM removed WHERE seq > ?", (since.removals,))
        return [row[0] for row in added], [row[0] for row in removed]

    def touch_lessons(self, newest: int, removed: Sequence[int]) -> bool:
        """Whether documents that came after a number, or any that went, may be spoken of in lessons."""
        if removed:
            return True
        # Units share credit by how well they find their document, and BM25's weights follow every document.
        spoken = "EXISTS (SELECT 1 FROM verdicts v WHERE v.document = d.id)"
        units = "EXISTS (SELECT 1 FROM lessons WHERE units != '[]')"
        sql = f"SELECT 1 FROM documents d WHERE d.number > ? AND ({spoken} OR {units}) LIMIT 1"
        return self._db.one(sql, (newest,)) is not None

    def count_empty(self, among: Sequence[int] | None = None) -> int:
        sql, values = "SELECT count(*) FROM documents WHERE trim(title || text, ?) = ''", [BLANKS]
        if among is not None:
            sql += f" AND number {self._db.dialect.in_numbers}"
            values.append(self._db.dialect.list(among))
        return int(self._db.one(sql, values)[0])

    def where(self, filter: Filter) -> Numbers:
        """Numbers of the documents that meet a filter (evokey/filters.py), sorted."""
        if self._db.in_write:
            return self._resolve(filter)
        version = self._db.version
        if version != self._resolved_at:
            self._resolved, self._resolved_at = {}, version
        found = self._resolved.pop(filter, None)
        if found is None:
            with self._db.read():
                found = self._resolve(filter)
            found.flags.writeable = False
        self._resolved[filter] = found
        if len(self._resolved) > FILTERS:
            self._resolved.pop(next(iter(self._resolved)), None)
        return found

    def _resolve(self, filter: Filter) -> Numbers:
        if isinstance(filter, Not):
            return self._others(self._resolve(filter.condition))
        if isinstance(filter, Or):
            return reduce(np.union1d, map(self._resolve, filter.conditions), NOTHING)
        if isinstance(filter, Compare):
            return self._within((filter,)) if filter.operator in ORDERS else self._compare(filter)
        alone, ranges = filter.parts()
        found = [*map(self._resolve, alone), *map(self._within, ranges)]
        return reduce(np.intersect1d, found) if found else self.live()

    def _within(self, bounds: Sequence[Compare]) -> Numbers:
        """Of an item that meets all these bounds on one field, in which texts and numbers are never alike."""
        texts = {isinstance(one.value, str) for one in bounds}
        if len(texts) > 1:
            return NOTHING
        alike = f"NOT ({self._db.dialect.is_number})" if True in texts else self._db.dialect.is_number
        sql = self._db.dialect
        column = sql.comparable([one.value for one in bounds])
        conditions = " AND ".join(f"{column} {one.operator} ?" for one in bounds)
        values = (bounds[0].field, *(sql.fact(one.value) for one in bounds))
        return self._stating(f"field = ? AND {alike} AND {conditions}", values)

    def _compare(self, compared: Compare) -> Numbers:
        if compared.operator == "!=" and compared.value is None:
            return self._holding(compared.field)
        found = self._containing(compared) if compared.operator in PARTS else self._equal(compared)
        return self._others(found) if compared.operator in NEGATED else found

    def _others(self, numbers: Numbers) -> Numbers:
        return np.setdiff1d(self.live(), numbers, assume_unique=True)

    def _holding(self, field: str) -> Numbers:
        return self._stating("field = ?", (field,))

    def _stating(self, condition: str, values: Sequence[Any]) -> Numbers:
        """Of the documents with a fact that meets a condition. In one text: a row for each takes twice the time."""
        (told,) = self._db.one(f"SELECT {self._db.dialect.join_texts('number')} FROM facts WHERE {condition}", values)
        return np.unique(np.fromstring(told or "", np.int64, sep=","))

    def _containing(self, compared: Compare) -> Numbers:
        text = f"NOT ({self._db.dialect.is_number}) AND {self._db.dialect.contains}"
        return self._stating(f"field = ? AND {text}", (compared.field, compared.value))

    def _equal(self, compared: Compare) -> Numbers:
        values, sql = [value for value in compared.values if value is not None], self._db.dialect
        column = sql.comparable(values)
        if len(values) == 1:
            found = self._stating(f"field = ? AND {column} = ?", (compared.field, sql.fact(values[0])))
        else:
            one_of = f"SELECT number FROM facts WHERE {column} IN {{}} AND field = ?"
            found = _sort_numbers(self._db.find(one_of, map(sql.fact, values), compared.field))
        if len(values) < len(compared.values):
            found = np.union1d(found, self._others(self._holding(compared.field)))
        return found

    def find_restricted(self, field: str) -> Numbers:
        """Numbers of the documents whose metadata has this field, neither empty nor false; sorted."""
        return _sort_numbers(self._db.all(self._db.dialect.restricted, (field,)))

    def nested(self, field: str) -> str | None:
        """The id of a document whose metadata holds an object under this field, which has no value of its own."""
        row = self._db.one(self._db.dialect.nested, (field,))
        return None if row is None else str(row[0])

    def _rows(self, column: str, values: Sequence[Any], what: Sequence[str] = COLUMNS) -> Iterator[Mapping[str, Any]]:
        for row in self._db.find(f"SELECT {', '.join(what)} FROM documents WHERE {column} IN {{}}", values):
            yield dict(zip(what, row, strict=True))

    def _insert(self, document: Document, vector: Vectors | None) -> Entry:
        values = (
            document.id,
            document.title,
            document.text,
            json.dumps(dict(document.metadata)),
            document.hash,
            None if vector is None else vector.tobytes(),
            json.dumps([astuple(one) for one in document.sections]),
        )
        number = self._db.insert(
            "INSERT INTO documents(id, title, text, metadata, hash, vector, sections) VALUES (?,?,?,?,?,?,?)", values
        )
        self._state_facts(number, document)
        return Entry(number, document, vector)

    def _describe(self, number: int, document: Document) -> None:
        self._db.run(
            "UPDATE documents SET metadata = ? WHERE number = ?", (json.dumps(dict(document.metadata)), number)
        )
        self._db.run("DELETE FROM facts WHERE number = ?", (number,))
        self._state_facts(number, document)

    def _state_facts(self, number: int, document: Document) -> None:
        rows = [(number, field, self._db.dialect.fact(value)) for field, value in facts(document.metadata)]
        self._db.run_many("INSERT INTO facts VALUES (?,?,?)", rows)

    def _drop(self, numbers: Sequence[int]) -> None:
        self._carried.sign(numbers)
        self._db.run_many("DELETE FROM documents WHERE number = ?", [(number,) for number in numbers])
        self._db.run_many("INSERT INTO removed(number) VALUES (?)", [(number,) for number in numbers])


def _sort_numbers(rows: Iterable[Any]) -> Numbers:
    """Numbers, each once; to sort here takes a fraction of the time that SQLite's DISTINCT does."""
    return np.unique(np.fromiter((number for (number,) in rows), np.int64))


def _document(id: str, text: str, title: str, metadata: str, sections: str) -> Document:
    parts = () if sections == "[]" else tuple(Section(*one) for one in json.loads(sections))
    return Document(id, text, title, json.loads(metadata) if metadata != "{}" else {}, parts)


def _same_vector(old: bytes | None, new: Vectors | None) -> bool:
    return (old is None) == (new is None) and (new is None or old == new.tobytes())
