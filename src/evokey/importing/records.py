"""What an index holds, as it is read: records with text and vector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evokey.errors import InvalidInput

TEXTS = ("text", "page_content", "document", "content", "chunk", "body")
"""Names that a field with the text often has."""


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    text: str
    vector: Sequence[float]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index is, and what its parts are called."""

    path: str
    """A file, a folder, or the URL of a server."""
    name: str | None = None
    """Of the collection or table."""
    text: str | None = None
    """The field with the text. None: one of the usual names."""
    id: str | None = None
    vector: str | None = None
    texts: str | None = None
    """A JSONL file with the texts, for an index that holds vectors alone."""
    trust_pickle: bool = False


class Source(Protocol):
    """One index. The class is made with its Place."""

    metric: str
    """cosine, dot or l2: how the index ranks."""

    def records(self) -> Iterator[Record]: ...


def pick_text(fields: Mapping[str, Any], name: str | None) -> str:
    """The field with the text: the one that was named, or one of the usual names."""
    for one in TEXTS if name is None else (name,):
        if isinstance(fields.get(one), str):
            return one
    raise InvalidInput(
        f"no field with a text was found among {', '.join(map(str, fields)) or 'none'}; name it with --text"
    )


def split_fields(fields: Mapping[str, Any], name: str | None) -> tuple[str, dict[str, Any]]:
    """The text, and the other fields as metadata; those of LangChain lie one level deeper."""
    found = pick_text(fields, name)
    rest = {key: value for key, value in fields.items() if key != found}
    if set(rest) == {"metadata"}:
        inner = rest["metadata"]
        inner = json.loads(inner) if isinstance(inner, str) else inner
        rest = dict(inner) if isinstance(inner, Mapping) else {}
    return str(fields[found]), rest


def need_name(place: Place, names: Sequence[str], what: str) -> str:
    """The collection that was named, or the only one there is."""
    if place.name is not None and place.name in names:
        return place.name
    if place.name is None and len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)[:10]) or "none"
    raise InvalidInput(f"{place.path} has {len(names)} {what}s ({listed}); name one of them with --collection")
