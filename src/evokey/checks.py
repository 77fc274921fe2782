"""Input from outside, checked at the door: a value comes back clean, or an error says what is wrong and what to do."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evokey.errors import InvalidDocument, InvalidFilter, InvalidInput, InvalidQuery, InvalidVector
from evokey.types import Document, Vectors

Graded = Iterable[str] | Mapping[str, float]
WRONG = -1.0
FIELDS = {"id", "text", "title", "metadata"}


def document(given: Document | Mapping[str, Any]) -> Document:
    if not isinstance(given, Document):
        given = _from_mapping(given)
    if not isinstance(given.id, str) or not given.id.strip():
        raise InvalidDocument(f"a document's id must be a non-empty string, not {given.id!r}")
    for name, value in (("text", given.text), ("title", given.title), ("id", given.id)):
        if not isinstance(value, str):
            raise InvalidDocument(f"document {given.id!r}: {name} must be a string, not {type(value).__name__}")
        if not _storable(value):
            raise InvalidDocument(f"document {given.id!r}: {name} is not valid Unicode (it has a lone surrogate)")
    return Document(given.id, given.text, given.title, _metadata(given))


def _from_mapping(given: Mapping[str, Any]) -> Document:
    if not isinstance(given, Mapping):
        raise InvalidDocument(f"a document is a Document or a mapping with id and text, not {type(given).__name__}")
    if "id" not in given or "text" not in given:
        raise InvalidDocument(f"a document needs id and text; this one has {', '.join(map(str, given)) or 'nothing'}")
    unknown = set(given) - FIELDS
    if unknown:
        raise InvalidDocument(
            f"document {given['id']!r} has unknown fields: {', '.join(sorted(map(str, unknown)))}; "
            f"put what is your own into metadata"
        )
    return Document(given["id"], given["text"], given.get("title") or "", given.get("metadata") or {})


def _metadata(given: Document) -> dict[str, Any]:
    try:
        spelled = json.dumps(dict(given.metadata), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidDocument(
            f"document {given.id!r}: metadata must be strings, numbers, true/false, null, lists or objects ({error})"
        ) from error
    plain: dict[str, Any] = json.loads(spelled)
    if not _storable(json.dumps(plain, ensure_ascii=False)):
        raise InvalidDocument(f"document {given.id!r}: metadata is not valid Unicode (it has a lone surrogate)")
    return plain


def query(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidQuery(f"a query is a string, not {type(text).__name__}")
    if not text.strip():
        raise InvalidQuery("the query is empty; say what to look for")
    if not _storable(text):
        raise InvalidQuery("the query is not valid Unicode (it has a lone surrogate)")
    return text.strip()


def units(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InvalidInput("units is a list of texts, not one string")
    return [query(text) for text in texts]


def actor(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or not _storable(name):
        raise InvalidInput(f"an actor is a non-empty name, not {name!r}")
    return name


def count(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(f"k must be a whole number from 1 on, not {k!r}")
    return int(k)


def epoch(number: int, current: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= current:
        raise InvalidInput(f"there is no epoch {number!r}; they run from 0 (untaught) to {current}")
    return number


def ids(given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise InvalidInput(f"ids are a list; for a single document give [{given!r}]")
    return list(dict.fromkeys(given))


def grades(relevant: Graded, irrelevant: Iterable[str]) -> dict[str, float]:
    """id → grade; wrong ones negative."""
    right = dict(relevant) if isinstance(relevant, Mapping) else dict.fromkeys(ids(relevant), 1.0)
    for id, grade in right.items():
        if isinstance(grade, bool) or not isinstance(grade, int | float | np.number) or not math.isfinite(grade):
            raise InvalidInput(f"the grade of {id!r} must be a finite number, not {grade!r}")
        if grade < 0:
            raise InvalidInput(f"the grade of {id!r} is {grade}; a wrong document goes into irrelevant=[…]")
    wrong = ids(irrelevant)
    both = [id for id in wrong if right.get(id, 0) > 0]
    if both:
        raise InvalidInput(f"{both[0]!r} is given as right and as wrong; decide for one")
    if not right and not wrong:
        raise InvalidInput("feedback needs a verdict: relevant=[…] or irrelevant=[…]")
    return {id: float(grade) for id, grade in right.items()} | dict.fromkeys(wrong, WRONG)


def vectors(given: Any, rows: int) -> Vectors:
    """A matrix of unit vectors, one for each of so many texts."""
    try:
        matrix = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidVector(f"vectors must be rows of numbers, all of one length ({error})") from error
    if matrix.ndim != 2 or len(matrix) != rows or not matrix.shape[1]:
        raise InvalidVector(f"{rows} vectors are needed, one a row; these have the shape {matrix.shape}")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(norms[:, 0]) | (norms[:, 0] <= 0))
    if len(bad):
        raise InvalidVector(f"vector {bad[0]} is zero, infinite or NaN; it has no direction to search by")
    return np.asarray(matrix / norms)


def filter(where: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(where, Mapping) or not all(isinstance(field, str) for field in where):
        raise InvalidFilter(f'where is a mapping of field names to values, like {{"lang": "en"}}, not {where!r}')
    return where


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
