"""One reader for each kind of file, chosen by the file's ending; a folder is read in the order of its names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evokey.errors import InvalidDocument
from evokey.types import Document

JSONL = {".jsonl", ".ndjson"}
MARKDOWN = {".md", ".markdown"}
TEXT = {".txt", ".text"}
KNOWN = JSONL | MARKDOWN | TEXT
HEADING = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)


def read(path: Path) -> Iterator[Document]:
    """The documents of a file or a folder, one by one."""
    if path.is_dir():
        yield from _folder(path)
    elif not path.exists():
        raise InvalidDocument(f"{path} does not exist")
    elif path.suffix.lower() in KNOWN:
        yield from _file(path, path.name)
    else:
        raise InvalidDocument(f"{path} is of no known kind; known are {', '.join(sorted(KNOWN))}, and folders of these")


def _folder(folder: Path) -> Iterator[Document]:
    beir = folder / "corpus.jsonl"
    if beir.exists():
        yield from _jsonl(beir)
        return
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in KNOWN and _visible(path, folder)]
    if not files:
        raise InvalidDocument(f"{folder} holds no file of a known kind ({', '.join(sorted(KNOWN))})")
    for path in files:
        yield from _file(path, path.relative_to(folder).as_posix())


def _visible(path: Path, folder: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _file(path: Path, id: str) -> Iterator[Document]:
    ending = path.suffix.lower()
    if ending in JSONL:
        yield from _jsonl(path)
        return
    text = _decoded(path, path.read_bytes())
    heading = HEADING.search(text) if ending in MARKDOWN else None
    yield Document(id, text, heading.group(1) if heading else path.stem, {"path": id})


def _jsonl(path: Path) -> Iterator[Document]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _record(f"{path}, line {number}", _decoded(path, line))


def _record(where: str, line: str) -> Document:
    """A JSON object with id (or _id) and text; fields that are not evokey's own become metadata."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidDocument(f"{where} is not valid JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise InvalidDocument(f"{where} is not a JSON object")
    id = found.get("id", found.get("_id"))
    if id is None or "text" not in found:
        raise InvalidDocument(f"{where} needs the fields id (or _id) and text; it has {', '.join(found) or 'none'}")
    metadata: dict[str, Any] = {
        key: value for key, value in found.items() if key not in ("id", "_id", "text", "title", "metadata")
    }
    return Document(str(id), found["text"], found.get("title") or "", metadata | dict(found.get("metadata") or {}))


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"{path} is not UTF-8 (byte {error.start} of a line or file: {data[error.start : error.start + 1]!r}); "
            f"convert it, for example with iconv"
        ) from error
