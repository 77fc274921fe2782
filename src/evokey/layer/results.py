"""What a search function returns, checked: the results of one call, best first, each as a Hit.

A result may be an id, a pair (id, score), a triple (id, score, text), a mapping with "id", or an object with `id`.
The order of the list is the ranking. Scores may have any scale, as long as they do not rise along the list.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from evokey.checks import LONGEST_ID, shown
from evokey.checks.limits import storable
from evokey.errors import InvalidResults
from evokey.types import Document, Hit

SHAPES = 'ids, (id, score) pairs, (id, score, text) triples, mappings with "id", or objects with .id'
TEXTS = ("text", "title")


def read_results(found: Any, k: int) -> list[Hit]:
    """The first k results, each id once: of several results with one id the first counts. Without scores, the ranks
    make them."""
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise InvalidResults("the search function is asynchronous; give one that returns its results, not a coroutine")
    if isinstance(found, Mapping):
        found = sorted(found.items(), key=lambda one: -_score(one[0], one[1]))
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise InvalidResults(f"the search function must return a list of {SHAPES}, not {shown(found)}")
    hits: dict[str, tuple[Document, float | None]] = {}
    for one in found:
        document, score = _read(one)
        hits.setdefault(document.id, (document, score))
        if len(hits) == k:
            break
    return _rank(hits)


def read_documents(found: Any) -> list[Document]:
    """What a function says may be shown: the same shapes, with or without scores."""
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise InvalidResults(f"allowed must return those of the ids that may be shown, as a list, not {shown(found)}")
    return [_read(one)[0] for one in found]


def _rank(found: Mapping[str, tuple[Document, float | None]]) -> list[Hit]:
    scores = [score for _, score in found.values()]
    if all(score is None for score in scores):
        size = len(found)
        return [Hit(id, (size - at) / size, document) for at, (id, (document, _)) in enumerate(found.items())]
    hits: list[Hit] = []
    for id, (document, score) in found.items():
        if score is None:
            raise InvalidResults(f"result {shown(id)} has no score and others have; give all of them one, or none")
        if hits and score > hits[-1].score:
            raise InvalidResults(
                f"result {shown(id)} has the score {score:g}, more than {hits[-1].score:g} of the result before it. "
                f"Scores must not rise along the list: give the best result first; of a distance, give its negative; "
                f"or return ids without scores"
            )
        hits.append(Hit(id, score, document))
    return hits


def _read(one: Any) -> tuple[Document, float | None]:
    if type(one) is tuple and len(one) == 2:  # most results are
        return Document(_id(one[0]), ""), None if one[1] is None else _score(*one)
    if isinstance(one, str | int | np.integer) and not isinstance(one, bool):
        return Document(_id(one), ""), None
    if isinstance(one, Mapping):
        return _of_fields(one.get)
    if isinstance(one, tuple | list):
        if len(one) not in (2, 3):
            raise InvalidResults(f"a result is (id, score) or (id, score, text), not {shown(one)}")
        return _of_fields(dict(zip(("id", "score", "text"), one, strict=False)).get)
    if hasattr(one, "id"):
        own = getattr(one, "document", None)
        if isinstance(own, Document):
            id = _id(one.id)
            return own if own.id == id else replace(own, id=id), _score(id, one.score)
        return _of_fields(lambda name: getattr(one, name, None))
    raise InvalidResults(f"a search function returns {SHAPES}; {shown(one)} is none of these")


def _of_fields(get: Any) -> tuple[Document, float | None]:
    if get("id") is None:
        raise InvalidResults('a result has no "id"; name the field that identifies a document "id"')
    id, score, metadata = _id(get("id")), get("score"), get("metadata")
    texts = {name: "" if (said := get(name)) is None else said for name in TEXTS}
    for name, said in texts.items():
        if not isinstance(said, str):
            raise InvalidResults(f"result {shown(id)}: {name} must be a string, not {type(said).__name__}")
    document = Document(id, texts["text"], texts["title"], metadata if isinstance(metadata, Mapping) else {})
    return document, None if score is None else _score(id, score)


def _id(given: Any) -> str:
    """Ids are strings here; whole numbers are spelled out."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str) or not given.strip() or not storable(given):
        raise InvalidResults(f"an id is a non-empty string or a whole number, not {shown(given)}")
    if len(given) > LONGEST_ID:
        raise InvalidResults(f"an id has {len(given):,} characters, more than {LONGEST_ID:,}; use a shorter one")
    return given


def _score(id: Any, given: Any) -> float:
    try:
        score = math.nan if isinstance(given, bool | str) else float(given)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise InvalidResults(
            f"result {shown(id)} has the score {shown(given)}; a score is a finite number. Return ids without scores "
            f"if there are none"
        )
    return score
