"""Rows of a file, each with its place for error messages: JSONL, JSONL packed with gzip, Parquet."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evokey import checks
from evokey.errors import InvalidInput, UnknownComponent
from evokey.ingest.files import decode

Row = tuple[str, Mapping[str, Any]]
ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")


def rows(path: Path) -> Iterator[Row]:
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    for where, line in lines(path):
        try:
            found = checks.json_value(line)
        except InvalidInput as error:
            raise InvalidInput(f"{where} {error}") from error
        if not isinstance(found, Mapping):
            raise InvalidInput(f"{where} is not a JSON object")
        yield where, found


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a text file that are not blank. A line ends at a line feed and nowhere else."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                where = f"{path}, line {number}"
                line = decode(where, data).rstrip("\r\n")
                if line.strip():
                    yield where, line
    except (EOFError, gzip.BadGzipFile) as error:
        raise InvalidInput(f"{path} cannot be unpacked after line {number}: {error}. Fetch it again.") from error


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise UnknownComponent(
            f"{path} is a Parquet file, and {error.name} is not installed. Install it with: pip install 'evokey[hub]'"
        ) from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except arrow.ArrowException as error:
        raise InvalidInput(f"{path} is no valid Parquet file (after row {number}): {error}. Fetch it again.") from error


def id_of(where: str, row: Mapping[str, Any], *names: str) -> str:
    """The id under the first of these names that the row has."""
    found = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(found, bool) or not isinstance(found, str | int) or not str(found).strip():
        raise InvalidInput(
            f"{where} needs {' or '.join(names)}, a word or a whole number; it has {', '.join(row) or 'nothing'}"
        )
    return str(found)


def text_of(where: str, row: Mapping[str, Any], name: str) -> str:
    found = row.get(name)
    if not isinstance(found, str):
        raise InvalidInput(f"{where} needs {name}, a string, not {type(found).__name__}")
    return found


def texts_of(where: str, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """One text or a list of them, without what only says that there is none."""
    found = row.get(name)
    listed = found if isinstance(found, list) else [] if found is None else [found]
    if not all(isinstance(text, str | int) for text in listed):
        raise InvalidInput(f"{where}: {name} must be a string or a list of strings")
    return tuple(str(text) for text in listed if str(text).strip() not in ("", "N/A"))


def grade_of(where: str, spelled: object) -> int:
    """A grade is a whole number; some files write it as 1.0."""
    try:
        number = float(str(spelled))
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"{where}: the grade must be a whole number, not {str(spelled)!r}")
