"""One reader for each kind of file, chosen by the file's ending; a folder is read in the order of its names."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evokey.errors import InvalidDocument
from evokey.keys import markdown
from evokey.types import Document

JSONL = {".jsonl", ".ndjson"}
TABLES = {".csv": ",", ".tsv": "\t"}
MARKDOWN = {".md", ".markdown"}
TEXT = {".txt", ".text"}
KNOWN = JSONL | set(TABLES) | MARKDOWN | TEXT
FIELDS = ("id", "_id", "text", "title", "metadata")


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
    if ending in TABLES:
        yield from _table(path, TABLES[ending])
        return
    text = decoded(str(path), path.read_bytes())
    heading = markdown.title(text) if ending in MARKDOWN else ""
    yield Document(id, text, heading or path.stem, {"path": id})


def _jsonl(path: Path) -> Iterator[Document]:
    for where, found in records(path):
        yield _document(where, found)


def _table(path: Path, separator: str) -> Iterator[Document]:
    """A table with a header line; cells that are no field of evokey's own become metadata, numbers as numbers."""
    lines = io.StringIO(decoded(str(path), path.read_bytes()), newline="")
    rows = csv.DictReader(lines, delimiter=separator, strict=True)
    try:
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise InvalidDocument(f"{where} has not as many cells as the header names")
            own = {name: cell if name in FIELDS else _number(cell) for name, cell in row.items() if cell}
            yield _document(where, {"text": "", **own})
    except csv.Error as error:
        raise InvalidDocument(f"{path}, line {rows.line_num} is no valid CSV: {error}") from error


def _number(cell: str) -> str | int | float:
    for kind in (int, float):
        try:
            value = kind(cell)
        except ValueError:
            continue
        return value if math.isfinite(value) else cell
    return cell


def records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The JSON objects of a JSONL file, each with its place for error messages."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{path}, line {number}"
            text = decoded(where, line)
            if text.strip():
                yield where, _object(where, text)


def _object(where: str, line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidDocument(f"{where} is not valid JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise InvalidDocument(f"{where} is not a JSON object")
    return found


def _document(where: str, found: Mapping[str, Any]) -> Document:
    """id (or _id) and text; fields that are not evokey's own become metadata."""
    id = found.get("_id") if found.get("id") is None else found["id"]
    if id is None or "text" not in found:
        raise InvalidDocument(f"{where} needs the fields id (or _id) and text; it has {', '.join(found) or 'none'}")
    title, metadata = found.get("title") or "", found.get("metadata") or {}
    if not isinstance(found["text"], str) or not isinstance(title, str):
        raise InvalidDocument(f"{where}: text and title must be strings")
    if not isinstance(metadata, Mapping):
        raise InvalidDocument(f"{where}: metadata must be an object, not {metadata!r}")
    own = {key: value for key, value in found.items() if key not in FIELDS}
    return Document(str(id), found["text"], title, own | dict(metadata))


def decoded(where: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"{where} is not UTF-8 (byte {error.start} is {data[error.start : error.start + 1]!r}); "
            f"convert it, for example with iconv"
        ) from error
