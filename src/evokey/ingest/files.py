"""One reader for each kind of file, chosen by the file's ending."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evokey import checks
from evokey.errors import InvalidDocument, InvalidInput
from evokey.ingest.child import ChildReader
from evokey.ingest.content import Content
from evokey.ingest.encoding import decode as decode_any
from evokey.ingest.kinds import JSONL, KINDS, TABLES, kind_of
from evokey.ingest.language import language_of
from evokey.ingest.listing import File, listing
from evokey.ingest.readers import markdown, text
from evokey.types import Document, Source

FIELDS = ("id", "_id", "text", "title", "metadata")
LONGEST_FILE = 4 * checks.LONGEST_TEXT
LONGEST_LINE = 16 * checks.LONGEST_TEXT
"""Bytes; a character may take 4 in a text, and 12 where JSON writes it as two escapes."""
LARGEST_FILE = 256_000_000
"""Bytes of a file that holds more than its text: a PDF, a Word file, a notebook, a page."""
READER = 1
"""The version of the readers: files that an earlier one has read are read again."""
HERE = {"markdown": markdown.read, "text": text.read}
"""Readers that need no process of their own."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+][0-9]{1,4})?")


def read(path: Path, root: Path | None = None) -> Iterator[Document]:
    """The documents of a file or a folder, one by one."""
    with ChildReader() as child:
        for file in listing(path, root).files:
            yield from documents(file, child)


def documents(file: File, child: ChildReader) -> Iterator[Document]:
    """The documents of one file: a line, a row or the whole of it is one."""
    ending = file.path.suffix.lower()
    if ending in JSONL:
        for where, found in records(file.path):
            yield _document(where, found)
    elif ending in TABLES:
        yield from _table(file.path, TABLES[ending])
    else:
        yield _whole(file, child)


def named_by_path(file: File) -> bool:
    """Whether the file is one document, which is called by its path, and not by an id inside."""
    return file.path.suffix.lower() in KINDS


def source(file: File, data: bytes | None = None) -> Source:
    """A file as it is now; with what it holds, if that is given."""
    about = _stat(file.path)
    held = "" if data is None else hashlib.sha256(data).hexdigest()
    return Source(file.source, about.st_size, about.st_mtime_ns, held, READER)


def _whole(file: File, child: ChildReader) -> Document:
    kind = kind_of(file.path)
    if kind in HERE:
        try:
            content = HERE[kind](file_bytes(file.path, LONGEST_FILE), file.path)
        except ValueError as error:
            raise InvalidDocument(f"{file.path} cannot be read as {kind}: {error}") from error
    else:
        _check_size(file.path, LARGEST_FILE)
        content = child.read(file.path, kind)
    title = " ".join(content.title.split())
    return Document(
        file.id,
        content.text,
        title if 0 < len(title) <= checks.LONGEST_TITLE else file.path.stem,
        _metadata(file, kind, content),
        content.sections,
    )


def _metadata(file: File, kind: str, content: Content) -> dict[str, Any]:
    """What the file says of itself comes before what is found out; path and kind are never its own."""
    modified = datetime.fromtimestamp(int(_stat(file.path).st_mtime), UTC)
    language = None if kind == "code" else language_of(content.text)
    found = {"modified": modified.isoformat(), **({"language": language} if language else {})}
    return {**found, **content.metadata, "path": file.id, "kind": kind}


def _table(path: Path, separator: str) -> Iterator[Document]:
    """A table with a header line; cells that are no field of evokey's own become metadata, numbers as numbers."""
    lines = io.StringIO(_decode_table(path), newline="")
    rows = csv.DictReader(lines, delimiter=separator, strict=True)
    try:
        for name, count in Counter(rows.fieldnames or ()).most_common(1):
            if count > 1:
                raise InvalidDocument(f"{path}: the header names the column {name!r} {count} times; rename the others")
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise InvalidDocument(f"{where} has a different number of cells than the header")
            own = {name: cell if name in FIELDS else _number(cell) for name, cell in row.items() if cell}
            yield _document(where, {"text": "", **own})
    except csv.Error as error:
        raise InvalidDocument(
            f"{path}, line {rows.line_num} is not valid CSV: {error}; correct it, or write the table as JSONL"
        ) from error


def _number(cell: str) -> str | int | float:
    """A number where the cell can mean nothing else: 00501, 12e4 and what 64 bits do not hold stay as they are."""
    found = NUMBER.fullmatch(cell)
    if not found:
        return cell
    if found["fraction"] or found["exponent"]:
        return value if math.isfinite(value := float(cell)) else cell
    return whole if len(cell) < 20 and checks.SMALLEST <= (whole := int(cell)) <= checks.LARGEST else cell


def records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The JSON objects of a JSONL file, each with its place for error messages."""
    try:
        with path.open("rb") as lines:
            number = 0
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{path}, line {number}"
                if len(line) > LONGEST_LINE:
                    raise InvalidDocument(f"{where} has over {LONGEST_LINE:,} bytes; split the document")
                text = decode(where, line)
                if text.strip():
                    yield where, _object(where, text)
    except OSError as error:
        raise _unreadable(path, error) from error


def _object(where: str, line: str) -> Mapping[str, Any]:
    try:
        found = checks.json_value(line)
    except InvalidInput as error:
        raise InvalidDocument(f"{where} {error}") from error
    if not isinstance(found, Mapping):
        raise InvalidDocument(f"{where} is not a JSON object")
    return found


def _document(where: str, found: Mapping[str, Any]) -> Document:
    """id (or _id) and text; fields that are not evokey's own become metadata."""
    id = found.get("_id") if found.get("id") is None else found["id"]
    if id is None or "text" not in found:
        raise InvalidDocument(
            f"{where} needs the fields id (or _id) and text; it has {checks.list_names(found) or 'none'}"
        )
    if isinstance(id, bool) or not isinstance(id, str | int | float):
        raise InvalidDocument(f"{where}: id must be a string or a number, not {type(id).__name__}")
    title, metadata = found.get("title") or "", found.get("metadata") or {}
    if not isinstance(found["text"], str) or not isinstance(title, str):
        raise InvalidDocument(f"{where}: text and title must be strings")
    if not isinstance(metadata, Mapping):
        raise InvalidDocument(f"{where}: metadata must be an object, not {checks.shown(metadata)}")
    own = {key: value for key, value in found.items() if key not in FIELDS}
    return Document(str(id), found["text"], title, own | dict(metadata))


def _decode_table(path: Path) -> str:
    try:
        return decode_any(file_bytes(path))[0]
    except ValueError as error:
        raise InvalidDocument(f"{path} cannot be read as a table: {error}") from error


def file_bytes(path: Path, most: int | None = None) -> bytes:
    try:
        if most is not None:
            _check_size(path, most)
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _check_size(path: Path, most: int) -> None:
    size = _stat(path).st_size
    if size > most:
        raise InvalidDocument(f"{path} has {size:,} bytes; over {most:,} are too many for one document: split it")


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InvalidDocument:
    return InvalidDocument(f"{path} cannot be read: {error.strerror or error}; make it readable, or move it away")


def decode(where: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"{where} is not UTF-8 (byte {error.start} is {data[error.start : error.start + 1]!r}); "
            f"convert it, for example with iconv"
        ) from error
