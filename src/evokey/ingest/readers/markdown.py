"""Markdown as it is written. Front matter (YAML between ---, TOML between +++) becomes metadata and leaves the text."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

import yaml

from evokey.ingest.content import Content
from evokey.ingest.encoding import decode
from evokey.ingest.readers.text import name_encoding
from evokey.keys import markdown

LONGEST_FRONT = 65_536
FENCES = {"---": ("---", "..."), "+++": ("+++",)}
LARGEST = 2**63 - 1


class PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("front matter has an alias")
        return super().compose_node(parent, index)


def read(data: bytes, path: Path) -> Content:
    whole, encoding = decode(data)
    front, text = split_front(whole)
    said = front.get("title")
    title = said if isinstance(said, str) else markdown.title(text)
    return Content(text, title.strip(), {**name_encoding(encoding), **front})


def split_front(text: str) -> tuple[dict[str, Any], str]:
    """The front matter, and the text after it; nothing and the whole text where there is none that can be read."""
    first, _, rest = text[:LONGEST_FRONT].partition("\n")
    fence = first.rstrip()
    if fence not in FENCES:
        return {}, text
    lines = rest.split("\n")
    end = next((at for at, line in enumerate(lines) if line.rstrip() in FENCES[fence]), None)
    if end is None:
        return {}, text
    found = _parse("\n".join(lines[:end]), toml=fence == "+++")
    after = len(first) + 1 + sum(len(line) + 1 for line in lines[: end + 1])
    return (found, text[after:].lstrip("\r\n")) if found is not None else ({}, text)


def _parse(front: str, *, toml: bool) -> dict[str, Any] | None:
    try:
        found = tomllib.loads(front) if toml else yaml.load(front, PlainLoader)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return None
    return {str(name): plain(value) for name, value in found.items()} if isinstance(found, Mapping) else None


def plain(value: Any) -> Any:
    """A value as metadata hold it: what is neither a number, a date, a truth value nor a list or object is a text."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner) for inner in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    return value if value is None or isinstance(value, str) else str(value)
