"""Input from outside, checked at the door: a value comes back clean, or an error says what is wrong and what to do."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from evokey.checks.limits import DEEPEST, LARGEST, SMALLEST, storable
from evokey.checks.showing import list_names, shown
from evokey.checks.where import filter, iso
from evokey.errors import InvalidDocument, InvalidInput, InvalidQuery, InvalidVector
from evokey.filters import entries, facts
from evokey.types import Document, Section, Vectors

__all__ = ["LARGEST", "SMALLEST", "filter", "list_names", "shown"]
Graded = Iterable[str] | Mapping[str, float]
WRONG = -1.0
LOWEST, HIGHEST = 1e-6, 1_000_000
LONGEST_TEXT, LONGEST_QUERY = 5_000_000, 100_000
LONGEST_ID, LONGEST_TITLE, LONGEST_ACTOR = 4_096, 10_000, 1_000
LARGEST_METADATA = 1_000_000
"""Characters of all metadata of a document, written as JSON."""
MOST_TEXTS = 1_000
"""Units of a lesson, or expected answers of a query."""
FIELDS = {"id", "text", "title", "metadata", "sections"}
MOST_SECTIONS = 100_000


def document(given: Document | Mapping[str, Any]) -> Document:
    if not isinstance(given, Document):
        given = _from_mapping(given)
    if not isinstance(given.id, str) or not given.id.strip():
        raise InvalidDocument(f"a document's id must be a non-empty string, not {shown(given.id)}")
    for name, value, most, way_out in (
        ("id", given.id, LONGEST_ID, "name it shorter"),
        ("title", given.title, LONGEST_TITLE, "put the rest into the text"),
        ("text", given.text, LONGEST_TEXT, "split the document"),
    ):
        if not isinstance(value, str):
            raise InvalidDocument(f"document {shown(given.id)}: {name} must be a string, not {type(value).__name__}")
        if not storable(value):
            raise InvalidDocument(f"document {shown(given.id)}: {name} is not valid Unicode (it has a lone surrogate)")
        if len(value) > most:
            raise InvalidDocument(
                f"document {shown(given.id)}: {name} has {len(value):,} characters, more than {most:,}; {way_out}"
            )
    return Document(given.id, given.text, given.title, _metadata(given), _sections(given))


def _from_mapping(given: Mapping[str, Any]) -> Document:
    if not isinstance(given, Mapping):
        raise InvalidDocument(f"a document is a Document or a mapping with id and text, not {type(given).__name__}")
    if "id" not in given or "text" not in given:
        raise InvalidDocument(f"a document needs id and text; this one has {list_names(given) or 'nothing'}")
    unknown = set(given) - FIELDS
    if unknown:
        raise InvalidDocument(
            f"document {shown(given['id'])} has unknown fields: {list_names(sorted(map(str, unknown)))}; "
            f"put what is your own into metadata"
        )
    parts = given.get("sections") or ()
    return Document(given["id"], given["text"], given.get("title") or "", given.get("metadata") or {}, parts)


def _metadata(given: Document) -> dict[str, Any]:
    who = f"document {shown(given.id)}: metadata"
    if not isinstance(given.metadata, Mapping):
        raise InvalidDocument(f"{who} must be a mapping of names to values, not {type(given.metadata).__name__}")
    try:
        spelled = json.dumps(dict(given.metadata), allow_nan=False, default=_iso)
        plain: dict[str, Any] = json.loads(spelled)
        depth = _depth(plain)
    except (TypeError, ValueError) as error:
        raise InvalidDocument(
            f"{who} must be strings, numbers, dates, true/false, null, lists or objects ({error})"
        ) from error
    except RecursionError:
        spelled, plain, depth = "", {}, DEEPEST + 1
    if depth > DEEPEST:
        raise InvalidDocument(f"{who} has lists or objects more than {DEEPEST} deep; use fewer levels")
    if len(spelled) > LARGEST_METADATA:
        raise InvalidDocument(
            f"{who} has {len(spelled):,} characters as JSON, more than {LARGEST_METADATA:,}; put long texts into text"
        )
    if not storable(json.dumps(plain, ensure_ascii=False)):
        raise InvalidDocument(f"{who} is not valid Unicode (it has a lone surrogate)")
    for name, item in facts(plain):
        if isinstance(item, int) and not SMALLEST <= item <= LARGEST:
            raise InvalidDocument(f"{who} {shown(name)} is {shown(item)}, beyond 64 bits; use a string")
    return plain


def _iso(value: Any) -> str:
    if isinstance(value, date):
        return iso(value)
    raise TypeError(f"a value is of the type {type(value).__name__}")


def _sections(given: Document) -> tuple[Section, ...]:
    """In the order of the text, none overlapping another, each with a name of its own."""
    who = f"document {shown(given.id)}: sections"
    if not isinstance(given.sections, list | tuple) or len(given.sections) > MOST_SECTIONS:
        raise InvalidDocument(f"{who} is a list of at most {MOST_SECTIONS:,} sections, not {shown(given.sections)}")
    found, end, names = [], 0, set[str]()
    for said in given.sections:
        one = _section(said)
        if one is None or not end <= one.start <= one.end <= len(given.text) or one.where in names:
            raise InvalidDocument(
                f"{who} are start, end and where: parts of the text in its order, none overlapping another, each with "
                f"a name of its own; {shown(said)} is not"
            )
        end = one.end
        names.add(one.where)
        found.append(one)
    return tuple(found)


def _section(said: Any) -> Section | None:
    """A section, or a mapping or list of its parts; None where it is none of these."""
    if isinstance(said, Mapping):
        said = Section(**said) if set(said) == {"start", "end", "where"} else None
    elif isinstance(said, list | tuple):
        said = Section(*said) if len(said) == 3 else None
    if not isinstance(said, Section) or not isinstance(said.where, str) or not 0 < len(said.where) <= LONGEST_TITLE:
        return None
    whole = all(isinstance(at, int) and not isinstance(at, bool) for at in (said.start, said.end))
    return said if whole and storable(said.where) else None


def _depth(value: Any) -> int:
    """How many lists and objects are inside one another."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth, level = depth + 1, [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return depth


def readable(documents: Iterable[Document], field: str) -> None:
    """The field that says whether a document is restricted must be one that filters see."""
    for one in documents:
        if any(name == field and isinstance(item, Mapping | list) for name, item in entries(one.metadata)):
            raise nested(one.id, field)


def nested(id: str, field: str) -> InvalidDocument:
    return InvalidDocument(
        f"document {shown(id)}: metadata {field!r} marks restricted documents in this memory, and an object has no "
        f"value of its own: make it a string, a number, true or false, null, or a list of these"
    )


def json_value(text: str) -> Any:
    """What a JSON text says; the error goes on where the caller has named the place."""
    try:
        found = json.loads(text)
        depth = _depth(found)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"is not valid JSON: {error}") from error
    except ValueError as error:  # Python refuses numbers of more than some thousand digits
        raise InvalidInput("has a number of too many digits; write it as a string") from error
    except RecursionError:
        found, depth = None, DEEPEST + 1
    if depth > DEEPEST:
        raise InvalidInput(f"has lists or objects more than {DEEPEST} deep; use fewer levels")
    return found


def query(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidQuery(f"a query is a string, not {type(text).__name__}")
    if not text.strip():
        raise InvalidQuery("the query is empty; give some text")
    if not storable(text):
        raise InvalidQuery("the query is not valid Unicode (it has a lone surrogate)")
    if len(text) > LONGEST_QUERY:
        raise InvalidQuery(f"the query has {len(text):,} characters, more than {LONGEST_QUERY:,}; use a shorter one")
    return text.strip()


def units(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InvalidInput("units is a list of texts, not one string")
    if not isinstance(texts, Iterable):
        raise InvalidInput(f"units is a list of texts, not {shown(texts)}")
    return [text.strip() for text in _texts(list(texts), "a unit")]


def answers(expected: str | Sequence[str] | None) -> tuple[str, ...]:
    """Gold answers: one, several or none."""
    if expected is None:
        return ()
    if not isinstance(expected, Iterable):
        raise InvalidInput(f"an expected answer is a text, or a list of texts, not {shown(expected)}")
    return tuple(_texts([expected] if isinstance(expected, str) else list(expected), "an expected answer"))


def _texts(found: list[Any], what: str) -> list[str]:
    if len(found) > MOST_TEXTS:
        raise InvalidInput(f"{what} is one of {len(found):,}; at most {MOST_TEXTS:,} are taken")
    for text in found:
        if not isinstance(text, str) or not text.strip() or not storable(text):
            raise InvalidInput(f"{what} is a non-empty text, not {shown(text)}")
        if len(text) > LONGEST_QUERY:
            raise InvalidInput(f"{what} has {len(text):,} characters, more than {LONGEST_QUERY:,}; make it shorter")
    return found


def criteria(query_: str | None, actor_: str | None, document_: str | None) -> dict[str, Any]:
    """By what lessons are chosen: those criteria that are given."""
    found: dict[str, Any] = {} if query_ is None else {"query": query(query_)}
    found |= {} if actor_ is None else {"actor": actor(actor_, new=False)}
    return found | ({} if document_ is None else {"document": ids([document_])[0]})


def numbers(given: Iterable[int]) -> list[int]:
    """Numbers of lessons."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(f"lessons are named by their numbers, as a list, not {shown(given)}; lessons() has them")
    found = list(given)
    for number in found:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= LARGEST:
            raise InvalidInput(f"a lesson is named by its number, a whole one above 0, not {shown(number)}")
    return found


def actor(name: str, *, new: bool = True) -> str:
    """The name of somebody who teaches; one that is to be forgotten may have any length."""
    if not isinstance(name, str) or not name.strip() or not storable(name):
        raise InvalidInput(f"an actor is a non-empty name, not {shown(name)}")
    if new and len(name) > LONGEST_ACTOR:
        raise InvalidInput(
            f"an actor's name has {len(name):,} characters, more than {LONGEST_ACTOR:,}; use a shorter one"
        )
    return name


def count(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(f"k must be a whole number from 1 on, not {shown(k)}")
    return int(k)


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise InvalidInput(f"{name} is one of {', '.join(known)}, not {shown(value)}")
    return value


def epoch(number: int, current: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= current:
        raise InvalidInput(f"there is no epoch {shown(number)}; they run from 0 (untaught) to {current}")
    return number


def ids(given: Iterable[str], name: str = "ids") -> list[str]:
    if isinstance(given, str):
        raise InvalidInput(f"{name} is a list; for a single document give [{shown(given)}]")
    if not isinstance(given, Iterable):
        raise InvalidInput(f"{name} is a list of ids, not {shown(given)}")
    found = list(given)
    for id in found:
        if not isinstance(id, str) or not storable(id):
            raise InvalidInput(f"{name} is a list of ids, strings of valid Unicode; {shown(id)} is none")
    return list(dict.fromkeys(found))


def grades(relevant: Graded, irrelevant: Iterable[str]) -> dict[str, float]:
    """id → grade; wrong ones negative."""
    right = dict(relevant) if isinstance(relevant, Mapping) else dict.fromkeys(ids(relevant, "relevant"), 1.0)
    ids(right, "relevant")
    for id, grade in right.items():
        if not _finite(grade):
            raise InvalidInput(f"the grade of {shown(id)} must be a finite number, not {shown(grade)}")
        if grade > HIGHEST:
            raise InvalidInput(f"the grade of {shown(id)} is {shown(grade)}; grades go up to {HIGHEST:,}")
        if 0 < grade < LOWEST:
            raise InvalidInput(f"the grade of {shown(id)} is {shown(grade)}; grades above 0 begin at {LOWEST}")
        if grade < 0:
            raise InvalidInput(f"the grade of {shown(id)} is {shown(grade)}; a wrong document goes into irrelevant=[…]")
    wrong = ids(irrelevant, "irrelevant")
    both = [id for id in wrong if right.get(id, 0) > 0]
    if both:
        raise InvalidInput(f"{shown(both[0])} is given as right and as wrong; choose one")
    if not right and not wrong:
        raise InvalidInput("feedback needs a verdict: relevant=[…] or irrelevant=[…]")
    return {id: float(grade) for id, grade in right.items()} | dict.fromkeys(wrong, WRONG)


def _finite(grade: Any) -> bool:
    if isinstance(grade, bool) or not isinstance(grade, int | float | np.number):
        return False
    try:
        return math.isfinite(grade)
    except OverflowError:
        return False


def vectors(given: Any, rows: int) -> Vectors:
    """A matrix of unit vectors, one for each of so many texts."""
    try:
        matrix = np.asarray(given)
        if matrix.dtype.kind not in "biuf":
            raise TypeError(f"these are {matrix.dtype}")
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidVector(f"vectors must be rows of numbers, all of one length ({error})") from error
    if matrix.ndim != 2 or len(matrix) != rows or not matrix.shape[1]:
        raise InvalidVector(f"{rows} vectors are needed, one per row; these have the shape {matrix.shape}")
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(largest[:, 0]) | (largest[:, 0] <= 0))
    if len(bad):
        raise InvalidVector(f"vector {bad[0]} is zero, infinite or NaN; it has no direction to search by")
    matrix = matrix / largest  # first, so that squares neither overflow nor vanish
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)
